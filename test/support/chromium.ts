/**
 * A real Chromium for the tests of pages: `CHROMIUM_PATH`, else the browser of this machine, else, as root where there is
 * apt-get, Debian's package.
 */
import { accessSync, constants, existsSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { MissingTool, run } from '#contracts/sdk/shell.ts';

/** Debian's Chromium without windows, which takes a third of the processor that the whole browser takes. */
const shell = 'chromium-headless-shell';
const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const macApps = ['Chromium.app/Contents/MacOS/Chromium', 'Google Chrome.app/Contents/MacOS/Google Chrome'];

const usualPlaces = (): readonly string[] => [
  `/usr/bin/${shell}`,
  ...(process.env.PATH ?? '').split(path.delimiter).flatMap((folder) => names.map((name) => path.join(folder, name))),
  ...['/usr/bin', '/usr/local/bin', '/snap/bin', '/opt/google/chrome'].flatMap((folder) =>
    [...names, 'chrome'].map((name) => path.join(folder, name)),
  ),
  ...['/Applications', path.join(homedir(), 'Applications')].flatMap((folder) =>
    macApps.map((app) => path.join(folder, app)),
  ),
];

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

const installed = (): string | undefined => usualPlaces().find(isProgram);

const log = path.resolve(import.meta.dirname, '../../node_modules/.cache/chromium/install.log');

/**
 * Milliseconds for the steps of the installation. A file has 360 s until its first test, see `suite.ts`. Ending a
 * download is harmless; an installation that is ended half way leaves a package manager that wants repair, so that step
 * has what two cores never need.
 */
const updateMs = 60_000;
const lookMs = 20_000;
const downloadMs = 150_000;
const installMs = 120_000;

const aptGet = async (args: readonly string[], within: number): Promise<void> => {
  // Another process may hold the lock of the package manager for a while.
  await run('apt-get', [...args, '-q', '-o', 'DPkg::Lock::Timeout=60'], {
    ...{ cwd: '/', log, within, env: { DEBIAN_FRONTEND: 'noninteractive' } },
  });
};

const installFromDebian = async (): Promise<void> => {
  await aptGet(['update'], updateMs);
  // Not every release of Debian, and none of Ubuntu, has the shell.
  const program = await run('apt-cache', ['show', shell], { cwd: '/', log, within: lookMs }).then(
    () => shell,
    () => 'chromium',
  );
  const install = ['install', '-y', '--no-install-recommends', program];
  await aptGet([...install, '--download-only'], downloadMs);
  await aptGet([...install, '--no-download'], installMs);
};

/** @returns the program. @throws MissingTool where there is none and none can be installed */
export const findChromium = async (): Promise<string> => {
  const given = process.env.CHROMIUM_PATH;
  if (given) {
    if (!isProgram(given)) throw new MissingTool(`CHROMIUM_PATH names no program: ${given}`);
    return given;
  }
  const found = installed();
  if (found !== undefined) return found;
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    throw new MissingTool('there is no Chromium: install it, or Google Chrome, or set CHROMIUM_PATH');
  }
  await installFromDebian().catch((error: Error) => {
    throw new MissingTool(`there is no Chromium, and apt-get did not install it: ${error.message}`);
  });
  const fresh = installed();
  if (fresh === undefined) throw new MissingTool(`apt-get installed Chromium, but no program: see ${log}`);
  return fresh;
};
