/**
 * Loads what our processes load, so that Node's compile cache has it before they start. A process that is killed writes
 * no cache: without this each process that a fault test kills would strip and compile everything again.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const root = path.resolve(import.meta.dirname, '../..');
const mains = globSync('{projections,services/*}/main.ts', { cwd: root });
/** A main runs as soon as it is loaded; what it imports does not. */
const imported = mains.flatMap((main) =>
  [...readFileSync(path.join(root, main), 'utf8').matchAll(/ from '([^']+)'/g)].map(([, name = '']) =>
    name.startsWith('.') ? pathToFileURL(path.resolve(root, path.dirname(main), name)).href : name,
  ),
);
await Promise.all([...new Set(imported)].map((name) => import(name)));
