/** What becomes of the log when there is no room for it, and when it is too long. */
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { LogFile, logsAside } from '#runtime/process/log-file.ts';
import { Lines } from '#runtime/process/log-lines.ts';
import { countDropped, createRegistry, openLog } from '#runtime/process/telemetry.ts';
import { run } from '#test/support/processes.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const writer = path.join(import.meta.dirname, '../../../support/log-writer.ts');

interface Line {
  readonly name: string;
  readonly msg: string;
  readonly n?: number;
  readonly dropped?: number;
  readonly why?: string;
}

/** Lines that are not JSON become null. */
const linesOf = (file: string): (Line | null)[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((text) => text !== '')
    .map((text) => {
      try {
        return JSON.parse(text) as Line;
      } catch {
        return null;
      }
    });

suite('log without room', (t) => {
  let dir = '';
  t.before(() => {
    dir = mkdtempSync(path.join(tmpdir(), 'postline-log-'));
  });
  t.after(() => rmSync(dir, { recursive: true, force: true }));

  /** A process that may write no file longer than 16 KiB: to it the disk is full there, without anybody's rights. */
  const limited = (file: string, stdio: 'pipe' | number = 'pipe') => {
    const child: ChildProcess = spawn(
      '/bin/bash',
      ['-c', 'ulimit -f 16; exec "$0" "$@"', process.execPath, writer, file, '0'],
      {
        stdio: ['pipe', stdio, 'pipe'],
      },
    );
    afterFile(() => child.kill('SIGKILL'));
    const answers: number[] = [];
    let errors = '';
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (text) => {
      if (text.startsWith('{"dropped"')) answers.push(JSON.parse(text).dropped);
      else errors += text;
      child.emit('answer');
    });
    child.once('exit', () => child.emit('answer'));
    let asked = 0;
    /** Has it log a line. @returns how many it has dropped so far */
    const log = async (text: string): Promise<number> => {
      asked += 1;
      child.stdin?.write(`${text}\n`);
      while (answers.length < asked) {
        ok(child.exitCode === null && child.signalCode === null, `it died of its log: ${errors}`);
        await once(child, 'answer');
      }
      return answers.at(-1) ?? Number.NaN;
    };
    const end = async (): Promise<unknown> => {
      child.stdin?.end();
      if (child.exitCode === null) await once(child, 'exit');
      return child.exitCode;
    };
    return { log, end };
  };

  for (const where of ['a file', 'standard output'] as const) {
    t(`lines that ${where} has no room for are dropped; the next written line says how many`, async () => {
      const file = path.join(dir, `${where}.log`);
      const { log, end } = limited(where === 'a file' ? file : '-', where === 'a file' ? 'pipe' : openSync(file, 'a'));
      let logged = 0;
      let dropped = 0;
      for (; dropped < 20; logged += 1) {
        ok(logged < 200, 'there was room for all of it');
        dropped = await log('x'.repeat(500));
      }
      const written = linesOf(file);
      // The last one may have been cut.
      equal(written.filter((line) => line?.msg === 'line').length, logged - dropped);
      truncateSync(file);
      equal(await log('room again'), dropped);
      const [gap, line, ...more] = linesOf(file);
      deepEqual([gap?.msg, gap?.dropped, gap?.why], ['log lines could not be written', dropped, 'EFBIG']);
      deepEqual([line?.msg, more.length], ['line', 0]);
      equal(await log('and again'), dropped);
      equal(linesOf(file).filter((one) => one?.dropped !== undefined).length, 1, 'it is told once');
      equal(await end(), 0);
    });
  }

  if (existsSync('/dev/full')) {
    t('a process with a full disk under its log continues, and /metrics counts the dropped lines', async () => {
      const { logger, dropped } = openLog('full', 'info', '/dev/full');
      const registry = createRegistry('full');
      countDropped(registry, dropped);
      for (let n = 0; n < 100; n += 1) logger.info('line');
      logger.flush();
      equal(dropped(), 100);
      const reported = await registry.getMetricsAsJSON();
      deepEqual(
        reported.find(({ name }) => name === 'log_lines_dropped_total')?.values.map(({ value }) => value),
        [100],
      );
      registry.clear();
      const { code, output } = await run('test/fixtures/process.ts', { env: { WORK: 'fail', LOG_FILE: '/dev/full' } });
      equal(code, 1, output);
      ok(!/ENOSPC/.test(output), output);
    });
  }

  t('a log file that cannot be opened is a named configuration error', async () => {
    const { code, output } = await run('test/fixtures/process.ts', { env: { LOG_FILE: dir } });
    equal(code, 2, output);
    match(output, /LOG_FILE must be a file that can be written: EISDIR/);
  });

  t('dropped lines are counted exactly, and the log continues on a new line', () => {
    const wrote: string[] = [];
    let room = Number.POSITIVE_INFINITY;
    const file = path.join(dir, 'cut.log');
    writeFileSync(file, '');
    const log = new LogFile(file, { bytes: 1024 ** 2, files: 1 });
    const lines = new Lines({
      // Where there is no room: a descriptor that is none.
      descriptor: () => (room > 0 ? log.descriptor() : -1),
      gathered: 0,
      lingerMs: 60_000,
      gap: (dropped) => {
        wrote.push(`gap ${dropped}`);
        return `gap ${dropped}\n`;
      },
    });
    lines.write('one\n');
    room = 0;
    for (const line of ['two\n', 'three\n', 'four\n']) lines.write(line);
    equal(lines.dropped, 3);
    room = 1;
    lines.write('five\n');
    deepEqual(readFileSync(file, 'utf8').split('\n'), ['one', 'gap 3', 'five', '']);
    room = 0;
    lines.write('six\n');
    room = 1;
    // Without another line: the next look tells it.
    lines.flushSync();
    deepEqual(readFileSync(file, 'utf8').split('\n').slice(3), ['gap 1', '']);
    equal(lines.dropped, 4);
  });

  t('a lone line is written soon, and the count of dropped lines does not wait for another line', async () => {
    const file = path.join(dir, 'soon.log');
    writeFileSync(file, '');
    const log = new LogFile(file, { bytes: 1024 ** 2, files: 1 });
    let room = true;
    const descriptor = () => (room ? log.descriptor() : -1);
    const lines = new Lines({ descriptor, gathered: 1_000, lingerMs: 20, gap: (dropped) => `gap ${dropped}\n` });
    const written = () => readFileSync(file, 'utf8');
    lines.write('one\n');
    equal(written(), '');
    await until('the first line', async () => written() === 'one\n');
    room = false;
    lines.write('two\n');
    await until('the second to be dropped', async () => lines.dropped === 1);
    room = true;
    await until('the gap', async () => written() === 'one\ngap 1\n');
  });
});

suite('log rotation by size and count', (t) => {
  let dir = '';
  t.before(() => {
    dir = mkdtempSync(path.join(tmpdir(), 'postline-log-'));
  });
  t.after(() => rmSync(dir, { recursive: true, force: true }));

  t('threads and processes that share a log lose and cut no line while it is rotated', async () => {
    const file = path.join(dir, 'shared.log');
    const env = { LOG_BYTES: '65536' };
    const [processes, threads, lines] = [2, 3, 1_500];
    const ended = await Promise.all(
      Array.from({ length: processes }, () =>
        run('test/support/log-writer.ts', { env, args: [file, String(threads), String(lines)] }),
      ),
    );
    for (const { code, output } of ended) equal(code, 0, output);
    const files = [...logsAside(file), file];
    ok(files.length > 10, `only ${files.length} files`);
    const all = files.flatMap(linesOf);
    ok(!all.includes(null), 'a line was cut');
    const seen = new Map<string, number[]>();
    for (const line of all) seen.set(line?.name ?? '', [...(seen.get(line?.name ?? '') ?? []), line?.n ?? -1]);
    equal(seen.size, processes * threads);
    for (const [name, numbers] of seen) {
      deepEqual(
        numbers.sort((a, b) => a - b),
        Array.from({ length: lines }, (_, n) => n),
        name,
      );
    }
  });

  t('a writer that rotates many times within a millisecond loses no line', () => {
    const file = path.join(dir, 'quick.log');
    const log = new LogFile(file, { bytes: 1, files: 1_000 });
    for (let n = 0; n < 500; n += 1) writeSync(log.descriptor(), `${n}\n`);
    deepEqual(
      [...logsAside(file), file].flatMap((one) => readFileSync(one, 'utf8').split('\n').filter(Boolean)),
      Array.from({ length: 500 }, (_, n) => String(n)),
    );
  });

  t('the newest files are kept up to the given number; foreign files stay', async () => {
    const file = path.join(dir, 'kept.log');
    writeFileSync(`${file}.old`, 'mine');
    const { logger } = openLog('kept', 'info', file, { bytes: 2_000, files: 3 });
    for (let n = 0; n < 400; n += 1) {
      logger.info({ n }, 'line');
      if (n % 10 === 0) logger.flush();
    }
    logger.flush();
    equal(logsAside(file).length, 3);
    const numbers = [...logsAside(file), file].flatMap(linesOf).map((line) => line?.n);
    equal(numbers.at(-1), 399);
    ok(statSync(file).size < 4_000);
    equal(readFileSync(`${file}.old`, 'utf8'), 'mine');
  });

  t('a log file that another program moved or removed is created again', () => {
    const file = path.join(dir, 'moved.log');
    const { logger } = openLog('moved', 'info', file);
    logger.info('one');
    logger.flush();
    rmSync(file);
    logger.info('two');
    logger.flush();
    deepEqual(
      linesOf(file).map((line) => line?.msg),
      ['two'],
    );
  });

  if (process.getuid?.() !== 0) {
    t('a log that cannot be renamed continues', () => {
      const closed = path.join(dir, 'closed');
      mkdirSync(closed);
      const file = path.join(closed, 'x.log');
      const { logger } = openLog('closed', 'info', file, { bytes: 500, files: 1 });
      chmodSync(closed, 0o500);
      for (let n = 0; n < 50; n += 1) {
        logger.info('line');
        logger.flush();
      }
      chmodSync(closed, 0o700);
      equal(linesOf(file).length, 50);
    });
  }
});
