import path from 'node:path';
import { codeOf, edges, production } from './sources.ts';

/** Exported types, interfaces and classes that a file declares; what it passes on from another file is that one's. */
const typesOf = (file: string): string[] =>
  [...codeOf(file).matchAll(/^export (?:declare )?(?:abstract )?(?:type|interface|class) (\w+)/gm)].map(
    ([, name = '']) => name,
  );

/** Type names that two folders export and that a file of another folder imports, with the files that declare them. */
export const ambiguousTypes = (): readonly string[] => {
  const declared = new Map<string, string[]>();
  for (const file of production) {
    for (const name of typesOf(file)) declared.set(name, [...(declared.get(name) ?? []), file]);
  }
  const abroad = new Set(
    edges
      .filter(({ from, to }) => production.includes(from) && path.dirname(from) !== path.dirname(to))
      .flatMap(({ to, names }) => names.map((name) => `${name} of ${to}`)),
  );
  return [...declared]
    .filter(([, files]) => new Set(files.map((file) => path.dirname(file))).size > 1)
    .filter(([name, files]) => files.some((file) => abroad.has(`${name} of ${file}`)))
    .map(([name, files]) => `${name}: ${files.join(', ')}`);
};
