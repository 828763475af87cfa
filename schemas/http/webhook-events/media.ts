import { Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { MediaUse } from '#schemas/media.ts';
import { example, instants, Problem, perhapsClient, publicEvent } from './common.ts';

/** Events of an uploaded or imported asset and of its renditions per network. They hold no file’s address. */

const asset = { assetId: Uuid, ...perhapsClient };
const exampleAsset = { assetId: example.assetId, clientId: example.clientId };
const variant = { ...asset, platform: Platform, use: MediaUse };
const exampleVariant = { ...exampleAsset, platform: 'instagram' as const, use: 'feed' as const };
const Bytes = Type.Integer({ minimum: 0 });
const Pixels = Nullable(Type.Integer({ minimum: 1 }));
const ContentType = Type.String({ maxLength: 200 });

export const mediaPublic = {
  'media.registered': publicEvent(
    'An asset was uploaded or imported and is being probed.',
    Type.Object({
      ...asset,
      status: Type.Literal('pending'),
      contentType: Nullable(ContentType),
      bytes: Nullable(Bytes),
      registeredAt: Instant,
    }),
    { ...exampleAsset, status: 'pending', contentType: 'image/jpeg', bytes: 482_133, registeredAt: instants.asked },
  ),
  'media.ready': publicEvent(
    'Posts can use an asset now.',
    Type.Object({ assetId: Uuid, status: Type.Literal('transcoded') }),
    { assetId: example.assetId, status: 'transcoded' },
  ),
  'media.failed': publicEvent(
    'An asset could not be processed; sent once.',
    Type.Object({ ...asset, status: Type.Literal('failed'), failure: Problem }),
    { ...exampleAsset, status: 'failed', failure: { code: 'media_unreadable', message: 'The video has no picture.' } },
  ),
  'media.quarantined': publicEvent(
    'An asset is not of its claimed type, is hostile, or exceeds the limits; sent once.',
    Type.Object({ ...asset, status: Type.Literal('quarantined'), failure: Problem }),
    { ...exampleAsset, status: 'quarantined', failure: { code: 'media_type_mismatch', message: 'It is no image.' } },
  ),
  'media.deleted': publicEvent('An asset was deleted.', Type.Object({ ...asset, deletedAt: Instant }), {
    ...exampleAsset,
    deletedAt: instants.asked,
  }),
  'media.variant.ready': publicEvent(
    'A rendition for one network was produced; sent once.',
    Type.Object({
      ...variant,
      contentType: ContentType,
      bytes: Bytes,
      width: Pixels,
      height: Pixels,
      durationMs: Nullable(Type.Integer({ minimum: 0 })),
    }),
    { ...exampleVariant, contentType: 'image/jpeg', bytes: 301_772, width: 1080, height: 1350, durationMs: null },
  ),
  'media.variant.failed': publicEvent(
    'A rendition for one network could not be produced; sent once.',
    Type.Object({ ...variant, failure: Problem }),
    { ...exampleVariant, failure: { code: 'media_aspect_ratio', message: 'It is wider than the network shows.' } },
  ),
};
