import type { Pool } from 'pg';
import { within } from '#contracts/base/pause.ts';
import { tenantIdOf } from '#domain/ids.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { isSessionToken, openSession } from '#runtime/identity/sessions.ts';
import { scopes } from '#schemas/apikey.ts';
import { AccessTokens, isAccessToken } from '#services/auth/access-tokens.ts';
import { roleNow } from '#services/auth/judged.ts';
import { isSealedSessionEnded } from '#services/auth/sealed-sessions.ts';
import type { Allowances } from '../call/allowances.ts';
import type { CallPatience, Deps } from '../call/deps.ts';
import type { Principal } from '../call/operation.ts';
import { Refusal } from '../call/refusal.ts';
import type { LimitHeaders } from '../call/wire.ts';
import { AppGrants } from './app-grants.ts';
import { Keyring } from './keyring.ts';
import { Stamp } from './stamped.ts';

/** When each key and app was last used, to within a minute: noted in memory, written once for many calls. */

const flushMs = 3_000;
/** Credentials that wait to be written; the uses of further ones are left out until the next time. */
const maxWaiting = 20_000;

class LastUses {
  readonly #pool: Pool;
  readonly #clock: () => number;
  #waiting = new Map<string, number>();

  /** @param clock milliseconds since the epoch */
  constructor(pool: Pool, clock: () => number) {
    this.#pool = pool;
    this.#clock = clock;
  }

  note({ kind, id }: Principal): void {
    if (kind === 'session') return;
    if (this.#waiting.size === 0) setTimeout(() => void this.flush().catch(() => undefined), flushMs).unref();
    if (this.#waiting.size < maxWaiting || this.#waiting.has(id)) this.#waiting.set(id, this.#clock());
  }

  /** What cannot be written is forgotten: the next use says more than the last one. */
  async flush(): Promise<void> {
    const uses = [...this.#waiting].sort(([one], [other]) => (one < other ? -1 : 1));
    this.#waiting = new Map();
    if (uses.length === 0) return;
    await this.#pool.query(
      `insert into auth.last_uses as known (credential_id, used_at)
       select * from unnest($1::uuid[], $2::timestamptz[])
       on conflict (credential_id) do update set used_at = greatest(known.used_at, excluded.used_at)`,
      [uses.map(([id]) => id), uses.map(([, at]) => new Date(at).toISOString())],
    );
  }
}

/** ISO 8601 instants by credential; those that were never used are left out. */
export const lastUsesOf = async (pool: Pool, ids: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  if (ids.length === 0) return new Map();
  const { rows } = await pool.query<{ id: string; used_at: Date }>(
    'select credential_id::text as id, used_at from auth.last_uses where credential_id = any($1::uuid[])',
    [ids],
  );
  return new Map(rows.map(({ id, used_at }) => [id, used_at.toISOString()]));
};

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
    // Nearly every call: the keyring has hashed the token already, and knows its form.
    if (this.#keyring.hasSeen(token)) return this.#keyring.identify(token);
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
    return this.#keyring.hasSeen(token) || isSessionToken(token) || isAccessToken(token);
  }

  /** See `Keyring.lookUpLater`. */
  lookUpLater(token: string, address: string): void {
    this.#keyring.lookUpLater(token, address);
  }
}

/** A request that may carry a token. */
interface Authenticating {
  /** Learns what is left of the guesses of the address. */
  readonly limitHeaders: LimitHeaders;
  /** The header; empty: none was sent. */
  readonly authorization: string;
  readonly address: string;
  readonly resource: Resource;
}

/** @throws Refusal 401, or 429 where the address has no guesses left */
export type Authenticate = (request: Authenticating) => Promise<Principal>;

/**
 * Finds the owner of a bearer token. A token that fails costs its address a guess. For an address without guesses left,
 * the server looks up no token that is new to this process, so that a stranger's flood causes no queries. Known keys, and
 * tokens with a valid signature, still pass, so that a stranger at the same address cannot lock them out.
 */
export const authenticator =
  (tokens: BearerTokens, { guesses }: Allowances, { tokenMs }: CallPatience): Authenticate =>
  async ({ limitHeaders, authorization, address, resource }) => {
    const sent = bearer(authorization);
    const isCheap = sent !== null && tokens.isCheap(sent);
    if (!isCheap && !(await guesses.hasLeft(address))) {
      if (sent !== null) tokens.lookUpLater(sent, address);
      await guesses.spend(limitHeaders, address, 1);
    }
    try {
      if (sent === null) throw new Refusal('missing_token', 'Send the header Authorization: Bearer <token>.');
      return await within(tokenMs, tokens.identify(sent, resource), tooLate);
    } catch (error) {
      // While the database is unavailable, nobody knows whether the token is valid: the address loses no guess.
      if (error instanceof Refusal) await guesses.spend(limitHeaders, address, 1);
      throw error;
    }
  };

const tooLate = (): never => {
  throw new Unavailable('The database did not return the owner of the token in time.');
};

const bearer = (header: string): string | null => /^Bearer +(\S+) *$/i.exec(header)?.[1] ?? null;
