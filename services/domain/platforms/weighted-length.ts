/**
 * X's weighted length, as twitter-text v3 computes it (github.com/twitter/twitter-text, config v3).
 */
import { lazy } from '#domain/lazy.ts';
import { links } from './networks/x.ts';

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
