/** The record of a restore alone in a process, to be killed: `node restores-process.ts <database url>`. */
import { createLogger } from '#runtime/process/telemetry.ts';
import { runRestores } from '#services/outcomes/restores.ts';
import { drainSignal } from '#test/support/drain-signal.ts';
import { openPublishing } from '#test/support/publishing.ts';

const parts = await openPublishing(process.argv[2] ?? '');
const draining = drainSignal();
process.stdout.write('ready\n');
await runRestores(
  {
    store: parts.store,
    pool: parts.pool,
    config: { sweepIntervalMs: 200, leaseTtlMs: 900 },
    logger: createLogger('child', process.env.LOG_LEVEL ?? 'silent'),
  },
  draining,
);
await parts.close();
process.stdin.destroy();
