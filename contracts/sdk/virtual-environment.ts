import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { find, run, tools } from './shell.ts';

/** A Python environment of its own with pinned packages, which are fetched once. @returns its folder of programs */
export const virtualEnvironment = async (
  folder: string,
  packages: readonly string[],
  { log, step }: { readonly log: string; readonly step: (what: string) => void },
): Promise<string> => {
  const python = await find(tools.python);
  const bin = path.join(folder, process.platform === 'win32' ? 'Scripts' : 'bin');
  const stamp = path.join(folder, 'installed.txt');
  const wanted = packages.join('\n');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return bin;
  step('installing the pinned Python packages');
  mkdirSync(path.dirname(folder), { recursive: true });
  const options = { cwd: path.dirname(folder), log };
  await run(python, ['-m', 'venv', '--clear', folder], options);
  const install = ['-m', 'pip', 'install', '--quiet', '--no-deps', ...packages];
  await run(path.join(bin, 'python'), install, { ...options, fetches: true });
  writeFileSync(stamp, wanted);
  return bin;
};
