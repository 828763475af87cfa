import { type Platform, platforms } from '#schemas/common.ts';
import { bluesky } from './bluesky.ts';
import { facebook } from './facebook.ts';
import { instagram } from './instagram.ts';
import { linkedin } from './linkedin.ts';
import { pinterest } from './pinterest.ts';
import type { Capabilities, PlatformRules } from './rules.ts';
import { telegram } from './telegram.ts';
import { threads } from './threads.ts';
import { tiktok } from './tiktok.ts';
import { x } from './x.ts';
import { youtube } from './youtube.ts';

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
