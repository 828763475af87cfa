import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { faultNames } from '#infra/platforms/sandbox/faults.ts';
import { tools } from '#services/mcp/tools/index.ts';
import { suite } from '#test/support/suite.ts';

/** What papers, guides, pages and contracts say: that they deny nothing that works, and leave out nothing that exists. */

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (file: string): string => readFileSync(`${root}${file}`, 'utf8');

/** Words with which a paper denies something, or puts it off. */
const denials =
  /\bnot (?:yet|supported|implemented|done)\b|\bcomes? (?:next|later)\b|\buntil then\b|\bcannot be\b[^.;]*\byet\b|\bno adapter\b/i;

/** Denials that hold: words of the sentence, and why it is true. */
const holding: readonly (readonly [words: string, reason: string])[] = [
  ['published posts are neither edited nor deleted', 'no operation does either, and spec 1 asks for neither'],
  ['editing and deleting published posts', 'as above, of one network'],
  ['editing, deleting and pinning', 'as above, of one network'],
  ['Until then a post whose revise such a build held shows', 'what an operator sees before the rebuild'],
  ['is not done twice', 'a promise: the step is done once'],
  ['Until then `409 restore_unconfirmed` refuses', 'until the operator confirms'],
  ['Until then, where mails go out, a person gets no', 'until the address is proven'],
  ['Until then you make no', 'until the address is proven'],
  ['cannot be shown yet', 'the read model of a parked stream, `stands_still`'],
  ['cannot be published, or not yet', 'a file is read before it can be published'],
  ['Its figures come later', 'the event `analytics.refreshed` tells when they are there'],
  ['reschedule and cancel work until then', 'until the time of the target'],
];

const tracked = (...kinds: readonly string[]): readonly string[] =>
  spawnSync('git', ['ls-files', ...kinds], { cwd: root, encoding: 'utf8' })
    .stdout.trim()
    .split('\n');

function* stringsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) yield* stringsIn(one);
}

/** A sentence of a paragraph may run over lines; a table row and an entry of a list end with their line. */
const sentencesOf = (text: string): readonly string[] =>
  text
    .replace(/\n(?![\n|#>-]|\d+\. |```)/g, ' ')
    .split(/(?<=[.!?])\s+|\n+/)
    .map((one) => one.replace(/\s+/g, ' ').trim());

const papers = (): readonly (readonly [name: string, sentences: readonly string[]])[] => [
  ...tracked('*.md', '*.eta').map((file) => [file, sentencesOf(read(file))] as const),
  ...['contracts/openapi.json', 'contracts/asyncapi.json'].map(
    (file) => [file, [...stringsIn(JSON.parse(read(file)))].flatMap(sentencesOf)] as const,
  ),
  ['the tools of agents', [...stringsIn(tools)].flatMap(sentencesOf)],
];

const files = tracked();
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
  for (const [, code = ''] of read(readme).matchAll(/`([^`\n]+)`/g)) {
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

suite('papers, guides and contracts', (t) => {
  const readmes = tracked('*/README.md');
  const placesOf = new Map(readmes.map((readme) => [readme, placesIn(readme)] as const));

  t('READMEs of folders name files that exist', () => {
    assert.deepEqual(
      [...placesOf.values()].flatMap(({ lost }) => lost),
      [],
    );
  });

  /** A README that names more than half of the files of a folder is its list; any other names the folder, or one above. */
  t('READMEs of folders leave out no file that they should list, and no folder', () => {
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

  t('deny nothing, unless the sentence is on the list with its reason', () => {
    const used = new Set<string>();
    const wrong: string[] = [];
    for (const [name, sentences] of papers()) {
      for (const sentence of sentences.filter((one) => denials.test(one))) {
        const known = holding.find(([words]) => sentence.includes(words));
        if (known === undefined) wrong.push(`${name}: ${sentence.slice(0, 300)}`);
        else used.add(known[0]);
      }
    }
    assert.deepEqual([...new Set(wrong)], []);
    const stale = holding.map(([words]) => words).filter((words) => !used.has(words));
    assert.deepEqual(stale, [], 'no sentence says this any more');
  });

  t('name every fault of the sandbox in its guide', () => {
    const guide = read('services/pages/docs/guides/sandbox.md');
    const missing = faultNames.filter((name) => !guide.includes(`\`${name}\``));
    assert.deepEqual(missing, []);
  });
});
