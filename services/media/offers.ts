import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import { media } from '#domain/media.ts';
import type { DomainStore } from '#runtime/domain-store.ts';
import type { Logger } from '#runtime/telemetry.ts';

/**
 * Uploads that nobody registered, and those that came again through a URL that was still valid after the first had been
 * stored, are deleted a day after that URL has expired. The row goes last: a death in between repeats the deletion.
 */

const everyMs = 600_000;
const batch = 100;

export interface OffersDeps {
  readonly pool: Pool;
  readonly store: DomainStore;
  readonly blobs: BlobStore;
  readonly logger: Logger;
}

/** Answers how many it cleared away. */
export const clearOffers = async ({ pool, store, blobs }: OffersDeps, signal: AbortSignal): Promise<number> => {
  let cleared = 0;
  for (let more = true; more && !signal.aborted; ) {
    const { rows } = await pool.query<{ id: string; key: string }>(
      'select asset_id::text as id, key from ops.media_offers where due_at <= now() order by due_at limit $1',
      [batch],
    );
    for (const { id, key } of rows) {
      const { state } = await store.load(media, id);
      // Registered so late that its worker still needs the upload.
      const needed = state.status === 'transcoding' && state.stored === null;
      if (!needed) await blobs.delete(key);
      const sql = needed
        ? "update ops.media_offers set due_at = now() + interval '1 day' where asset_id = $1"
        : 'delete from ops.media_offers where asset_id = $1';
      await pool.query(sql, [id]);
      if (!needed) cleared += 1;
    }
    more = rows.length === batch;
  }
  return cleared;
};

export const runOffers = async (deps: OffersDeps, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    try {
      const cleared = await clearOffers(deps, signal);
      if (cleared > 0) deps.logger.info({ uploads: cleared }, 'expired uploads were deleted');
    } catch (error) {
      deps.logger.warn({ err: error }, 'expired uploads could not be deleted');
    }
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
  }
};
