/** Override keys of spec 2.3: a known key is checked against its rule, an unknown one is ignored. */
import { lazy } from '#domain/lazy.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { MediaUse } from '#schemas/media.ts';
import { rulesOf } from './registry.ts';
import type { OverrideRule, Overrides } from './rules.ts';
import { measured, textLength, usedWords } from './text-length.ts';

export type OverrideValue = string | boolean | readonly (string | Readonly<Record<string, unknown>>)[];

export interface OverrideProblem {
  readonly code: 'override_type' | 'override_enum' | 'override_length';
  readonly message: string;
}

/** Spec 2.2: a variant's own exception from the post's aiDisclosure, known to every network. */
const aiGenerated: OverrideRule = {
  about: 'Whether the content was made with AI, where this network differs from the `aiDisclosure` of the post.',
  type: 'boolean',
};

type KnownRules = Readonly<Record<string, OverrideRule>>;

/** Made once for each network: every check of every target reads them. */
const rulesByNetwork = lazy(
  () =>
    new Map(
      platforms.map((platform): [Platform, KnownRules] => [platform, { ...rulesOf(platform).overrides, aiGenerated }]),
    ),
);

export const overrideRules = (platform: Platform): KnownRules => rulesByNetwork().get(platform) ?? {};

const wrongType = (message: string): OverrideProblem => ({ code: 'override_type', message });
const tooLong = (message: string): OverrideProblem => ({ code: 'override_length', message });
const count = (text: string) => [...text].length;
const bytes = (text: string) => new TextEncoder().encode(text).length;

function isHttpUrl(value: string): boolean {
  const url = URL.parse(value);
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:');
}

const items = (value: string) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** YouTube counts the commas between tags, and two quotes round a tag with a space. */
const tagChars = (tags: readonly string[]) =>
  tags.reduce((sum, tag) => sum + count(tag) + (/\s/.test(tag) ? 2 : 0), Math.max(0, tags.length - 1));

const bareName = (name: string) => name.trim().replace(/^@/, '');

const nameOfTag = (tag: unknown): string =>
  bareName(typeof tag === 'string' ? tag : String((tag as { readonly username?: unknown }).username));

function isUserTag(value: unknown): boolean {
  if (typeof value === 'string') return bareName(value) !== '';
  const { username, x, y } = (value ?? {}) as Record<string, unknown>;
  const placed = (at: unknown) => at === undefined || at === null || (typeof at === 'number' && at >= 0 && at <= 1);
  return typeof username === 'string' && bareName(username) !== '' && placed(x) && placed(y);
}

/** What is wrong with the value of one known key; null: nothing. */
export function checkOverride(platform: Platform, rule: OverrideRule, value: unknown): OverrideProblem | null {
  switch (rule.type) {
    case 'boolean':
      return typeof value === 'boolean' ? null : wrongType('must be true or false');
    case 'string':
      if (typeof value !== 'string') return wrongType('must be a string');
      if (rule.max !== undefined && count(value) > rule.max) {
        return tooLong(`must be at most ${rule.max} characters; it has ${count(value)}`);
      }
      return rule.maxBytes !== undefined && bytes(value) > rule.maxBytes
        ? tooLong(`must be at most ${rule.maxBytes} bytes; it has ${bytes(value)}`)
        : null;
    case 'enum': {
      if (typeof value !== 'string') return wrongType(`must be one of ${rule.values.join(', ')}`);
      const known = rule.values.includes(value) || Object.hasOwn(rule.aliases ?? {}, value);
      return known ? null : { code: 'override_enum', message: `must be one of ${rule.values.join(', ')}` };
    }
    case 'url':
      if (typeof value !== 'string' || !isHttpUrl(value)) return wrongType('must be an absolute http or https URL');
      return rule.max !== undefined && value.length > rule.max
        ? tooLong(`must be at most ${rule.max} characters`)
        : null;
    case 'list': {
      const list = typeof value === 'string' && rule.commas ? items(value) : value;
      if (!Array.isArray(list) || !list.every((item) => typeof item === 'string')) {
        return wrongType(
          rule.commas ? 'must be an array of strings or a comma-separated string' : 'must be an array of strings',
        );
      }
      if (rule.maxItems !== undefined && list.length > rule.maxItems)
        return tooLong(`must have at most ${rule.maxItems} items`);
      if (rule.maxItem !== undefined && list.some((one) => count(bareName(one)) > (rule.maxItem ?? 0))) {
        return tooLong(`must be items of at most ${rule.maxItem} characters each`);
      }
      return rule.maxChars !== undefined && tagChars(list) > rule.maxChars
        ? tooLong(`must be at most ${rule.maxChars} characters together; it has ${tagChars(list)}`)
        : null;
    }
    case 'user_tags': {
      const list = typeof value === 'string' ? items(value) : value;
      const isBlank = typeof value === 'string' && items(value).length === 0;
      if (isBlank || !Array.isArray(list) || !list.every(isUserTag)) {
        return wrongType(
          'must be usernames that are not empty, objects {username, x, y} with x and y from 0 to 1, or a comma-separated string',
        );
      }
      if (list.length > rule.maxItems) return tooLong(`must have at most ${rule.maxItems} items`);
      return list.some((one) => count(nameOfTag(one)) > rule.maxName)
        ? tooLong(`must be usernames of at most ${rule.maxName} characters`)
        : null;
    }
    case 'comment': {
      if (typeof value !== 'string') return wrongType('must be a string');
      if (rule.max !== undefined && count(value) > rule.max) {
        return tooLong(`must be at most ${rule.max} characters; it has ${count(value)}`);
      }
      const [tags] = measured(value, [{ unit: 'hashtags', limit: rule.maxHashtags ?? value.length }]);
      if (tags !== undefined && tags.used > tags.limit) {
        return tooLong(`must have at most ${tags.limit} hashtags; it has ${usedWords(tags)}`);
      }
      if (!rule.asPost) return null;
      const { used, limit } = textLength(platform, value);
      return used > limit
        ? tooLong(`is over the network's own limit of ${limit}: ${usedWords({ used, limit })}`)
        : null;
    }
  }
}

/** The value as the adapter reads it: aliases resolved, comma lists split, user tags without their @. */
function normalize(rule: OverrideRule, value: unknown): OverrideValue {
  if (rule.type === 'enum' && typeof value === 'string') return rule.aliases?.[value] ?? value;
  if (rule.type === 'list' && typeof value === 'string') return items(value);
  if (rule.type === 'user_tags') {
    const list: readonly unknown[] = typeof value === 'string' ? items(value) : (value as readonly unknown[]);
    return list.map((tag) => {
      if (typeof tag === 'string') return bareName(tag);
      const { username, x, y } = tag as Record<string, unknown>;
      return {
        username: bareName(String(username)),
        ...(typeof x === 'number' && { x }),
        ...(typeof y === 'number' && { y }),
      };
    });
  }
  return value as OverrideValue;
}

/** The values of a key that the scopes of an account allow; null: every value. */
const grantedValues = (rule: OverrideRule, scopes: readonly string[]): readonly string[] | null => {
  if (rule.type !== 'enum' || rule.grantedBy === undefined) return null;
  const { grantedBy } = rule;
  const granted = scopes.filter((one) => one.startsWith(grantedBy)).map((one) => one.slice(grantedBy.length));
  return granted.length === 0 ? null : granted;
};

/** The scopes of an account that its network's overrides are held to: accounts with equal ones get equal answers. */
export const grantsOf = (platform: Platform, scopes: readonly string[]): string => {
  const granted = grantedRules().get(platform) ?? [];
  return granted.length === 0 ? '' : JSON.stringify(granted.map((rule) => grantedValues(rule, scopes)));
};

/** Rules whose values depend on scopes; most networks have none. */
const grantedRules = lazy(
  () =>
    new Map(
      platforms.map((platform) => [
        platform,
        Object.values(overrideRules(platform)).filter((rule) => rule.type === 'enum' && rule.grantedBy !== undefined),
      ]),
    ),
);

/** What is wrong with a value that the network knows and this account does not allow; null: nothing. */
export const checkGranted = (rule: OverrideRule, value: unknown, scopes: readonly string[]): string | null => {
  const granted = grantedValues(rule, scopes);
  if (granted === null || granted.includes(String(value))) return null;
  return `must be one of those that the account allows: ${granted.join(', ')}`;
};

/** A member that is null counts as not set, as everywhere in a body. */
export const isSet = (overrides: Overrides, key: string) =>
  Object.hasOwn(overrides, key) && overrides[key] !== null && overrides[key] !== undefined;

/** What the segments of a thread after its first are sent with. */
export const replyOverrides = (platform: Platform, overrides: Overrides): Overrides => {
  const rules = overrideRules(platform);
  return Object.fromEntries(Object.entries(overrides).filter(([key]) => rules[key]?.headOnly !== true));
};

/** @param use what the network shows the files as; null: there are none */
export const isSentAs = ({ uses }: OverrideRule, use: MediaUse | null): boolean =>
  uses === undefined || (use !== null && uses.includes(use));

/** Keys that are set and that the network does not get for files that it shows so; null: there are none. */
export const unusedOverrides = (platform: Platform, overrides: Overrides, use: MediaUse | null): readonly string[] =>
  Object.entries(overrideRules(platform)).flatMap(([key, rule]) =>
    isSet(overrides, key) && !isSentAs(rule, use) ? [key] : [],
  );

/**
 * What an adapter publishes with: known keys of the right shape that apply to the files and nothing else, the network's
 * defaults, and the post's AI disclosure, from which a variant's own `aiGenerated` is the exception. A comment has a call
 * of its own.
 * @param use what the network shows the files as; null: there are none
 */
export function effectiveOverrides(
  platform: Platform,
  overrides: Overrides,
  aiDisclosure: boolean,
  use: MediaUse | null = null,
): Readonly<Record<string, OverrideValue>> {
  const effective: Record<string, OverrideValue> = {};
  for (const [key, rule] of Object.entries(overrideRules(platform))) {
    if (rule.type === 'comment' || !isSentAs(rule, use)) continue;
    if (isSet(overrides, key) && checkOverride(platform, rule, overrides[key]) === null) {
      effective[key] = normalize(rule, overrides[key]);
    } else if (rule.default !== undefined) effective[key] = rule.default;
  }
  const ai = effective.aiGenerated ?? aiDisclosure;
  const { aiKey } = rulesOf(platform);
  return { ...effective, aiGenerated: ai, ...(aiKey !== null && { [aiKey]: ai }) };
}
