import { Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { MediaFailure, MediaUse } from '#schemas/media.ts';
import { said } from '#schemas/published.ts';
import { example, instants, onceFor, perhapsClient, publicEvent } from './common.ts';

/** Events of an uploaded or imported asset and of its renditions per network. They hold no file’s address. */

const assetId = said(Uuid, 'Id of the asset.');
const asset = {
  assetId,
  clientId: said(perhapsClient.clientId, 'The client of the asset; null: posts of every client may use it.'),
};
const exampleAsset = { assetId: example.assetId, clientId: example.clientId };
const variant = {
  ...asset,
  platform: said(Platform, 'The network that the rendition is for.'),
  use: said(MediaUse, 'Where the network shows it.'),
};
const exampleVariant = { ...exampleAsset, platform: 'instagram' as const, use: 'feed' as const };
const Bytes = Type.Integer({ minimum: 0 });
const Pixels = Nullable(Type.Integer({ minimum: 1 }));
const ContentType = Type.String({ maxLength: 200 });
const Status = <const S extends string>(status: S) =>
  Type.Literal(status, { description: 'The status of the asset at this event.' });
const once = onceFor('asset');
const onceForUse = onceFor('network and use of an asset');

export const mediaPublic = {
  'media.registered': publicEvent(
    'A caller registered an uploaded file, or asked the service to import one; the service examines it next.',
    Type.Object({
      ...asset,
      status: Status('pending'),
      contentType: said(Nullable(ContentType), 'As announced for the upload; null for an import, not fetched yet.', {
        examples: ['image/jpeg'],
      }),
      bytes: said(
        Nullable(Bytes),
        'Length in bytes, as announced for the upload; null for an import, not fetched yet.',
      ),
      registeredAt: said(Instant, 'When the caller registered it or asked for the import.'),
    }),
    { ...exampleAsset, status: 'pending', contentType: 'image/jpeg', bytes: 482_133, registeredAt: instants.asked },
  ),
  'media.ready': publicEvent(
    'The service has prepared an asset: posts can use it now.',
    Type.Object({ assetId, status: Status('transcoded') }),
    { assetId: example.assetId, status: 'transcoded' },
  ),
  'media.failed': publicEvent(
    `The service could not process an asset. ${once}`,
    Type.Object({
      ...asset,
      status: Status('failed'),
      failure: said(MediaFailure, 'Why the asset cannot be used.'),
    }),
    { ...exampleAsset, status: 'failed', failure: { code: 'media_unreadable', message: 'The video has no picture.' } },
  ),
  'media.quarantined': publicEvent(
    `The service locked an asset away: it is not of its claimed type, is hostile, or exceeds the limits. ${once}`,
    Type.Object({
      ...asset,
      status: Status('quarantined'),
      failure: said(MediaFailure, 'Why the asset cannot be used.'),
    }),
    { ...exampleAsset, status: 'quarantined', failure: { code: 'media_type_mismatch', message: 'It is no image.' } },
  ),
  'media.deleted': publicEvent(
    'A caller deleted an asset.',
    Type.Object({ ...asset, deletedAt: said(Instant, 'When the caller deleted it.') }),
    { ...exampleAsset, deletedAt: instants.asked },
  ),
  'media.variant.ready': publicEvent(
    `The service made a rendition of an asset for one network. ${onceForUse}`,
    Type.Object({
      ...variant,
      contentType: said(ContentType, 'The type of the rendition.', { examples: ['image/jpeg'] }),
      bytes: said(Bytes, 'Length of the rendition in bytes.'),
      width: said(Pixels, 'Width in pixels, as displayed; null where it has none.'),
      height: said(Pixels, 'Height in pixels, as displayed; null where it has none.'),
      durationMs: said(Nullable(Type.Integer({ minimum: 0 })), 'Duration in milliseconds; null for a picture.'),
    }),
    { ...exampleVariant, contentType: 'image/jpeg', bytes: 301_772, width: 1080, height: 1350, durationMs: null },
  ),
  'media.variant.failed': publicEvent(
    `The service could not make a rendition of an asset for one network. ${onceForUse}`,
    Type.Object({ ...variant, failure: said(MediaFailure, 'Why there is no rendition.') }),
    { ...exampleVariant, failure: { code: 'media_aspect_ratio', message: 'It is wider than the network shows.' } },
  ),
};
