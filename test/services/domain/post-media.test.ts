import { deepEqual } from 'node:assert/strict';
import { mediaIdsOf, needsOfTarget } from '#domain/post/content.ts';
import type { Platform } from '#schemas/common.ts';
import type { MediaKind } from '#schemas/media.ts';
import type { PostBody, Variant } from '#schemas/post.ts';
import { postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const variant = (platform: Platform, over: Partial<Variant>): Variant => ({
  platform,
  contentOverride: null,
  mediaIdsOverride: null,
  overrides: {},
  ...over,
});

/** The first letter of an id tells its kind. */
const kinds: Readonly<Record<string, MediaKind>> = { i: 'image', v: 'video', g: 'gif', d: 'document' };
const needs = (over: Partial<PostBody>, platform: Platform) =>
  needsOfTarget(postBody(over), platform, (id) => kinds[id.slice(0, 1)] ?? 'image').map(
    ({ mediaId, need }) => `${mediaId} ${need.platform}/${need.use}`,
  );

suite('media of a post', (t) => {
  t('are named in four places, each once', () => {
    deepEqual(mediaIdsOf(postBody()), []);
    deepEqual(
      mediaIdsOf(
        postBody({
          mediaIds: ['a', 'b', 'a'],
          variants: [variant('x', { mediaIdsOverride: ['c', 'a'] }), variant('threads', {})],
          thread: {
            segments: [
              { content: '', mediaIds: ['d'] },
              { content: '', mediaIds: ['b'] },
            ],
          },
          coverMediaId: 'e',
        }),
      ),
      ['a', 'b', 'c', 'd', 'e'],
    );
  });

  t('are needed as the target shows them', () => {
    deepEqual(needs({}, 'x'), []);
    deepEqual(needs({ mediaIds: ['i1', 'i2'] }, 'x'), ['i1 x/feed', 'i2 x/feed']);
    deepEqual(needs({ mediaIds: ['i1', 'i1'] }, 'x'), ['i1 x/feed']);
    deepEqual(needs({ mediaIds: ['i1', 'v1'] }, 'instagram'), ['i1 instagram/carousel', 'v1 instagram/carousel']);
    deepEqual(needs({ mediaIds: ['v1'] }, 'instagram'), ['v1 instagram/reel']);
    const variants = [variant('facebook', { mediaIdsOverride: ['v2'], overrides: { contentType: 'reel' } })];
    deepEqual(needs({ mediaIds: ['i1'], variants }, 'facebook'), ['v2 facebook/reel']);
    deepEqual(needs({ mediaIds: ['i1'], variants }, 'x'), ['i1 x/feed']);
  });

  t('have a cover where something moves and the network takes one', () => {
    const covered = { mediaIds: ['v1'], coverMediaId: 'i9' };
    deepEqual(needs(covered, 'youtube'), ['v1 youtube/feed', 'i9 youtube/cover']);
    deepEqual(needs(covered, 'instagram'), ['v1 instagram/reel', 'i9 instagram/cover']);
    deepEqual(needs({ ...covered, mediaIds: ['g1'] }, 'instagram'), ['g1 instagram/reel', 'i9 instagram/cover']);
    deepEqual(needs(covered, 'x'), ['v1 x/feed']);
    deepEqual(needs(covered, 'tiktok'), ['v1 tiktok/feed']);
    deepEqual(needs({ ...covered, mediaIds: ['i1'] }, 'facebook'), ['i1 facebook/feed']);
    const story = [variant('instagram', { overrides: { contentType: 'story' } })];
    deepEqual(needs({ ...covered, variants: story }, 'instagram'), ['v1 instagram/story']);
    deepEqual(needs({ ...covered, mediaIds: ['i9', 'v1'] }, 'telegram'), [
      'i9 telegram/feed',
      'v1 telegram/feed',
      'i9 telegram/cover',
    ]);
  });

  t('are those of the segments on x and threads', () => {
    const thread = {
      segments: [
        { content: '', mediaIds: ['i1'] },
        { content: '', mediaIds: ['v1', 'i1'] },
      ],
    };
    deepEqual(needs({ mediaIds: ['i5'], thread }, 'threads'), ['i1 threads/feed', 'v1 threads/feed']);
    deepEqual(needs({ mediaIds: ['i5'], thread }, 'facebook'), ['i5 facebook/feed']);
  });

  // A file of a segment that is out may be gone: it must not hold up the rest.
  t('are no longer those of the segments that are out', () => {
    const segments = ['i1', 'i2', 'i3'].map((id) => ({ content: '', mediaIds: [id] }));
    const body = postBody({ thread: { segments } });
    deepEqual(
      needsOfTarget(body, 'x', () => 'image', 1).map(({ mediaId }) => mediaId),
      ['i2', 'i3'],
    );
  });
});
