/**
 * No pattern of ours takes longer than its text is long: each that stands in the sources, and each of the schemas, is run
 * over 100,000 characters of what it finds hardest. A new one is found by itself.
 */
import { ok } from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Type } from 'typebox';
import * as common from '#schemas/common.ts';
import { issuesOf } from '#schemas/validator.ts';
import { rowsOfRun } from '#test/support/drawing.ts';
import { hostileTexts } from '#test/support/hostile-text.ts';
import { type Found, literalsOf, madeOf } from '#test/support/regex-literals.ts';
import { suite } from '#test/support/suite.ts';

const root = path.resolve(import.meta.dirname, '..');
/**
 * Characters, and milliseconds of processor for them: a linear pattern takes one to five. What takes the square of its
 * text shows in one of the first already, before the last would hold the test for minutes.
 */
const sizes: readonly (readonly [length: number, most: number])[] = [
  [5_000, 25],
  [20_000, 50],
  [100_000, 100],
];

/** Files whose patterns never read what comes from outside, and what they read. */
const own: Readonly<Record<string, string>> = {
  'infra/clickhouse/chdb/front.ts': 'statements of our own client, over a socket that nobody else knows',
  'services/admin/usage.ts': 'the help that stands in the sources',
  'services/runtime/process/config-values.ts': 'what the operator sets',
};

const cpuMs = (work: () => void): number => {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
};

/** As it is used: all over the text with `g`, at one place with `y`, anywhere else. */
const runOf = ({ source, flags }: Pick<Found, 'source' | 'flags'>): ((text: string) => void) => {
  const pattern = new RegExp(source, flags);
  return flags.includes('g') ? (text) => void text.replace(pattern, '') : (text) => void pattern.test(text);
};

/** What it took too long for; null when there is no such text. */
const slowOn = (run: (text: string) => void, source: string, flags: string): string | null => {
  for (const [size, limit] of sizes) {
    for (const text of hostileTexts(source, flags, size)) {
      const again = () => cpuMs(() => run(text));
      // The shortest of three: the first run of a pattern compiles it.
      if (again() > limit && again() > limit && again() > limit) {
        return `${size} characters that begin with ${JSON.stringify(text.slice(0, 24))}`;
      }
    }
  }
  return null;
};

const sources = globSync('{services,projections,schemas,infra,contracts}/**/*.ts', { cwd: root })
  .filter((file) => !file.endsWith('.suite.ts'))
  .sort();

/** Patterns and formats of every schema that a module of schemas/ shows. */
const ofSchemas = async (): Promise<{
  readonly patterns: ReadonlySet<string>;
  readonly formats: ReadonlySet<string>;
}> => {
  const patterns = new Set<string>();
  const formats = new Set<string>();
  const seen = new Set<unknown>();
  const look = (value: unknown): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    for (const [name, member] of Object.entries(value)) {
      if (name === 'pattern' && typeof member === 'string') patterns.add(member);
      else if (name === 'format' && (value as { type?: unknown }).type === 'string') formats.add(String(member));
      else if (name === 'patternProperties') for (const one of Object.keys(member as object)) patterns.add(one);
      look(member);
    }
  };
  for (const file of sources.filter((one) => one.startsWith('schemas/'))) {
    for (const shown of Object.values((await import(path.join(root, file))) as object)) look(shown);
  }
  return { patterns, formats };
};

suite('patterns', { timeoutMs: 180_000 }, (t) => {
  t('of the sources are found, outside of texts and comments', () => {
    const text = [
      'const a = x / 2 / y; // not /this/',
      "const b = text.replace(/[/\\]]+/gu, '/no/'); /* nor /that/ */",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source
      'const c = `/no/${ok ? /yes/i.test(`${1 / 2}`) : {}.a / 1}/no/`;',
      'return /last/;',
    ].join('\n');
    const found = literalsOf(text).map(({ line, source, flags }) => `${line} ${source} ${flags}`);
    ok(JSON.stringify(found) === JSON.stringify(['2 [/\\]]+ gu', '3 yes i', '4 last ']), found.join('\n'));
    const made = madeOf(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source
      "export const one = 'a+';\nconst two = new RegExp(`^${one}$`, 'i');\n",
      {},
    );
    ok(made[0]?.source === '^a+$' && made[0].flags === 'i');
    const kept = madeOf("const three = lazy(() => new RegExp('b+', 'u'));\n", {});
    ok(kept[0]?.source === 'b+' && kept[0].flags === 'u');
  });

  t('that take quadratic time are detected', () => {
    const bad: readonly (readonly [string, string])[] = [
      ['^application\\/(?:[\\w.+-]+\\+)?json\\s*(?:;\\s*charset\\s*=\\s*"?utf-8"?\\s*)?;?\\s*$', 'i'],
      ['\\s*;\\s*', 'g'],
      ['[^a-z0-9\\-_&=#/]+$', 'i'],
      ['\\[([^[\\]\\n]{0,4096})\\]\\([^)\\s]{1,2100}\\)', 'gu'],
    ];
    for (const [source, flags] of bad) {
      ok(slowOn(runOf({ source, flags }), source, flags) !== null, source);
    }
  });

  t('of the sources take linear time', () => {
    const names = Object.fromEntries(Object.entries(common).filter(([, value]) => typeof value === 'string'));
    const slow: string[] = [];
    const all = sources.flatMap((file) => {
      const text = readFileSync(path.join(root, file), 'utf8');
      return [...literalsOf(text), ...madeOf(text, names)].map((found) => ({ file, ...found }));
    });
    ok(all.length > 90, `only ${all.length} patterns were found`);
    const outer = all.filter(({ file }) => own[file] === undefined);
    for (const found of rowsOfRun('patterns of the sources', outer, ({ file, line }) => `${file}:${line}`)) {
      const why = slowOn(runOf(found), found.source, found.flags);
      if (why !== null) slow.push(`${found.file}:${found.line} /${found.source}/${found.flags}: ${why}`);
    }
    ok(slow.length === 0, `\n${slow.join('\n')}`);
  });

  t('of the schemas, and their formats, take linear time', async () => {
    const { patterns, formats } = await ofSchemas();
    ok(patterns.size > 10 && formats.size > 2);
    const slow: string[] = [];
    for (const source of patterns) {
      const why = slowOn(runOf({ source, flags: 'u' }), source, 'u');
      if (why !== null) slow.push(`${source}: ${why}`);
    }
    for (const format of formats) {
      const schema = Type.String({ format });
      const like = '^[a-z]+(?:[.+-][a-z]+)*@(?:[a-z0-9-]+\\.)+[a-z]+:[/?#]*\\d*[tT\\s]*[0-9.]*Z*';
      const why = slowOn((text) => void issuesOf(schema, text), like, '');
      if (why !== null) slow.push(`format ${format}: ${why}`);
    }
    ok(slow.length === 0, `\n${slow.join('\n')}`);
  });
});
