import { deepEqual, equal } from 'node:assert/strict';
import { effectiveOverrides } from '#domain/platforms/index.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { suite } from '#test/support/suite.ts';

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
        { userTags: [{ username: '@a', x: 0.1, y: null, z: 1 }] },
        { userTags: [{ username: 'a', x: 0.1 }], paidPartnership: false, aiGenerated: false },
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
