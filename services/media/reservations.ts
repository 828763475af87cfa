import type { BlobStore } from '#contracts/ports/blob-store.ts';
import { bytesOf, media } from '#domain/media.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { MediaUsage } from '#services/workflows/media-usage.ts';

/**
 * Settles quota that was reserved for a file that may never come: the caller did not upload it, or the api crashed
 * before it offered the upload. An unregistered upload keeps its reservation until the upload is deleted.
 */

const batch = 100;
/** Hours until the reservation of a file on its way is checked again. */
const laterHours = 1;

export interface ReservationsDeps {
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
