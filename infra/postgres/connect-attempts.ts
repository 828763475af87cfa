/** Attempts to connect an account in Postgres: one row each, which is deleted when the guest has come back. */
import { hash } from 'node:crypto';
import type pg from 'pg';
import {
  type AttemptBearer,
  type AttemptKind,
  attemptMs,
  type ConnectAttempt,
  type ConnectAttempts,
  maxAttempts,
} from '#contracts/ports/connect-attempts.ts';
import type { Platform } from '#schemas/common.ts';
import type { ClientKeys } from './credentials.ts';
import { openJson, sealJson } from './sealed-json.ts';

/** The accounts of a login with their credentials, or a verifier. Bytes. */
const maxKept = 512 * 1024;

/** Rows that one sweep deletes. */
const sweepSize = 1_000;

interface Row {
  readonly inviteId: string;
  readonly workspaceId: string;
  readonly clientId: string;
  readonly platform: Platform;
  readonly sealed: Buffer;
}

const columns = `invite_id::text as "inviteId", workspace_id::text as "workspaceId", client_id::text as "clientId",
  platform, sealed`;
const borne = 'ops.connect_attempts where token_hash = $1 and browser_hash = $2 and kind = $3 and expires_at > now()';

/** NOTE: both are long random texts of ours, so that nobody finds one by its hash. */
const hashOf = (secret: string): Buffer => hash('sha256', secret, 'buffer');

/** A row cannot take the place of another one. */
const boundTo = (tokenHash: Buffer, kind: AttemptKind): string =>
  `connect attempt\n${kind}\n${tokenHash.toString('hex')}`;

export class PostgresConnectAttempts implements ConnectAttempts {
  readonly #pool: pg.Pool;
  readonly #keys: ClientKeys;

  constructor({ pool, keys }: { readonly pool: pg.Pool; readonly keys: ClientKeys }) {
    this.#pool = pool;
    this.#keys = keys;
  }

  async keep({ token, browser }: AttemptBearer, attempt: ConnectAttempt): Promise<boolean> {
    const { kind, inviteId, workspaceId, clientId, platform, kept } = attempt;
    const key = await this.#keys.forWriting(clientId);
    if (key === null) return false;
    const id = hashOf(token);
    const sealed = sealJson(key, boundTo(id, kind), kept, maxKept);
    // Attempts that begin at the same moment do not see each other: the next one deletes what is too much.
    await this.#pool.query(
      `with oldest as (
         delete from ops.connect_attempts where token_hash in (
           select token_hash from ops.connect_attempts where invite_id = $4 order by expires_at desc offset $10
         )
       )
       insert into ops.connect_attempts
         (token_hash, browser_hash, kind, invite_id, workspace_id, client_id, platform, sealed, expires_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, now() + $9 * interval '1 millisecond')`,
      [id, hashOf(browser), kind, inviteId, workspaceId, clientId, platform, sealed, attemptMs, maxAttempts - 1],
    );
    return true;
  }

  find(bearer: AttemptBearer, kind: AttemptKind): Promise<ConnectAttempt | null> {
    return this.#opened(`select ${columns} from ${borne}`, bearer, kind);
  }

  take(bearer: AttemptBearer, kind: AttemptKind): Promise<ConnectAttempt | null> {
    return this.#opened(`delete from ${borne} returning ${columns}`, bearer, kind);
  }

  async sweep(): Promise<number> {
    const { rowCount } = await this.#pool.query(
      `delete from ops.connect_attempts where token_hash in (
         select token_hash from ops.connect_attempts where expires_at <= now()
         order by expires_at limit $1 for update skip locked
       )`,
      [sweepSize],
    );
    return rowCount ?? 0;
  }

  async destroyOfClient(clientId: string): Promise<void> {
    await this.#pool.query('delete from ops.connect_attempts where client_id = $1', [clientId]);
  }

  async #opened(sql: string, { token, browser }: AttemptBearer, kind: AttemptKind): Promise<ConnectAttempt | null> {
    const id = hashOf(token);
    const { rows } = await this.#pool.query<Row>(sql, [id, hashOf(browser), kind]);
    const [row] = rows;
    if (row === undefined) return null;
    const { sealed, ...place } = row;
    const key = await this.#keys.forReading(place.clientId);
    // The client was erased while the row was written.
    if (key === null) {
      await this.destroyOfClient(place.clientId);
      return null;
    }
    return { ...place, kind, kept: openJson(key, boundTo(id, kind), sealed) as ConnectAttempt['kept'] };
  }
}
