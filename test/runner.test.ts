/** The runner is trusted by everything else, so each way a file can go wrong is a fixture that it must call red. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { rowsOfRun } from '#test/support/drawing.ts';
import { offerServers, serverOfRun } from '#test/support/run-servers.ts';
import { drawnOf, PARTS, partOf, random } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const root = path.resolve(import.meta.dirname, '..');
const fixtures = path.join(root, 'test/support/fixtures/runner');

interface Run {
  readonly code: number | null;
  readonly output: string;
  readonly last: string;
}

async function run(args: readonly string[], env: Record<string, string> = {}): Promise<Run> {
  const command = [path.join(root, 'test/run.ts'), '--dir', fixtures, ...args];
  const child = spawn(process.execPath, command, { env: { ...process.env, CI: '', ...env } });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.on('data', (chunk) => {
    output += chunk;
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output, last: output.trimEnd().split('\n').at(-1) ?? '' };
}

/** Half of the least time is a child's. */
const busiest = /\nbusiest: .*\/busy\.test\.ts (0\.[2-9]|[1-9]\.\d) s/;
const ofTheFile = /\/busy\.test\.ts {2}1 passed {2}\d+\.\d s \((0\.[2-9]|[1-9]\.\d) s\)\n/;
const rested = /\ntook \d+\.\d s, the processors at rest for \d+ % of it\n/;

/** One fixture: the last line, the exit code, and words that must be in the output. */
const cases: readonly [fixture: string, last: string, code: number, ...words: RegExp[]][] = [
  ['/green', '2 passed, 0 failed', 0],
  ['/busy', '1 passed, 0 failed', 0, busiest, ofTheFile, rested],
  ['/serial', '1 passed, 0 failed', 0],
  [
    '/skips',
    '1 passed, 0 failed, 2 skipped',
    0,
    /cannot run: no moon tonight/,
    /extra: .*could run too: no second moon/,
  ],
  ['/fails', '1 passed, 1 failed', 1, /a reason to print/, /fails: fails/],
  ['/hook', '0 passed, 1 failed', 1, /the world was not built/],
  ['/empty', '0 passed, 1 failed', 1, /crashed \(exit code 0\), in: no test yet/],
  ['/crash', '0 passed, 1 failed', 1, /crashed \(exit code 1\), in: crash: dies/],
  ['/deadlock', '0 passed, 1 failed', 1, /in: deadlock: waits for nobody/],
  ['/hidden', '1 passed, 1 failed', 1, /not in a form the runner can read/],
  ['no such file', '0 passed, 1 failed', 1, /nothing ran/],
];

suite('test runner', (t) => {
  // The run of all files below has all of them, too.
  for (const [fixture, last, code, ...words] of rowsOfRun('ways of a file to end', cases, ([fixture]) => fixture)) {
    t(`${fixture} ends with "${last}"`, async () => {
      const result = await run(['--only', fixture]);
      for (const word of words) assert.match(result.output, word);
      assert.deepEqual([result.last, result.code], [last, code], result.output);
    });
  }

  t('a skip is a failure on CI, unless the tool that it wants is an extra', async () => {
    const { last, code } = await run(['--only', '/skips'], { CI: 'true' });
    assert.deepEqual([last, code], ['1 passed, 1 failed', 1]);
  });

  t('of drawn files a run takes its part of what they cost, and in time each', () => {
    const costs = [80, 60, 40, 30, 30, 20, 20, 20, 20, ...Array(10).fill(10), ...Array(20).fill(5)];
    const fair = costs.reduce((sum, one) => sum + one, 0) / PARTS;
    const runs = Array.from({ length: 100 }, (_, seed) =>
      partOf([...costs.keys()], (n) => costs[n] ?? 0, random(seed)),
    );
    for (const taken of runs) {
      const cost = taken.reduce((sum, n) => sum + (costs[n] ?? 0), 0);
      assert.ok(Math.abs(cost - fair) <= 10, `${taken.join()} cost ${cost}`);
    }
    assert.equal(new Set(runs.flat()).size, costs.length);
    assert.ok(new Set(runs.map((taken) => taken.toSorted().join())).size > 20, 'other ones go together each time');
    assert.deepEqual(
      partOf([], () => 1, random(1)),
      [],
    );
  });

  t('of long tables a run takes one of few neighbours, and in time each', () => {
    for (const length of [1, 2, PARTS, PARTS + 1, 2 * PARTS - 1, 2 * PARTS + 1, 5 * PARTS]) {
      const count = Math.max(1, Math.round(length / PARTS));
      const rows = Array.from({ length }, (_, n) => n);
      const runs = Array.from({ length: 100 }, (_, seed) => drawnOf(rows, random(seed)));
      for (const drawn of runs) {
        assert.deepEqual(
          drawn.map((n) => Math.floor(((n + 0.5) * count) / length)),
          [...Array(count).keys()],
        );
      }
      assert.deepEqual(
        [...new Set(runs.flat())].sort((a, b) => a - b),
        rows,
      );
    }
    assert.deepEqual(drawnOf([], random(1)), []);
  });

  t('a run that draws takes the same rows of a table for the same seed, any other run all', () => {
    const rows = Array.from({ length: 12 }, (_, n) => n);
    const { TEST_DRAWS } = process.env;
    const taken = (table: string, seed: number) => {
      process.env.TEST_DRAWS = String(seed);
      return rowsOfRun(table, rows, String).join();
    };
    try {
      const seeds = Array.from({ length: 50 }, (_, seed) => [taken('a', seed), taken('b', seed)] as const);
      assert.deepEqual(
        seeds,
        seeds.map((_, seed) => [taken('a', seed), taken('b', seed)]),
      );
      assert.ok(seeds.some(([a, b]) => a !== b) && new Set(seeds.map(([a]) => a)).size > 10);
      delete process.env.TEST_DRAWS;
      assert.deepEqual(rowsOfRun('a', rows, String), rows);
    } finally {
      if (TEST_DRAWS !== undefined) process.env.TEST_DRAWS = TEST_DRAWS;
    }
  });

  if (process.platform === 'linux') {
    t('a process left behind fails its file and is ended', async () => {
      const { output, last } = await run(['--only', '/orphan']);
      assert.equal(last, '1 passed, 1 failed', output);
      assert.match(output, /left running: sleep 31\.4159/);
    });
  } else t.skip('a process left behind fails its file and is ended', 'needs /proc');

  t('in a run of all files, which take turns, each gets what is its own and the serial one comes last', async () => {
    const { output, last } = await run([]);
    const orphans = process.platform === 'linux' ? 1 : 0;
    assert.equal(last, `11 passed, ${8 + orphans} failed, 2 skipped`, output);
    assert.match(output, busiest);
    const [, failed = ''] = output.split('\nfailed:\n');
    for (const [file, words] of Object.entries({
      ...{ crash: 'exit code 1), in: crash: dies', deadlock: 'in: deadlock: waits for nobody', hook: 'before hook' },
      ...{
        fails: 'fails: fails',
        hangs: 'time limit of 500 ms, in: hangs: waits for ever',
        'stays-open': 'exit code 1',
      },
    })) {
      const lines = failed.split('\n').filter((line) => line.includes(`/${file}.test.ts: `));
      assert.ok(lines.length === 1 && lines[0]?.includes(words), output);
    }
    const outputOf = (name: string): string =>
      output.slice(
        output.indexOf(`FAIL  test/support/fixtures/runner/${name}`),
        output.indexOf(`end of test/support/fixtures/runner/${name}`),
      );
    assert.match(outputOf('fails'), /a reason to print/);
    assert.match(outputOf('stays-open'), /still alive 300 ms after its last test: .*TCPServerWrap/);
    assert.ok(output.indexOf('/serial.test.ts') > output.indexOf('/skips.test.ts'), output);
  });

  t('a file that hits its time limit once passes when run again, and is named above the last line', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'runner-'));
    const env = { UNSTEADY_MARK: path.join(folder, 'mark') };
    const { output, last, code } = await run(['--only', '/unsteady'], env);
    rmSync(folder, { recursive: true });
    assert.match(output, /time limit of 500 ms, in: unsteady: hangs once/);
    assert.match(output, /\nunsteady: \S+\/unsteady\.test\.ts\n.+\n$/, output);
    assert.deepEqual([last, code], ['2 passed, 0 failed', 0], output);
  });

  t('a file that fails twice is red, not unsteady', async () => {
    const { output, last, code } = await run(['--only', '/fails']);
    assert.match(output, /UNSTEADY {2}\S+\/fails\.test\.ts failed; once more, alone:/);
    assert.ok(!/^unsteady:/m.test(output), output);
    assert.deepEqual([last, code], ['1 passed, 1 failed', 1]);
  });

  t('a file run alone ends with the verdict as its exit code', async () => {
    const alone = (file: string) =>
      new Promise<number | null>((resolve) => {
        spawn(process.execPath, [path.join(fixtures, file)], { stdio: 'ignore' }).once('close', resolve);
      });
    const files = ['green', 'skips', 'fails', 'hook', 'crash', 'deadlock'];
    const codes = await Promise.all(files.map((file) => alone(`${file}.test.ts`)));
    assert.deepEqual(codes.map(Boolean), [false, false, true, true, true, true]);
  });

  t('a server that a run offers starts once, as the first file asks, and why it does not start is told', async () => {
    const starts = { good: 0, bad: 0 };
    const offered = await offerServers({
      good: async () => ({ port: 4_000 + ++starts.good }),
      bad: async () => Promise.reject(new Error(`no room ${++starts.bad}`)),
    });
    assert.deepEqual(starts, { good: 0, bad: 0 });
    const { url } = offered;
    const places = await Promise.all([serverOfRun('good', url), serverOfRun('good', url)]);
    assert.deepEqual(places, [{ port: 4_001 }, { port: 4_001 }]);
    for (const _ of [1, 2]) await assert.rejects(serverOfRun('bad', url), /the run has no bad: Error: no room 1/);
    await assert.rejects(serverOfRun('other', url), /nobody starts it/);
    assert.equal(await serverOfRun('good', null), null);
    offered.close();
  });
});
