/** Counts a text in a network's own units. Every counter is linear in the text. */
import { lazy } from '#domain/lazy.ts';
import type { Platform } from '#schemas/common.ts';
import { addresses } from './addresses.ts';
import { links } from './networks/x.ts';
import { rulesOf } from './registry.ts';
import type { Overrides, TextLimit, TextRules, TextUnit } from './rules.ts';

/**
 * X's weighted length, as twitter-text v3 computes it (github.com/twitter/twitter-text, config v3).
 */
const urlWeight = 23;

/**
 * Every emoji is one weight of 2, however many code points its sequence has; first those behind which a selector changes
 * nothing. It takes long to match: see `emojiStart`.
 */
const emoji = lazy(
  () =>
    /[\u231A\u231B\u25FD\u25FE\u2614\u2615\u2648-\u2653\u267F\u2693\u26A1\u26AA\u26AB\u26BD\u26BE\u26C4\u26C5\u26D4\u26EA\u26F2\u26F3\u26F5\u26FA\u26FD\u2757\u2B1B\u2B1C\u2B50\u2B55\u{1F004}\u{1F21A}\u{1F22F}]\uFE0F|\p{RGI_Emoji}|[0-9#*]\u20E3|\u{1F441}\u200D\u{1F5E8}|\p{Emoji_Modifier_Base}\p{Emoji_Modifier}|(?![0-9#*])\p{Emoji}\uFE0F|\p{Emoji_Presentation}/vy,
);
/** With which every emoji begins, and much else, digits among them. */
const emojiStart = /\p{Emoji}/gu;

/** Code points that weigh 1; all others 2. */
const light = (code: number) =>
  code <= 0x10ff ||
  (code >= 0x2000 && code <= 0x200d) ||
  (code >= 0x2010 && code <= 0x201f) ||
  (code >= 0x2032 && code <= 0x2037);

const lightOrHeavy = (char: string) => (light(char.codePointAt(0) ?? 0) ? 1 : 2);

function plainWeight(text: string): number {
  let weight = 0;
  for (const char of text) weight += lightOrHeavy(char);
  return weight;
}

/** Of text without links. Stops soon after `most`. */
function textWeight(text: string, most: number): number {
  let weight = 0;
  for (let at = 0; at < text.length && weight <= most; ) {
    emojiStart.lastIndex = at;
    const start = emojiStart.exec(text)?.index ?? text.length;
    weight += plainWeight(text.slice(at, start));
    emoji().lastIndex = start;
    const char = String.fromCodePoint(text.codePointAt(start) ?? 0);
    const found = emoji().exec(text)?.[0];
    if (start < text.length) weight += found === undefined ? lightOrHeavy(char) : 2;
    at = start + (found ?? char).length;
  }
  return weight;
}

/** Weighted length of a text, in X's units of which a post holds 280; exact up to `most`, over it a number over it. */
export function weightedLength(raw: string, most = Number.POSITIVE_INFINITY): number {
  const text = raw.normalize('NFC');
  let weight = 0;
  let at = 0;
  for (const link of links(text)) {
    weight += textWeight(text.slice(at, link.start), most - weight) + urlWeight;
    at = link.end;
    if (weight > most) return weight;
  }
  return weight + textWeight(text.slice(at), most - weight);
}

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
