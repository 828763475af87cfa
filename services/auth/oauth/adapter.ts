import { type Adapter, type AdapterPayload, errors, Provider } from 'oidc-provider';
import type { Pool } from 'pg';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Clients } from './clients.ts';
import type { Families } from './families.ts';
import type { Repeats } from './repeats.ts';
import { type AppOfInteraction, hashOf } from './tables.ts';

/**
 * Where oidc-provider keeps what it issues. The id of a code or a token is the bearer value itself: rows have its
 * SHA-256, and no payload has the id.
 */

export interface AdapterParts {
  readonly pool: Pool;
  readonly clients: Clients;
  readonly families: Families;
  readonly repeats: Repeats;
  /** Address at which an authorization goes on after the person has decided. */
  readonly resumeUrl: (uid: string) => string;
  /** Address of the present caller, for the record of a registration. */
  readonly address: () => string | null;
}

/** The most grants that one request ends when a client is deleted; the sweep ends the others. */
const maxGrantsOfClient = 100;

const spent = () => new errors.InvalidGrant('already spent');

class Artifacts implements Adapter {
  readonly #model: string;
  readonly #parts: AdapterParts;

  constructor(model: string, parts: AdapterParts) {
    this.#model = model;
    this.#parts = parts;
  }

  async upsert(id: string, payload: AdapterPayload, expiresIn?: number): Promise<void> {
    const { jti: _id, ...kept } = payload;
    const grantId = this.#model === 'Grant' ? id : (payload.grantId ?? null);
    const clientId = payload.clientId ?? null;
    const expiresAt = payload.exp ?? (expiresIn === undefined ? null : Math.floor(Date.now() / 1_000) + expiresIn);
    const isUse = this.#model === 'AuthorizationCode' || this.#model === 'RefreshToken';
    await this.#parts.pool.query({
      name: `oauth-keep-${isUse}`,
      text: `${isUse ? touchClient : ''}
        insert into auth.oauth_artifacts (model, id_hash, payload, grant_id, client_id, expires_at)
        values ($1, $2, $3, $4, $5, to_timestamp($6))
        on conflict (model, id_hash) do update set payload = excluded.payload, expires_at = excluded.expires_at`,
      values: [this.#model, hashOf(id), kept, grantId, clientId, expiresAt],
    });
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const { rows } = await this.#parts.pool.query<{ payload: AdapterPayload; consumed: number | null }>({
      name: 'oauth-find',
      text: `select payload, extract(epoch from consumed_at)::int as consumed
        from auth.oauth_artifacts where model = $1 and id_hash = $2`,
      values: [this.#model, hashOf(id)],
    });
    const [row] = rows;
    if (row === undefined) return undefined;
    return { ...row.payload, jti: id, ...(row.consumed === null ? {} : { consumed: row.consumed }) };
  }

  /**
   * One caller spends a code or token. Another that found it unspent too comes here second: it gets the answer of the
   * first where `Repeats` allows that. Else it ends the family, so that a stolen token never gives two living families.
   * What the first one gets is dead as well: its grant is revoked.
   */
  async consume(id: string): Promise<void> {
    const { rows } = await this.#parts.pool.query<{ grant_id: string; first: boolean }>({
      name: 'oauth-consume',
      text: `with first as (
          update auth.oauth_artifacts set consumed_at = now()
          where model = $1 and id_hash = $2 and consumed_at is null returning grant_id
        )
        select grant_id, true as first from first
        union all
        select grant_id, false from auth.oauth_artifacts
        where model = $1 and id_hash = $2 and not exists (select 1 from first)`,
      values: [this.#model, hashOf(id)],
    });
    const [row] = rows;
    if (row === undefined) throw spent();
    if (!row.first) {
      const ctx = Provider.ctx;
      if (this.#model === 'RefreshToken' && ctx !== undefined && (await this.#parts.repeats.allows(ctx))) throw spent();
      await this.#parts.families.end(row.grant_id, 'reuse');
      throw spent();
    }
    // If we die here, the app holds a token that is spent and has no answer: its next try counts as reuse and ends the
    // family, and the person consents again.
    faultPoint('oauth:after-consume');
  }

  async destroy(id: string): Promise<void> {
    if (this.#model === 'Grant') return this.revokeByGrantId(id);
    // The rows of a family end together: a spent token that was deleted first would leave the family alive, if the
    // revocation of the family then failed.
    if (this.#model === 'RefreshToken') return;
    await this.#parts.pool.query('delete from auth.oauth_artifacts where model = $1 and id_hash = $2', [
      this.#model,
      hashOf(id),
    ]);
  }

  /** Called where a client revokes a token, and where a code or a token was spent twice. */
  async revokeByGrantId(grantId: string): Promise<void> {
    await this.#parts.families.end(grantId, Provider.ctx?.oidc.route === 'revocation' ? 'client' : 'reuse');
  }

  async findByUserCode(): Promise<undefined> {}

  async findByUid(): Promise<undefined> {}
}

/** A client that gets a code or a token is in use; the day is exact enough. */
const touchClient = `with used as (
    update auth.oauth_clients set last_used_at = now()
    where client_id = $5 and (last_used_at is null or last_used_at < now() - interval '1 day')
  )`;

/**
 * One authorization yields one answer: the first result stays, and a second resume finds none. Otherwise two
 * tabs could get two codes out of one consent.
 */
class Interactions extends Artifacts {
  readonly #parts: AdapterParts;

  constructor(parts: AdapterParts) {
    super('Interaction', parts);
    this.#parts = parts;
  }

  override async upsert(uid: string, payload: AdapterPayload, expiresIn?: number): Promise<void> {
    // The address has the id.
    const { returnTo: _returnTo, ...kept } = payload;
    const client = Provider.ctx?.oidc.client;
    if (payload.result === undefined) {
      const app: AppOfInteraction = {
        name: client?.clientName ?? null,
        hasDocument: client?.clientIdMetadataDocument === true,
      };
      return super.upsert(uid, { ...kept, app } as AdapterPayload, expiresIn);
    }
    const { rowCount } = await this.#parts.pool.query(
      `update auth.oauth_artifacts set payload = payload || $2
       where model = 'Interaction' and id_hash = $1 and not payload ? 'result'`,
      [hashOf(uid), { result: payload.result }],
    );
    if (rowCount === 0) throw new errors.SessionNotFound('the authorization was answered already');
  }

  override async find(uid: string): Promise<AdapterPayload | undefined> {
    const found = await super.find(uid);
    return found === undefined ? undefined : { ...found, returnTo: this.#parts.resumeUrl(uid) };
  }

  override async destroy(uid: string): Promise<void> {
    const { rowCount } = await this.#parts.pool.query(
      `delete from auth.oauth_artifacts where model = 'Interaction' and id_hash = $1`,
      [hashOf(uid)],
    );
    if (rowCount === 0) throw new errors.SessionNotFound('the authorization was answered already');
  }
}

/**
 * oidc-provider would remember in a session who signed in. The console signs people in, for each authorization anew, so
 * no session is ever kept or found: the next person in the same browser is never taken for the one before.
 */
const noSessions: Adapter = {
  upsert: async () => undefined,
  find: async () => undefined,
  findByUserCode: async () => undefined,
  findByUid: async () => undefined,
  consume: async () => undefined,
  destroy: async () => undefined,
  revokeByGrantId: async () => undefined,
};

const clientAdapter = ({ pool, clients, families, address }: AdapterParts): Adapter => ({
  ...noSessions,
  upsert: (id, payload) => clients.keep(id, payload as Readonly<Record<string, unknown>>, address()),
  find: (id) => clients.find(id) as Promise<AdapterPayload | undefined>,
  destroy: async (id) => {
    await clients.delete(id);
    // If we die here, the client can do nothing more, and the sweep ends what persons gave it.
    faultPoint('oauth:after-client-deleted');
    const { rows } = await pool.query<{ grant_id: string }>(
      `select grant_id::text from auth.oauth_artifacts where client_id = $1 and model = 'Grant' limit $2`,
      [id, maxGrantsOfClient],
    );
    for (const { grant_id } of rows) await families.end(grant_id, 'client');
    await pool.query('delete from auth.oauth_artifacts where client_id = $1', [id]);
  },
});

export const adapterFor =
  (parts: AdapterParts) =>
  (model: string): Adapter => {
    if (model === 'Session') return noSessions;
    if (model === 'Client') return clientAdapter(parts);
    return model === 'Interaction' ? new Interactions(parts) : new Artifacts(model, parts);
  };
