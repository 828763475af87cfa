/** Texts for people who do not see a file: with which files a network takes one, and how long. */
import type { Platform } from '#schemas/common.ts';
import type { MediaKind, MediaUse } from '#schemas/media.ts';
import { useRules } from './media-use.ts';
import { rulesOf } from './registry.ts';
import type { TextLimit } from './rules.ts';
import { graphemes, measured, unitWords } from './text-length.ts';
import { showsNothing } from './visible-text.ts';

export interface AltTexts {
  /** That of the post for this file; an empty one: the post wants none. Null: it says nothing of the file. */
  readonly own: string | null;
  /** That of the asset. */
  readonly asset: string | null;
}

/** What a network shows: the file, and as what. */
interface ShownFile {
  readonly use: MediaUse;
  readonly kind: MediaKind;
}

/** Null: the network takes no such text with a file that it shows so. */
const limitsOf = (platform: Platform, { use, kind }: ShownFile): readonly TextLimit[] | null => {
  const shownAs = kind === 'gif' && !useRules(platform, use)?.gif ? 'video' : kind;
  const takes = ({ kinds, uses }: { kinds: readonly MediaKind[]; uses?: readonly MediaUse[] }) =>
    kinds.includes(shownAs) && (uses === undefined ? use !== 'cover' : uses.includes(use));
  return rulesOf(platform).altTexts.find(takes)?.limits ?? null;
};

export const takesAltText = (platform: Platform, file: ShownFile): boolean => limitsOf(platform, file) !== null;

const over = (text: string, limits: readonly TextLimit[]) =>
  measured(text, limits).find(({ used, limit }) => used > limit) ?? null;

const takesAtMost = (platform: Platform, { limit, unit }: TextLimit): string =>
  `${rulesOf(platform).name} takes at most ${limit} ${unitWords[unit]} as the alt text of a file`;

/** Why the network refuses the post's own text for a file; null: it takes it. */
export const altTextRefusal = (platform: Platform, file: ShownFile, { own }: AltTexts): string | null => {
  const limits = own === null || showsNothing(own) ? null : limitsOf(platform, file);
  const found = limits === null ? null : over(own ?? '', limits);
  return found === null ? null : `${takesAtMost(platform, found)}; that of this one has ${found.used}`;
};

/** What of the asset's text is not sent, in words; null: all of it is, or the post has a text of its own. */
export const altTextCut = (platform: Platform, file: ShownFile, { own, asset }: AltTexts): string | null => {
  const limits = own !== null || asset === null || showsNothing(asset) ? null : limitsOf(platform, file);
  const found = limits === null ? null : over(asset ?? '', limits);
  return found === null
    ? null
    : `${takesAtMost(platform, found)}: the end of that of the asset, which has ${found.used}, is not sent`;
};

/**
 * The text that goes out with a file: the post's own, else the asset's, cut to what the network takes. Null: none. The
 * gate refuses an own text that is too long, so a cut one is always the asset's.
 */
export const sentAltText = (platform: Platform, file: ShownFile, { own, asset }: AltTexts): string | null => {
  const text = own ?? asset;
  const limits = text === null || showsNothing(text) ? null : limitsOf(platform, file);
  if (text === null || limits === null) return null;
  return own === null ? cut(text, limits) : text;
};

/** The longest beginning that fits with an ellipsis behind it; no character is cut in two. */
const cut = (text: string, limits: readonly TextLimit[]): string => {
  if (over(text, limits) === null) return text;
  const ends = [...graphemes().segment(text)].map(({ index }) => index);
  const upTo = (count: number): string => `${text.slice(0, ends[count]).trimEnd()}…`;
  let [fits, tooMany] = [0, ends.length];
  while (tooMany - fits > 1) {
    const middle = (fits + tooMany) >> 1;
    if (over(upTo(middle), limits) === null) fits = middle;
    else tooMany = middle;
  }
  return upTo(fits);
};
