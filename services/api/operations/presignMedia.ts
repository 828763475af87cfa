import { type MediaCommand, media } from '#domain/media.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { MediaPresign, MediaUpload } from '#schemas/http/media.ts';
import { unavailable } from '../media/blobs.ts';
import { fileNameOf, requireLiveClient, requireRoom, requireTakenType } from '../media/checks.ts';
import { presignExample } from '../media/examples.ts';
import { operation } from '../operation.ts';

/** How long after the offer an upload may begin, milliseconds. */
const uploadMs = 3_600_000;

/**
 * Reserves room, then appends the offer. If we die before the append, the key is free, and the room is released once
 * the address would have expired. If we die after the append, a repeat signs an address for the same place. Longer than
 * most operations: half of it is what it promises.
 */
export const presignMedia = operation({
  id: 'presignMedia',
  method: 'POST',
  path: '/media/presign',
  tag: 'media',
  summary: 'Get an address to upload a file to',
  description:
    'PUT the file to `url` with `headers` within the hour, then register the asset. Until the asset is registered, a repeat with the same Idempotency-Key answers the same asset with a fresh address. The length counts at once against the quota of the workspace and its sandbox. Posters and renditions count when they are made, and may pass that quota.',
  scope: 'media.manage',
  idempotent: 'accepted',
  cost: 1,
  body: MediaPresign,
  answer: MediaUpload,
  codes: ['client_archived', 'media_quota_exceeded'],
  example: presignExample,
  handle: async (call) => {
    const { deps, body, workspaceId, now } = call;
    const expiresAt = new Date(Date.parse(now) + uploadMs);
    const { id, state, replayed } = await call.stream(media).create({
      command: async (id): Promise<MediaCommand> => {
        const contentType = requireTakenType(body.contentType, body.bytes);
        await requireLiveClient(call, body.clientId ?? null);
        return {
          type: 'Offer',
          fileName: fileNameOf(body.fileName),
          clientId: body.clientId ?? null,
          folder: body.folder ?? null,
          contentType,
          bytes: body.bytes,
          key: `${workspaceId}/${id}/upload`,
          expiresAt: expiresAt.toISOString(),
        };
      },
      reserve: (id) => requireRoom(call, id, body.bytes, expiresAt),
    });
    if (state.status !== 'offered') throw new BrokenInvariant('an asset that was just offered has no offer');
    const { key, contentType, bytes } = state.offer;
    const upload = { object: 'media_upload', assetId: id, key };
    // A registered asset gets no new address, because the caller could then replace a file that was already checked.
    const registered = replayed && (await deps.store.load(media, id)).state.status !== 'offered';
    if (registered) return { data: { ...upload, url: null, headers: {}, expiresAt: null }, replayed };
    // The room of the offer may have been released when the former address expired.
    if (replayed) await requireRoom(call, id, bytes, expiresAt);
    const { url, headers } = await unavailable(() => deps.blobs.presignPut(key, { contentType, bytes, expiresAt }));
    return { data: { ...upload, url, headers, expiresAt: expiresAt.toISOString() }, replayed };
  },
});
