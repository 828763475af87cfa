import { createCipheriv, createDecipheriv, createHash, randomBytes, scryptSync } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { UsageError } from '#runtime/process/usage-error.ts';
import type { KeptFile } from './audit-streams.ts';

/**
 * The folder of a final export: an export that auditors verify, with what another installation needs to go on with the
 * workspace. Beside the files of `verify-export.mjs`:
 *
 *     requests.ndjson   the streams that remember calls, which no feed has
 *     blobs.ndjson      the files of media, each with its hash
 *     files/            their bytes, by their hash
 *     data-keys.json    the keys of personal members, wrapped under the passphrase
 */

export const eventsFile = 'events.ndjson';
export const requestsFile = 'requests.ndjson';
export const blobsFile = 'blobs.ndjson';
export const dataKeysFile = 'data-keys.json';
const plainFiles = [eventsFile, 'leaves.txt', 'checkpoint.txt', 'keys.json', 'moves.json', requestsFile, blobsFile];

/** An event as a line of the export has it. */
export interface EventLine {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
  readonly encoding: 'utf8' | 'base64';
  /** Absent: of a stream that no feed has. */
  readonly sequence?: number;
  readonly at?: string;
  readonly expired?: true;
}

export interface BlobLine extends KeptFile {
  /** The installation that exported had lost it. */
  readonly missing?: true;
}

/** A data key on its way; null: it was destroyed, and its subject is erased. */
export interface MovedKey {
  readonly subject: string;
  readonly key: string | null;
}

export interface Stays {
  readonly what: string;
  readonly count: number;
  readonly becomes: string;
}

export interface FinalManifest {
  readonly format: 1;
  readonly workspaceId: string;
  readonly epoch: number;
  readonly size: number;
  readonly exportedAt: string;
  readonly final: true;
  readonly withFiles: boolean;
  /** How many streams of each kind there are. */
  readonly streams: Readonly<Record<string, number>>;
  readonly stays: readonly Stays[];
  /** SHA-256 of each file of the export, by its name. */
  readonly files: Readonly<Record<string, string>>;
}

const minPassphrase = 16;
const maxPassphrase = 4_096;

/** @throws UsageError */
export const readPassphrase = (file: string): Buffer => {
  if (!existsSync(file)) throw new UsageError(`There is no file ${file}: write a passphrase into it, for --key-file.`);
  if (statSync(file).size > maxPassphrase) throw new UsageError(`${file} is no passphrase: it has more than 4 KiB.`);
  const text = readFileSync(file, 'utf8').trim();
  if (text.length < minPassphrase)
    throw new UsageError(`The passphrase in ${file} has fewer than ${minPassphrase} characters: take a longer one.`);
  return Buffer.from(text, 'utf8');
};

export const sha256OfFile = async (file: string): Promise<string> => {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
};

/** The files beside the manifest that are there, with their hashes. */
export const hashesOf = async (folder: string): Promise<Readonly<Record<string, string>>> => {
  const hashes: Record<string, string> = {};
  for (const name of plainFiles) {
    const file = path.join(folder, name);
    if (existsSync(file)) hashes[name] = await sha256OfFile(file);
  }
  return hashes;
};

const kdf = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1_024 * 1_024 } as const;

interface WrappedKeys {
  readonly salt: string;
  /** iv, tag, ciphertext; base64. */
  readonly sealed: string;
}

/** The hashes of the other files are authenticated with the keys: who lacks the passphrase can change none of them. */
const boundTo = (workspaceId: string, files: Readonly<Record<string, string>>): Buffer =>
  Buffer.from(JSON.stringify(['postline data keys', workspaceId, Object.entries(files).sort()]));

export const wrapKeys = (
  passphrase: Buffer,
  keys: readonly MovedKey[],
  { workspaceId, files }: Pick<FinalManifest, 'workspaceId' | 'files'>,
): WrappedKeys => {
  const [salt, iv] = [randomBytes(16), randomBytes(12)];
  const cipher = createCipheriv('aes-256-gcm', scryptSync(passphrase, salt, 32, kdf), iv);
  cipher.setAAD(boundTo(workspaceId, files));
  const text = Buffer.concat([cipher.update(JSON.stringify(keys), 'utf8'), cipher.final()]);
  return { salt: salt.toString('base64'), sealed: Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64') };
};

/** @throws Error: another passphrase, or a file that was changed */
export const unwrapKeys = (
  passphrase: Buffer,
  { salt, sealed }: WrappedKeys,
  { workspaceId, files }: Pick<FinalManifest, 'workspaceId' | 'files'>,
): readonly MovedKey[] => {
  const bytes = Buffer.from(sealed, 'base64');
  const key = scryptSync(passphrase, Buffer.from(salt, 'base64'), 32, kdf);
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).setAAD(boundTo(workspaceId, files));
    decipher.setAuthTag(bytes.subarray(12, 28));
    return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8'));
  } catch (cause) {
    throw new Error(
      `${dataKeysFile} is not opened by the passphrase of --key-file: it is another passphrase, or the export was changed on its way. Nothing was imported.`,
      { cause },
    );
  }
};

/** The lines of a file of the export, parsed. */
export async function* linesOf<T>(folder: string, name: string): AsyncGenerator<T> {
  const lines = createInterface({
    input: createReadStream(path.join(folder, name)),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  for await (const line of lines) if (line !== '') yield JSON.parse(line) as T;
}
