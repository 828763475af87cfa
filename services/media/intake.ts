import type { PoolClient } from 'pg';
import type { Applied } from '#runtime/consuming/options.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { MediaEvent } from '#schemas/media.ts';
import { type Asked, enqueue } from './jobs.ts';

/** Turns events about assets into jobs, and into offers whose upload may have to be deleted later. */

export const mediaGroup = 'media';

export const subscribedTypes: readonly MediaEvent['type'][] = [
  'MediaUploadOffered',
  'MediaRegistered',
  'MediaImportRequested',
  'MediaRenditionsRequested',
  'MediaDeleted',
];

export const onEvents = async (
  tx: PoolClient,
  events: readonly DecodedEvent[],
  wake: () => void,
): Promise<Applied | null> => {
  const asked: Asked[] = [];
  for (const event of events) {
    const assetId = event.stream.slice('media-'.length);
    const { type, data } = { type: event.type, data: event.data } as unknown as MediaEvent;
    if (type === 'MediaUploadOffered') {
      await tx.query(
        `insert into ops.media_offers (asset_id, key, due_at) values ($1, $2, $3) on conflict (asset_id) do nothing`,
        [assetId, data.key, data.expiresAt],
      );
      continue;
    }
    const { workspaceId } = event.metadata;
    const [urgent, download] = [type === 'MediaRenditionsRequested', type === 'MediaImportRequested'];
    asked.push({ assetId, workspaceId, revision: event.revision, urgent, download });
  }
  await enqueue(tx, asked);
  return asked.length === 0 ? null : { committed: wake, rolledBack: () => undefined };
};
