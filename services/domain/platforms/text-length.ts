/** How long a text is in a network's own eyes. Pure; every counter is linear in the text. */

import { lazy } from '#domain/lazy.ts';
import type { Platform } from '#schemas/common.ts';
import { rulesOf } from './networks.ts';
import type { TextLimit, TextRules, TextUnit } from './rules.ts';
import { links, weightedLength } from './weighted-length.ts';

const graphemes = lazy(() => new Intl.Segmenter('en', { granularity: 'grapheme' }));
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
function emojiBytes(text: string, most: number): number {
  if (isPlain(text)) return text.length;
  let used = 0;
  for (const { segment } of graphemes().segment(text)) {
    const weighs = mayBeEmoji.test(segment) && isEmoji().test(segment) && !/^[©®]$/u.test(segment);
    used += weighs ? utf8.encode(segment).length : codePoints(segment);
    if (used > most) break;
  }
  return used;
}

function graphemeCount(text: string, most: number): number {
  if (isPlain(text)) return text.length;
  let count = 0;
  for (const _ of graphemes().segment(text)) {
    count += 1;
    if (count > most) break;
  }
  return count;
}

function differentLinks(text: string, most: number): number {
  const found = new Set<string>();
  for (const { start, end } of links(text)) {
    found.add(text.slice(start, end));
    if (found.size > most) break;
  }
  return found.size;
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' };

/** Tokens of Telegram's two markdowns; a `[text](` is a link only if its address ends, which is looked for apart. */
const markdownV2 = /\\([\s\S])|!?\[((?:\\.|[^[\]\\\n]){0,4096})\]\(|\|\||^\*{0,2}>|[*_~`]/gmu;
const markdown = /\\([_*`[])|\[([^[\]\n]{0,4096})\]\(|[*_`]/gu;
const addressEnd = /[)\s]/g;
const maxAddress = 2_100;

/** @param shownOf what a link shows of its text. */
function withoutMarkdown(text: string, token: RegExp, shownOf: (text: string) => string): string {
  const out: string[] = [];
  let at = 0;
  // Where the next address can end: kept while links begin before it, or each of many `[](` would look for it anew.
  let end = -1;
  for (;;) {
    token.lastIndex = at;
    const found = token.exec(text);
    if (found === null) break;
    const [whole, escaped, linked] = found;
    out.push(text.slice(at, found.index));
    at = found.index + whole.length;
    if (linked === undefined) {
      out.push(escaped ?? '');
      continue;
    }
    if (end < at) {
      addressEnd.lastIndex = at;
      end = addressEnd.exec(text)?.index ?? text.length;
    }
    if (text[end] === ')' && end > at && end - at <= maxAddress) {
      out.push(shownOf(linked));
      at = end + 1;
    } else {
      out.push(text[found.index] ?? '');
      at = found.index + 1;
    }
  }
  out.push(text.slice(at));
  return out.join('');
}

/**
 * The text Telegram shows: markup of the parse mode taken out. Markup that Telegram would refuse is not judged here;
 * what is left in counts, so a length is never too small by it.
 */
export function telegramText(text: string, parseMode: unknown): string {
  if (parseMode === 'HTML') {
    return text
      .replace(/<\/?[a-z][^<>]{0,2100}>/gi, '')
      .replace(/&(?:(lt|gt|amp|quot)|#(\d{1,7})|#x([0-9a-f]{1,6}));/gi, (whole, name, decimal, hex) => {
        if (name !== undefined) return entities[String(name).toLowerCase()] ?? whole;
        const code = decimal !== undefined ? Number(decimal) : Number.parseInt(String(hex), 16);
        return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
      });
  }
  if (parseMode === 'MarkdownV2') {
    return withoutMarkdown(text, markdownV2, (linked) => telegramText(linked, parseMode));
  }
  return parseMode === 'Markdown' ? withoutMarkdown(text, markdown, (linked) => linked) : text;
}

/** What a counter may need beside the text. */
export interface TextOptions {
  /** Telegram's `parseMode` override. */
  readonly parseMode?: unknown;
}

/** Each may stop at a number over `most`. */
const counters: Readonly<Record<TextUnit, (text: string, most: number, options: TextOptions) => number>> = {
  weighted: weightedLength,
  code_points: codePoints,
  utf16_units: (text) => text.length,
  parsed_utf16_units: (text, _most, { parseMode }) => telegramText(text, parseMode).length,
  graphemes: graphemeCount,
  utf8_bytes: (text) => utf8.encode(text).length,
  emoji_bytes: emojiBytes,
  links: differentLinks,
  hashtags: (text) => matches(text, /(?<![\p{L}\p{N}_&/])[#＃][\p{L}\p{N}\p{M}_]*[\p{L}_][\p{L}\p{N}\p{M}_]*/gu),
  mentions: (text) => matches(text, /(?<![\p{L}\p{N}_.@/])@[a-z0-9_.]{1,30}/giu),
};

/** Counting stops at this multiple of the limit: counting all of a long text would hold up all other requests. */
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

/** `used` of `limit` in the network's own units; over when any part is. */
export function textLength(platform: Platform, text: string, options: TextOptions = {}): TextLength {
  const { limits } = rulesOf(platform).text;
  const measure = ({ unit, limit }: TextLimit) => ({
    used: counters[unit](text, limit * countedTimes, options),
    limit,
    unit,
  });
  const [first, ...rest] = limits;
  const parts = [measure(first), ...rest.map(measure)] as const;
  const tightest = parts.reduce((a, b) => (b.used > b.limit && b.used / b.limit > a.used / a.limit ? b : a));
  return { ...tightest, parts };
}

/** The string the network will get as its text, and the pointer to the member it comes from. */
export function sentText(
  rules: TextRules,
  content: string,
  overrides: Readonly<Record<string, unknown>>,
): { text: string; path: string } {
  const key = rules.replacedBy;
  const replaced = key === undefined ? undefined : overrides[key];
  return typeof replaced === 'string'
    ? { text: replaced, path: `/overrides/${key}` }
    : { text: content, path: '/content' };
}
