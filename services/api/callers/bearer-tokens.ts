import { tenantIdOf } from '#domain/ids.ts';
import { isSessionToken, openSession } from '#runtime/identity/sessions.ts';
import { scopes } from '#schemas/apikey.ts';
import { AccessTokens, isAccessToken } from '#services/auth/access-tokens.ts';
import { roleNow } from '#services/auth/judged.ts';
import { isSealedSessionEnded } from '#services/auth/sealed-sessions.ts';
import type { Deps } from '../call/deps.ts';
import type { Principal } from '../call/operation.ts';
import { Refusal } from '../call/refusal.ts';
import { AppGrants } from './app-grants.ts';
import { Keyring } from './keyring.ts';
import { LastUses } from './last-uses.ts';
import { Stamp } from './stamped.ts';

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
class SessionTokens {
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

/** The resource that a caller wants to use. Keys work at both, a session at the api alone, an access token at its own. */
export type Resource = 'api' | 'mcp';

/** Every kind of bearer token that the server knows, recognised by its form. */
export class BearerTokens {
  readonly #deps: Pick<Deps, 'baseUrl' | 'mcpUrl'>;
  readonly #keyring: Keyring;
  readonly #sessions: SessionTokens;
  readonly #grants: AppGrants;
  readonly #uses: LastUses;

  constructor(
    deps: Pick<Deps, 'pool' | 'store' | 'freshness' | 'secrets' | 'clock' | 'authUrl' | 'baseUrl' | 'mcpUrl'>,
  ) {
    const { pool, store, clock, authUrl } = deps;
    this.#deps = deps;
    this.#uses = new LastUses(pool, clock);
    const stamp = new Stamp(pool, deps.freshness);
    this.#keyring = new Keyring({ pool, store, clock }, stamp);
    this.#sessions = new SessionTokens(deps);
    this.#grants = new AppGrants({ pool, store, tokens: new AccessTokens(pool, authUrl, clock), clock }, stamp);
  }

  /** @throws Refusal 401 */
  async identify(token: string, resource: Resource): Promise<Principal> {
    const principal = await this.#identify(token, resource);
    this.#uses.note(principal);
    return principal;
  }

  async #identify(token: string, resource: Resource): Promise<Principal> {
    if (isSessionToken(token)) {
      if (resource === 'mcp') throw new Refusal('invalid_token', 'A session works at the api alone.');
      return this.#sessions.identify(token);
    }
    if (isAccessToken(token)) {
      return this.#grants.identify(token, resource === 'api' ? this.#deps.baseUrl() : this.#deps.mcpUrl());
    }
    return this.#keyring.identify(token);
  }

  /**
   * Whether the token may be looked at although its address has no guesses left: a key that this process has found
   * before, or a token that is checked by its signature and costs no query.
   */
  isCheap(token: string): boolean {
    return isSessionToken(token) || isAccessToken(token) || this.#keyring.hasSeen(token);
  }

  /** See `Keyring.lookUpLater`. */
  lookUpLater(token: string, address: string): void {
    this.#keyring.lookUpLater(token, address);
  }
}
