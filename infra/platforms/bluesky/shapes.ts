import type { Json } from '#contracts/ports/platform.ts';
import { type Members, membersOf, textIn } from '../shared/members.ts';

/** Shapes of the lexicons app.bsky.feed.post, app.bsky.embed.* and app.bsky.richtext.facet, as far as we write them. */

export interface BlobRef extends Members {
  readonly $type: 'blob';
  readonly ref: { readonly $link: string };
  readonly mimeType: string;
  readonly size: number;
}

export interface StrongRef extends Members {
  readonly uri: string;
  readonly cid: string;
}

/** A blob of an answer, unchanged; null: it is none. */
export const blobOf = (value: Json | undefined): BlobRef | null => {
  const { $type, ref, mimeType, size } = membersOf(value) ?? {};
  const isBlob = $type === 'blob' && textIn(ref, '$link') !== null && typeof mimeType === 'string';
  return isBlob && typeof size === 'number' ? (value as BlobRef) : null;
};
