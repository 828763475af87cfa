import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { SetupError } from '#contracts/ports/setup-error.ts';
import { Secrets } from './secrets.ts';

/** Names that a start creates in a data folder after its key: where one of them exists, there was a key. */
const laterThanTheKey = ['pg.password', 'pg.location', 'cluster', 'analytics', 'blobs'];

export const secretKeyFile = (dataDir: string): string => path.join(dataDir, 'secret.key');

/** @throws SetupError that names the file; its content may be part of a key, and is not shown */
const readKeys = (file: string): string => {
  const text = readFileSync(file, 'utf8').trim();
  try {
    new Secrets(text, file);
    return text;
  } catch {
    throw new SetupError(
      `${file} holds no key that can be read: restore it from a backup, or set SECRET_KEY to what it held.`,
    );
  }
};

/**
 * The installation's secret key under the data folder, mode 0600, made on the first start. It is written whole under
 * another name and then linked, so that a crash leaves no key or a whole one; an existing one is never replaced.
 * @throws SetupError when the folder holds data and no key, because a new key could decrypt none of it, or when the
 * file holds no key
 */
export const secretKeyOf = (dataDir: string): string => {
  mkdirSync(dataDir, { recursive: true });
  const file = secretKeyFile(dataDir);
  const draft = `${file}.${process.pid}`;
  try {
    return readKeys(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const [data] = laterThanTheKey.filter((name) => existsSync(path.join(dataDir, name)));
  if (data !== undefined) {
    throw new SetupError(
      `${file} is gone, and ${path.join(dataDir, data)} was made with it: restore the file from a backup, or set ` +
        'SECRET_KEY to what it held. To start without the data, choose another folder or move this one away.',
    );
  }
  const handle = openSync(draft, 'w', 0o600);
  writeSync(handle, `v1:${randomBytes(32).toString('base64')}\n`);
  fsyncSync(handle);
  closeSync(handle);
  try {
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return readKeys(file);
};
