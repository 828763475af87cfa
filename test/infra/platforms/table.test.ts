/** The table of networks in the README: what it says of each that code knows is what the code does. */
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { accountFieldsOf, fieldsOf } from '#domain/platforms/read-figures.ts';
import { rules } from '#domain/platforms/registry.ts';
import { BlueskyAdapter } from '#infra/platforms/bluesky/index.ts';
import type { Bound } from '#infra/platforms/kit/network.ts';
import { kitNetworks } from '#infra/platforms/live.ts';
import { TelegramAdapter } from '#infra/platforms/telegram/index.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { suite } from '#test/support/suite.ts';

const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
const columns = ['network', 'posts', 'options', 'first comment', 'own scheduler', 'figures'];

const rows = (): readonly (readonly string[])[] => {
  const [, section = ''] = readme.split('\n## Networks\n');
  const [part = ''] = section.split('\n## ');
  return [...part.matchAll(/^\| (.+) \|$/gm)].map(([, row = '']) => row.split(' | '));
};

const postsOf = (platform: Platform): string => {
  const { capabilities, media } = rules[platform];
  const shapes = media.shapes.map(({ use, kinds, max }) => {
    if (use === 'reel' || use === 'story') return use;
    if (use === 'carousel') return `carousel of ${max}`;
    return max === 1 ? kinds.join(' or ') : `${max} ${kinds.map((kind) => `${kind}s`).join(' or ')}`;
  });
  return [...(capabilities.textOnly ? ['text'] : []), ...shapes, ...(capabilities.thread ? ['thread'] : [])].join(', ');
};

const figuresOf = (platform: Platform): string => {
  const uses = ['feed', 'carousel', 'reel', 'story'] as const;
  const named = (fields: object) => Object.entries(fields).flatMap(([field, name]) => (name === null ? [] : [field]));
  const ofPosts = new Set(uses.flatMap((use) => named(fieldsOf(platform, use))));
  return `${ofPosts.size} of a post, ${named(accountFieldsOf(platform)).length} of the account`;
};

const yes = (can: boolean): string => (can ? 'yes' : '–');

/** The columns of a network that follow from its rules. */
const derived = (platform: Platform): readonly string[] => {
  const { name, overrides, capabilities } = rules[platform];
  return [
    ...[`[${name}](infra/platforms/${platform}/OPERATORS.md)`, postsOf(platform)],
    Object.keys(overrides)
      .filter((key) => key !== 'firstComment')
      .join(', '),
    ...[yes(capabilities.firstComment), yes(capabilities.native), figuresOf(platform)],
  ];
};

/** Methods that the adapter of a network really has. */
const methodsOf = (platform: Platform): object => {
  if (platform === 'bluesky') return BlueskyAdapter.prototype;
  if (platform === 'telegram') return TelegramAdapter.prototype;
  // None of them is called.
  return kitNetworks[platform]?.methods({} as Bound) ?? {};
};

suite('the table of networks', (t) => {
  t('has a row for each of them, in which every column that follows from code is as the code is', () => {
    const [head = [], ...all] = rows();
    deepEqual(head.slice(0, columns.length), columns);
    const byName = (one: readonly string[], other: readonly string[]) => (one[0] ?? '').localeCompare(other[0] ?? '');
    deepEqual(
      all.map((row) => row.slice(0, columns.length)),
      platforms.map(derived).toSorted(byName),
    );
    for (const row of all) {
      equal(row.length, head.length, row[0]);
      for (const cell of row) ok(cell.trim().length > 0, row[0]);
      const [, paper = ''] = /\((.+)\)/.exec(row[0] ?? '') ?? [];
      ok(existsSync(new URL(`../../../${paper}`, import.meta.url)), paper);
    }
  });

  t('the adapters have what the rules say, and nothing more', () => {
    for (const platform of platforms) {
      const { capabilities, overrides } = rules[platform];
      const methods = methodsOf(platform);
      match(Object.keys(methods).join() || Object.getOwnPropertyNames(methods).join(), /\bpublish\b/, platform);
      equal('comment' in methods, capabilities.firstComment, `${platform}: comment`);
      equal('firstComment' in overrides, capabilities.firstComment, `${platform}: firstComment`);
      equal('nativeScheduler' in methods, capabilities.native, `${platform}: nativeScheduler`);
    }
  });
});
