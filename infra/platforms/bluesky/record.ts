import { createHash } from 'node:crypto';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type { Members } from '../shared/members.ts';
import { byteSpan, type Found } from './facets.ts';
import type { BlobRef, StrongRef } from './shapes.ts';

/** The record of a post: a pure function of what was resolved and uploaded before. */

export interface UploadedMedia {
  readonly blob: BlobRef;
  readonly media: Pick<PublishMedia, 'kind' | 'width' | 'height' | 'altText'>;
}

export interface LinkCard {
  readonly uri: string;
  readonly title: string;
  readonly description: string;
  readonly thumb: BlobRef | null;
}

export interface RecordParts {
  readonly text: string;
  /** ISO 8601: fixed by the first attempt, so that a second write is the same record. */
  readonly createdAt: string;
  readonly found: readonly Found[];
  /** Handle → did; a handle that is missing stays plain text. */
  readonly dids: ReadonlyMap<string, string>;
  readonly media: readonly UploadedMedia[];
  readonly card: LinkCard | null;
  readonly labels: readonly string[];
  readonly replyTo: { readonly root: StrongRef; readonly parent: StrongRef } | null;
}

/** Images above this number are shown by the newer embed alone. */
const maxImages = 4;

const labelNames = {
  labelSexual: 'sexual',
  labelNudity: 'nudity',
  labelPorn: 'porn',
  labelGraphicMedia: 'graphic-media',
} as const;

export const labelsOf = (overrides: PublishRequest['overrides']): readonly string[] =>
  Object.entries(labelNames).flatMap(([key, label]) => (overrides[key] === true ? [label] : []));

const featureOf = (one: Found, dids: RecordParts['dids']): Members | null => {
  if (one.kind === 'link') return { $type: 'app.bsky.richtext.facet#link', uri: one.uri };
  if (one.kind === 'tag') return { $type: 'app.bsky.richtext.facet#tag', tag: one.tag };
  const did = dids.get(one.handle);
  return did === undefined ? null : { $type: 'app.bsky.richtext.facet#mention', did };
};

const facetsOf = ({ text, found, dids }: RecordParts): readonly Members[] =>
  found.flatMap((one) => {
    const feature = featureOf(one, dids);
    return feature === null ? [] : [{ index: byteSpan(text, one), features: [feature] }];
  });

const ratioOf = ({ width, height }: UploadedMedia['media']): Members =>
  width === null || height === null || width < 1 || height < 1 ? {} : { aspectRatio: { width, height } };

const imagesOf = (media: readonly UploadedMedia[]): Members => {
  const images = media.map(({ blob, media: one }) => ({ image: blob, alt: one.altText ?? '', ...ratioOf(one) }));
  if (images.length <= maxImages) return { $type: 'app.bsky.embed.images', images };
  const items = images.map((image) => ({ $type: 'app.bsky.embed.gallery#image', ...image }));
  return { $type: 'app.bsky.embed.gallery', items };
};

/** A post has one embed: files, else the card of a link. */
const embedOf = ({ media, card }: RecordParts): Members | null => {
  const [first] = media;
  if (first?.media.kind === 'video') {
    const alt = first.media.altText === null ? {} : { alt: first.media.altText };
    return { $type: 'app.bsky.embed.video', video: first.blob, ...alt, ...ratioOf(first.media) };
  }
  if (first !== undefined) return imagesOf(media);
  if (card === null) return null;
  const { thumb, ...external } = card;
  return { $type: 'app.bsky.embed.external', external: { ...external, ...(thumb === null ? {} : { thumb }) } };
};

export const recordOf = (parts: RecordParts): Members => {
  const { text, createdAt, labels, replyTo } = parts;
  const facets = facetsOf(parts);
  const embed = embedOf(parts);
  return {
    $type: 'app.bsky.feed.post',
    text,
    createdAt,
    ...(facets.length === 0 ? {} : { facets }),
    ...(embed === null ? {} : { embed }),
    ...(replyTo === null ? {} : { reply: replyTo }),
    ...(labels.length === 0
      ? {}
      : { labels: { $type: 'com.atproto.label.defs#selfLabels', values: labels.map((val) => ({ val })) } }),
  };
};

/** Tells posts apart by all that a reader sees of them. */
export const hashOf = ({ content, media, overrides }: PublishRequest): string => {
  const { firstComment: _later, ...shown } = overrides;
  const seen = [content, media.map(({ sha256, altText }) => [sha256, altText]), Object.entries(shown).toSorted()];
  return createHash('sha256').update(JSON.stringify(seen)).digest('hex');
};
