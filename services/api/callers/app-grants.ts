import type { Pool } from 'pg';
import { tenantIdOf } from '#domain/ids.ts';
import { type FoundGrant, findGrants } from '#projections/models/grants.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { AccessTokenError, type AccessTokens } from '#services/auth/access-tokens.ts';
import { judgeGrants } from '#services/auth/judged.ts';
import type { Principal } from '../call/operation.ts';
import { Refusal } from '../call/refusal.ts';
import { type Stamp, Stamped } from './stamped.ts';

/**
 * Finds the principal of an access token: the app acts for a member, with the scopes of its token as far as the role of
 * the member carries them at the time of the call.
 */

const unknown = () => new Refusal('invalid_token', 'No such token is known.');

const refusalOf = ({ code }: AccessTokenError): Refusal => {
  if (code === 'token_expired')
    return new Refusal('token_expired', 'This access token has expired: use the refresh token.');
  if (code === 'invalid_token') return unknown();
  return new Refusal(
    'wrong_audience',
    'This access token is for another resource: ask for one with this address as `resource`.',
  );
};

interface Known {
  readonly found: FoundGrant;
  /** By the scopes of a token. */
  readonly principals: Map<string, Principal>;
  readonly isJudged: boolean;
}

export interface AppGrantsParts {
  readonly pool: Pool;
  readonly store: DomainStore;
  readonly tokens: AccessTokens;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
}

const principalOf = (
  found: FoundGrant,
  role: NonNullable<FoundGrant['role']>,
  scopes: readonly string[],
): Principal => ({
  kind: 'oauth',
  id: found.grantId,
  memberId: found.memberId,
  role,
  scopes: scopes.filter((scope) => found.scopes.some((one) => one === scope)),
  mode: found.mode,
  workspaceId: tenantIdOf(found.workspaceId, found.mode),
  liveWorkspaceId: found.workspaceId,
  clientIds: null,
  actor: { type: 'member', id: found.memberId },
  grantId: found.grantId,
});

export class AppGrants {
  readonly #tokens: AccessTokens;
  readonly #clock: () => number;
  /** By the id of the grant. */
  readonly #grants: Stamped<Known>;

  constructor({ pool, store, tokens, clock }: AppGrantsParts, stamp: Stamp) {
    this.#tokens = tokens;
    this.#clock = clock;
    this.#grants = new Stamped(stamp, async (ids) => {
      const found = await judgeGrants(store, await findGrants(pool, ids), stamp.isBehind);
      return new Map(
        [...found].map(([id, one]): [string, Known] => [
          id,
          { found: one, principals: new Map(), isJudged: one.isJudged },
        ]),
      );
    });
  }

  /** @param audience address of the resource that is called @throws Refusal 401 */
  async identify(token: string, audience: string): Promise<Principal> {
    const { grantId, personId, clientId, scopes } = await this.#verified(token, audience);
    const known = await this.#grants.get(grantId);
    // A token is signed after its grant was stored: until the read model shows it, the app tries again.
    if (known === null) throw new Refusal('invalid_token', 'No such token is known yet.');
    const { found, principals } = known;
    const { role } = found;
    if (found.personId !== personId || found.clientId !== clientId) throw unknown();
    if (found.revokedAt !== null) throw new Refusal('token_revoked', 'The access of this app was revoked.');
    if (role === null) throw new Refusal('token_revoked', 'The member has left the workspace.');
    if (found.expiresAt <= new Date(this.#clock()).toISOString()) {
      throw new Refusal('token_expired', `The access of this app ended at ${found.expiresAt}.`);
    }
    const name = scopes.join(' ');
    const principal = principals.get(name) ?? principalOf(found, role, scopes);
    // A grant gives few sets of scopes: those of each refresh.
    if (principals.size < 20) principals.set(name, principal);
    return principal;
  }

  async #verified(token: string, audience: string) {
    try {
      return await this.#tokens.verify(token, audience);
    } catch (error) {
      if (error instanceof AccessTokenError) throw refusalOf(error);
      throw error;
    }
  }
}
