import type { Platform } from '#schemas/common.ts';
import type { MediaUse } from '#schemas/media.ts';
import { bluesky } from './bluesky/media.ts';
import { facebook } from './facebook/media.ts';
import { instagram } from './instagram/media.ts';
import { linkedin } from './linkedin/media.ts';
import type { MediaUseRules, UseRules } from './media-rules.ts';
import { pinterest } from './pinterest/media.ts';
import { telegram } from './telegram/media.ts';
import { threads } from './threads/media.ts';
import { tiktok } from './tiktok/media.ts';
import { x } from './x/media.ts';
import { youtube } from './youtube/media.ts';

/** What every network takes of files, one row each. */
export const mediaRules: { readonly [P in Platform]: MediaUseRules } = {
  x,
  instagram,
  tiktok,
  youtube,
  facebook,
  linkedin,
  threads,
  pinterest,
  bluesky,
  telegram,
};

/** Null: the network knows no such use. */
export const useRules = (platform: Platform, use: MediaUse): UseRules | null => mediaRules[platform][use] ?? null;
