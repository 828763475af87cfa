import type { Platform } from '#schemas/common.ts';
import type { MediaKind, MediaNeed } from '#schemas/media.ts';
import type { PostBody } from '#schemas/post.ts';
import { contentFor } from './content.ts';
import { takesCover, useOf } from './platforms/index.ts';

/** The files that a post names, and the renditions that each target needs. */

/** Every file a body names, each once. */
export const mediaIdsOf = (
  body: Pick<PostBody, 'mediaIds' | 'variants' | 'thread' | 'coverMediaId'>,
): readonly string[] => [
  ...new Set([
    ...body.mediaIds,
    ...body.variants.flatMap(({ mediaIdsOverride }) => mediaIdsOverride ?? []),
    ...(body.thread?.segments ?? []).flatMap(({ mediaIds }) => mediaIds),
    ...(body.coverMediaId === null ? [] : [body.coverMediaId]),
  ]),
];

export interface TargetNeed {
  readonly mediaId: string;
  readonly need: MediaNeed;
}

/**
 * The renditions that one network needs before the post goes out, from this segment on, and the cover where the network
 * takes one.
 */
export const needsOfTarget = (
  body: PostBody,
  platform: Platform,
  kindOf: (id: string) => MediaKind,
  from = 0,
): readonly TargetNeed[] => {
  const { segments, overrides } = contentFor(body, platform);
  const needs = new Map<string, TargetNeed>();
  const add = (mediaId: string, need: MediaNeed): void => {
    needs.set(`${mediaId}/${need.use}`, { mediaId, need });
  };
  for (const { mediaIds } of segments.slice(from)) {
    const kinds = mediaIds.map(kindOf);
    const use = useOf(platform, overrides, kinds);
    for (const mediaId of mediaIds) add(mediaId, { platform, use });
    if (body.coverMediaId !== null && takesCover(platform, use, kinds)) {
      add(body.coverMediaId, { platform, use: 'cover' });
    }
  }
  return [...needs.values()];
};
