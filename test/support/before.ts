/** The previous build: its sources, unpacked where they run on the packages of this tree. */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const fixtures = fileURLToPath(new URL('../fixtures/', import.meta.url));
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));

/** Creates every table as that build does, in its own names, so that the older build always comes first. */
const makeTables = `
import { openParts } from '#infra/parts.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { migrateAnalytics } from '#projections/analytics/live.ts';
import { migrate as migrateReadModels } from '#projections/tables.ts';
import { migrateMint } from '#projections/webhooks/mint.ts';
import { migrate as migrateWebhooks } from '#projections/webhooks/tables.ts';
import { processEnv, readConfig } from '#runtime/config.ts';
import { migrate as migratePositions } from '#runtime/consume/positions.ts';
import { migrateLeases } from '#runtime/leases.ts';
import { migrateProgress } from '#runtime/progress.ts';
import { Secrets } from '#runtime/secrets.ts';
import { migrateMedia } from '#services/media/tables.ts';
import { migrateMetrics } from '#services/metrics/tables.ts';
import { migrateReports } from '#services/reports/tables.ts';
import { migrateSender } from '#services/webhooks/statements.ts';

const config = readConfig(processEnv());
const parts = await openParts({ name: 'before', config, secrets: new Secrets(config.secretKey) });
const sandbox = new SandboxNetwork({ database: { pool: parts.pool } });
await sandbox.migrate();
for (const migrate of [migratePositions, migrateReadModels, migrateWebhooks, migrateMint, migrateSender, migrateLeases,
  migrateProgress, migrateMedia, migrateMetrics, migrateReports, migrateAnalytics]) await migrate(parts.pool);
await parts.close();
`;

/** As test/faults/workers.ts, in the names of that build. */
const workers = `
await Promise.all([
  import('#projections/main.ts'),
  import('#services/outcomes/main.ts'),
  import('#services/publisher/main.ts'),
  import('#services/webhooks/main.ts'),
  import('#services/media/main.ts'),
  import('#services/metrics/main.ts'),
  import('#services/reports/main.ts'),
]);
`;

export interface Before {
  /** Folder of its mains. */
  readonly root: string;
  readonly commit: string;
  /** Program under the folder that creates its tables; its environment says where. */
  readonly makeTables: string;
  /** As test/faults/workers.ts, with its own workers. */
  readonly workers: string;
}

/** Kept between runs in the user's cache: Node's compile cache goes by path. */
export const unpackBefore = (): Before => {
  const archive = readFileSync(path.join(fixtures, 'before.tar.gz'));
  const name = hash('sha256', Buffer.concat([archive, Buffer.from(modules + makeTables + workers)]), 'hex').slice(
    0,
    16,
  );
  const cache = path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'), 'postline', 'before');
  const root = path.join(cache, name);
  if (!existsSync(root)) {
    const fresh = `${root}.${process.pid}`;
    mkdirSync(fresh, { recursive: true });
    execFileSync('tar', ['-xz', '-C', fresh], { input: archive });
    symlinkSync(modules, path.join(fresh, 'node_modules'));
    writeFileSync(path.join(fresh, 'make-tables.ts'), makeTables);
    writeFileSync(path.join(fresh, 'workers.ts'), workers);
    try {
      renameSync(fresh, root);
    } catch (error) {
      // Another test file was quicker.
      if (!existsSync(root)) throw error;
      rmSync(fresh, { recursive: true, force: true });
    }
  }
  const commit = readFileSync(path.join(fixtures, 'before.commit'), 'utf8').trim();
  return { root, commit, makeTables: 'make-tables.ts', workers: 'workers.ts' };
};
