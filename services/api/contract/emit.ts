import { writeFile } from 'node:fs/promises';
import { operations } from '../operations.ts';
import { asyncapiOf } from './asyncapi.ts';
import { openapiOf } from './openapi.ts';

/** `make contracts`: writes contracts/ from the table of operations and the schemas. */

export const contractFiles = (): Readonly<Record<string, string>> => ({
  'openapi.json': `${JSON.stringify(openapiOf(operations), null, 2)}\n`,
  'asyncapi.json': `${JSON.stringify(asyncapiOf(), null, 2)}\n`,
});

export const contractsFolder = new URL('../../../contracts/', import.meta.url);

if (import.meta.main) {
  for (const [name, text] of Object.entries(contractFiles())) await writeFile(new URL(name, contractsFolder), text);
}
