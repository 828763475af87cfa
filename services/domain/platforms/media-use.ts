import { type Platform, platforms } from '#schemas/common.ts';
import type { MediaKind, MediaUse } from '#schemas/media.ts';
import type { UseRules } from './media-rules.ts';
import { jpegFits } from './media-violations.ts';
import { rulesOf } from './registry.ts';
import type { Overrides } from './rules.ts';

/** What a network takes of files for one use; null: the network knows no such use. */
export const useRules = (platform: Platform, use: MediaUse): UseRules | null =>
  rulesOf(platform).media.files[use] ?? null;

/** What a network shows the files of one target as. */
export const useOf = (platform: Platform, { contentType }: Overrides, kinds: readonly MediaKind[]): MediaUse => {
  const asked = contentType === 'reel' || contentType === 'story' ? contentType : null;
  return rulesOf(platform).media.useOf?.(asked, kinds) ?? 'feed';
};

/** Networks that show posts outside of their feed too, such as reels and stories. */
export const platformsWithUses: readonly Platform[] = platforms.filter(
  (platform) => rulesOf(platform).media.useOf !== undefined,
);

/** Whether the network takes a separate cover for a video. */
export const coverOf = (platform: Platform): boolean => useRules(platform, 'cover') !== null;

/** Whether the network takes a frame of the video as its cover. */
export const takesCoverFrame = (platform: Platform): boolean => rulesOf(platform).media.coverFrame === true;

/** Whether the network takes the cover by a call of its own once the post is out. */
export const coverFollows = (platform: Platform, use: MediaUse): boolean =>
  rulesOf(platform).media.coverAfter?.includes(use) === true;

/** Covers go with moving pictures in a feed or reel; stories and carousels take none. */
export const takesCover = (platform: Platform, use: MediaUse, kinds: readonly MediaKind[]): boolean =>
  coverOf(platform) && (use === 'feed' || use === 'reel') && kinds.some((kind) => kind === 'video' || kind === 'gif');

/** Whether the poster frame fits as the cover. Where it does not, the publisher sends none and the network picks a frame. */
export const posterFits = (platform: Platform, poster: Parameters<typeof jpegFits>[1]): boolean => {
  const rules = useRules(platform, 'cover');
  return rules !== null && jpegFits(rules, poster);
};
