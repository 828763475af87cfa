import { equal } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { MediaState } from '#domain/media.ts';
import { media } from '#domain/media.ts';
import { contentFor } from '#domain/post/content.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import type { Platform } from '#schemas/common.ts';
import { readinessOf } from '#services/publisher/media-readiness.ts';
import { type AssetOptions, assetEvents } from '#test/support/assets.ts';
import { commandContext, openDomain } from '#test/support/domain.ts';
import { postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

suite('the cover of a video', (t) => {
  const { store } = openDomain();
  const workspaceId = randomUUID();
  const load = async (kind: 'video' | 'image', options: AssetOptions = {}): Promise<[string, Loaded<MediaState>]> => {
    const id = randomUUID();
    const poster = { body: Buffer.alloc(90_000), width: 1_280, height: 720 };
    const events = assetEvents(workspaceId, id, kind, kind === 'video' ? { poster, ...options } : options);
    await store.append(`media-${id}`, -1, events, commandContext({ workspaceId }), `media-${id}`);
    return [id, await store.load(media, id)];
  };
  const uses = (platform: Platform): AssetOptions => ({
    needs: (['feed', 'carousel', 'reel', 'story', 'cover'] as const).map((use) => ({ platform, use })),
  });
  /** The cover that is sent: the post's `own`, the video's `poster`, or none. */
  const coverOf = async (platform: Platform, contentType: string | null, count: number, withOwn: boolean) => {
    const videos = await Promise.all(Array.from({ length: count }, () => load('video', uses(platform))));
    const own = await load('image', uses(platform));
    const mediaIds = videos.map(([id]) => id);
    const body = postBody({
      mediaIds,
      coverMediaId: withOwn ? own[0] : null,
      variants:
        contentType === null
          ? []
          : [{ platform, contentOverride: null, mediaIdsOverride: null, overrides: { contentType } }],
    });
    const content = { ...contentFor(body, platform), aiDisclosure: false, bornAt: '2026-01-01T00:00:00.000Z', body };
    const readiness = readinessOf(content, 0, platform, workspaceId, new Map([...videos, own]));
    if (readiness.kind !== 'ready') throw new Error(JSON.stringify(readiness));
    const cover = readiness.files[0]?.cover ?? null;
    return cover === null ? null : cover.mediaId === own[0] ? 'own' : 'poster';
  };

  t(
    'is the cover of the post where the network takes one, else the poster; stories and carousels have none',
    async () => {
      const table: readonly (readonly [Platform, string | null, number, own: string | null, poster: string | null])[] =
        [
          ['instagram', null, 1, 'own', 'poster'],
          ['instagram', 'story', 1, null, null],
          ['instagram', null, 2, null, null],
          ['facebook', null, 1, 'own', 'poster'],
          ['facebook', 'reel', 1, 'own', 'poster'],
          ['facebook', 'story', 1, null, null],
          ['youtube', null, 1, 'own', 'poster'],
          ['x', null, 1, null, null],
        ];
      for (const [platform, contentType, count, own, poster] of table) {
        const row = `${platform} ${contentType} ${count}`;
        equal(await coverOf(platform, contentType, count, true), own, row);
        equal(await coverOf(platform, contentType, count, false), poster, row);
      }
    },
  );
});
