import type { Pool } from 'pg';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';

/**
 * Counts the bytes of media of each customer: a workspace and its sandbox twin together. The api counts the announced
 * bytes of an upload before it hands out the address, under the customer's lock, so that concurrent uploads cannot pass
 * the quota. The media worker counts the real bytes, renditions included, when its work on an asset has ended. Each
 * call sets the count of an asset and never adds to it, so that a repeat after a crash changes nothing.
 */

export const migrateMediaUsage = (pool: Pool): Promise<void> =>
  withMigrationLock(pool, async (tx) => {
    await tx.query(`
      create schema if not exists ops;
      create table if not exists ops.media_customers (
        customer_id uuid primary key,
        -- Sum of media_usage.bytes.
        bytes int8 not null default 0,
        -- Null: the default one.
        quota int8
      );
      create table if not exists ops.media_usage (
        asset_id uuid primary key,
        customer_id uuid not null,
        bytes int8 not null,
        -- For an upload that may never arrive: when a worker checks it. Null: it has arrived.
        reserved_until timestamptz
      );
      create index if not exists media_usage_reserved on ops.media_usage (reserved_until) where reserved_until is not null;
      -- Every caller locks the customer's row first, so the sum holds. False: the quota would be passed.
      create or replace function ops.use_media(
        asset uuid, customer uuid, wanted int8, standard int8, until timestamptz, forced bool
      ) returns bool language plpgsql as $$
      declare
        held ops.media_customers;
        before int8;
      begin
        insert into ops.media_customers (customer_id) values (customer) on conflict do nothing;
        select * into held from ops.media_customers where customer_id = customer for update;
        select bytes into before from ops.media_usage where asset_id = asset;
        before := coalesce(before, 0);
        if not forced and wanted > before and held.bytes - before + wanted > coalesce(held.quota, standard) then
          return false;
        end if;
        if wanted = 0 and until is null then
          delete from ops.media_usage where asset_id = asset;
        else
          insert into ops.media_usage (asset_id, customer_id, bytes, reserved_until)
          values (asset, customer, wanted, until)
          on conflict (asset_id) do update
            set customer_id = excluded.customer_id, bytes = excluded.bytes, reserved_until = excluded.reserved_until;
        end if;
        return true;
      end $$;
      -- As use_media, if the count is still the one that its caller saw (null: none); a later count is newer.
      create or replace function ops.correct_media(asset uuid, customer uuid, seen int8, counted int8)
      returns void language plpgsql as $$
      begin
        insert into ops.media_customers (customer_id) values (customer) on conflict do nothing;
        perform from ops.media_customers where customer_id = customer for update;
        if seen is null then
          insert into ops.media_usage (asset_id, customer_id, bytes)
          select asset, customer, counted where counted > 0 on conflict do nothing;
        elsif counted = 0 then
          delete from ops.media_usage where asset_id = asset and bytes = seen and reserved_until is null;
        else
          update ops.media_usage set bytes = counted
          where asset_id = asset and bytes = seen and reserved_until is null;
        end if;
      end $$;
      -- The only writer of the sums: any change of a row, also one by hand, changes its customer's sum.
      create or replace function ops.sum_media() returns trigger language plpgsql as $$
      begin
        if tg_op <> 'INSERT' then
          update ops.media_customers set bytes = bytes - old.bytes where customer_id = old.customer_id;
        end if;
        if tg_op <> 'DELETE' then
          insert into ops.media_customers as c (customer_id, bytes) values (new.customer_id, new.bytes)
          on conflict (customer_id) do update set bytes = c.bytes + excluded.bytes;
        end if;
        return null;
      end $$;
      create or replace trigger media_usage_sum after insert or delete or update of bytes, customer_id
        on ops.media_usage for each row execute function ops.sum_media();
      -- Position of the walk over the library that corrects wrong counts.
      create table if not exists ops.media_recount (
        only_one bool primary key default true check (only_one),
        -- The last asset that was checked; null: the walk begins.
        after uuid,
        next_at timestamptz not null default now()
      );
      insert into ops.media_recount default values on conflict do nothing`);
  });

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
