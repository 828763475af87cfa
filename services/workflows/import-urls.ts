import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { MissingKey } from '#contracts/ports/data-keys.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';

/**
 * Whole addresses of imports whose file is not stored yet. The query of an address is often a credential, and an event
 * cannot be deleted. So the event has the address without the query, and this table keeps the whole address, encrypted,
 * until the download has ended. A row that no event names, because its caller crashed, is found by its age.
 */

export class ImportUrls {
  readonly #pool: Pool;
  readonly #secrets: Secrets;

  constructor(pool: Pool, secrets: Secrets) {
    this.#pool = pool;
    this.#secrets = secrets;
  }

  /**
   * Runs before the append of the event that names the row, so that a worker which sees the event finds the address.
   */
  async keep(id: string, assetId: string, url: string): Promise<void> {
    const version = this.#secrets.current;
    const nonce = randomBytes(12);
    const key = this.#secrets.subKey('import-urls', version);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(assetId));
    const text = Buffer.concat([cipher.update(url, 'utf8'), cipher.final()]);
    const sealed = Buffer.concat([nonce, cipher.getAuthTag(), text]);
    const sql = 'insert into ops.media_imports (id, asset_id, key_version, sealed) values ($1, $2, $3, $4)';
    await this.#pool.query(sql, [id, assetId, version, sealed]);
  }

  /** Null: the address was destroyed. @throws MissingKey */
  async find(id: string): Promise<string | null> {
    const { rows } = await this.#pool.query<{ assetId: string; version: string; sealed: Buffer }>(
      'select asset_id::text as "assetId", key_version as version, sealed from ops.media_imports where id = $1',
      [id],
    );
    const [row] = rows;
    if (row === undefined) return null;
    const { assetId, version, sealed } = row;
    try {
      const key = this.#secrets.subKey('import-urls', version);
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12)).setAAD(Buffer.from(assetId));
      decipher.setAuthTag(sealed.subarray(12, 28));
      return Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString('utf8');
    } catch (cause) {
      throw new MissingKey(`SECRET_KEY ${version} does not open the address of an import`, { cause });
    }
  }

  /** The download of this asset has ended. */
  async destroy(assetId: string): Promise<void> {
    await this.#pool.query('delete from ops.media_imports where asset_id = $1', [assetId]);
  }

  /** Rows that are older than any call lasts, the oldest first. */
  async old(hours: number, limit: number): Promise<readonly { readonly id: string; readonly assetId: string }[]> {
    const { rows } = await this.#pool.query<{ id: string; assetId: string }>(
      `select id::text, asset_id::text as "assetId" from ops.media_imports
       where noted_at < now() - $1 * interval '1 hour' order by noted_at limit $2`,
      [hours, limit],
    );
    return rows;
  }

  async drop(ids: readonly string[]): Promise<void> {
    await this.#pool.query('delete from ops.media_imports where id = any($1::uuid[])', [ids]);
  }

  /** Marks a row as checked and still needed. */
  async putBack(ids: readonly string[]): Promise<void> {
    await this.#pool.query('update ops.media_imports set noted_at = now() where id = any($1::uuid[])', [ids]);
  }
}
