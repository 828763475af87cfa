import { type Platform, platforms } from '#schemas/common.ts';
import * as networks from './networks.ts';
import type { Capabilities, NetworkRules, Overrides } from './rules.ts';

/** The rules of every network. */
export const rules: { readonly [P in Platform]: NetworkRules } = networks;

export const rulesOf = (platform: Platform): NetworkRules => rules[platform];

export const capabilities = (platform: Platform): Capabilities => rules[platform].capabilities;

/** The title that the network gets; null: none. */
export const titleFor = (platform: Platform, content: string, overrides: Overrides): string | null =>
  rulesOf(platform).title?.(content, overrides) ?? null;

/** The identifier as we keep it; `twitter` is read as `x`. Null: no network of ours has that name. */
export function normalizePlatform(value: string): Platform | null {
  const name = value === 'twitter' ? 'x' : value;
  return platforms.find((platform) => platform === name) ?? null;
}
