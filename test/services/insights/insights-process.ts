/** An insights worker alone in a process, to be killed or stopped: `node insights-process.ts <database url>`. Says `ready`. */
import { startInsights } from '#services/insights/worker.ts';
import { workerProcess } from '#test/support/worker-process.ts';
import { observerOf } from './world.ts';

await workerProcess(process.argv[2] ?? '', (parts, log, signal) => startInsights(observerOf(parts, log), signal));
