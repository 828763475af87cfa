import { readFile } from 'node:fs/promises';
import type { Raw } from '../operation.ts';

/** Answers a file of contracts/ with some members replaced. */
export const served = async (file: string, replaced: Readonly<Record<string, unknown>>): Promise<Raw> => {
  const text = await readFile(new URL(`../../../contracts/${file}`, import.meta.url), 'utf8');
  const body = JSON.stringify({ ...(JSON.parse(text) as Readonly<Record<string, unknown>>), ...replaced });
  return { raw: { type: 'application/json', body } };
};
