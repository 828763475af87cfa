import { generateKeyPairSync } from 'node:crypto';
import { calculateJwkThumbprint, type JWK } from 'jose';
import type { Pool, PoolClient } from 'pg';
import { withTableLock } from '#contracts/base/migration.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { box, unbox } from '../box.ts';
import { accessTokenSeconds } from './times.ts';

/**
 * The keys that sign access tokens. A new key is published at once and signs some minutes later, when every process and
 * every verifier has seen it; the key before it is published until the last token that it signed has expired. All
 * instants are the database's, so that processes agree which key signs.
 */

/** Seconds from publishing a key to signing with it: longer than processes and answers keep the former keys. */
const publishSeconds = 600;
/** Seconds after which a process reads the keys again, and for which others may keep the published ones. */
export const keysKeptSeconds = 60;
/** Seconds for which a key that no longer signs is published. */
const retiredSeconds = accessTokenSeconds + 2 * keysKeptSeconds;

const published = `
  from auth.signing_keys k where not exists (
    select 1 from auth.signing_keys later
    where later.signs_at > k.signs_at and later.signs_at < now() - make_interval(secs => ${retiredSeconds})
  )`;

const insertKey = async (tx: PoolClient, secrets: Secrets, seconds: number): Promise<string> => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { kty, crv, x, y, d } = privateKey.export({ format: 'jwk' }) as JWK;
  const kid = await calculateJwkThumbprint({ kty, crv, x, y } as JWK);
  const { version, sealed } = box(secrets, 'oauth-keys', kid, d ?? '');
  await tx.query(
    `insert into auth.signing_keys (kid, public_key, key_version, sealed, signs_at)
     values ($1, $2, $3, $4, now() + make_interval(secs => $5))`,
    [kid, { kty, crv, x, y, kid, alg: 'ES256', use: 'sig' }, version, sealed, seconds],
  );
  return kid;
};

const locked = async <T>(pool: Pool, work: (tx: PoolClient) => Promise<T>): Promise<T> => {
  let result: T | undefined;
  await withTableLock(pool, 'oauth signing keys', async (tx) => {
    result = await work(tx);
  });
  return result as T;
};

/** Makes the first key. Processes that start at once make one together. */
const ensureKey = (pool: Pool, secrets: Secrets): Promise<void> =>
  locked(pool, async (tx) => {
    const { rowCount } = await tx.query('select 1 from auth.signing_keys limit 1');
    if (rowCount === 0) await insertKey(tx, secrets, 0);
  });

export interface Rotation {
  readonly kid: string;
  /** ISO 8601 instant from which the key signs. */
  readonly signsAt: string;
  /** False: a key already waits for its turn, and is the one named here. */
  readonly isNew: boolean;
}

/** Publishes a new key. It signs after some minutes, without a further step; a repeat before that makes no other. */
export const rotateSigningKey = (pool: Pool, secrets: Secrets): Promise<Rotation> =>
  locked(pool, async (tx) => {
    const waiting = 'select kid, signs_at from auth.signing_keys where signs_at > now() order by signs_at desc limit 1';
    const before = await tx.query<{ kid: string; signs_at: Date }>(waiting);
    if (before.rows.length === 0) await insertKey(tx, secrets, publishSeconds);
    const { rows } = await tx.query<{ kid: string; signs_at: Date }>(waiting);
    const [row] = rows;
    return { kid: row?.kid ?? '', signsAt: row?.signs_at.toISOString() ?? '', isNew: before.rows.length === 0 };
  });

/** Deletes keys of which no token can be valid any more. */
export const dropRetiredKeys = async (pool: Pool): Promise<number> => {
  const { rowCount } = await pool.query(`delete from auth.signing_keys where kid not in (select k.kid ${published})`);
  return rowCount ?? 0;
};

/** The public keys, by which tokens are verified. */
export const publicKeys = async (pool: Pool): Promise<readonly (JWK & { readonly kid: string })[]> => {
  const { rows } = await pool.query<{ public_key: JWK & { readonly kid: string } }>({
    name: 'oauth-public-keys',
    text: `select k.public_key ${published} order by k.signs_at desc`,
  });
  return rows.map(({ public_key }) => public_key);
};

/** The key that signs now comes first. */
export type KeySet = readonly (JWK & { readonly kid: string })[];

/** The private keys, as a process keeps them for a while. */
export class SigningKeys {
  readonly #pool: Pool;
  readonly #secrets: Secrets;
  readonly #keptMs: number;
  #readAt = Number.NEGATIVE_INFINITY;
  #keys: KeySet = [];
  #reading: Promise<KeySet> | null = null;

  /** @param keptMs default a minute */
  constructor(pool: Pool, secrets: Secrets, keptMs = keysKeptSeconds * 1_000) {
    this.#pool = pool;
    this.#secrets = secrets;
    this.#keptMs = keptMs;
  }

  /** The same object as before while the keys are the same. */
  async current(): Promise<KeySet> {
    if (performance.now() - this.#readAt < this.#keptMs) return this.#keys;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #read(): Promise<KeySet> {
    const readAt = performance.now();
    let keys = await this.#stored();
    if (keys.length === 0) {
      await ensureKey(this.#pool, this.#secrets);
      keys = await this.#stored();
    }
    const isSame = keys.length === this.#keys.length && keys.every(({ kid }, at) => this.#keys[at]?.kid === kid);
    if (!isSame) this.#keys = keys;
    this.#readAt = readAt;
    return this.#keys;
  }

  async #stored(): Promise<KeySet> {
    const { rows } = await this.#pool.query<{
      kid: string;
      public_key: JWK;
      version: string;
      sealed: Buffer;
    }>(
      `select k.kid, k.public_key, k.key_version as version, k.sealed ${published}
       order by k.signs_at <= now() desc, k.signs_at desc, k.kid`,
    );
    return rows.map(({ kid, public_key, version, sealed }) => ({
      ...public_key,
      kid,
      d: unbox(this.#secrets, 'oauth-keys', kid, { version, sealed }),
    }));
  }
}
