import { tenantIdOf } from '#domain/ids.ts';
import { openSession } from '#runtime/identity/sessions.ts';
import { scopes } from '#schemas/apikey.ts';
import { roleNow } from '#services/auth/judged.ts';
import { isSealedSessionEnded } from '#services/auth/sealed-sessions.ts';
import type { Deps } from './deps.ts';
import type { Principal } from './operation.ts';
import { Refusal } from './refusal.ts';

/** The member in a session: every scope that the role carries. */
export const sessionPrincipal = (
  about: Pick<Principal, 'id' | 'memberId' | 'role' | 'mode' | 'liveWorkspaceId'>,
): Principal => ({
  ...about,
  kind: 'session',
  scopes,
  workspaceId: tenantIdOf(about.liveWorkspaceId, about.mode),
  clientIds: null,
  actor: { type: 'member', id: about.memberId },
});

/**
 * Finds the member of a first-party session. The member may do what the role allows at the time of the call: sessions
 * are few, so each call looks the role up.
 */
export class Sessions {
  readonly #deps: Pick<Deps, 'pool' | 'store' | 'freshness' | 'secrets' | 'clock'>;

  constructor(deps: Pick<Deps, 'pool' | 'store' | 'freshness' | 'secrets' | 'clock'>) {
    this.#deps = deps;
  }

  /** @throws Refusal 401 */
  async identify(token: string): Promise<Principal> {
    const { pool, secrets, clock } = this.#deps;
    const session = openSession(secrets, token);
    if (session === null) throw new Refusal('invalid_token', 'No such token is known.');
    const { id, memberId, workspaceId, mode, expiresAt } = session;
    if (expiresAt <= new Date(clock()).toISOString()) {
      throw new Refusal('token_expired', `This session ended at ${expiresAt}.`);
    }
    const [role, isEnded] = await Promise.all([
      roleNow(this.#deps, workspaceId, memberId),
      isSealedSessionEnded(pool, memberId, expiresAt),
    ]);
    if (isEnded) throw new Refusal('token_revoked', 'This session was ended.');
    if (role === null) throw new Refusal('token_revoked', 'The member of this session has left the workspace.');
    return sessionPrincipal({ id, memberId, role, mode, liveWorkspaceId: workspaceId });
  }
}
