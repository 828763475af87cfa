import { readFile } from 'node:fs/promises';
import type { Raw } from '../call/operation.ts';

/**
 * Bytes by file and replaced members. A process has one base address, so it has few. Bytes, because to encode a text of
 * a megabyte for each caller costs more than a paid call does.
 */
const texts = new Map<string, Promise<Buffer>>();

const textOf = async (file: string, replaced: Readonly<Record<string, unknown>>): Promise<Buffer> => {
  const text = await readFile(new URL(`../../../contracts/${file}`, import.meta.url), 'utf8');
  return Buffer.from(JSON.stringify({ ...(JSON.parse(text) as Readonly<Record<string, unknown>>), ...replaced }));
};

/** Answers a file of contracts/ with some members replaced. It is read once: anybody may ask for it, without a token. */
export const served = async (file: string, replaced: Readonly<Record<string, unknown>>): Promise<Raw> => {
  const key = `${file} ${JSON.stringify(replaced)}`;
  const made = texts.get(key) ?? textOf(file, replaced);
  texts.set(key, made);
  // A file that could not be read is read again by the next call.
  made.catch(() => texts.delete(key));
  return { raw: { type: 'application/json', body: await made } };
};
