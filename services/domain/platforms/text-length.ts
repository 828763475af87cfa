/** Counts a text in a network's own units. Every counter is linear in the text. */

import { lazy } from '#domain/lazy.ts';
import type { Platform } from '#schemas/common.ts';
import { addresses } from './addresses.ts';
import { rulesOf } from './registry.ts';
import type { Overrides, TextLimit, TextRules, TextUnit } from './rules.ts';
import { weightedLength } from './weighted-length.ts';

export const graphemes = lazy(() => new Intl.Segmenter('en', { granularity: 'grapheme' }));
const utf8 = new TextEncoder();

const codePoints = (text: string) => {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
};

const matches = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;

/** Characters that are one grapheme each and no emoji, whatever stands beside them in such a text. */
const isPlain = (text: string): boolean => /^[\n\x20-\x7e]*$/.test(text);

/** Every emoji begins so. Tested first: the list of all emoji takes a hundred times as long. */
const mayBeEmoji = /^[\p{Emoji}\p{Extended_Pictographic}]/u;
const isEmoji = lazy(() => /^(?:\p{RGI_Emoji}|\p{Extended_Pictographic})/v);

/** Threads: an emoji weighs its UTF-8 bytes, any other character 1. */
function emojiBytes(text: string, max: number): number {
  if (isPlain(text)) return text.length;
  let used = 0;
  for (const { segment } of graphemes().segment(text)) {
    const weighs = mayBeEmoji.test(segment) && isEmoji().test(segment) && !/^[©®]$/u.test(segment);
    used += weighs ? utf8.encode(segment).length : codePoints(segment);
    if (used > max) break;
  }
  return used;
}

function graphemeCount(text: string, max: number): number {
  if (isPlain(text)) return text.length;
  let count = 0;
  for (const _ of graphemes().segment(text)) {
    count += 1;
    if (count > max) break;
  }
  return count;
}

function differentLinks(text: string, max: number): number {
  const found = new Set<string>();
  for (const { start, end } of addresses(text)) {
    found.add(text.slice(start, end));
    if (found.size > max) break;
  }
  return found.size;
}

/** Each may stop at a number over `max`. */
const counters: Readonly<Record<TextUnit, (text: string, max: number) => number>> = {
  weighted: weightedLength,
  code_points: codePoints,
  utf16_units: (text) => text.length,
  parsed_utf16_units: (text) => text.length,
  graphemes: graphemeCount,
  utf8_bytes: (text) => utf8.encode(text).length,
  emoji_bytes: emojiBytes,
  links: differentLinks,
  hashtags: (text) => matches(text, /(?<![\p{L}\p{N}_&/])[#＃][\p{L}\p{N}\p{M}_]*[\p{L}_][\p{L}\p{N}\p{M}_]*/gu),
  mentions: (text) => matches(text, /(?<![\p{L}\p{N}_.@/])@[a-z0-9_.]{1,30}/giu),
};

/** Counting stops at this multiple of the limit: counting the whole of a long text would block all other requests. */
const countedTimes = 4;

interface TextMeasure {
  /** Exact up to four times the limit; beyond, any number over that. */
  readonly used: number;
  readonly limit: number;
  readonly unit: TextUnit;
}

export interface TextLength extends TextMeasure {
  /** Every limit the text is under; the members above repeat the tightest. */
  readonly parts: readonly TextMeasure[];
}

/** How long a text is, in words. */
export const usedWords = ({ used, limit }: Pick<TextMeasure, 'used' | 'limit'>): string =>
  used > limit * countedTimes ? `more than ${limit * countedTimes}` : String(used);

/** The text without the markup that the network reads in it. */
export const withoutMarkup = (platform: Platform, text: string, overrides: Overrides): string =>
  rulesOf(platform).text.shown?.(text, overrides) ?? text;

export const unitWords: Readonly<Record<TextUnit, string>> = {
  weighted: 'weighted characters',
  code_points: 'characters',
  utf16_units: 'characters',
  parsed_utf16_units: 'characters after its markup is read',
  graphemes: 'characters',
  utf8_bytes: 'bytes',
  emoji_bytes: 'characters, an emoji counting as its bytes',
  links: 'different links',
  hashtags: 'hashtags',
  mentions: 'mentions',
};

const measure = (text: string, { unit, limit }: TextLimit): TextMeasure => ({
  used: counters[unit](text, limit * countedTimes),
  limit,
  unit,
});

/** A text without markup under each of some limits. */
export const measured = (text: string, limits: readonly TextLimit[]): readonly TextMeasure[] =>
  limits.map((one) => measure(text, one));

/** `used` of `limit` in the network's own units; over when any part is. */
export function textLength(platform: Platform, text: string, overrides: Overrides = {}): TextLength {
  const { limits } = rulesOf(platform).text;
  const counted = (unit: TextUnit) => (unit === 'parsed_utf16_units' ? withoutMarkup(platform, text, overrides) : text);
  const [first, ...rest] = limits;
  const parts = [measure(counted(first.unit), first), ...rest.map((one) => measure(counted(one.unit), one))] as const;
  const tightest = parts.reduce((a, b) => (b.used > b.limit && b.used / b.limit > a.used / a.limit ? b : a));
  return { ...tightest, parts };
}

/** The string the network will get as its text, and the pointer to the member it comes from. */
export function sentText(rules: TextRules, content: string, overrides: Overrides): { text: string; path: string } {
  const key = rules.replacedBy;
  const replaced = key === undefined ? undefined : overrides[key];
  return typeof replaced === 'string'
    ? { text: replaced, path: `/overrides/${key}` }
    : { text: content, path: '/content' };
}
