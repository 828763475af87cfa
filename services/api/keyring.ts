import { createHash } from 'node:crypto';
import type { Pool } from 'pg';
import { testTwinIdOf } from '#domain/ids.ts';
import { type FoundKey, findKeys } from '#projections/apikeys.ts';
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

interface Asked {
  readonly hash: string;
  readonly found: (key: FoundKey | null) => void;
  readonly failed: (error: unknown) => void;
}

export class Keyring {
  readonly #pool: Pool;
  readonly #clock: () => number;
  /** Hash → what was found, also nothing. The oldest goes first. */
  readonly #known = new Map<string, { readonly key: Promise<FoundKey | null>; until: number; used: boolean }>();
  #waiting: Asked[] = [];
  #asking = false;

  constructor(pool: Pool, clock: () => number) {
    this.#pool = pool;
    this.#clock = clock;
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
    const key = new Promise<FoundKey | null>((found, failed) => this.#waiting.push({ hash, found, failed }));
    this.#known.delete(hash);
    const entry = { key, until: now + believedMs, used: true };
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
    if (!this.#asking) void this.#ask();
    return key;
  }

  /**
   * Keys in use that will be asked for again soon: they go along with a query that is made anyway, so that many keys in
   * turn do not mean a query each. In the order of their age, so this ends at the first that is young.
   */
  #due(now: number): readonly string[] {
    const hashes: string[] = [];
    for (const [hash, entry] of this.#known) {
      if (hashes.length >= mostTogether || entry.until - now > believedMs / 2) break;
      if (entry.used && entry.until > now) hashes.push(hash);
      else if (entry.until <= now) this.#known.delete(hash);
    }
    return hashes;
  }

  /** One query at a time, for all who came while the one before was out. */
  async #ask(): Promise<void> {
    this.#asking = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        const asked = performance.now();
        const due = this.#due(asked);
        const keys = await findKeys(this.#pool, [...new Set([...batch.map(({ hash }) => hash), ...due])]);
        for (const hash of due) {
          const key = keys.get(hash);
          this.#known.delete(hash);
          if (key !== undefined) {
            this.#known.set(hash, { key: Promise.resolve(key), until: asked + believedMs, used: false });
          }
        }
        for (const { hash, found } of batch) found(keys.get(hash) ?? null);
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    this.#asking = false;
  }
}
