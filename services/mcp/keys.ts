import { createHash } from 'node:crypto';
import { canonicalJson } from '#domain/canonical.ts';

/**
 * The idempotency key of a call that changes something.
 *
 * A protocol retry is the same message again: the same credential, tool, request id and arguments. The server keeps no
 * sessions, so it cannot tell such a retry from a new session of the same client that reuses the request id for an equal
 * call. It takes both as the same call, because a post that goes out twice cannot be taken back, while a call that was
 * answered again can be made once more: the answer says `replayed: true`, and that a new `idempotencyKey` makes a new one.
 * A model that repeats a call sends it under another request id: only an `idempotencyKey` of its own joins the two.
 *
 * A step (two hours later) is no state: done twice, it goes twice as far. Its key is that of the credential, the tool and
 * the arguments alone, whenever and under whichever request id it comes: a model that repeats the call is answered the
 * first answer, and does the same step again by an `idempotencyKey` of its own.
 *
 * Other changes of a post that exists are harmless when they come twice, since they name a state and not a step. Their key
 * only makes the retry get the same answer, so it changes every quarter of an hour, and an equal change on the same day
 * takes effect.
 */

export interface KeyParts {
  readonly credentialId: string;
  readonly tool: string;
  /** Of the JSON-RPC message. */
  readonly requestId: string | number;
  readonly args: unknown;
}

const changeWindowMs = 15 * 60_000;

export const keyOfCall = (
  { credentialId, tool, requestId, args }: KeyParts,
  repeats: 'create' | 'change' | 'step',
  now: number,
): string => {
  const own = (args as { readonly idempotencyKey?: unknown } | null)?.idempotencyKey;
  // As it is: a REST call under the same key is the same call.
  if (typeof own === 'string') return own;
  const window = repeats === 'change' ? Math.floor(now / changeWindowMs) : null;
  const parts = repeats === 'step' ? [credentialId, tool, args] : [credentialId, tool, requestId, args, window];
  const text = canonicalJson(parts);
  return `mcp_${createHash('sha256').update(text).digest('base64url')}`;
};
