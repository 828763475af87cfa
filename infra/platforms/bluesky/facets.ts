import { links } from '#domain/platforms/index.ts';

/**
 * What in a text is a link, a tag or a mention. Offsets are bytes of the UTF-8 text (lexicon app.bsky.richtext.facet);
 * detection as in the official client: `@atproto/api`, "detection.ts".
 */

export interface Span {
  readonly start: number;
  readonly end: number;
}

export type Found =
  | (Span & { readonly kind: 'link'; readonly uri: string })
  | (Span & { readonly kind: 'tag'; readonly tag: string })
  | (Span & { readonly kind: 'mention'; readonly handle: string });

const maxTagGraphemes = 64;
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** A tag begins after a blank; its last punctuation is none of it, and digits alone are no tag. */
const tagForm = /(?<=^|\s)[#＃]((?!\ufe0f)(?:(?![\u00ad\u2060\u200a-\u200d]|\u20e2)\S){1,200})/gu;
const mentionForm = /(?<=^|[\s(])@([a-zA-Z0-9][a-zA-Z0-9.-]{2,252})/g;
const handleForm = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,20}[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export const isHandle = (text: string): boolean => text.length <= 253 && handleForm.test(text);

const tagsIn = (text: string): readonly Found[] =>
  [...text.matchAll(tagForm)].flatMap(({ index, 1: written = '' }): Found[] => {
    const tag = written.replace(/\p{P}{1,200}$/u, '');
    const length = [...graphemes.segment(tag)].length;
    if (tag === '' || length > maxTagGraphemes || /^\d+$/.test(tag)) return [];
    return [{ kind: 'tag', start: index, end: index + 1 + tag.length, tag }];
  });

const mentionsIn = (text: string): readonly Found[] =>
  [...text.matchAll(mentionForm)].flatMap(({ index, 1: written = '' }): Found[] => {
    const handle = written.replace(/[.-]{1,250}$/, '').toLowerCase();
    if (!isHandle(handle)) return [];
    return [{ kind: 'mention', start: index, end: index + 1 + handle.length, handle }];
  });

const linksIn = (text: string): readonly Found[] =>
  [...links(text)].flatMap(({ start, end }): Found[] => {
    const written = text.slice(start, end);
    const uri = /^https?:\/\//i.test(written) ? written : `https://${written}`;
    return URL.canParse(uri) ? [{ kind: 'link', start, end, uri }] : [];
  });

/** In the order of the text, without overlaps: a link wins over a mention or a tag in it. Offsets are UTF-16 units. */
export const found = (text: string): readonly Found[] => {
  const all = [...linksIn(text), ...mentionsIn(text), ...tagsIn(text)];
  const kept: Found[] = [];
  for (const one of all) {
    if (kept.every((other) => one.end <= other.start || one.start >= other.end)) kept.push(one);
  }
  return kept.sort((a, b) => a.start - b.start);
};

/** The same place in bytes of UTF-8. */
export const byteSpan = (text: string, { start, end }: Span): { byteStart: number; byteEnd: number } => {
  const byteStart = Buffer.byteLength(text.slice(0, start));
  return { byteStart, byteEnd: byteStart + Buffer.byteLength(text.slice(start, end)) };
};
