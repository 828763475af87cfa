import { writeFile } from 'node:fs/promises';
import { accessOf } from './contract/access.ts';
import { asyncapiOf } from './contract/asyncapi.ts';
import { openapiOf } from './contract/openapi.ts';
import { operations } from './operations.ts';

/** `make contracts`: writes contracts/ from the table of operations and the schemas. */

export const contractFiles = (): Readonly<Record<string, string>> => ({
  'openapi.json': `${JSON.stringify(openapiOf(operations), null, 2)}\n`,
  'asyncapi.json': `${JSON.stringify(asyncapiOf(), null, 2)}\n`,
});

/** Pages for people that are made from the same table. */
export const contractPages = (): Readonly<Record<string, string>> => ({ 'access.md': accessOf(operations) });

export const contractsFolder = new URL('../../contracts/', import.meta.url);

if (import.meta.main) {
  const all = { ...contractFiles(), ...contractPages() };
  for (const [name, text] of Object.entries(all)) await writeFile(new URL(name, contractsFolder), text);
}
