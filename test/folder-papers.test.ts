import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { suite } from '#test/support/suite.ts';
import { root, textOf } from './architecture/sources.ts';

/** READMEs of folders beside the tree: each names what is there, and none leaves out what it should list. */

const tracked = spawnSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' });
const files = tracked.stdout.trim().split('\n');
const folders = new Set(files.flatMap((file) => ancestorsOf(file)));

function ancestorsOf(file: string): readonly string[] {
  const parent = path.posix.dirname(file);
  return parent === '.' ? [] : [parent, ...ancestorsOf(parent)];
}

const fileName = /^[\w.-]+(?:\/[\w.-]+)*(?:\.(?:ts|mjs|js|md|eta|json|yaml|toml|py|sh|txt|jpg|mov|gz)|\/)$/;
const pattern = /^(?:[\w./-]*)\*[\w.-]*\.ts$/;
/** The name of a file that every process has, and what a run makes. */
const anywhere = new Set(['main.ts', '.cache/tests/']);

/** What a README of a folder names between backticks: files and folders that exist, and names of which there is none. */
const placesIn = (readme: string): { readonly named: ReadonlySet<string>; readonly lost: readonly string[] } => {
  const folder = path.posix.dirname(readme);
  const named = new Set<string>();
  const lost: string[] = [];
  const bases = new Set([folder, '.', `test/${folder}`]);
  for (const [, code = ''] of textOf(readme).matchAll(/`([^`\n]+)`/g)) {
    const words = code.split(' ');
    if (!words.every((word) => fileName.test(word) || pattern.test(word))) continue;
    let beside = folder;
    for (const word of words) {
      const places = [beside, ...bases].map((base) => path.posix.join(base, word).replace(/\/$/, ''));
      const found = places.flatMap((place) =>
        word.includes('*')
          ? files.filter((file) => path.posix.matchesGlob(file, place))
          : files.includes(place) || folders.has(place)
            ? [place]
            : [],
      );
      const [first] = found;
      if (first === undefined) {
        if (!anywhere.has(word)) lost.push(`${readme}: ${word}`);
        continue;
      }
      for (const place of word.includes('*') ? found : [first]) named.add(place);
      if (word.endsWith('/')) bases.add(first);
      beside = word.endsWith('/') ? first : path.posix.dirname(first);
    }
  }
  return { named, lost };
};

suite('READMEs of folders', (t) => {
  const readmes = files.filter((file) => file.endsWith('/README.md'));
  const placesOf = new Map(readmes.map((readme) => [readme, placesIn(readme)] as const));

  t('name files that exist', () => {
    assert.deepEqual(
      [...placesOf.values()].flatMap(({ lost }) => lost),
      [],
    );
  });

  /** A README that names more than half of the files of a folder is its list; any other names the folder, or one above. */
  t('leave out no file that they should list, and no folder', () => {
    const sources = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
    const wrong: string[] = [];
    for (const [folder, own] of Map.groupBy(sources, (file) => path.posix.dirname(file))) {
      const above = [folder, ...ancestorsOf(folder)];
      const readme = above.map((one) => `${one}/README.md`).find((one) => placesOf.has(one));
      // The folders of the tests mirror the tree.
      if (readme === 'test/README.md') continue;
      const { named } = placesOf.get(readme ?? '') ?? {};
      if (readme === undefined || named === undefined) wrong.push(`${folder}: no README above it`);
      else {
        const left = own.filter((file) => !named.has(file));
        const isList = left.length * 2 < own.length;
        const isNamed = folder === path.posix.dirname(readme) || above.some((one) => named.has(one));
        if (isList) wrong.push(...left.map((file) => `${readme}: ${file}`));
        else if (!isNamed) wrong.push(`${readme}: ${folder}/`);
      }
    }
    assert.deepEqual(wrong, []);
  });
});
