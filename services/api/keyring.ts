import { hash } from 'node:crypto';
import type { Pool } from 'pg';
import { testTwinIdOf } from '#domain/ids.ts';
import { type FoundKey, findKeys } from '#projections/apikeys.ts';
import { stampOf } from '#projections/positions.ts';
import { Batches } from '#runtime/postgres/batches.ts';
import type { Principal } from './operation.ts';
import { Refusal } from './refusal.ts';

/** Finds the principal of a bearer token. The service stores only the SHA-256 of a key. */

const form = /^sk_(live|test)_[A-Za-z0-9_-]{20,200}$/;

/**
 * A revoked key stops working within a second: the keyring trusts a found key only while the projection of keys has
 * applied nothing new, and checks that at least once in this many milliseconds.
 */
const believedMs = 750;
/** How long the keyring remembers a token as unknown. It refuses a new key for at most this long. */
const absentMs = 100;
const maxRemembered = 10_000;
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
}

/** The principal is null when the member was removed. */
const knownOf = (found: FoundKey): Known => ({
  found,
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
          workspaceId: found.mode === 'test' ? testTwinIdOf(found.workspaceId) : found.workspaceId,
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

/** The position of the projection of keys, and when the keyring asked for it. */
interface Stamp {
  readonly value: string;
  readonly asked: number;
}

interface Entry {
  /** Read before the key was looked up: the found key is at least as new. */
  readonly stamp: string;
  readonly key: Promise<Known | null>;
  readonly until: number;
}

/** The newest entries by hash; the oldest is forgotten first. */
class Remembered {
  readonly #entries = new Map<string, Entry>();

  has(hash: string): boolean {
    return this.#entries.has(hash);
  }

  get(hash: string, stamp: string): Entry | undefined {
    const entry = this.#entries.get(hash);
    return entry?.stamp === stamp && entry.until > performance.now() ? entry : undefined;
  }

  set(hash: string, entry: Entry): void {
    this.#entries.delete(hash);
    this.#entries.set(hash, entry);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > maxRemembered && oldest !== undefined) this.#entries.delete(oldest);
  }
}

export class Keyring {
  readonly #pool: Pool;
  readonly #clock: () => number;
  readonly #keys: Batches<Known>;
  /**
   * Found and absent keys have separate memories, because a stranger with many wrong tokens would otherwise push known
   * keys out.
   */
  readonly #found = new Remembered();
  readonly #absent = new Remembered();
  readonly #asked = new Map<string, Entry>();
  /** Address → hashes of the tokens that it sent: at most 500 over all addresses. */
  readonly #later = new Map<string, Set<string>>();
  #laterCount = 0;
  /** The token that was hashed last. */
  #hashed: { readonly token: string; readonly hash: string | null } = { token: '', hash: null };
  #stamp: Stamp = { value: '', asked: Number.NEGATIVE_INFINITY };
  #asking: Promise<Stamp> | null = null;

  constructor(pool: Pool, clock: () => number) {
    this.#pool = pool;
    this.#clock = clock;
    this.#keys = new Batches(async (hashes) => {
      const found = await findKeys(pool, hashes);
      return new Map([...found].map(([hash, key]) => [hash, knownOf(key)]));
    });
  }

  /** @throws Refusal 401. A token that has not the form of a key costs no query. */
  async identify(token: string): Promise<Principal> {
    const hashed = this.#hashOf(token);
    const known = hashed === null ? null : await this.#lookUp(hashed);
    if (known === null) throw refuse('invalid_token', 'No such token is known.');
    return principalOf(known, new Date(this.#clock()).toISOString());
  }

  /** Whether this process knows the token as a key, possibly one that is revoked by now. Runs no query. */
  hasSeen(token: string): boolean {
    const hashed = this.#hashOf(token);
    return hashed !== null && this.#found.has(hashed);
  }

  /** Null where the token has not the form of a key. A call asks twice in the same turn, and is hashed once. */
  #hashOf(token: string): string | null {
    if (this.#hashed.token !== token) {
      this.#hashed = { token, hash: form.test(token) ? hash('sha256', token) : null };
    }
    return this.#hashed.hash;
  }

  /**
   * Defers a token whose address has spent its allowance of guesses. One query a second looks up all deferred tokens,
   * so that the process knows a good key before its caller tries again, even if a stranger shares the address. When the
   * query is full, the address with the most tokens in it loses one to an address with fewer.
   */
  lookUpLater(token: string, address: string): void {
    if (!form.test(token)) return;
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
    const { value: stamp } = await this.#believed();
    for (const [hash, key] of await findKeys(this.#pool, hashes)) {
      this.#found.set(hash, { stamp, key: Promise.resolve(knownOf(key)), until: Number.POSITIVE_INFINITY });
    }
  }

  async #lookUp(hash: string): Promise<Known | null> {
    const { value: stamp } = await this.#believed();
    const asked = this.#asked.get(hash);
    const entry = this.#found.get(hash, stamp) ?? this.#absent.get(hash, stamp);
    if (entry !== undefined) return entry.key;
    if (asked?.stamp === stamp) return asked.key;
    const made: Entry = { stamp, key: this.#keys.get(hash), until: Number.POSITIVE_INFINITY };
    this.#asked.set(hash, made);
    try {
      const known = await made.key;
      if (known !== null) this.#found.set(hash, made);
      else this.#absent.set(hash, { ...made, until: performance.now() + absentMs });
      return known;
    } finally {
      // The keyring does not remember a failure: the next request repeats the query.
      if (this.#asked.get(hash) === made) this.#asked.delete(hash);
    }
  }

  /** The stamp. The keyring renews it after half of its time, so that calls rarely wait for a query. */
  async #believed(): Promise<Stamp> {
    const now = performance.now();
    const age = now - this.#stamp.asked;
    if (age < believedMs / 2) return this.#stamp;
    const next = this.#ask();
    if (age < believedMs) {
      next.catch(() => undefined);
      return this.#stamp;
    }
    // The result of a query that began too long ago is out of date.
    const stamp = await next;
    return now - stamp.asked < believedMs ? stamp : this.#ask();
  }

  #ask(): Promise<Stamp> {
    const asked = performance.now();
    this.#asking ??= stampOf(this.#pool, 'workspaces')
      .then((value) => {
        this.#stamp = { value, asked };
        return this.#stamp;
      })
      .finally(() => {
        this.#asking = null;
      });
    return this.#asking;
  }
}
