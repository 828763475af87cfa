/**
 * `make mutants`: changes one place of a decider at a time and runs the decider's own tests; a change that they do not
 * notice is a rule that no test holds. `--help` lists the options.
 */
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { type MutatedFile, mutatedFiles } from './table.ts';

const help = `make mutants ARGS="[--only <text>] [--lines <first>-<last>] [--at-once <n>]"

  --only <text>      files that have it in their path
  --lines <10-20>    changes on these lines alone; the threshold is not checked
  --at-once <n>      test processes at once, 2 unless told
  --help             print this`;

const root = path.resolve(import.meta.dirname, '../..');
const folder = `.mutants-${process.pid}`;
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const { values } = parseArgs({
  options: {
    ...{ help: { type: 'boolean' }, only: { type: 'string', default: '' } },
    ...{ lines: { type: 'string' }, 'at-once': { type: 'string', default: '2' } },
  },
});

type LogLevel = NonNullable<ConstructorParameters<typeof Stryker>[0]['logLevel']>;
type Result = Awaited<ReturnType<Stryker['runMutationTest']>>[number];

interface Change {
  readonly line: number;
  readonly from: string;
  readonly to: string;
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** What the change replaced, read from the source: Stryker tells only where it stands. */
const changeOf = (source: readonly string[], { location, replacement }: Result): Change => {
  const { start, end } = location;
  const lines = source.slice(start.line - 1, end.line);
  lines.push((lines.pop() ?? '').slice(0, end.column - 1));
  lines[0] = (lines[0] ?? '').slice(start.column - 1);
  return { line: start.line, from: oneLine(lines.join('\n')), to: oneLine(replacement ?? '') };
};

const changesOf = async ({ file, tests }: MutatedFile): Promise<readonly Result[]> => {
  const lines = values.lines === undefined ? '' : `:${values.lines}`;
  const stryker = new Stryker({
    mutate: [`${file}${lines}`],
    testRunner: 'command',
    commandRunner: { command: tests.map((one) => `"${process.execPath}" ${one}`).join(' && ') },
    coverageAnalysis: 'off',
    concurrency: Number(values['at-once']),
    timeoutMS: 20_000,
    tempDirName: folder,
    cleanTempDir: 'always',
    ignorePatterns: [
      'data',
      'contracts/*.json',
      'test/fixtures',
      'test/e2e',
      'test/bench',
      '.mutants-*',
      'tsconfig.json',
    ],
    disableTypeChecks: false,
    reporters: [],
    logLevel: 'error' as LogLevel,
    allowConsoleColors: false,
  });
  return stryker.runMutationTest();
};

/** @returns whether the tests of the file notice enough. */
const report = (row: MutatedFile, results: readonly Result[]): boolean => {
  const { file, threshold, survivors } = row;
  const source = readFileSync(path.join(root, file), 'utf8').split('\n');
  const valid = results.filter(({ status }) => status !== 'Ignored' && status !== 'CompileError');
  const alive = valid
    .filter(({ status }) => status !== 'Killed' && status !== 'Timeout')
    .map((one) => changeOf(source, one));
  const isNamed = (one: Change): boolean => survivors.some(({ from, to }) => from === one.from && to === one.to);
  const unnamed = alive.filter((one) => !isNamed(one));
  const named = alive.length - unnamed.length;
  const counted = valid.length - named;
  const score = counted === 0 ? 100 : (100 * (counted - unnamed.length)) / counted;
  const isEnough = values.lines !== undefined || score >= threshold;
  const rest = named === 0 ? '' : `, beside ${named} that the table names`;
  print(`${file}: ${score.toFixed(1)} % of ${counted} noticed${isEnough ? '' : `, below ${threshold} %`}${rest}`);
  for (const { line, from, to } of unnamed) print(`  line ${line}: ${from}  →  ${to}`);
  return isEnough;
};

const main = async (): Promise<number> => {
  if (values.help) {
    print(help);
    return 0;
  }
  const chosen = mutatedFiles.filter(({ file }) => file.includes(values.only));
  if (chosen.length === 0) throw new Error(`no file of the table has "${values.only}" in its path`);
  const below: string[] = [];
  for (const [index, row] of chosen.entries()) {
    print(`${index + 1} of ${chosen.length}: ${row.file}`);
    if (!report(row, await changesOf(row))) below.push(row.file);
  }
  const held = values.lines === undefined ? 'each file keeps its threshold' : 'lines alone have no threshold';
  print(
    below.length === 0 ? `${chosen.length} of ${mutatedFiles.length} files; ${held}` : `below: ${below.join(', ')}`,
  );
  return below.length === 0 ? 0 : 1;
};

process.chdir(root);
// Random tests make the same choices for every change, and each process finds what the one before compiled.
Object.assign(process.env, { SEED: '1', NODE_COMPILE_CACHE: path.join(root, folder, 'cache') });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));
process.on('exit', () => rmSync(path.join(root, folder), { recursive: true, force: true }));
process.exitCode = await main();
