import { hash } from 'node:crypto';
import type { Pool } from 'pg';
import { testTwinIdOf } from '#domain/ids.ts';
import { type FoundKey, findKeys } from '#projections/apikeys.ts';
import { stampOf } from '#projections/positions.ts';
import { Batches } from '#runtime/batches.ts';
import type { Principal } from './operation.ts';
import { Refusal } from './refusal.ts';

/** From a bearer token to who asks. Only the SHA-256 of a key is known anywhere. */

const form = /^sk_(live|test)_[A-Za-z0-9_-]{20,200}$/;

/**
 * A revoked key is dead within a second of its revocation: what was found is believed as long as the projection it was
 * found in has applied nothing since, and that is looked at again before so many milliseconds have passed.
 */
const believedMs = 750;
/** A key that was made a moment ago is not refused for long. */
const absentMs = 100;
const mostRemembered = 10_000;

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
          actor: { type: 'apikey', id: found.keyId },
        },
});

/** @throws Refusal when the key has no power now. */
const principalOf = ({ found, principal }: Known, now: string): Principal => {
  if (found.revokedAt !== null) throw refuse('token_revoked', 'This key was revoked.');
  if (principal === null) throw refuse('token_revoked', 'The member of this key has left the workspace.');
  const until = found.previousUntil ?? found.expiresAt;
  if (until <= now || found.expiresAt <= now) throw refuse('token_expired', `This key stopped working at ${until}.`);
  return principal;
};

/** How far the projection had come that keys are found in, and when that was asked. */
interface Stamp {
  readonly value: string;
  readonly asked: number;
}

interface Entry {
  /** Of before the key was looked for: what was found is at least as new. */
  readonly stamp: string;
  readonly key: Promise<Known | null>;
  absentUntil: number;
}

export class Keyring {
  readonly #pool: Pool;
  readonly #clock: () => number;
  readonly #keys: Batches<Known>;
  /** Hash → what was found, also nothing. The oldest goes first. */
  readonly #entries = new Map<string, Entry>();
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

  /** @throws Refusal 401. What is no key by its form asks no database. */
  async identify(token: string): Promise<Principal> {
    const known = form.test(token) ? await this.#lookUp(hash('sha256', token)) : null;
    if (known === null) throw refuse('invalid_token', 'No such token is known.');
    return principalOf(known, new Date(this.#clock()).toISOString());
  }

  async #lookUp(hash: string): Promise<Known | null> {
    const { value } = await this.#believed();
    const entry = this.#entries.get(hash);
    if (entry?.stamp === value && entry.absentUntil > performance.now()) return entry.key;
    const made: Entry = { stamp: value, key: this.#keys.get(hash), absentUntil: Number.POSITIVE_INFINITY };
    this.#entries.delete(hash);
    this.#entries.set(hash, made);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > mostRemembered && oldest !== undefined) this.#entries.delete(oldest);
    made.key.then(
      (known) => {
        if (known === null) made.absentUntil = performance.now() + absentMs;
      },
      // A failure is not remembered: the next request asks again.
      () => {
        if (this.#entries.get(hash) === made) this.#entries.delete(hash);
      },
    );
    return made.key;
  }

  /** The stamp, asked for again in half of its time, so that as a rule nobody waits for it. */
  async #believed(): Promise<Stamp> {
    const now = performance.now();
    const age = now - this.#stamp.asked;
    if (age < believedMs / 2) return this.#stamp;
    const next = this.#ask();
    if (age < believedMs) {
      next.catch(() => undefined);
      return this.#stamp;
    }
    // A question that was out for too long when we came says nothing about now.
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
