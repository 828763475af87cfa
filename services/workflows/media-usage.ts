import type { Pool } from 'pg';

/**
 * Counts the bytes of media of each customer: a workspace and its sandbox twin together. The api counts the announced
 * bytes of an upload before it hands out the address, under the customer's lock, so that concurrent uploads cannot pass
 * the quota. The media worker counts the real bytes, renditions included, when its work on an asset has ended. Each
 * call sets the count of an asset and never adds to it, so that a repeat after a crash changes nothing.
 */

export class MediaUsage {
  readonly #pool: Pool;
  readonly #quota: number;

  /** @param quota bytes of a customer without a quota of its own */
  constructor(pool: Pool, quota: number) {
    this.#pool = pool;
    this.#quota = quota;
  }

  /**
   * Sets the bytes that an asset counts for. If the sum would pass the quota, nothing changes and the answer is false.
   * A count that is not higher than before is never refused.
   * @param until when a worker checks whether the reserved file has arrived; null: the file is here
   */
  async reserve(assetId: string, customer: string, bytes: number, until: Date | null): Promise<boolean> {
    const { rows } = await this.#pool.query<{ ok: boolean }>('select ops.use_media($1, $2, $3, $4, $5, false) as ok', [
      assetId,
      customer,
      bytes,
      this.#quota,
      until,
    ]);
    return rows[0]?.ok === true;
  }

  /** Sets the count of a stored asset without regard to the quota; 0: the asset is gone. */
  async set(assetId: string, customer: string, bytes: number): Promise<void> {
    await this.#pool.query('select ops.use_media($1, $2, $3, 0, null, true)', [assetId, customer, bytes]);
  }

  /**
   * Bytes that these assets count for; `reserved`: a worker checks later which file has arrived. Assets without an
   * entry are not counted.
   */
  async counts(assetIds: readonly string[]): Promise<ReadonlyMap<string, number | 'reserved'>> {
    const { rows } = await this.#pool.query<{ id: string; bytes: string; reserved: boolean }>(
      `select asset_id::text as id, bytes, reserved_until is not null as reserved
       from ops.media_usage where asset_id = any($1::uuid[])`,
      [assetIds],
    );
    return new Map(rows.map(({ id, bytes, reserved }) => [id, reserved ? 'reserved' : Number(bytes)]));
  }

  /** @param seen the result of `counts` before the asset was read; null: the asset was not counted */
  async correct(assetId: string, customer: string, seen: number | null, bytes: number): Promise<void> {
    await this.#pool.query('select ops.correct_media($1, $2, $3, $4)', [assetId, customer, seen, bytes]);
  }

  async of(customer: string): Promise<{ readonly bytes: number; readonly quota: number }> {
    const { rows } = await this.#pool.query<{ bytes: string; quota: string | null }>(
      'select bytes, quota from ops.media_customers where customer_id = $1',
      [customer],
    );
    const [row] = rows;
    return { bytes: Number(row?.bytes ?? 0), quota: Number(row?.quota ?? this.#quota) };
  }

  /** For the administrator. @param quota bytes; null: the installation's own */
  async setQuota(customer: string, quota: number | null): Promise<void> {
    await this.#pool.query(
      `insert into ops.media_customers (customer_id, quota) values ($1, $2)
       on conflict (customer_id) do update set quota = excluded.quota`,
      [customer, quota],
    );
  }

  /** Assets whose upload should have come by now. */
  async overdue(limit: number): Promise<readonly { readonly assetId: string; readonly customer: string }[]> {
    const { rows } = await this.#pool.query<{ assetId: string; customer: string }>(
      `select asset_id::text as "assetId", customer_id::text as customer from ops.media_usage
       where reserved_until < now() order by reserved_until limit $1`,
      [limit],
    );
    return rows;
  }

  /** As `set`, unless the room was reserved again meanwhile, because the address was handed out again. */
  async settle(assetId: string, customer: string, bytes: number): Promise<void> {
    await this.#pool.query(
      `select ops.use_media($1, $2, $3, 0, null, true) from ops.media_usage
       where asset_id = $1 and reserved_until < now()`,
      [assetId, customer, bytes],
    );
  }

  /**
   * Keeps the count of an upload that has arrived or may arrive: a worker checks again after so many hours; null: no
   * further check.
   */
  async keep(assetId: string, hours: number | null): Promise<void> {
    await this.#pool.query(
      `update ops.media_usage set reserved_until = now() + $2 * interval '1 hour' where asset_id = $1`,
      [assetId, hours],
    );
  }
}
