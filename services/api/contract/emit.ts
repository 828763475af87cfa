import { writeFile } from 'node:fs/promises';
import { operations } from '../operations.ts';
import { accessOf } from './access.ts';
import { asyncapiOf } from './asyncapi.ts';
import { openapiOf } from './openapi.ts';

/** `make contracts`: writes contracts/ from the table of operations and the schemas. */

export const contractFiles = (): Readonly<Record<string, string>> => ({
  'openapi.json': `${JSON.stringify(openapiOf(operations), null, 2)}\n`,
  'asyncapi.json': `${JSON.stringify(asyncapiOf(), null, 2)}\n`,
});

/** Pages for people that are made from the same table. */
export const contractPages = (): Readonly<Record<string, string>> => ({ 'access.md': accessOf(operations) });

export const contractsFolder = new URL('../../../contracts/', import.meta.url);

if (import.meta.main) {
  const all = { ...contractFiles(), ...contractPages() };
  for (const [name, text] of Object.entries(all)) await writeFile(new URL(name, contractsFolder), text);
}
