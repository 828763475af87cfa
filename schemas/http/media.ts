import { Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { kindWords, MediaFailure, MediaKind, MediaUse, mediaKinds } from '#schemas/media.ts';
import { ClosedEnum, Named, OpenEnum, said } from '#schemas/published.ts';
import { Maybe, PlatformInput, paging, QueryText, stamps, UuidInput, withoutNul } from './common.ts';

/** Assets of the content library, as callers send them and see them. */

const Folder = Type.String({
  minLength: 1,
  maxLength: 200,
  ...withoutNul,
  description: 'A label of your own; a filter matches it exactly.',
  examples: ['Winter'],
});
const Name = Type.String({
  minLength: 1,
  maxLength: 255,
  description:
    'The file name under which the asset is listed and downloaded. Absent: that of the upload, or the last part of the address.',
  examples: ['winter.png'],
});
const AltText = Type.String({
  maxLength: 2000,
  description:
    'Text for people who do not see the picture. Posts use it where their `mediaAltTexts` have none for the asset.',
});
const Bytes = Type.Integer({ minimum: 0 });
const Side = Nullable(Type.Integer({ minimum: 1 }));
const Duration = said(
  Nullable(Type.Integer({ minimum: 0 })),
  'Duration in milliseconds; null for a picture, and while it is unknown.',
);
const sized = {
  width: said(Side, 'Width in pixels, as displayed: with its rotation applied. Null while it is unknown.'),
  height: said(Side, 'Height in pixels, as displayed: with its rotation applied. Null while it is unknown.'),
  durationMs: Duration,
};
const presigned = 'Presigned: its holder may read the file for 15 minutes; repeat the call for a new one.';
const owner = 'The client that may use the asset in its posts.';

export const mediaStatuses = ['pending', 'transcoding', 'transcoded', 'failed', 'quarantined'] as const;
const Status = OpenEnum(
  'MediaStatus',
  mediaStatuses,
  'pending: an upload that is not registered yet; transcoding: the service fetches, examines or prepares the file; transcoded: posts can use it; failed: the file could not be processed; quarantined: it is not of its claimed type, is hostile, or exceeds the limits.',
);
export const variantStatuses = ['preparing', 'ready', 'failed', 'not_needed'] as const;
const Readiness = OpenEnum(
  'MediaReadiness',
  variantStatuses,
  'Whether a network can be given the file. preparing: the rendition is being made; ready: it is made; failed: it cannot be made; not_needed: the network accepts the source unchanged, or takes no files of this kind at all.',
);

export const MediaPresign = Named(
  'MediaPresign',
  Type.Object(
    {
      fileName: Type.String({
        minLength: 1,
        maxLength: 255,
        description: 'The file name; leading folders are dropped.',
        examples: ['winter.png'],
      }),
      contentType: Type.String({
        minLength: 1,
        maxLength: 200,
        description:
          'The PUT must carry exactly this type, in lower case. Taken are images (JPEG, PNG, WebP, AVIF, HEIC, TIFF), GIF, videos (MP4, QuickTime, WebM, Matroska, AVI, MPEG-TS) and PDF; the refusal of another type lists them all.',
        examples: ['image/png'],
      }),
      bytes: Type.Integer({
        minimum: 1,
        description:
          'The PUT must have exactly this length. At most 100 MiB for an image, gif or document; 5 GiB for a video.',
        examples: [482_133],
      }),
      clientId: Maybe(said(UuidInput, `${owner} Absent: posts of every client may use it.`)),
      folder: Maybe(Folder),
    },
    { description: 'The file that will be uploaded.' },
  ),
);

/** Members that a caller gives at registration and at import. */
const described = {
  name: Maybe(Name),
  clientId: Maybe(
    said(
      UuidInput,
      `${owner} Absent: the client that was named for the upload, else posts of every client may use it.`,
    ),
  ),
  folder: Maybe(Folder),
  altText: Maybe(AltText),
  platforms: Maybe(
    Type.Array(PlatformInput, {
      maxItems: 11,
      description:
        'Networks whose renditions are made at once. Absent: those on which the client has a connected account; without a client, those on which any client has one. A rendition that a post lacks is made when the post needs it.',
    }),
  ),
};

export const MediaRegister = Named(
  'MediaRegister',
  Type.Object(
    { assetId: said(UuidInput, 'The asset that POST /media/presign answered.'), ...described },
    {
      description:
        'An uploaded file as an asset. An absent `name`, `clientId` or `folder` keeps what was named for the upload.',
    },
  ),
);
export const MediaImport = Named(
  'MediaImport',
  Type.Object(
    {
      url: Type.String({
        minLength: 1,
        maxLength: 2048,
        description: 'A public https address; the file is fetched once.',
        examples: ['https://cdn.example/photos/winter.png'],
      }),
      ...described,
      clientId: Maybe(said(UuidInput, `${owner} Absent: posts of every client may use it.`)),
    },
    { description: 'A file at an address as an asset.' },
  ),
);

export const MediaQuery = Type.Object({
  ...paging,
  kind: Maybe(said(ClosedEnum('MediaKindInput', mediaKinds, kindWords), 'Only files of this kind.')),
  folder: Maybe(said(Folder, 'Only assets with exactly this label.')),
  clientId: Maybe(said(UuidInput, 'Only assets of this client.')),
  search: Maybe(QueryText('Part of the name, ignoring case.')),
});

const Variant = Named(
  'MediaVariant',
  Type.Object(
    {
      platform: said(Platform, 'The network that the file is for.'),
      use: said(MediaUse, 'Where the network shows it.'),
      status: said(Readiness, 'Whether the file can be given to the network.'),
      contentType: said(Nullable(Type.String()), 'The type of the file; null unless it is ready or not needed.', {
        examples: ['image/jpeg'],
      }),
      ...sized,
      bytes: said(Nullable(Bytes), 'Length of the file in bytes; null unless it is ready or not needed.'),
      url: said(
        Nullable(Type.String()),
        `Address of the file, of the source where no rendition is needed; null unless it is ready or not needed. ${presigned}`,
      ),
      failure: said(Nullable(MediaFailure), 'Why the rendition cannot be made; null where it can.'),
    },
    { description: 'The file as one network is given it for one use.' },
  ),
);

export const Media = Named(
  'Media',
  Type.Object(
    {
      id: said(Uuid, 'Id of the asset: the value for `mediaIds` of a post.'),
      object: Type.Literal('media', { description: 'The kind of resource.' }),
      status: said(Status, 'Where the asset stands between its upload and its use.'),
      publishable: Type.Boolean({ description: 'True: a post may use it.' }),
      kind: said(Nullable(MediaKind), 'The kind of the file; null for an import that is not fetched yet.'),
      clientId: said(Nullable(Uuid), `${owner} Null: posts of every client may use it.`),
      folder: said(Nullable(Type.String()), 'Its label; null: none.', { examples: ['Winter'] }),
      name: Type.String({
        description: 'The file name under which it is listed and downloaded.',
        examples: ['winter.png'],
      }),
      contentType: said(
        Nullable(Type.String()),
        'The type of the file: as claimed by the caller until the service has stored the file, then as found in its bytes. Null for an import that is not fetched yet.',
        { examples: ['image/png'] },
      ),
      bytes: said(
        Nullable(Bytes),
        'Length of the file in bytes, as announced until it is stored. Null for an import that is not fetched yet.',
      ),
      sha256: said(Nullable(Type.String()), 'SHA-256 of the file, 64 hex digits; null until it is stored.', {
        examples: ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
      }),
      ...sized,
      altText: said(Nullable(Type.String()), 'Text for people who do not see the picture; null: none was sent.'),
      url: said(
        Nullable(Type.String()),
        `Address of the file; null until it is stored, and for a failed or quarantined asset. ${presigned}`,
      ),
      posterUrl: said(
        Nullable(Type.String()),
        `Address of a still that represents the file; null while there is none. ${presigned}`,
      ),
      failure: said(Nullable(MediaFailure), 'Why it cannot be used; null unless it failed or is quarantined.'),
      readiness: Type.Record(Type.String(), Readiness, {
        description:
          'By network: whether the file can be given to it for every use that was asked for. A network that nothing was asked for is absent.',
        examples: [{ instagram: 'ready', x: 'not_needed' }],
      }),
      progress: said(
        Nullable(Type.Number({ minimum: 0, maximum: 1 })),
        'The part of the present rendering that is done, from 0 to 1; null: unknown, or nothing is rendered.',
        { examples: [0.4] },
      ),
      variants: Type.Array(Variant, {
        description: 'The file as each network is given it: one entry for each network and use that was asked for.',
      }),
      ...stamps,
    },
    { description: 'A file of the content library.' },
  ),
);

/** The rest of a deleted asset. */
export const MediaDeletion = Named(
  'MediaDeletion',
  Type.Object(
    {
      id: said(Uuid, 'Id of the deleted asset.'),
      object: Type.Literal('media_deletion', { description: 'The kind of resource.' }),
      deletedAt: said(Instant, 'When it was deleted.'),
      ...stamps,
    },
    { description: 'What remains of a deleted asset.' },
  ),
);

/** The answer to a call that starts the processing of an asset. */
export const MediaAccepted = Named(
  'MediaAccepted',
  Type.Object(
    {
      ...Media.properties,
      readyEvent: Type.Literal('media.ready', { description: 'The webhook event that reports the asset as usable.' }),
    },
    { description: 'An asset whose processing has started, and the event to wait for.' },
  ),
);

export const MediaUpload = Named(
  'MediaUpload',
  Type.Object(
    {
      object: Type.Literal('media_upload', { description: 'The kind of resource.' }),
      assetId: said(Uuid, 'Id of the asset: register it with POST /media once the file is uploaded.'),
      key: Type.String({ description: 'Where the upload lies in the store; no call takes it.' }),
      url: said(Nullable(Type.String()), 'PUT the file here, until `expiresAt`. Null once the asset is registered.'),
      headers: Type.Record(Type.String(), Type.String(), {
        description: 'Headers that the PUT must carry, by name; none once the asset is registered.',
        examples: [{ 'Content-Type': 'image/png', 'Content-Length': '482133' }],
      }),
      expiresAt: said(
        Nullable(Instant),
        'When `url` expires, an hour after the call. Null once the asset is registered.',
      ),
    },
    { description: 'Where a file is uploaded to.' },
  ),
);
