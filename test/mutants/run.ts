/**
 * `make mutants`: changes one place of a decider at a time and runs the decider's own tests; a change that they do not
 * notice is a rule that no test holds. `--help` lists the options.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type MutatedFile, mutatedFiles } from './table.ts';

const help = `make mutants ARGS="[--only <text>] [--lines <first>-<last>] [--at-once <n>]"

  --only <text>      files that have it in their path
  --lines <10-20>    changes on these lines alone; the threshold is not checked
  --at-once <n>      test processes at once, 2 unless told
  --help             print this`;

/** StrykerJS has a package of its own. */
const stryker = path.join(import.meta.dirname, 'stryker');
const installed = path.resolve(import.meta.dirname, '../../node_modules/.cache/stryker');
const root = path.resolve(import.meta.dirname, '../..');
const folder = `.mutants-${process.pid}`;
/** Of one test: a change with which it computes without end is noticed, however busy the machine is. */
const processorSeconds = 10;
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const { values } = parseArgs({
  options: {
    ...{ help: { type: 'boolean' }, only: { type: 'string', default: '' } },
    ...{ lines: { type: 'string' }, 'at-once': { type: 'string', default: '2' } },
  },
});

/** A change that StrykerJS made, and what came of it; lines and columns count from 1. */
interface Result {
  readonly status: 'Killed' | 'Survived' | 'Timeout' | 'Ignored' | 'CompileError' | 'RuntimeError' | 'NoCoverage';
  readonly location: { readonly start: Place; readonly end: Place };
  readonly replacement?: string;
}

interface Place {
  readonly line: number;
  readonly column: number;
}

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

/** @throws when the program cannot be started or fails: its own words are above. */
const run = (program: string, args: readonly string[], cwd: string = root): void => {
  const { status, error } = spawnSync(program, args, { cwd, stdio: ['ignore', 2, 2] });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args[0] ?? ''} ended with ${status}`);
};

/**
 * StrykerJS is 160 packages that nothing else needs: the first run installs them beside the installed packages, and no
 * start waits for them.
 */
const install = (): void => {
  mkdirSync(installed, { recursive: true });
  const wanted = readFileSync(path.join(stryker, 'package-lock.json'), 'utf8');
  const stamp = path.join(installed, 'installed.json');
  for (const name of readdirSync(stryker)) cpSync(path.join(stryker, name), path.join(installed, name));
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  print('Installing StrykerJS (once)…');
  run('npm', ['ci', '--no-fund', '--no-audit', '--loglevel=error'], installed);
  writeFileSync(stamp, wanted);
};

const changesOf = ({ file, tests, excluded = [] }: MutatedFile): readonly Result[] => {
  const lines = values.lines === undefined ? '' : `:${values.lines}`;
  const options = {
    mutate: [`${file}${lines}`],
    mutator: { excludedMutations: excluded },
    testRunner: 'command',
    commandRunner: {
      command: [`ulimit -t ${processorSeconds}`, ...tests.map((one) => `"${process.execPath}" ${one}`)].join(' && '),
    },
    coverageAnalysis: 'off',
    concurrency: Number(values['at-once']),
    timeoutMS: 120_000,
    tempDirName: `${folder}/sandbox`,
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
    logLevel: 'error',
    allowConsoleColors: false,
  };
  const results = path.join(root, folder, 'results.json');
  mkdirSync(path.dirname(results), { recursive: true });
  run(process.execPath, [path.join(installed, 'run.mjs'), JSON.stringify(options), results]);
  return JSON.parse(readFileSync(results, 'utf8')) as Result[];
};

/** @returns whether the tests of the file notice enough. */
const report = (row: MutatedFile, results: readonly Result[], seconds: number): boolean => {
  const { file, threshold, survivors } = row;
  const source = readFileSync(path.join(root, file), 'utf8').split('\n');
  const valid = results.filter(({ status }) => status !== 'Ignored' && status !== 'CompileError');
  const alive = valid
    .filter(({ status }) => status !== 'Killed' && status !== 'Timeout')
    .map((one) => changeOf(source, one));
  const isNamed = (one: Change): boolean =>
    survivors.some(
      ({ from, to, within = '' }) =>
        from === one.from && to === one.to && (source[one.line - 1] ?? '').includes(within),
    );
  const unnamed = alive.filter((one) => !isNamed(one));
  const named = alive.length - unnamed.length;
  const counted = valid.length - named;
  const score = counted === 0 ? 100 : (100 * (counted - unnamed.length)) / counted;
  const isEnough = values.lines !== undefined || (score >= threshold && valid.length > 0);
  const hung = valid.filter(({ status }) => status === 'Timeout').length;
  const notes = [
    isEnough ? '' : `, below ${threshold} %`,
    named === 0 ? '' : `, beside ${named} that the table names`,
    hung === 0 ? '' : `, ${hung} by the time limit alone`,
  ];
  print(`${file}: ${score.toFixed(1)} % of ${counted} noticed${notes.join('')} (${Math.round(seconds)} s)`);
  for (const { line, from, to } of unnamed) print(`  line ${line}: ${from}  →  ${to}`);
  return isEnough;
};

const main = (): number => {
  if (values.help) {
    print(help);
    return 0;
  }
  const chosen = mutatedFiles.filter(({ file }) => file.includes(values.only));
  if (chosen.length === 0) throw new Error(`no file of the table has "${values.only}" in its path`);
  install();
  const below: string[] = [];
  for (const [index, row] of chosen.entries()) {
    print(`${index + 1} of ${chosen.length}: ${row.file}`);
    const begun = performance.now();
    const results = changesOf(row);
    if (!report(row, results, (performance.now() - begun) / 1_000)) below.push(row.file);
  }
  const held = values.lines === undefined ? 'each file keeps its threshold' : 'lines alone have no threshold';
  print(
    below.length === 0 ? `${chosen.length} of ${mutatedFiles.length} files; ${held}` : `below: ${below.join(', ')}`,
  );
  return below.length === 0 ? 0 : 1;
};

process.chdir(root);
// Random tests make the same choices for every change, one failure is enough, and each process finds what the one before
// compiled.
Object.assign(process.env, { SEED: '1', TEST_END_AT: 'failure', NODE_COMPILE_CACHE: path.join(root, folder, 'cache') });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));
process.on('exit', () => rmSync(path.join(root, folder), { recursive: true, force: true }));
process.exitCode = main();
