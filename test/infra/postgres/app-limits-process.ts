/** Takes reads of a month until none is left: `node app-limits-process.ts <database url> <app> <monthly>`. */
import { randomUUID } from 'node:crypto';
import { PostgresAppLimits } from '#infra/postgres/app-limits.ts';
import { openPool } from '#infra/postgres/pool.ts';

const [url = '', app = '', monthly = ''] = process.argv.slice(2);
const pool = openPool({ url });
const limits = new PostgresAppLimits({ pool });
let taken = 0;
const reader = { app, workspaceId: randomUUID() };
while ((await limits.take(reader, 1, Number(monthly), Date.parse('2026-01-31T23:59:59.999Z'))) === 'taken') taken += 1;
await pool.end();
process.stdout.write(`taken ${taken}\n`);
