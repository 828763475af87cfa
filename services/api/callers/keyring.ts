import { hash } from 'node:crypto';
import type { Pool } from 'pg';
import { tenantIdOf } from '#domain/ids.ts';
import { type FoundKey, findKeys } from '#projections/models/apikeys.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { isKeyForm } from '#runtime/identity/key-form.ts';
import { type JudgedPower, judgeKeys } from '#services/auth/judged.ts';
import type { Principal } from '../call/operation.ts';
import { Refusal } from '../call/refusal.ts';
import { type Stamp, Stamped } from './stamped.ts';

/** Finds the principal of a bearer token. The service stores only the SHA-256 of a key. */

/**
 * The keyring collects deferred tokens for this many milliseconds and looks them up in one query; it drops tokens
 * beyond this number.
 */
const laterMs = 1_000;
const maxLater = 500;

const refuse = (code: 'invalid_token' | 'token_expired' | 'token_revoked', detail: string) => new Refusal(code, detail);

interface Known {
  readonly found: FoundKey;
  readonly principal: Principal | null;
  readonly isJudged: boolean;
}

/** The principal is null when the member was removed. */
const knownOf = (found: JudgedPower<FoundKey>): Known => ({
  found,
  isJudged: found.isJudged,
  principal:
    found.role === null
      ? null
      : {
          kind: 'apikey',
          id: found.keyId,
          memberId: found.memberId,
          role: found.role,
          scopes: found.scopes,
          mode: found.mode,
          workspaceId: tenantIdOf(found.workspaceId, found.mode),
          liveWorkspaceId: found.workspaceId,
          clientIds: found.clientIds,
          actor: { type: 'apikey', id: found.keyId },
        },
});

/** @throws Refusal when the key is expired or revoked, or its member was removed. */
const principalOf = ({ found, principal }: Known, now: string): Principal => {
  if (found.revokedAt !== null) throw refuse('token_revoked', 'This key was revoked.');
  if (principal === null) throw refuse('token_revoked', 'The member of this key has left the workspace.');
  const until = found.previousUntil ?? found.expiresAt;
  if (until <= now || found.expiresAt <= now) throw refuse('token_expired', `This key stopped working at ${until}.`);
  return principal;
};

export interface KeyringParts {
  readonly pool: Pool;
  readonly store: DomainStore;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
}

export class Keyring {
  readonly #clock: () => number;
  /** By the SHA-256 of the key. */
  readonly #keys: Stamped<Known>;
  /** Address → hashes of the tokens that it sent: at most 500 over all addresses. */
  readonly #later = new Map<string, Set<string>>();
  #laterCount = 0;
  /** The token that was hashed last. */
  #hashed: { readonly token: string; readonly hash: string | null } = { token: '', hash: null };

  constructor({ pool, store, clock }: KeyringParts, stamp: Stamp) {
    this.#clock = clock;
    this.#keys = new Stamped(stamp, async (hashes) => {
      const found = await judgeKeys(store, await findKeys(pool, hashes), stamp.isBehind);
      return new Map([...found].map(([hash, key]) => [hash, knownOf(key)]));
    });
  }

  /** @throws Refusal 401. A token that has not the form of a key costs no query. */
  async identify(token: string): Promise<Principal> {
    const hashed = this.#hashOf(token);
    const known = hashed === null ? null : await this.#keys.get(hashed);
    if (known === null) throw refuse('invalid_token', 'No such token is known.');
    return principalOf(known, new Date(this.#clock()).toISOString());
  }

  /** Whether this process knows the token as a key, possibly one that is revoked by now. Runs no query. */
  hasSeen(token: string): boolean {
    const hashed = this.#hashOf(token);
    return hashed !== null && this.#keys.has(hashed);
  }

  /** Null where the token has not the form of a key. A call asks twice in the same turn, and is hashed once. */
  #hashOf(token: string): string | null {
    if (this.#hashed.token !== token) {
      this.#hashed = { token, hash: isKeyForm(token) ? hash('sha256', token) : null };
    }
    return this.#hashed.hash;
  }

  /**
   * Defers a token whose address has spent its allowance of guesses. One query a second looks up all deferred tokens,
   * so that the process knows a good key before its caller tries again, even if a stranger shares the address. When the
   * query is full, the address with the most tokens in it loses one to an address with fewer.
   */
  lookUpLater(token: string, address: string): void {
    if (!isKeyForm(token)) return;
    const own = this.#later.get(address) ?? new Set();
    if (this.#laterCount >= maxLater && !this.#makeRoom(own.size)) return;
    if (this.#laterCount === 0) setTimeout(() => void this.#lookUpThose().catch(() => undefined), laterMs).unref();
    const before = own.size;
    this.#later.set(address, own.add(hash('sha256', token)));
    this.#laterCount += own.size - before;
  }

  /** @param own tokens in the query of the address that needs room */
  #makeRoom(own: number): boolean {
    const largest = [...this.#later.values()].reduce((one, other) => (other.size > one.size ? other : one));
    const [first] = largest;
    if (first === undefined || largest.size <= own + 1) return false;
    largest.delete(first);
    this.#laterCount -= 1;
    return true;
  }

  async #lookUpThose(): Promise<void> {
    const hashes = [...this.#later.values()].flatMap((some) => [...some]);
    this.#later.clear();
    this.#laterCount = 0;
    await this.#keys.prepare(hashes);
  }
}
