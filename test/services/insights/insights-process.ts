/** A metrics process alone, to be killed or stopped: `node metrics-process.ts <database url>`. Says `ready`. */
import { openPostgresLog } from '#infra/postgres/log.ts';
import { startInsights } from '#services/insights/observer.ts';
import { openPublishing } from '#test/support/publishing.ts';
import { observerOf } from './world.ts';

const url = process.argv[2] ?? '';
const parts = await openPublishing(url);
const log = await openPostgresLog({ url, store: parts.eventStore });
const draining = new AbortController();
process.on('SIGTERM', () => draining.abort());
// The parent's pipe closes however the parent ends: nothing is left behind.
process.stdin.on('end', () => draining.abort()).resume();
const { done } = startInsights(observerOf(parts, log), draining.signal);
process.stdout.write('ready\n');
await done;
await log.close();
await parts.close();
process.stdin.destroy();
