/** Production sources as text, without their comments, for names that no module exports. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');

const withoutComments = (text: string): string =>
  text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*(?:\/\/|--).*$/gm, '');

const sources: readonly string[] = globSync(
  '{schemas,contracts/{base,ports},services,projections,infra}/**/*.{ts,sql}',
  {
    cwd: root,
  },
)
  .filter((file) => !file.includes('.suite'))
  .sort()
  .map((file) => withoutComments(readFileSync(path.join(root, file), 'utf8')));

const plain = (name: string): string => name.replaceAll(/\$\{[^}]*\}/g, '*').replaceAll(/\s+/g, ' ');

/** How often the pattern occurs. */
export const count = (pattern: RegExp): number =>
  sources.reduce((sum, text) => sum + [...text.matchAll(pattern)].length, 0);

/** What the patterns' first groups hold anywhere, each once, sorted; `*` stands for what a template puts in. */
export const found = (...patterns: readonly RegExp[]): readonly string[] => {
  const names = sources.flatMap((text) =>
    patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, name = '']) => plain(name))),
  );
  return [...new Set(names)].sort();
};
