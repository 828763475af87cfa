/** How long a text is in a network's own eyes. Pure; every counter is linear in the text. */
import type { Platform } from '#schemas/common.ts';
import type { TextLimit, TextRules, TextUnit } from './rules.ts';
import { rulesOf } from './table.ts';
import { links, weightedLength } from './weighted.ts';

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });
const utf8 = new TextEncoder();

const codePoints = (text: string) => {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
};

const matches = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;

/** Characters that are one grapheme each and no emoji, whatever stands beside them in such a text. */
const isPlain = (text: string): boolean => /^[\n\x20-\x7e]*$/.test(text);

/** Threads: an emoji weighs its UTF-8 bytes, any other character 1. */
function emojiBytes(text: string): number {
  if (isPlain(text)) return text.length;
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    used +=
      /^(?:\p{RGI_Emoji}|\p{Extended_Pictographic})/v.test(segment) && !/^[©®]$/u.test(segment)
        ? utf8.encode(segment).length
        : codePoints(segment);
  }
  return used;
}

function differentLinks(text: string): number {
  return new Set(links(text).map(({ start, end }) => text.slice(start, end))).size;
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' };

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
    return text.replace(
      /\\([\s\S])|!?\[((?:\\.|[^[\]\\\n]){0,4096})\]\([^)\s]{1,2100}\)|\|\||^\*{0,2}>|[*_~`]/gmu,
      (_, escaped: string | undefined, shown: string | undefined) =>
        escaped ?? (shown === undefined ? '' : telegramText(shown, 'MarkdownV2')),
    );
  }
  if (parseMode === 'Markdown') {
    return text.replace(
      /\\([_*`[])|\[([^[\]\n]{0,4096})\]\([^)\s]{1,2100}\)|[*_`]/gu,
      (_, escaped: string | undefined, shown: string | undefined) => escaped ?? shown ?? '',
    );
  }
  return text;
}

/** What a counter may need beside the text. */
export interface TextOptions {
  /** Telegram's `parseMode` override. */
  readonly parseMode?: unknown;
}

const counters: Readonly<Record<TextUnit, (text: string, options: TextOptions) => number>> = {
  weighted: weightedLength,
  code_points: codePoints,
  utf16_units: (text) => text.length,
  parsed_utf16_units: (text, { parseMode }) => telegramText(text, parseMode).length,
  graphemes: (text) => {
    if (isPlain(text)) return text.length;
    let count = 0;
    for (const _ of graphemes.segment(text)) count += 1;
    return count;
  },
  utf8_bytes: (text) => utf8.encode(text).length,
  emoji_bytes: emojiBytes,
  links: differentLinks,
  hashtags: (text) => matches(text, /(?<![\p{L}\p{N}_&/])[#＃][\p{L}\p{N}\p{M}_]*[\p{L}_][\p{L}\p{N}\p{M}_]*/gu),
  mentions: (text) => matches(text, /(?<![\p{L}\p{N}_.@/])@[a-z0-9_.]{1,30}/giu),
};

interface TextMeasure {
  readonly used: number;
  readonly limit: number;
  readonly unit: TextUnit;
}

export interface TextLength extends TextMeasure {
  /** Every limit the text is under; the members above repeat the tightest. */
  readonly parts: readonly TextMeasure[];
}

/** `used` of `limit` in the network's own units; over when any part is. */
export function textLength(platform: Platform, text: string, options: TextOptions = {}): TextLength {
  const { limits } = rulesOf(platform).text;
  const measure = ({ unit, limit }: TextLimit) => ({ used: counters[unit](text, options), limit, unit });
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
