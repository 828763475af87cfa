import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import type { Transcoder } from '#contracts/ports/transcoder.ts';
import { stoppedLanes } from '#runtime/consume.ts';
import type { Readiness } from '#runtime/telemetry.ts';
import type { MediaProcess } from './media.ts';

/** What the worker cannot do without. */
export const watch = (
  readiness: Readiness,
  { store, log, blobs }: { readonly store: EventStore; readonly log: Log; readonly blobs: BlobStore },
  transcoder: Transcoder,
  { consumers }: MediaProcess,
): void => {
  readiness.add('store', async () => store.ping().then(() => null));
  readiness.add('log', async () => log.ping().then(() => null));
  readiness.add('media files', async () => blobs.ping().then(() => null));
  readiness.add('transcoder', () => transcoder.describe());
  readiness.add('media consumers', async () => {
    const stopped = stoppedLanes(consumers);
    if (stopped.length > 0) throw new Error(stopped.join('; '));
    return null;
  });
};
