import type { Pool } from 'pg';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { box, unbox } from '../box.ts';

/** Registered clients. A client may read its own registration (RFC 7592), so the secret is encrypted and not hashed. */

type Metadata = Readonly<Record<string, unknown>>;

export class Clients {
  readonly #pool: Pool;
  readonly #secrets: Secrets;

  constructor(pool: Pool, secrets: Secrets) {
    this.#pool = pool;
    this.#secrets = secrets;
  }

  async keep(id: string, { client_secret: secret, ...metadata }: Metadata, from: string | null): Promise<void> {
    const boxed = typeof secret === 'string' ? box(this.#secrets, 'client-secrets', id, secret) : null;
    await this.#pool.query(
      `insert into auth.oauth_clients (client_id, metadata, key_version, sealed, created_from) values ($1, $2, $3, $4, $5)
       on conflict (client_id) do update
       set metadata = excluded.metadata, key_version = excluded.key_version, sealed = excluded.sealed`,
      [id, metadata, boxed?.version ?? null, boxed?.sealed ?? null, from],
    );
  }

  /** @throws MissingKey */
  async find(id: string): Promise<Record<string, unknown> | undefined> {
    // No row has it, and the database takes no such text.
    if (id.includes('\0')) return undefined;
    const { rows } = await this.#pool.query<{ metadata: Metadata; version: string | null; sealed: Buffer | null }>({
      name: 'oauth-client',
      text: 'select metadata, key_version as version, sealed from auth.oauth_clients where client_id = $1',
      values: [id],
    });
    const [row] = rows;
    if (row === undefined) return undefined;
    const { metadata, version, sealed } = row;
    if (version === null || sealed === null) return metadata;
    return { ...metadata, client_secret: unbox(this.#secrets, 'client-secrets', id, { version, sealed }) };
  }

  /** @returns whether it existed */
  async delete(id: string): Promise<boolean> {
    const { rowCount } = await this.#pool.query('delete from auth.oauth_clients where client_id = $1', [id]);
    return rowCount === 1;
  }
}
