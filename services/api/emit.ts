import { spawnSync } from 'node:child_process';
import { glob, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Operation } from './call/operation.ts';
import { accessOf } from './contract/access.ts';
import { asyncapiOf } from './contract/asyncapi.ts';
import { openapiOf } from './contract/openapi.ts';

/**
 * `make contracts`: writes the table of operations from what the files beside it export, and contracts/ from the table
 * and the schemas. It does not import the table, which may lack an operation or name one that is gone.
 */

/** A reference stands in one line: it is what most objects of a contract are. */
const written = (contract: unknown): string =>
  `${JSON.stringify(contract, null, 2).replace(/\{\n\s+("\$ref": "[^"\n]*")\n\s+\}/g, '{ $1 }')}\n`;

export const contractFiles = (operations: readonly Operation[]): Readonly<Record<string, string>> => ({
  'openapi.json': written(openapiOf(operations)),
  'asyncapi.json': written(asyncapiOf()),
});

/** Pages for people that are made from the same table. */
export const contractPages = (operations: readonly Operation[]): Readonly<Record<string, string>> => ({
  'access.md': accessOf(operations),
});

export const contractsFolder = new URL('../../contracts/', import.meta.url);
export const tableFile = new URL('operations.ts', import.meta.url);

/** The name of each operation that a file exports. */
const exported = /^export const (\w+) = operation\(/gm;
const methods: readonly Operation['method'][] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

interface Exported {
  readonly name: string;
  readonly file: string;
  readonly operation: Operation;
}

/** By tag, then by path, then by method. A path stands before those that go on from it, a word before a parameter. */
const inOrder = ({ operation: a }: Exported, { operation: b }: Exported): number => {
  if (a.tag !== b.tag) return a.tag.place - b.tag.place || (a.tag.name < b.tag.name ? -1 : 1);
  if (a.path !== b.path) return a.path < b.path ? -1 : 1;
  return methods.indexOf(a.method) - methods.indexOf(b.method);
};

/** Every operation that a file of this folder, or of a folder in it, exports; in the order of the contract. */
export const exportedOperations = async (): Promise<readonly Exported[]> => {
  const folder = new URL('./', import.meta.url);
  const all: Exported[] = [];
  for await (const found of glob('**/*.ts', { cwd: fileURLToPath(folder) })) {
    const file = `./${found.replaceAll('\\', '/')}`;
    const names = [...(await readFile(new URL(file, folder), 'utf8')).matchAll(exported)].map(([, name = '']) => name);
    if (names.length === 0) continue;
    const values = (await import(new URL(file, folder).href)) as Readonly<Record<string, Operation>>;
    for (const name of names) {
      const operation = values[name];
      if (operation?.id !== name) throw new Error(`${file} exports ${name}, whose id is ${operation?.id}.`);
      all.push({ name, file, operation });
    }
  }
  return all.sort(inOrder);
};

/** The text of `operations.ts`, in the form that the linter wants. */
export const tableOf = (all: readonly Exported[]): string => {
  const text = [
    '// Made by `make contracts` from the operations that the files beside it export. Never edit it.',
    "import type { Operation } from './call/operation.ts';",
    ...all.map(({ name, file }) => `import { ${name} } from '${file}';`),
    '',
    '/** Every operation served, in the order of the contract. */',
    `export const operations: readonly Operation[] = [${all.map(({ name }) => name).join(', ')}];`,
  ].join('\n');
  const biome = fileURLToPath(new URL('../../node_modules/@biomejs/biome/bin/biome', import.meta.url));
  const args = [biome, 'check', '--write', `--stdin-file-path=${fileURLToPath(tableFile)}`];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { input: text, encoding: 'utf8' });
  if (status !== 0) throw new Error(`Biome refuses the table of operations: ${stderr}`);
  return `${stdout.trimEnd()}\n`;
};

if (import.meta.main) {
  const found = await exportedOperations();
  const operations = found.map(({ operation }) => operation);
  await writeFile(tableFile, tableOf(found));
  const all = { ...contractFiles(operations), ...contractPages(operations) };
  for (const [name, text] of Object.entries(all)) await writeFile(new URL(name, contractsFolder), text);
}
