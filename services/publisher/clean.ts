import { wellFormedInstant, wellFormedText } from '#runtime/eventing/well-formed.ts';
import type { Failure } from '#schemas/target.ts';

/** Cuts a network's answer to the lengths of the event schema, and makes its text well-formed. */

const orNull = (text: string | null, most: number): string | null =>
  text === null ? null : wellFormedText(text, most);

export const cleanFailure = (failure: Failure): Failure => ({
  category: failure.category,
  code: wellFormedText(failure.code, 100) || 'unknown',
  message: wellFormedText(failure.message, 2000),
  platformCode: orNull(failure.platformCode, 200),
  platformMessage: orNull(failure.platformMessage, 2000),
  retryable: failure.retryable,
  actor: failure.actor,
  mediaId: failure.mediaId,
});

/** Whether a reply can use this text as the id of its parent post. */
export const isId = (text: string): boolean => text !== '' && wellFormedText(text, 500) === text;

export const cleanPresent = (
  said: { readonly externalId: string; readonly permalink: string | null; readonly publishedAt: string },
  now: string,
) => ({
  externalId: wellFormedText(said.externalId, 500) || 'unknown',
  permalink: orNull(said.permalink, 2000),
  publishedAt: wellFormedInstant(said.publishedAt) ?? now,
});
