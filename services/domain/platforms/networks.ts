import { type Platform, platforms } from '#schemas/common.ts';
import { bluesky } from './bluesky/index.ts';
import { facebook } from './facebook/index.ts';
import { instagram } from './instagram/index.ts';
import { linkedin } from './linkedin/index.ts';
import { pinterest } from './pinterest/index.ts';
import type { Capabilities, PlatformRules } from './rules.ts';
import { telegram } from './telegram/index.ts';
import { threads } from './threads/index.ts';
import { tiktok } from './tiktok/index.ts';
import { x } from './x/index.ts';
import { youtube } from './youtube/index.ts';

/** All networks, one row each. */
export const rules: { readonly [P in Platform]: PlatformRules } = {
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

export const rulesOf = (platform: Platform): PlatformRules => rules[platform];

export const capabilities = (platform: Platform): Capabilities => rules[platform].capabilities;

/** The identifier as we keep it; `twitter` is read as `x`. Null for no platform of ours. */
export function normalizePlatform(value: string): Platform | null {
  const name = value === 'twitter' ? 'x' : value;
  return platforms.find((platform) => platform === name) ?? null;
}
