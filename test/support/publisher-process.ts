/**
 * A publisher alone in a process, to be killed or stopped: `node publisher-process.ts <database url>`. Prints `ready`.
 */
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { runPublisher } from '#services/publisher/publisher.ts';
import { drainSignal } from './drain-signal.ts';
import { openPublishing, quick, quickBackOff, quickLooks, quickProcessing } from './publishing.ts';

/** Versions of the networks' APIs that it asks for. */
const versions = JSON.parse(process.env.VERSIONS ?? '{}') as Record<string, string>;
const parts = await openPublishing(process.argv[2] ?? '', { faultPoint, versions });
const draining = drainSignal();
const logger = createLogger('child', process.env.LOG_LEVEL ?? 'silent');
const clock = await DatabaseClock.open({ pool: parts.pool, logger });
process.stdout.write('ready\n');
await runPublisher(
  {
    store: parts.store,
    pool: parts.pool,
    blobs: parts.blobs,
    workDir: parts.workDir,
    adapterOf: () => parts.sandbox,
    accountsOf: () => parts.sandbox,
    config: quick,
    clock,
    logger,
    pollMs: 100,
    absencePolicy: quickLooks,
    rateLimitBackOff: quickBackOff,
    processingRest: quickProcessing,
  },
  draining,
);
await clock.close();
await parts.close();
process.stdin.destroy();
