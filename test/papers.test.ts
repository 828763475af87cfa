import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
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

suite('papers, guides and contracts', (t) => {
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
