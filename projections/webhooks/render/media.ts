import type { mediaPublic } from '#schemas/http/webhook-events/media.ts';
import type { MediaEvent } from '#schemas/media.ts';
import type { Publisher } from './rule.ts';

/** An asset of the content library. The payload never shows where its file lies or where it came from. */

interface Asset {
  readonly clientId: string | null;
  /** As announced for the upload; null for an import, which was not probed yet. */
  readonly contentType: string | null;
  readonly bytes: number | null;
}

export const media: Publisher<typeof mediaPublic, MediaEvent, Asset> = {
  rules: {
    MediaUploadOffered: 'the caller has the answer; an asset begins when it is registered',
    MediaRegistered: [
      {
        type: 'media.registered',
        ofStream: ({ id, occurredAt }, { clientId, contentType, bytes }) => ({
          assetId: id,
          clientId,
          status: 'pending',
          contentType,
          bytes,
          registeredAt: occurredAt,
        }),
      },
    ],
    MediaImportRequested: [
      {
        type: 'media.registered',
        ofEvent: ({ id, data, occurredAt }) => ({
          assetId: id,
          clientId: data.clientId,
          status: 'pending',
          contentType: null,
          bytes: null,
          registeredAt: occurredAt,
        }),
      },
    ],
    MediaStored: 'an intermediate step; media.ready or media.failed reports the result',
    MediaProbed: 'an intermediate step; media.ready or media.failed reports the result',
    MediaRenditionsRequested: 'an intermediate step; each rendition is published when it is ready',
    MediaRenditionsPlanned: 'a source that fits needs no rendition; each rendition is published when it is ready',
    MediaRenditionReady: [
      {
        type: 'media.variant.ready',
        ofStream: ({ id, data }, { clientId }) => ({
          assetId: id,
          clientId,
          platform: data.platform,
          use: data.use,
          contentType: data.contentType,
          bytes: data.bytes,
          width: data.width,
          height: data.height,
          durationMs: data.durationMs,
        }),
      },
    ],
    MediaRenditionFailed: [
      {
        type: 'media.variant.failed',
        ofStream: ({ id, data: { platform, use, failure } }, { clientId }) => ({
          assetId: id,
          clientId,
          platform,
          use,
          failure,
        }),
      },
    ],
    // Of the stream, which names the client: an endpoint that is limited to clients gets those of their assets.
    MediaTranscoded: [{ type: 'media.ready', ofStream: ({ id }) => ({ assetId: id, status: 'transcoded' }) }],
    MediaFailed: [
      {
        type: 'media.failed',
        ofStream: ({ id, data }, { clientId }) => ({ assetId: id, clientId, status: 'failed', failure: data.failure }),
      },
    ],
    MediaDeleted: [
      {
        type: 'media.deleted',
        ofStream: ({ id, occurredAt }, { clientId }) => ({ assetId: id, clientId, deletedAt: occurredAt }),
      },
    ],
    MediaFilesRemoved: 'media.deleted has reported the deletion',
    MediaQuarantined: [
      {
        type: 'media.quarantined',
        ofStream: ({ id, data }, { clientId }) => ({
          assetId: id,
          clientId,
          status: 'quarantined',
          failure: data.failure,
        }),
      },
    ],
  },
  evolve: (subject, event) => {
    switch (event.type) {
      case 'MediaUploadOffered': {
        const { clientId, contentType, bytes } = event.data;
        return { clientId, contentType, bytes };
      }
      case 'MediaRegistered':
        return subject === null ? null : { ...subject, clientId: event.data.clientId };
      case 'MediaImportRequested':
        return { clientId: event.data.clientId, contentType: null, bytes: null };
      default:
        return subject;
    }
  },
};
