import { type Mode, type Platform, platforms } from '#schemas/common.ts';
import { bluesky } from './networks/bluesky.ts';
import { facebook } from './networks/facebook.ts';
import { instagram } from './networks/instagram.ts';
import { linkedin } from './networks/linkedin.ts';
import { pinterest } from './networks/pinterest.ts';
import { telegram } from './networks/telegram.ts';
import { threads } from './networks/threads.ts';
import { tiktok } from './networks/tiktok.ts';
import { x } from './networks/x.ts';
import { youtube } from './networks/youtube.ts';
import type { Capabilities, NetworkRules, Overrides, ReadingRules } from './rules.ts';

/** The rules of every network: tsc refuses a platform of the enum that is not here. */
export const rules: { readonly [P in Platform]: NetworkRules } = {
  bluesky,
  facebook,
  instagram,
  linkedin,
  pinterest,
  telegram,
  threads,
  tiktok,
  x,
  youtube,
};

export const rulesOf = (platform: Platform): NetworkRules => rules[platform];

export const capabilities = (platform: Platform): Capabilities => rules[platform].capabilities;

/** How the network is asked for posts of one account. @param externalId of the account on the network */
export const readingOf = (platform: Platform, externalId: string): ReadingRules => {
  const { publish } = rules[platform];
  return publish.ofAccount === undefined ? publish : { ...publish, ...publish.ofAccount(externalId) };
};

/** What the network tells of each account, by key, and what it is. */
export const choicesOf = (platform: Platform): Readonly<Record<string, string>> => rules[platform].choices ?? {};

/** The title that the network gets; null: none. */
export const titleFor = (platform: Platform, content: string, overrides: Overrides): string | null =>
  rulesOf(platform).title?.(content, overrides) ?? null;

/** The identifier as we keep it; `twitter` is read as `x`. Null: no network of ours has that name. */
export function normalizePlatform(value: string): Platform | null {
  const name = value === 'twitter' ? 'x' : value;
  return platforms.find((platform) => platform === name) ?? null;
}

/**
 * Those of these networks on which a person can connect an account: in the test mode the sandbox stands for each.
 * @param live networks that this installation connects to
 */
export const connectable = (
  mode: Mode,
  platforms: readonly Platform[],
  live: readonly Platform[],
): readonly Platform[] => (mode === 'test' ? platforms : platforms.filter((platform) => live.includes(platform)));

export interface PermalinkParts {
  /** The network's id of the post. */
  readonly id: string;
  /** Its short form in addresses, where it has one: shortcode, record key, message number. */
  readonly code?: string;
  readonly username: string | null;
  /** The account's id on the network. */
  readonly account: string;
}

/** The post's public address; null: no template has all its members. */
export function permalinkOf(platform: Platform, parts: PermalinkParts): string | null {
  const values: Readonly<Record<string, string | null | undefined>> = { ...parts };
  for (const template of rulesOf(platform).publish.permalinks) {
    let complete = true;
    const address = template.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = values[name] ?? '';
      complete &&= value !== '';
      return value;
    });
    if (complete) return address;
  }
  return null;
}
