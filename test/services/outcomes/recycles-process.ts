/** The copies of recycled posts alone in a process, to be killed: `node recycles-process.ts <database url> <ms ahead>`. */
import { createLogger } from '#runtime/process/telemetry.ts';
import { runRecycles } from '#services/outcomes/recycles.ts';
import { drainSignal } from '#test/support/drain-signal.ts';
import { openPublishing } from '#test/support/publishing.ts';

const [url = '', aheadMs = '0'] = process.argv.slice(2);
const parts = await openPublishing(url);
const draining = drainSignal();
process.stdout.write('ready\n');
await runRecycles(
  {
    store: parts.store,
    pool: parts.pool,
    now: () => Date.now() + Number(aheadMs),
    config: { sweepIntervalMs: 200, leaseTtlMs: 900 },
    logger: createLogger('child', process.env.LOG_LEVEL ?? 'silent'),
  },
  draining,
);
await parts.close();
process.stdin.destroy();
