/**
 * Network credentials in Postgres: one row per account, sealed under its client's data key. Every change of a row is one
 * statement that names the version it replaces, so that no connection waits while a network is asked.
 */
import type pg from 'pg';
import { Batches } from '#contracts/base/batches.ts';
import type {
  Credential,
  CredentialOwner,
  CredentialStore,
  EndingCredential,
  NewCredential,
  Refresh,
  Refreshed,
} from '#contracts/ports/credentials.ts';
import type { Platform } from '#schemas/common.ts';
import {
  type Opened,
  type RefreshLimits,
  refreshCredential,
  type SealedRow,
  usualLimits,
} from './credential-refresh.ts';
import { type CredentialRow, endingCredentials, findSql, keepSql } from './credential-rows.ts';
import { instantOf, open, seal } from './credential-seal.ts';
import { answeredWithin } from './pool.ts';

export interface ClientKeys {
  /** Null when the client's key was destroyed. */
  forWriting(clientId: string): Promise<Buffer | null>;
  /** Null when the client's key was destroyed. @throws MissingKey */
  forReading(clientId: string): Promise<Buffer | null>;
}

/** Gaps in which a test kills the process. */
export type CredentialGap =
  | 'credentials.kept'
  | 'credentials.leased'
  | 'credentials.answered'
  | 'credentials.stored'
  | 'credentials.lapsed'
  | 'credentials.destroyed';

export interface PostgresCredentialsOptions {
  readonly pool: pg.Pool;
  readonly keys: ClientKeys;
  readonly limits?: Partial<RefreshLimits>;
  readonly faultPoint?: (name: CredentialGap) => void;
}

/** How often `keep` tries against others that change the same credential. */
const maxKeeps = 20;

export class PostgresCredentials implements CredentialStore {
  readonly #pool: pg.Pool;
  readonly #options: PostgresCredentialsOptions;
  readonly #limits: RefreshLimits;
  /** A thousand posts due in one second do not read theirs one by one. */
  readonly #rows = new Batches((accountIds) => this.#load(accountIds));

  constructor(options: PostgresCredentialsOptions) {
    this.#options = options;
    this.#pool = options.pool;
    this.#limits = { ...usualLimits, ...options.limits };
  }

  async keep(owner: CredentialOwner, { secret, expiresAt, grant }: NewCredential): Promise<number | null> {
    const { accountId, workspaceId, clientId, platform } = owner;
    const ends = instantOf(expiresAt);
    const key = await this.#options.keys.forWriting(clientId);
    if (key === null) {
      await this.destroy(accountId);
      return null;
    }
    for (let tries = 0; tries < maxKeeps; tries += 1) {
      const version = ((await this.#rows.get(accountId))?.version ?? 0) + 1;
      const sealed = seal(key, { accountId, version }, secret);
      const row = [accountId, workspaceId, clientId, platform, version, sealed, ends, grant ?? null];
      const { rowCount } = await this.#pool.query(keepSql, row);
      if (rowCount === 1) {
        this.#options.faultPoint?.('credentials.kept');
        return version;
      }
    }
    throw new Error(`others changed the credential of account ${accountId} ${maxKeeps} times while one was kept`);
  }

  async read(accountId: string): Promise<Credential | null> {
    const row = await this.#rows.get(accountId);
    const opened = row === null ? null : await this.#opened(accountId, row);
    return opened?.credential ?? null;
  }

  refresh(
    accountId: string,
    seen: number,
    ask: (former: Credential, signal: AbortSignal) => Promise<Refresh>,
    signal: AbortSignal,
  ): Promise<Refreshed> {
    const deps = {
      ...{ pool: this.#pool, limits: this.#limits, faultPoint: this.#options.faultPoint },
      find: () => this.#rows.get(accountId),
      opened: (row: SealedRow) => this.#opened(accountId, row),
    };
    return refreshCredential(deps, accountId, seen, ask, signal);
  }

  async destroy(accountId: string, version?: number): Promise<void> {
    const sql = 'delete from ops.network_credentials where account_id = $1 and ($2::int is null or version = $2)';
    await this.#pool.query(sql, [accountId, version ?? null]);
    this.#options.faultPoint?.('credentials.destroyed');
  }

  async leave(accountId: string, version: number): Promise<'left' | 'last'> {
    const sql = 'select ops.leave_grant($1, $2) as answer';
    const { rows } = await this.#pool.query<{ readonly answer: 'left' | 'last' }>(sql, [accountId, version]);
    return rows[0]?.answer ?? 'last';
  }

  async destroyOfClient(clientId: string): Promise<void> {
    await this.#pool.query('delete from ops.network_credentials where client_id = $1', [clientId]);
  }

  ending(platform: Platform, before: string, limit: number): Promise<readonly EndingCredential[]> {
    return endingCredentials(this.#pool, platform, before, limit);
  }

  async acknowledgeLapse(accountId: string, version: number): Promise<void> {
    await this.#pool.query(
      `update ops.network_credentials set lapse_reported = true
       where account_id = $1 and version = $2 and lapse_reason is not null and not lapse_reported`,
      [accountId, version],
    );
  }

  async #load(accountIds: readonly string[]): Promise<ReadonlyMap<string, CredentialRow>> {
    const { rows } = await this.#pool.query<CredentialRow>({
      ...{ name: 'credentials-find', text: findSql, values: [accountIds] },
      ...answeredWithin(this.#limits.answerMs),
    });
    return new Map(rows.map((row) => [row.accountId, row]));
  }

  /** Null: the client was erased. The next reader deletes a row that was written during the erasure. */
  async #opened(accountId: string, { clientId, version, sealed, expiresAt }: SealedRow): Promise<Opened | null> {
    const key = await this.#options.keys.forReading(clientId);
    if (key === null) {
      await this.destroyOfClient(clientId);
      return null;
    }
    const secret = open(key, { accountId, version }, sealed);
    return { credential: { version, secret, expiresAt: expiresAt?.toISOString() ?? null }, key };
  }
}
