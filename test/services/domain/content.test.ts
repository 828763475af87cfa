import { deepEqual, equal } from 'node:assert/strict';
import { contentFor, excerptOf, firstCommentOf, goesOutAsThread, wantedAfter } from '#domain/post/content.ts';
import { platforms } from '#schemas/common.ts';
import { excerptLength, type Variant } from '#schemas/post.ts';
import { postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const variant = (over: Partial<Variant>): Variant => ({
  platform: 'x',
  contentOverride: null,
  mediaIdsOverride: null,
  overrides: {},
  ...over,
});

suite('content of a post for one network', (t) => {
  t('without a variant is the content of the post', () =>
    deepEqual(contentFor(postBody({ content: 'base', mediaIds: ['m'] }), 'x'), {
      segments: [{ content: 'base', mediaIds: ['m'] }],
      overrides: {},
    }),
  );

  t('is the variant of that network, member by member, unknown override keys kept', () => {
    const overrides = { privacyLevel: 'SELF_ONLY', later: { deep: 1 } };
    const body = postBody({
      content: 'base',
      mediaIds: ['m'],
      variants: [
        variant({ platform: 'tiktok', overrides }),
        variant({ contentOverride: 'short', mediaIdsOverride: [] }),
      ],
    });
    deepEqual(contentFor(body, 'tiktok'), { segments: [{ content: 'base', mediaIds: ['m'] }], overrides });
    deepEqual(contentFor(body, 'x'), { segments: [{ content: 'short', mediaIds: [] }], overrides: {} });
  });

  t('an empty override is an empty caption', () =>
    deepEqual(contentFor(postBody({ content: 'base', variants: [variant({ contentOverride: '' })] }), 'x').segments, [
      { content: '', mediaIds: [] },
    ]),
  );

  t('is the segments of a thread on X and Threads, whatever the variant says; other networks ignore them', () => {
    const segments = [
      { content: 'one', mediaIds: ['a'] },
      { content: 'two', mediaIds: [] },
    ];
    const overrides = { replySettings: 'following' };
    const body = postBody({
      content: 'base',
      mediaIds: ['m'],
      variants: [variant({ contentOverride: 'short', mediaIdsOverride: ['n'], overrides })],
      thread: { segments },
    });
    deepEqual(contentFor(body, 'x'), { segments: segments, overrides });
    deepEqual(contentFor(body, 'threads'), { segments: segments, overrides: {} });
    deepEqual(contentFor(body, 'bluesky').segments, [{ content: 'base', mediaIds: ['m'] }]);
    equal(goesOutAsThread(body, 'x'), true);
    equal(goesOutAsThread(body, 'bluesky'), false);
    equal(goesOutAsThread(postBody(), 'x'), false);
  });

  t('the first comment is text, on a network that takes one', () => {
    for (const platform of platforms) {
      const wanted = platform === 'tiktok' || platform === 'pinterest' ? null : ' hi';
      equal(firstCommentOf(platform, { firstComment: ' hi' }), wanted, platform);
    }
    for (const firstComment of [undefined, null, '', ' \n', '\u200b\u3164', 7, ['hi']])
      equal(firstCommentOf('x', { firstComment }), null);
    equal(firstCommentOf('x', {}), null);
  });

  t('is named by its beginning, with no character cut in two', () => {
    const text = 'x'.repeat(excerptLength - 1);
    for (const [last, kept] of [
      ['y', 'y'],
      ['\u{1f600}', ''],
      ['\u{10000}', ''],
      ['\u{10fc00}', ''],
      ['\u{ffff}', '\u{ffff}'],
      ['\u{e000}', '\u{e000}'],
    ] as const) {
      equal(excerptOf(`${text}${last}more`), `${text}${kept}`);
    }
    equal(excerptOf('short'), 'short');
  });

  t('is followed by a comment and a cover where its network takes them then', () => {
    const now = '2026-01-01T00:00:00.000Z';
    const cover = { coverMediaId: '11111111-1111-4111-8111-111111111111' };
    const nothing = { commentDueAt: null, afterSteps: [] };
    deepEqual(wantedAfter('youtube', { firstComment: 'First' }, cover, now), {
      commentDueAt: now,
      afterSteps: [{ step: 'cover', dueAt: now }],
    });
    // A cover that the post names none of, one that goes out with the post, and a post of which nobody knows the body.
    deepEqual(wantedAfter('youtube', {}, { coverMediaId: null }, now), nothing);
    deepEqual(wantedAfter('instagram', {}, cover, now), nothing);
    deepEqual(wantedAfter('youtube', {}, null, now), nothing);
  });
});
