/**
 * A process, with threads or without, that logs: `node log-writer.ts <file, or - for standard output> <threads> <lines
 * each>`. With 0 threads it logs a line for each input line, and answers how many it has dropped.
 */
import { createInterface } from 'node:readline';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { openLog } from '#runtime/process/telemetry.ts';

const limits = { bytes: Number(process.env.LOG_BYTES ?? 1024 ** 3), files: Number(process.env.LOG_FILES ?? 1_000) };
const many = (file: string, writer: string, lines: number): void => {
  const { logger } = openLog(writer, 'info', file, limits);
  for (let n = 0; n < lines; n += 1) logger.info({ n, filler: 'x'.repeat(n % 300) }, 'line');
  logger.flush();
};

if (!isMainThread) many(workerData.file, workerData.writer, workerData.lines);
else {
  const [file = '', threads = '0', lines = '0'] = process.argv.slice(2);
  for (let n = 0; n < Number(threads); n += 1) {
    const writer = `${process.pid}-${n}`;
    new Worker(new URL(import.meta.url), { workerData: { file, writer, lines: Number(lines) } });
  }
  if (threads === '0') {
    const { logger, dropped } = openLog('writer', 'info', file === '-' ? null : file, limits);
    createInterface({ input: process.stdin }).on('line', (text) => {
      logger.info({ text }, 'line');
      logger.flush();
      process.stderr.write(`${JSON.stringify({ dropped: dropped() })}\n`);
    });
  }
}
