/** The publisher of the bench, alone in its process as it is alone in its thread; prints one JSON line at the end. */
import { once } from 'node:events';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import { processEnv, readConfig } from '#runtime/process/config.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { runPublisher } from '#services/publisher/publisher.ts';
import { drainSignal } from '#test/support/drain-signal.ts';
import { openPublishing } from '#test/support/publishing.ts';
import { hangs } from './publisher-rounds.ts';

const url = process.argv[2] ?? '';
const parts = await openPublishing(url, { database: { url, connections: 48 } });
const logger = createLogger('bench', 'warn');
const draining = drainSignal();

/** Wall clock at which each target's publish call began. */
const begun: [string, number][] = [];
const watched: PlatformAdapter = {
  boundaryDeadlineMs: parts.sandbox.boundaryDeadlineMs,
  settleWindowMs: () => parts.sandbox.settleWindowMs(),
  absenceIsProof: (...asked) => parts.sandbox.absenceIsProof(...asked),
  listsOwnPosts: (...asked) => parts.sandbox.listsOwnPosts(...asked),
  reconcile: (request, boundary) => parts.sandbox.reconcile(request, boundary),
  comment: (request, signal) => parts.sandbox.comment(request, signal),
  publish: async (request, steps) => {
    begun.push([request.targetId, Date.now()]);
    if (!request.content.startsWith(hangs)) return parts.sandbox.publish(request, steps);
    await once(steps.signal, 'abort');
    throw steps.signal.reason;
  },
};
const clock = await DatabaseClock.open({ pool: parts.pool, logger });
process.stdout.write('ready\n');
await runPublisher(
  {
    store: parts.store,
    pool: parts.pool,
    blobs: parts.blobs,
    workDir: parts.workDir,
    adapterOf: () => watched,
    config: readConfig(processEnv()),
    clock,
    logger,
  },
  draining,
);
await clock.close();
await parts.close();
process.stdin.destroy();
process.stdout.write(`${JSON.stringify(begun)}\n`);
