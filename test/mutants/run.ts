/**
 * `make mutants`: changes one place of a decider at a time and runs the decider's own tests; a change that they do not
 * notice is a rule that no test holds. `--help` lists the options.
 */
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Job, Learnt, Outcome } from './child.ts';
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
const folder = path.join(root, `.mutants-${process.pid}`);
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const { values } = parseArgs({
  options: {
    ...{ help: { type: 'boolean' }, only: { type: 'string', default: '' } },
    ...{ lines: { type: 'string' }, 'at-once': { type: 'string', default: '2' } },
  },
});

/** A change that StrykerJS made; its lines and columns count from 0. */
interface Change {
  readonly id: string;
  readonly location: { readonly start: Place; readonly end: Place };
  readonly replacement: string;
}

interface Place {
  readonly line: number;
  readonly column: number;
}

/** As the table names it; the line counts from 1. */
interface Shown {
  readonly line: number;
  readonly from: string;
  readonly to: string;
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** What the change replaced, read from the source: Stryker tells only where it stands. */
const shown = (source: readonly string[], { location, replacement }: Change): Shown => {
  const { start, end } = location;
  const lines = source.slice(start.line, end.line + 1);
  lines.push((lines.pop() ?? '').slice(0, end.column));
  lines[0] = (lines[0] ?? '').slice(start.column);
  return { line: start.line + 1, from: oneLine(lines.join('\n')), to: oneLine(replacement) };
};

/** @throws when the program cannot be started or fails: its own words are above. */
const run = (program: string, args: readonly string[], cwd: string = root): void => {
  const { status, error } = spawnSync(program, args, { cwd, stdio: ['ignore', 2, 2] });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args[0] ?? ''} ended with ${status}`);
};

/**
 * StrykerJS is 80 packages that nothing else needs: the first run installs them beside the installed packages, and no
 * start waits for them.
 */
const install = (): void => {
  mkdirSync(installed, { recursive: true });
  const names = ['package.json', 'package-lock.json', 'change.mjs'];
  const wanted = names.map((name) => readFileSync(path.join(stryker, name), 'utf8')).join('');
  const stamp = path.join(installed, 'installed.json');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  for (const name of names) cpSync(path.join(stryker, name), path.join(installed, name));
  print('Installing StrykerJS (once)…');
  run('npm', ['ci', '--no-fund', '--no-audit', '--loglevel=error'], installed);
  writeFileSync(stamp, wanted);
};

/** The text of a file with every change behind a switch, and the changes. */
const changed = ({
  file,
  excluded = [],
}: MutatedFile): { readonly text: string; readonly changes: readonly Change[] } => {
  const result = path.join(folder, 'changed.json');
  run(process.execPath, [path.join(installed, 'change.mjs'), file, JSON.stringify(excluded), result]);
  return JSON.parse(readFileSync(result, 'utf8'));
};

/** Changes that one process tries: what it loads for each stays in its memory. */
const changesOfProcess = 150;
/** Milliseconds for one change in which nothing computes; a process counts its processor time by itself. */
const patienceMs = 120_000;

const begin = (job: string): ChildProcess =>
  fork(path.join(import.meta.dirname, 'child.ts'), [job], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 2, 'ipc'],
  });

/** What the process says next; null: it ended, or says nothing. */
const answerOf = async (child: ChildProcess): Promise<Outcome | null> => {
  const { promise, resolve } = Promise.withResolvers<Outcome | null>();
  const silent = setTimeout(resolve, patienceMs, null);
  const said = (outcome: Outcome): void => resolve(outcome);
  const gone = (): void => resolve(null);
  child.once('message', said).once('exit', gone);
  const answer = await promise;
  clearTimeout(silent);
  child.off('message', said).off('exit', gone);
  return answer;
};

/** @throws Error when the tests fail on the file as it is */
const ready = async (child: ChildProcess): Promise<Learnt | undefined> => {
  const answer = await answerOf(child);
  if (answer?.fault !== null) throw new Error(`the tests fail without a change: ${answer?.fault ?? 'no answer'}`);
  return answer.learnt;
};

/**
 * Tries the changes that are left, of which several processes take one after the other.
 * @returns those that the tests did not notice
 */
const unnoticedBy = async (job: string, left: Iterator<Change>, first?: ChildProcess): Promise<readonly Change[]> => {
  const alive: Change[] = [];
  let child = first;
  for (let next = left.next(); next.done !== true; child = undefined) {
    if (child === undefined) {
      child = begin(job);
      await ready(child);
    }
    for (let tried = 0; next.done !== true && tried < changesOfProcess && child.exitCode === null; tried += 1) {
      child.send(next.value.id);
      const answer = await answerOf(child);
      if (answer?.fault === null) alive.push(next.value);
      next = left.next();
      if (answer === null) break;
    }
    child.kill('SIGKILL');
  }
  return alive;
};

/** As `unnoticedBy`, in as many processes as are asked for: the first one runs the tests on the file as it is. */
const unnoticed = async (job: Job, chosen: readonly Change[]): Promise<readonly Change[]> => {
  const file = path.join(folder, 'job.json');
  writeFileSync(file, JSON.stringify(job));
  const first = begin(file);
  const learnt = await ready(first);
  writeFileSync(file, JSON.stringify({ ...job, learnt }));
  const left = chosen.values();
  const found = await Promise.all(
    Array.from({ length: Number(values['at-once']) }, (_, n) => unnoticedBy(file, left, n === 0 ? first : undefined)),
  );
  first.kill('SIGKILL');
  return found.flat();
};

const chosenLines = ({ location: { start, end } }: Change): boolean => {
  const [first = 1, last = first] = (values.lines ?? '').split('-').map(Number);
  return values.lines === undefined || (start.line + 1 >= first && end.line + 1 <= last);
};

/** @returns whether the tests of the file notice enough. */
const tryFile = async (row: MutatedFile): Promise<boolean> => {
  const { file, tests, threshold, survivors } = row;
  const begun = performance.now();
  const { text, changes } = changed(row);
  const chosen = changes.filter(chosenLines);
  const found = await unnoticed({ file, text, tests }, chosen);
  const source = readFileSync(path.join(root, file), 'utf8').split('\n');
  const alive = found.map((one) => shown(source, one));
  const isNamed = (one: Shown): boolean =>
    survivors.some(
      ({ from, to, within = '' }) =>
        from === one.from && to === one.to && (source[one.line - 1] ?? '').includes(within),
    );
  const unnamed = alive.filter((one) => !isNamed(one)).toSorted((a, b) => a.line - b.line);
  const named = alive.length - unnamed.length;
  const counted = chosen.length - named;
  const score = counted === 0 ? 100 : (100 * (counted - unnamed.length)) / counted;
  const isEnough = values.lines !== undefined || (score >= threshold && chosen.length > 0);
  const rest = named === 0 ? '' : `, beside ${named} that the table names`;
  const seconds = Math.round((performance.now() - begun) / 1_000);
  const verdict = isEnough ? '' : `, below ${threshold} %`;
  print(`${file}: ${score.toFixed(1)} % of ${counted} noticed${verdict}${rest} (${seconds} s)`);
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
  install();
  mkdirSync(folder, { recursive: true });
  const below: string[] = [];
  for (const row of chosen) {
    if (!(await tryFile(row))) below.push(row.file);
  }
  const held = values.lines === undefined ? 'each file keeps its threshold' : 'lines alone have no threshold';
  print(
    below.length === 0 ? `${chosen.length} of ${mutatedFiles.length} files; ${held}` : `below: ${below.join(', ')}`,
  );
  return below.length === 0 ? 0 : 1;
};

process.chdir(root);
// Random tests make the same choices for every change, and one failure is enough. A process goes on after its tests: no
// suite waits for its end.
Object.assign(process.env, { SEED: '1', TEST_END_AT: 'failure', TEST_LINGER_MS: String(2 ** 31 - 1) });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.exitCode = await main();
