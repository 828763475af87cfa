import { deepEqual, equal, notEqual, ok } from 'node:assert/strict';
import { effectiveOverrides, rules } from '#domain/platforms/index.ts';
import { checkOverride, grantsOf, isSet, overrideRules, replyOverrides } from '#domain/platforms/overrides.ts';
import type { OverrideRule } from '#domain/platforms/rules.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { MediaUse } from '#schemas/media.ts';
import { suite } from '#test/support/suite.ts';

const emoji = (count: number): string => '😀'.repeat(count);

/** What a rule limits: the number, a value that has just so many, and one that has one more. */
type Limit = readonly [limit: number, most: unknown, tooMany: unknown];

const limitsOf = (platform: Platform, rule: OverrideRule): readonly Limit[] => {
  const found: Limit[] = [];
  if (rule.type === 'string' || rule.type === 'comment') {
    if (rule.max !== undefined) found.push([rule.max, emoji(rule.max), emoji(rule.max + 1)]);
  }
  if (rule.type === 'string' && rule.maxBytes !== undefined) {
    const most = 'é'.repeat(rule.maxBytes / 2);
    found.push([rule.maxBytes, most, `${most}a`]);
  }
  if (rule.type === 'comment' && rule.asPost) {
    const { limit } = rules[platform].text.limits[0];
    found.push([limit, 'a'.repeat(limit), 'a'.repeat(limit + 1)]);
  }
  if (rule.type === 'url' && rule.max !== undefined) {
    const most = 'https://example.com/'.padEnd(rule.max, 'a');
    found.push([rule.max, most, `${most}a`]);
  }
  if ((rule.type === 'list' || rule.type === 'user_tags') && rule.maxItems !== undefined) {
    const most = Array<string>(rule.maxItems).fill('a');
    found.push([rule.maxItems, most, [...most, 'a']]);
  }
  if (rule.type === 'list' && rule.maxChars !== undefined) {
    const { maxChars } = rule;
    // YouTube counts a comma between two tags, and the quotes round one with a space.
    found.push([maxChars, [emoji(maxChars)], [emoji(maxChars + 1)]]);
    found.push([maxChars, ['a', emoji(maxChars - 2)], ['a', emoji(maxChars - 1)]]);
    found.push([maxChars, `a b, ${emoji(maxChars - 6)}`, `a b, ${emoji(maxChars - 5)}`]);
  }
  return found;
};

const everyRule = platforms.flatMap((platform) =>
  Object.entries(overrideRules(platform)).map(([key, rule]) => ({ platform, key, rule, name: `${platform} ${key}` })),
);

suite('values of overrides', (t) => {
  t('as much as the network takes is right, one more is refused with the limit', () => {
    const limited = new Set<string>();
    for (const { platform, rule, name } of everyRule) {
      for (const [limit, most, tooMany] of limitsOf(platform, rule)) {
        limited.add(rule.type);
        equal(checkOverride(platform, rule, most), null, name);
        const problem = checkOverride(platform, rule, tooMany);
        equal(problem?.code, 'override_length', name);
        ok(problem?.message.includes(String(limit)), problem?.message);
      }
    }
    deepEqual([...limited].sort(), ['comment', 'list', 'string', 'url', 'user_tags']);
  });

  t('a value of another kind is refused with what it must be', () => {
    const wrong: Readonly<Record<OverrideRule['type'], readonly unknown[]>> = {
      boolean: ['true', 0, {}],
      string: [7, true, ['a']],
      comment: [7, true, ['a']],
      enum: [7, true, {}],
      url: [7, ['https://example.com'], 'example.com', '/a', 'ftp://example.com/a', 'javascript:alert(1)'],
      list: [7, {}, [7], ['a', null]],
      user_tags: [
        ...[7, {}, [7], [null], ['a', '@'], [{}], [{ username: 7 }]],
        ...['x', 'y'].flatMap((side) => [-0.1, 1.1, '0.5', true].map((at) => [{ username: 'a', [side]: at }])),
      ],
    };
    for (const { platform, rule, name } of everyRule) {
      for (const value of wrong[rule.type]) {
        const problem = checkOverride(platform, rule, value);
        equal(problem?.code, 'override_type', `${name} ${JSON.stringify(value)}`);
        ok(problem?.message.startsWith('must be '), name);
        if (rule.type === 'enum') ok(problem?.message.includes(rule.values.join(', ')), name);
      }
      if (rule.type !== 'enum') continue;
      for (const value of [...rule.values, ...Object.keys(rule.aliases ?? {})]) {
        equal(checkOverride(platform, rule, value), null, `${name} ${value}`);
      }
      const unknown = checkOverride(platform, rule, 'constructor');
      equal(unknown?.code, 'override_enum', name);
      ok(unknown?.message.includes(rule.values.join(', ')), name);
    }
  });

  t('a tagged person may be placed, from one edge of the picture to the other', () => {
    const { userTags } = rules.instagram.overrides;
    ok(userTags !== undefined);
    for (const at of [0, 1, 0.5, null, undefined]) {
      equal(checkOverride('instagram', userTags, [{ username: 'a', x: at, y: at }]), null, String(at));
    }
  });

  t('an address is one of the web, with or without encryption', () => {
    for (const { platform, rule, name } of everyRule) {
      if (rule.type !== 'url') continue;
      for (const scheme of ['http', 'https']) {
        equal(checkOverride(platform, rule, `${scheme}://example.com`), null, name);
      }
    }
  });

  t('a comment is under the limits of a post only where the network counts it as one', () => {
    const { firstComment } = rules.youtube.overrides;
    ok(firstComment?.type === 'comment' && !firstComment.asPost);
    const long = 'a'.repeat(rules.youtube.text.limits[0].limit + 1);
    equal(checkOverride('youtube', firstComment, long), null);
  });

  // The accounts of a post are asked in groups: two of one group must get one answer.
  t('accounts are held to the same values exactly if their scopes name the same', () => {
    const [own, friends] = ['privacy_level.SELF_ONLY', 'privacy_level.MUTUAL_FOLLOW_FRIENDS'];
    notEqual(grantsOf('tiktok', [own]), grantsOf('tiktok', []));
    notEqual(grantsOf('tiktok', [own]), grantsOf('tiktok', [own, friends]));
    equal(grantsOf('tiktok', [own, 'video.publish']), grantsOf('tiktok', ['user.info', own]));
    equal(grantsOf('x', [own]), grantsOf('x', []));
  });

  t('a member without a value is not set', () => {
    const values = { title: 'T', link: null, boardId: undefined, madeWithAi: false };
    deepEqual(
      [...Object.keys(values), 'toString'].filter((key) => isSet(values, key)),
      ['title', 'madeWithAi'],
    );
  });

  t('segments after the first are sent without what belongs to the head of a thread', () => {
    const set = { quoteTweetId: '1', madeWithAi: true, nonsense: 1 };
    deepEqual(replyOverrides('x', set), { madeWithAi: true, nonsense: 1 });
  });
});

suite('effective overrides', (t) => {
  t('have only known keys, with defaults and aliases applied', () => {
    const table: readonly [Platform, Record<string, unknown>, Record<string, unknown>][] = [
      [
        'x',
        { replySettings: 'verifiedOnly', nonsense: 1 },
        { replySettings: 'verified', madeWithAi: false, paidPartnership: false, aiGenerated: false },
      ],
      ['linkedin', {}, { visibility: 'PUBLIC', aiGenerated: false }],
      ['instagram', { userTags: '@a , b' }, { userTags: ['a', 'b'], paidPartnership: false, aiGenerated: false }],
      [
        'instagram',
        {
          userTags: [
            { username: ' @a', x: 0.1, y: null, z: 1 },
            { username: 'b', y: 0 },
          ],
        },
        {
          userTags: [
            { username: 'a', x: 0.1 },
            { username: 'b', y: 0 },
          ],
          paidPartnership: false,
          aiGenerated: false,
        },
      ],
      ['facebook', { contentType: null }, { contentType: 'feed', aiGenerated: false }],
      [
        'tiktok',
        { privacyLevel: 'SELF_ONLY' },
        {
          privacyLevel: 'SELF_ONLY',
          yourBrand: false,
          brandedContent: false,
          disableComment: false,
          disableDuet: false,
          disableStitch: false,
          aiGenerated: false,
          isAigc: false,
        },
      ],
      [
        'youtube',
        { tags: 'one, two words,', categoryId: 7 },
        {
          privacyStatus: 'public',
          categoryId: '22',
          madeForKids: false,
          tags: ['one', 'two words'],
          aiGenerated: false,
          containsSyntheticMedia: false,
        },
      ],
      ['threads', {}, { aiGenerated: false }],
      ['pinterest', { boardId: '1', title: 'T' }, { boardId: '1', title: 'T', aiGenerated: false }],
      [
        'bluesky',
        {},
        {
          labelSexual: false,
          labelNudity: false,
          labelPorn: false,
          labelGraphicMedia: false,
          aiGenerated: false,
        },
      ],
      [
        'telegram',
        { parseMode: 'HTML' },
        { parseMode: 'HTML', disableNotification: false, protectContent: false, aiGenerated: false },
      ],
    ];
    for (const [platform, given, expected] of table)
      deepEqual(effectiveOverrides(platform, given, false), expected, platform);
  });

  t('a key that the shown form of the files cannot have is ignored', () => {
    const url = 'https://example.com/cover.jpg';
    const given = { shareToFeed: false, coverUrl: url, collaborators: ['a'], locationId: '1', userTags: ['b'] };
    const sent = (use: MediaUse | null) => Object.keys(effectiveOverrides('instagram', given, false, use)).sort();
    const always = ['aiGenerated', 'paidPartnership', 'userTags'];
    const shared = [...always, 'collaborators', 'locationId'].sort();
    deepEqual(sent('reel'), [...shared, 'coverUrl', 'shareToFeed'].sort());
    deepEqual([sent('feed'), sent('carousel')], [shared, shared]);
    deepEqual([sent('story'), sent(null)], [always, always]);
  });

  t('lists are kept as they are, names lose their first sign alone, and a comment is no part of the post', () => {
    deepEqual(effectiveOverrides('youtube', { tags: ['one', 'two, three'] }, false).tags, ['one', 'two, three']);
    deepEqual(effectiveOverrides('instagram', { userTags: ['@a@b'] }, false).userTags, ['a@b']);
    equal('firstComment' in effectiveOverrides('x', { firstComment: 'First' }, false), false);
  });

  t('the disclosure is copied onto every variant; its own aiGenerated is the exception', () => {
    for (const platform of platforms) {
      equal(effectiveOverrides(platform, {}, true).aiGenerated, true, platform);
      equal(effectiveOverrides(platform, { aiGenerated: false }, true).aiGenerated, false, platform);
      equal(effectiveOverrides(platform, { aiGenerated: true }, false).aiGenerated, true, platform);
    }
    equal(effectiveOverrides('youtube', {}, true).containsSyntheticMedia, true);
    equal(effectiveOverrides('tiktok', {}, true).isAigc, true);
    equal(effectiveOverrides('tiktok', { aiGenerated: false }, true).isAigc, false);
    equal(effectiveOverrides('x', {}, true).madeWithAi, false, 'independent of the post');
  });
});
