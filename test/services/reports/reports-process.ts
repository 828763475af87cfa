/** A reports worker alone in a process, to be killed or stopped: `node reports-process.ts <database> <clickhouse>`. Says `ready`. */
import { startReports } from '#services/reports/reports.ts';
import { workerProcess } from '#test/support/worker-process.ts';
import { workerOf } from './world.ts';

const [, , url = '', clickhouseUrl = ''] = process.argv;
await workerProcess(url, (parts, log, signal) => {
  const { deps, close } = workerOf(parts, log, clickhouseUrl);
  return { done: startReports(deps, signal).done, close };
});
