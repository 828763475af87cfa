import type { Platform } from '#schemas/common.ts';
import type { MediaUse } from '#schemas/media.ts';
import { bluesky } from './bluesky.ts';
import { facebook } from './facebook.ts';
import { instagram } from './instagram.ts';
import { linkedin } from './linkedin.ts';
import { pinterest } from './pinterest.ts';
import type { MediaUseRules, UseRules } from './rules.ts';
import { telegram } from './telegram.ts';
import { threads } from './threads.ts';
import { tiktok } from './tiktok.ts';
import { x } from './x.ts';
import { youtube } from './youtube.ts';

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
