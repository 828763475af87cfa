import { Rejection } from '#domain/decider.ts';
import { workspace } from '#domain/workspace.ts';
import { type DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import type { Mode } from '#schemas/common.ts';
import type { Secrets } from './secrets.ts';

/**
 * First-party sessions: sealed, so that no table holds them. A session identifies its member; the role at the time of
 * each call decides what the member may do.
 */

export interface Session {
  readonly id: string;
  readonly memberId: string;
  /** The live workspace. */
  readonly workspaceId: string;
  /** Whether the session acts in the live workspace or in its sandbox twin. */
  readonly mode: Mode;
  /** ISO 8601 instant. */
  readonly expiresAt: string;
}

const prefix = 'sess_';
/** Milliseconds for which a session is valid. */
export const sealedSessionMs = 15 * 60_000;

export const isSessionToken = (token: string): boolean => token.startsWith(prefix);

/** @throws Rejection not_found where the workspace or the member does not exist */
export const mintSession = async (
  { store, secrets, clock }: { readonly store: DomainStore; readonly secrets: Secrets; readonly clock: () => number },
  { workspaceId, memberId, mode }: Pick<Session, 'workspaceId' | 'memberId' | 'mode'>,
): Promise<{ readonly token: string; readonly expiresAt: string }> => {
  const { state } = await store.load(workspace, workspaceId);
  if (state.status === 'none' || state.members[memberId] === undefined) {
    throw new Rejection('not_found', 'There is no such member.');
  }
  const expiresAt = new Date(clock() + sealedSessionMs).toISOString();
  const session: Session = { id: uuidv7(), memberId, workspaceId, mode, expiresAt };
  return { token: `${prefix}${secrets.seal('sessions', JSON.stringify(session))}`, expiresAt };
};

/** The session of the token, expired or not; null when we did not seal it. */
export const openSession = (secrets: Secrets, token: string): Session | null => {
  if (!isSessionToken(token)) return null;
  const payload = secrets.open('sessions', token.slice(prefix.length));
  return payload === null ? null : (JSON.parse(payload) as Session);
};
