import { hash } from 'node:crypto';

/** Derived ids, so that two processes that decide the same thing give it the same id. */

/** RFC 9562 version 5 over the UTF-8 bytes of `name`. */
export const uuidv5 = (namespace: string, name: string): string => {
  const bytes = Buffer.allocUnsafe(16 + Buffer.byteLength(name));
  bytes.write(namespace.replaceAll('-', ''), 'hex');
  bytes.write(name, 16);
  const hex = hash('sha1', bytes, 'hex');
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
};

/** Parts are joined by a character that no id, platform or operation name holds. */
const joined = (...parts: readonly string[]): string => parts.join('\n');

export const targetIdOf = (postId: string, accountId: string, plan: number): string =>
  uuidv5(postId, joined(accountId, String(plan)));
/** @param request number of the request, from 1 */
export const approvalIdOf = (postId: string, request: number): string =>
  uuidv5(postId, joined('approval', String(request)));
/**
 * @param occurrence number of the copy, from 1
 * @param restoredAt of the newest restore since the origin was made: a copy of the lost time has the same number, and no
 *   network may take the new copy for that one
 */
export const recycledPostIdOf = (originId: string, occurrence: number, restoredAt: string | null = null): string =>
  uuidv5(originId, joined('recycle', String(occurrence), ...(restoredAt === null ? [] : [restoredAt])));
export const accountIdOf = (clientId: string, platform: string, externalId: string): string =>
  uuidv5(clientId, joined(platform, externalId));
/** The id of the stream that a call with an Idempotency-Key creates; also the id of its request stream. */
export const keyedIdOf = (workspaceId: string, operation: string, key: string): string =>
  uuidv5(workspaceId, joined(operation, key));
/** The id with which a keyed creation goes on where another caller has fenced the ids before it; 1 for the second. */
export const nextKeyedIdOf = (workspaceId: string, operation: string, key: string, generation: number): string =>
  uuidv5(workspaceId, joined(operation, key, String(generation)));
export const normaliseName = (name: string): string => name.normalize('NFKC').trim().toLowerCase();
export const clientNameIdOf = (workspaceId: string, name: string): string =>
  uuidv5(workspaceId, joined('clientname', normaliseName(name)));
/** Of the claim on a caller's reference: exact, as references of other systems are. */
export const externalRefIdOf = (workspaceId: string, clientId: string, externalRef: string): string =>
  uuidv5(workspaceId, joined('externalref', clientId, externalRef));
/** Of the places of a month. @param month `2026-11`, in the zone of the workspace */
export const quotaIdOf = (workspaceId: string, month: string): string => uuidv5(workspaceId, joined('quota', month));
export const testTwinIdOf = (workspaceId: string): string => uuidv5(workspaceId, 'test');
/** The tenant in which a credential acts: the live workspace, or its sandbox twin. */
export const tenantIdOf = (liveWorkspaceId: string, mode: 'live' | 'test'): string =>
  mode === 'test' ? testTwinIdOf(liveWorkspaceId) : liveWorkspaceId;
/** Id of an event that follows from another one alone. */
export const causedIdOf = (causeEventId: string, stream: string): string => uuidv5(causeEventId, stream);
/** Receivers deduplicate on it: the same for an event and type through retries, resends and replays. */
export const envelopeIdOf = (eventId: string, type: string): string => uuidv5(eventId, type);
/** @param replayId empty for what the event itself caused. */
export const deliveryIdOf = (envelopeId: string, webhookId: string, replayId = ''): string =>
  uuidv5(envelopeId, joined(webhookId, replayId));
