import { Type } from 'typebox';
import { type EventOf, Instant, Uuid } from './common.ts';

/** The caller's own reference of a post, and the claim on it inside a client. */

export const ExternalRef = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[^\\u0000-\\u001f\\u007f]+$',
  expects: 'text without control characters, such as CMS-1042',
});

/** The stream's id is uuidv5(workspace, client, reference). */
export const externalrefEvents = {
  ExternalRefClaimed: Type.Object({ clientId: Uuid, externalRef: ExternalRef, postId: Uuid, claimedAt: Instant }),
  ExternalRefReleased: Type.Object({ postId: Uuid }),
} as const;
export type ExternalRefEvent = EventOf<typeof externalrefEvents>;
