import { createHash } from 'node:crypto';
import type { Pool } from 'pg';
import { testTwinIdOf } from '#domain/ids.ts';
import { type FoundKey, findKeys } from '#projections/apikeys.ts';
import { Batches } from '#runtime/batches.ts';
import type { Principal } from './operation.ts';
import { Refusal } from './refusal.ts';

/** From a bearer token to who asks. Only the SHA-256 of a key is known anywhere. */

const form = /^sk_(live|test)_[A-Za-z0-9_-]{20,200}$/;

/** A revoked key is dead within a second of its revocation: what was found is believed for less than that. */
const believedMs = 750;
/** A key that was made a moment ago is not refused for long. */
const absentMs = 100;
const mostRemembered = 10_000;
/** Most keys that one query refreshes beside those it is made for. */
const mostTogether = 500;

const refuse = (code: 'invalid_token' | 'token_expired' | 'token_revoked', detail: string) => new Refusal(code, detail);

/** @throws Refusal when the key has no power now. */
const principalOf = (found: FoundKey, now: string): Principal => {
  if (found.revokedAt !== null) throw refuse('token_revoked', 'This key was revoked.');
  if (found.role === null) throw refuse('token_revoked', 'The member of this key has left the workspace.');
  const until = found.previousUntil ?? found.expiresAt;
  if (until <= now || found.expiresAt <= now) throw refuse('token_expired', `This key stopped working at ${until}.`);
  return {
    kind: 'apikey',
    id: found.keyId,
    memberId: found.memberId,
    role: found.role,
    scopes: found.scopes,
    mode: found.mode,
    workspaceId: found.mode === 'test' ? testTwinIdOf(found.workspaceId) : found.workspaceId,
    liveWorkspaceId: found.workspaceId,
    actor: { type: 'apikey', id: found.keyId },
  };
};

interface Known {
  readonly key: Promise<FoundKey | null>;
  until: number;
  /** Since it was last asked for. */
  used: boolean;
}

export class Keyring {
  readonly #clock: () => number;
  readonly #keys: Batches<FoundKey>;
  /** Hash → what was found, also nothing. The oldest goes first. */
  readonly #known = new Map<string, Known>();

  constructor(pool: Pool, clock: () => number) {
    this.#clock = clock;
    this.#keys = new Batches((hashes) => this.#find(pool, hashes));
  }

  /** @throws Refusal 401. What is no key by its form asks no database. */
  async identify(token: string): Promise<Principal> {
    const found = form.test(token) ? await this.#lookUp(createHash('sha256').update(token).digest('hex')) : null;
    if (found === null) throw refuse('invalid_token', 'No such token is known.');
    return principalOf(found, new Date(this.#clock()).toISOString());
  }

  #lookUp(hash: string): Promise<FoundKey | null> {
    const now = performance.now();
    const known = this.#known.get(hash);
    if (known !== undefined && known.until > now) {
      known.used = true;
      return known.key;
    }
    const key = this.#keys.get(hash);
    this.#known.delete(hash);
    const entry: Known = { key, until: now + believedMs, used: true };
    this.#known.set(hash, entry);
    const [oldest] = this.#known.keys();
    if (this.#known.size > mostRemembered && oldest !== undefined) this.#known.delete(oldest);
    // A failure is not remembered: the next request asks again.
    key.then(
      (found) => {
        if (found === null) entry.until = now + absentMs;
      },
      () => this.#known.delete(hash),
    );
    return key;
  }

  /**
   * Keys in use that will be asked for again soon: they go along with a query that is made anyway, so that many keys in
   * turn do not mean a query each. In the order of their age, so this ends at the first that is young.
   */
  #due(now: number): ReadonlyMap<string, Known> {
    const due = new Map<string, Known>();
    for (const [hash, entry] of this.#known) {
      if (due.size >= mostTogether || entry.until - now > believedMs / 2) break;
      if (entry.used && entry.until > now) {
        entry.used = false;
        due.set(hash, entry);
      } else if (entry.until <= now) this.#known.delete(hash);
    }
    return due;
  }

  async #find(pool: Pool, hashes: readonly string[]): Promise<ReadonlyMap<string, FoundKey>> {
    const asked = performance.now();
    const due = this.#due(asked);
    const keys = await findKeys(pool, [...new Set([...hashes, ...due.keys()])]);
    for (const [hash, entry] of due) {
      // Two queries may be out at once: what came in place of this entry is newer than our answer.
      if (this.#known.get(hash) !== entry) continue;
      this.#known.delete(hash);
      const key = keys.get(hash);
      if (key !== undefined) {
        this.#known.set(hash, { key: Promise.resolve(key), until: asked + believedMs, used: false });
      }
    }
    return keys;
  }
}
