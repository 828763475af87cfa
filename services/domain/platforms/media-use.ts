import type { Platform } from '#schemas/common.ts';
import type { MediaKind, MediaUse } from '#schemas/media.ts';
import { mediaRules, useRules } from './media-table.ts';
import { jpegFits } from './media-violations.ts';
import type { Overrides } from './overrides.ts';

/** What a network shows the files of one target as. */
export const useOf = (platform: Platform, overrides: Overrides, kinds: readonly MediaKind[]): MediaUse => {
  const { contentType } = overrides;
  const asked = contentType === 'reel' || contentType === 'story' ? contentType : null;
  if (platform === 'facebook') return asked ?? 'feed';
  if (platform !== 'instagram') return 'feed';
  if (asked !== null) return asked;
  if (kinds.length > 1) return 'carousel';
  // A single video is published as a reel whatever contentType says ("IG User Media", since 2023-07).
  return kinds[0] === 'video' || kinds[0] === 'gif' ? 'reel' : 'feed';
};

/** Whether a still of its own may be sent with a video. */
export const coverOf = (platform: Platform): boolean => mediaRules[platform].cover !== undefined;

/** A cover is of what moves in a feed or as a reel; stories and carousels take none. */
export const takesCover = (platform: Platform, use: MediaUse, kinds: readonly MediaKind[]): boolean =>
  coverOf(platform) && (use === 'feed' || use === 'reel') && kinds.some((kind) => kind === 'video' || kind === 'gif');

/** Whether a poster frame may be sent as the cover: one that may not is left out, and the network takes a frame itself. */
export const posterFits = (platform: Platform, poster: Parameters<typeof jpegFits>[1]): boolean => {
  const rules = useRules(platform, 'cover');
  return rules !== null && jpegFits(rules, poster);
};
