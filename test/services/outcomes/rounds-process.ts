/** One kind of rounds alone in a process, to be killed: `node rounds-process.ts <database url> <overdue, restores or notices>`. */
import { createLogger } from '#runtime/process/telemetry.ts';
import { runNotices } from '#services/outcomes/notices.ts';
import { runOverdue } from '#services/outcomes/overdue.ts';
import { runRestores } from '#services/outcomes/restores.ts';
import { drainSignal } from '#test/support/drain-signal.ts';
import { openPublishing } from '#test/support/publishing.ts';

const [url = '', kind] = process.argv.slice(2);
const parts = await openPublishing(url);
const draining = drainSignal();
process.stdout.write('ready\n');
const rounds = { overdue: runOverdue, restores: runRestores, notices: runNotices };
await rounds[kind as keyof typeof rounds](
  {
    now: Date.now,
    store: parts.store,
    pool: parts.pool,
    config: { sweepIntervalMs: 200, leaseTtlMs: 900 },
    logger: createLogger('child', process.env.LOG_LEVEL ?? 'silent'),
  },
  draining,
);
await parts.close();
process.stdin.destroy();
