/** What the architecture test reads: our files, which of them run in production, and who imports what of whom. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const root = path.resolve(import.meta.dirname, '../..');
const { imports } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  imports: Record<string, string>;
};

const texts = new Map<string, string>();

export const textOf = (file: string): string => {
  const text = texts.get(file) ?? readFileSync(path.join(root, file), 'utf8');
  texts.set(file, text);
  return text;
};

/** Comments go where a line begins with them: elsewhere `//` may stand in an address. */
export const codeOf = (file: string): string =>
  textOf(file)
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/^\s*\/\/.*$/gm, '');

export const sources: readonly string[] = globSync('{schemas,contracts,services,projections,infra,test}/**/*.ts', {
  cwd: root,
})
  .map((file) => file.replaceAll(path.sep, '/'))
  .sort();

/** All but tests, benches and the suites that prove an adapter. */
export const production: readonly string[] = sources.filter(
  (file) => !file.startsWith('test/') && !file.includes('.suite'),
);

export interface Import {
  readonly from: string;
  readonly to: string;
  /** Names as the imported file exports them; none of a whole module. */
  readonly names: readonly string[];
}

const resolved = (file: string, target: string): string | null => {
  if (target.startsWith('.')) return path.posix.join(path.posix.dirname(file), target);
  const alias = Object.keys(imports).find((key) => target.startsWith(key.slice(0, -1)) && target.startsWith('#'));
  if (alias === undefined) return null;
  const folder = imports[alias]?.slice('./'.length, -1) ?? '';
  return path.posix.join(folder, target.slice(alias.length - 1));
};

/** `{ a, type B as C }` → a, B. */
const namesIn = (clause: string): string[] =>
  (/\{([^}]*)\}/.exec(clause)?.[1] ?? '')
    .split(',')
    .map(
      (one) =>
        one
          .trim()
          .replace(/^type\s+/, '')
          .split(/\s+as\s+/)[0] ?? '',
    )
    .filter((name) => name !== '');

/** Every file of ours that a file imports. Type imports count: they couple as well. */
export const importsOf = (file: string): readonly Import[] => {
  const code = textOf(file).replaceAll(/\/\*[\s\S]*?\*\//g, '');
  const found = code.matchAll(
    /^\s*(?:import|export)\b([^'"`;]*?)\bfrom\s*['"]([^'"]+)['"]|\bimport\s*\(?\s*['"]([^'"]+)['"]/gm,
  );
  return [...found].flatMap(([, clause = '', named, bare]) => {
    const to = resolved(file, named ?? bare ?? '');
    return to === null ? [] : [{ from: file, to, names: namesIn(clause) }];
  });
};

export const edges: readonly Import[] = sources.flatMap(importsOf);

const importsBy = Map.groupBy(edges, ({ from }) => from);

/** The file, and every file that it imports over any number of others. */
export const reachedFrom = (from: string): ReadonlySet<string> => {
  const seen = new Set([from]);
  for (const file of seen) for (const { to } of importsBy.get(file) ?? []) seen.add(to);
  return seen;
};
