/**
 * Data keys in Postgres: one per client, wrapped under a sub-key of the installation's secret. A key is committed
 * before its first use, so no event is ever sealed with a key that a crash could lose. Destruction is final: the
 * wrapped bytes are deleted, and the row stays and records it.
 */

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type pg from 'pg';
import { Batches } from '#contracts/base/batches.ts';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { MissingKey } from '#contracts/ports/data-keys.ts';

/** Source of the wrapping keys. `version` absent = the current one. @throws for a version that was removed */
export interface WrappingKeys {
  readonly current: string;
  subKey(purpose: 'wrapping', version?: string): Buffer;
}

export interface PostgresDataKeysOptions {
  readonly pool: pg.Pool;
  readonly secrets: WrappingKeys;
  /** Keys in the cache; the one that was read longest ago is dropped first. Default 10,000. */
  readonly maxKeys?: number;
  /** Milliseconds after which a cached key is read again, to notice its destruction. Default 1,000. */
  readonly freshMs?: number;
}

interface Entry {
  /** Null when destroyed. */
  readonly key: Buffer | null;
  /** Monotonic milliseconds: when the query that found it began. */
  readonly asOf: number;
}

interface KeyRow {
  readonly client_id: string;
  readonly key_version: string | null;
  readonly wrapped: Buffer | null;
  readonly destroyed_at: Date | null;
}

/** How many of a version's oldest and of its newest data keys are tried. */
const sampled = 50;

const place = (clientId: string, version: string): Buffer => Buffer.from(`data key\n${clientId}\n${version}`);

export class PostgresDataKeys {
  readonly #pool: pg.Pool;
  readonly #secrets: WrappingKeys;
  readonly #freshMs: number;
  readonly #kept: BoundedMap<string, Entry>;
  readonly #rows = new Batches((clientIds) => this.#load(clientIds));
  readonly #asking = new Map<string, Promise<Entry | null>>();

  constructor({ pool, secrets, maxKeys = 10_000, freshMs = 1_000 }: PostgresDataKeysOptions) {
    this.#pool = pool;
    this.#secrets = secrets;
    this.#kept = new BoundedMap(maxKeys);
    this.#freshMs = freshMs;
  }

  /** Created and committed before it is first returned. Null when the client's key was destroyed. */
  async forWriting(clientId: string): Promise<Buffer | null> {
    const found = await this.#find(clientId);
    if (found !== null) return found.key;
    const version = this.#secrets.current;
    // Many callers may race here: one row wins, and all of them use the row in the table.
    await this.#pool.query(
      'insert into ops.data_keys (client_id, key_version, wrapped) values ($1, $2, $3) on conflict do nothing',
      [clientId, version, this.#wrap(clientId, version, randomBytes(32))],
    );
    const made = await this.#find(clientId);
    if (made === null) throw new MissingKey(`the data key of client ${clientId} vanished`);
    return made.key;
  }

  /**
   * Null when destroyed. @throws when there is none, or it does not unwrap: the caller may conclude nothing from that
   */
  async forReading(clientId: string): Promise<Buffer | null> {
    const found = await this.#find(clientId);
    if (found === null) throw new MissingKey(`there is no data key of client ${clientId}: was its table restored?`);
    return found.key;
  }

  /**
   * Takes over the key of a subject from another installation; null: it was destroyed there, and is here. A repeat changes nothing.
   * @throws Error where the subject has another key here
   */
  async adopt(subject: string, key: Buffer | null): Promise<void> {
    if (key === null) return this.destroy(subject);
    const version = this.#secrets.current;
    await this.#pool.query(
      'insert into ops.data_keys (client_id, key_version, wrapped) values ($1, $2, $3) on conflict do nothing',
      [subject, version, this.#wrap(subject, version, key)],
    );
    const found = await this.#find(subject);
    if (found?.key?.equals(key) !== true) throw new Error(`${subject} has another data key in this installation`);
  }

  /** Final, also for a client without a key. Other processes notice within `freshMs`. */
  async destroy(clientId: string): Promise<void> {
    await this.#pool.query(
      `insert into ops.data_keys (client_id, destroyed_at) values ($1, now())
       on conflict (client_id) do update set wrapped = null, key_version = null, destroyed_at = now()
       where data_keys.destroyed_at is null`,
      [clientId],
    );
    this.#kept.delete(clientId);
    this.#asking.delete(clientId);
  }

  /** How many keys each version of the secret wraps: a version in use must not be removed. */
  async uses(db: pg.Pool | pg.ClientBase = this.#pool): Promise<ReadonlyMap<string, number>> {
    const { rows } = await db.query<{ key_version: string; n: number }>(
      'select key_version, count(*)::int as n from ops.data_keys where destroyed_at is null group by 1',
    );
    return new Map(rows.map((row) => [row.key_version, row.n]));
  }

  /**
   * Whether our key of a version opens the data keys that the version wraps; null: it wraps none. One that opens is
   * proof: an installation that lost its key, and went on with a new one of the same version, has data keys of
   * both.
   */
  async opens(version: string, db: pg.Pool | pg.ClientBase = this.#pool): Promise<boolean | null> {
    const some = (order: 'asc' | 'desc') =>
      `(select client_id::text, wrapped from ops.data_keys where key_version = $1 and destroyed_at is null
        order by created_at ${order} limit ${sampled})`;
    const { rows } = await db.query<{ client_id: string; wrapped: Buffer }>(`${some('desc')} union ${some('asc')}`, [
      version,
    ]);
    if (rows.length === 0) return null;
    return rows.some((row) => {
      try {
        return this.#unwrap(row.client_id, version, row.wrapped).length > 0;
      } catch {
        return false;
      }
    });
  }

  async #find(clientId: string): Promise<Entry | null> {
    const kept = this.#kept.get(clientId);
    if (kept !== undefined && (kept.key === null || performance.now() - kept.asOf < this.#freshMs)) return kept;
    // Concurrent callers share one query.
    const asked = this.#asking.get(clientId);
    if (asked !== undefined) return asked;
    const asking = this.#ask(clientId).finally(() => {
      if (this.#asking.get(clientId) === asking) this.#asking.delete(clientId);
    });
    this.#asking.set(clientId, asking);
    return asking;
  }

  async #load(clientIds: readonly string[]): Promise<ReadonlyMap<string, KeyRow>> {
    const { rows } = await this.#pool.query<KeyRow>(
      `select client_id::text, key_version, wrapped, destroyed_at from ops.data_keys
       where client_id = any($1::uuid[])`,
      [clientIds],
    );
    return new Map(rows.map((row) => [row.client_id, row]));
  }

  async #ask(clientId: string): Promise<Entry | null> {
    const asOf = performance.now();
    const row = await this.#rows.get(clientId);
    if (row === null) return null;
    const { key_version: version, wrapped, destroyed_at: destroyedAt } = row;
    const live = destroyedAt === null && wrapped !== null && version !== null;
    const entry = { key: live ? this.#unwrap(clientId, version, wrapped) : null, asOf };
    this.#kept.set(clientId, entry);
    return entry;
  }

  /** iv, tag, ciphertext. Client and version are authenticated, so that one row cannot replace another. */
  #wrap(clientId: string, version: string, key: Buffer): Buffer {
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.#secrets.subKey('wrapping', version), iv);
    cipher.setAAD(place(clientId, version));
    const text = Buffer.concat([cipher.update(key), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), text]);
  }

  /** @throws MissingKey for a version that SECRET_KEY lacks, or whose value has changed */
  #unwrap(clientId: string, version: string, wrapped: Buffer): Buffer {
    const wrapping = this.#secrets.subKey('wrapping', version);
    try {
      const decipher = createDecipheriv('aes-256-gcm', wrapping, wrapped.subarray(0, 12));
      decipher.setAAD(place(clientId, version));
      decipher.setAuthTag(wrapped.subarray(12, 28));
      return Buffer.concat([decipher.update(wrapped.subarray(28)), decipher.final()]);
    } catch (cause) {
      throw new MissingKey(`version ${version} of SECRET_KEY does not open the data key of client ${clientId}`, {
        cause,
      });
    }
  }
}
