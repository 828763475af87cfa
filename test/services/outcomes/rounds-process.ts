/** One kind of rounds alone in a process, to be killed: `node rounds-process.ts <database url> <overdue or restores>`. */
import { createLogger } from '#runtime/process/telemetry.ts';
import { runOverdue } from '#services/outcomes/overdue.ts';
import { runRestores } from '#services/outcomes/restores.ts';
import { drainSignal } from '#test/support/drain-signal.ts';
import { openPublishing } from '#test/support/publishing.ts';

const [url = '', kind] = process.argv.slice(2);
const parts = await openPublishing(url);
const draining = drainSignal();
process.stdout.write('ready\n');
await (kind === 'restores' ? runRestores : runOverdue)(
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
