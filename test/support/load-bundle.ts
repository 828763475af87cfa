/**
 * Loads a program out of its bundle, with what V8 compiled in the first process that ran the like: of a start, finding the
 * functions that it calls and compiling them is a fifth. Node's own cache has only what is compiled before a module runs.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { constants, Script } from 'node:vm';
import { threadName } from 'node:worker_threads';

type Programs = Readonly<Record<string, () => Promise<unknown>>>;

const opened = new Map<string, Programs>();

/**
 * @param file the bundle: one script in Latin-1, whose value is a function that answers its programs; what V8 makes of it
 *   before any of them runs is in the file of this name with `.compiled`
 * @param alike name of the programs that share what was compiled
 */
export const load = async (file: string, program: string, alike: string): Promise<void> => {
  const programs = opened.get(file) ?? open(file, alike);
  opened.set(file, programs);
  const run = programs[program];
  if (run === undefined) throw new Error(`${file} has no ${program}`);
  await run();
};

const open = (file: string, alike: string): Programs => {
  const kept = path.join(
    path.dirname(file),
    `${[alike, threadName].join(' ').trim().replaceAll(/[\\/]/g, '-')}.compiled`,
  );
  const isKept = existsSync(kept);
  const script = new Script(readFileSync(file, 'latin1'), {
    filename: file,
    cachedData: readFileSync(isKept ? kept : `${file}.compiled`),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  // At the end, when it is known which functions such a program calls.
  if (!isKept) process.on('exit', () => keep(kept, script));
  return script.runInThisContext()() as Programs;
};

const keep = (kept: string, script: Script): void => {
  if (existsSync(kept)) return;
  // Of another name until it is whole: others read it meanwhile.
  const part = `${kept}.${process.pid}`;
  try {
    writeFileSync(part, script.createCachedData());
    renameSync(part, kept);
  } catch {
    // Of a process that may not write here, or whose disk is full: the next one keeps it.
  }
};
