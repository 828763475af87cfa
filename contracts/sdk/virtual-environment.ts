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
  // Of each package few files run, once: those are compiled then.
  const install = ['install', '--quiet', '--no-deps', '--no-compile', '--disable-pip-version-check', ...packages];
  const own = path.join(bin, 'python');
  await run(python, ['-m', 'venv', '--clear', '--without-pip', folder], options);
  // A pip of the machine that can serve another environment (22.3) spares it one of its own: half of its cost.
  const pip = await run(python, ['-m', 'pip', '--python', own, '--version'], options).then(
    () => [python, '-m', 'pip', '--python', own],
    async () => {
      await run(own, ['-m', 'ensurepip', '--default-pip'], options);
      return [own, '-m', 'pip'];
    },
  );
  const [program = own, ...args] = pip;
  await run(program, [...args, ...install], { ...options, fetches: true });
  writeFileSync(stamp, wanted);
  return bin;
};
