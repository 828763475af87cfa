import { isSessionToken } from '#runtime/identity/sessions.ts';
import { AccessTokens, isAccessToken } from '#services/auth/access-tokens.ts';
import { AppGrants } from './app-grants.ts';
import type { Deps } from './deps.ts';
import { Keyring } from './keyring.ts';
import { LastUses } from './last-uses.ts';
import type { Principal } from './operation.ts';
import { Refusal } from './refusal.ts';
import { Sessions } from './sessions.ts';
import { Stamp } from './stamped.ts';

/** Every kind of bearer token that the server knows, told apart by its form. */

/** The resource that a caller wants to use. Keys work at both, a session at the api alone, an access token at its own. */
export type Resource = 'api' | 'mcp';

export class BearerTokens {
  readonly #deps: Pick<Deps, 'baseUrl' | 'mcpUrl'>;
  readonly #keyring: Keyring;
  readonly #sessions: Sessions;
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
    this.#sessions = new Sessions(deps);
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
