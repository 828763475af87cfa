import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import type { Transcoder } from '#contracts/ports/transcoder.ts';
import { type HealthDeps, watchConsumers } from '#runtime/consuming/lane-health.ts';
import type { MediaProcess } from './media.ts';

/** Checks for /readyz of what the worker needs. */
export const watch = (
  deps: HealthDeps,
  { store, log, blobs }: { readonly store: EventStore; readonly log: Log; readonly blobs: BlobStore },
  transcoder: Transcoder,
  { consumers }: MediaProcess,
): void => {
  const { readiness } = deps;
  readiness.add('store', async () => store.ping().then(() => null));
  readiness.add('log', async () => log.ping().then(() => null));
  readiness.add('media files', async () => blobs.ping().then(() => null));
  readiness.add('transcoder', () => transcoder.describe());
  watchConsumers(deps, 'media consumers', () => consumers);
};
