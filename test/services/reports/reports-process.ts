/** A reports worker alone in a process, to be killed or stopped: `node reports-process.ts <database> <clickhouse>`. Says `ready`. */
import { openPostgresLog } from '#infra/postgres/log.ts';
import { startReports } from '#services/reports/reports.ts';
import { openPublishing } from '#test/support/publishing.ts';
import { workerOf } from './world.ts';

const [, , url = '', clickhouseUrl = ''] = process.argv;
const parts = await openPublishing(url);
const log = await openPostgresLog({ url, store: parts.eventStore });
const draining = new AbortController();
process.on('SIGTERM', () => draining.abort());
// The parent's pipe closes however the parent ends: nothing is left behind.
process.stdin.on('end', () => draining.abort()).resume();
const { deps, close } = workerOf(parts, log, clickhouseUrl);
const { done } = startReports(deps, draining.signal);
process.stdout.write('ready\n');
await done;
await close();
await log.close();
await parts.close();
process.stdin.destroy();
