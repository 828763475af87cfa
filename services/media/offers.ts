import type { Pool } from 'pg';
import { pause } from '#contracts/base/pause.ts';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import { bytesOf, media } from '#domain/media.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import type { ImportUrls } from '#services/workflows/import-urls.ts';
import type { MediaUsage } from '#services/workflows/media-usage.ts';

/** Hours after which an address that no import names is destroyed: the api crashed before it stored the import. */
const maxHours = 1;

interface ImportsDeps {
  readonly store: DomainStore;
  readonly importUrls: ImportUrls;
}

/** @returns how many addresses it destroyed */
export const clearImports = async ({ store, importUrls }: ImportsDeps, signal: AbortSignal): Promise<number> => {
  let cleared = 0;
  for (let more = true; more && !signal.aborted; ) {
    const rows = await importUrls.old(maxHours, batch);
    const needed: string[] = [];
    for (const { id, assetId } of rows) if (await isNeeded(store, id, assetId)) needed.push(id);
    const gone = rows.flatMap(({ id }) => (needed.includes(id) ? [] : [id]));
    await importUrls.drop(gone);
    await importUrls.putBack(needed);
    cleared += gone.length;
    more = rows.length === batch;
  }
  return cleared;
};

const isNeeded = async (store: DomainStore, id: string, assetId: string): Promise<boolean> => {
  const { state } = await store.load(media, assetId);
  if (state.status !== 'transcoding' || state.stored !== null) return false;
  return state.origin.kind === 'import' && state.origin.source === id;
};

/** Hours until the reservation of a file on its way is checked again. */
const laterHours = 1;

interface ReservationsDeps {
  readonly store: DomainStore;
  readonly blobs: BlobStore;
  readonly usage: MediaUsage;
}

/** @returns how many it has settled */
export const clearReservations = async (deps: ReservationsDeps, signal: AbortSignal): Promise<number> => {
  const { store, blobs, usage } = deps;
  let settled = 0;
  for (let more = true; more && !signal.aborted; ) {
    const rows = await usage.overdue(batch);
    for (const { assetId, customer } of rows) {
      const { state } = await store.load(media, assetId);
      const isOnItsWay =
        state.status === 'transcoding' || (state.status === 'offered' && (await blobs.head(state.offer.key)) !== null);
      if (isOnItsWay) await usage.keep(assetId, laterHours);
      else await usage.settle(assetId, customer, bytesOf(state));
      settled += isOnItsWay ? 0 : 1;
    }
    more = rows.length === batch;
  }
  return settled;
};

const everyMs = 600_000;
const batch = 100;
const dayMs = 86_400_000;
/** How long an offer without an upload is checked after its first URL expired, milliseconds. */
const keptMs = 30 * dayMs;

interface OffersDeps {
  readonly pool: Pool;
  readonly store: DomainStore;
  readonly blobs: BlobStore;
  readonly logger: Logger;
  /** The wall clock, milliseconds. Default `Date.now`. */
  readonly now?: () => number;
}

/**
 * Deletes uploads that no caller registered a day after it found them, and uploads that came again through a URL that
 * was still valid after the first upload was stored. A repeated offer gives a fresh URL until the asset is registered,
 * so the worker checks each offer once a day until its URLs have expired. The row changes after the deletion, so a
 * crash in between repeats the deletion.
 * @returns how many it settled: uploads deleted, and offers that need no further check
 */
export const clearOffers = async (deps: OffersDeps, signal: AbortSignal): Promise<number> => {
  let cleared = 0;
  for (let more = true; more && !signal.aborted; ) {
    const { rows } = await deps.pool.query<Row>(
      `select asset_id::text as id, key, seen_etag as "seenEtag"
       from ops.media_offers where due_at <= now() order by due_at limit $1`,
      [batch],
    );
    for (const row of rows) {
      const { gone, again } = await check(deps, row);
      if (gone || again === null) cleared += 1;
      if (again === null) await deps.pool.query('delete from ops.media_offers where asset_id = $1', [row.id]);
      else await deps.pool.query(againSql, [row.id, again.seenEtag]);
    }
    more = rows.length === batch;
  }
  return cleared;
};

const againSql = `update ops.media_offers set due_at = now() + interval '1 day', seen_etag = $2 where asset_id = $1`;

interface Row {
  readonly id: string;
  readonly key: string;
  readonly seenEtag: string | null;
}

interface CheckedOffer {
  /** Whether an upload was deleted. */
  readonly gone: boolean;
  /** Null: the offer needs no further check. */
  readonly again: { readonly seenEtag: string | null } | null;
}

const check = async (
  { store, blobs, now = Date.now }: OffersDeps,
  { id, key, seenEtag }: Row,
): Promise<CheckedOffer> => {
  const { state, events } = await store.load(media, id);
  const none = { seenEtag: null };
  if (state.status === 'offered') {
    const found = await blobs.head(key);
    if (found === null) {
      const over = now() - Date.parse(state.offer.expiresAt) > keptMs;
      return { gone: false, again: over ? null : none };
    }
    // The upload may be new, and its caller may register it in a moment.
    if (found.etag !== seenEtag) return { gone: false, again: { seenEtag: found.etag } };
    await blobs.delete(key);
    return { gone: true, again: none };
  }
  // The upload was registered just now, and the media worker still needs it.
  if (state.status === 'transcoding' && state.stored === null) return { gone: false, again: none };
  await blobs.delete(key);
  // A URL that was handed out right before the registration or the deletion is still valid.
  const ended = events.find(({ type }) => type === 'MediaRegistered' || type === 'MediaDeleted')?.metadata.occurredAt;
  const late = ended !== undefined && now() - Date.parse(ended) < dayMs;
  return { gone: false, again: late ? none : null };
};

/** Clears offers, addresses of imports and quota reservations whose caller never came back. */
export const runOffers = async (
  deps: OffersDeps & ImportsDeps & ReservationsDeps,
  signal: AbortSignal,
): Promise<void> => {
  while (!signal.aborted) {
    try {
      const cleared = await clearOffers(deps, signal);
      if (cleared > 0) deps.logger.info({ offers: cleared }, 'expired offers were deleted');
      const addresses = await clearImports(deps, signal);
      if (addresses > 0) deps.logger.info({ addresses }, 'addresses that no import names were destroyed');
      const reservations = await clearReservations(deps, signal);
      if (reservations > 0) deps.logger.info({ reservations }, 'quota reservations were settled');
    } catch (error) {
      deps.logger.warn({ err: error }, 'leftovers of uploads and imports could not be deleted');
    }
    await pause(everyMs, signal);
  }
};
