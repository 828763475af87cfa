/** Takes from the budget of a day until nothing is left: `node app-limits-process.ts <database url> <app> <limit>`. */
import { randomUUID } from 'node:crypto';
import { windowAt } from '#domain/platforms/index.ts';
import { PostgresAppLimits } from '#infra/postgres/app-limits.ts';
import { openPool } from '#infra/postgres/pool.ts';

const [url = '', app = '', limit = ''] = process.argv.slice(2);
const pool = openPool({ url });
const limits = new PostgresAppLimits({ pool });
let taken = 0;
const reader = { app, workspaceId: randomUUID() };
const now = Date.parse('2026-11-01T08:59:59.999Z');
const budget = {
  name: 'uploads',
  limit: Number(limit),
  ...windowAt({ zone: 'America/Los_Angeles', every: 'day' }, now),
};
while ((await limits.take(reader, 1, budget, now)) === 'taken') taken += 1;
await pool.end();
process.stdout.write(`taken ${taken}\n`);
