import { Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { MediaFailure, MediaKind, MediaUse, mediaKinds } from '#schemas/media.ts';
import { ClosedEnum, Named, OpenEnum } from '#schemas/published.ts';
import { Maybe, PlatformInput, paging, stamps } from './common.ts';

/** Assets of the content library, as callers send them and see them. */

const Folder = Type.String({
  minLength: 1,
  maxLength: 200,
  description: 'A label of your own; a filter matches it exactly.',
});
const Name = Type.String({ minLength: 1, maxLength: 255 });
const AltText = Type.String({ maxLength: 2000 });
const Bytes = Type.Integer({ minimum: 0 });
const Side = Nullable(Type.Integer({ minimum: 1, description: 'Pixels, as displayed.' }));
const Duration = Nullable(Type.Integer({ minimum: 0 }));
const Address = Nullable(
  Type.String({
    description: 'Presigned: its holder may read the file for 15 minutes. Repeat the call for a new one.',
  }),
);

export const mediaStatuses = ['pending', 'transcoding', 'transcoded', 'failed', 'quarantined'] as const;
export const variantStatuses = ['preparing', 'ready', 'failed', 'not_needed'] as const;
const Readiness = OpenEnum('MediaReadiness', variantStatuses, 'not_needed: the network accepts the source unchanged.');

export const MediaPresign = Named(
  'MediaPresign',
  Type.Object({
    fileName: Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'The file name; leading folders are dropped.',
    }),
    contentType: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'The PUT must carry exactly this type, in lower case. image/*, image/gif, video/*, application/pdf.',
    }),
    bytes: Type.Integer({
      minimum: 1,
      description:
        'The PUT must have exactly this length. At most 100 MiB for an image, gif or document; 5 GiB for a video.',
    }),
    clientId: Maybe(Uuid),
    folder: Maybe(Folder),
  }),
);

/** Members that a caller gives at registration and at import. */
const described = {
  name: Maybe(Name),
  clientId: Maybe(Uuid),
  folder: Maybe(Folder),
  altText: Maybe(AltText),
  platforms: Maybe(
    Type.Array(PlatformInput, {
      maxItems: 11,
      description: 'Networks whose renditions are made at once. Default: those with a connected account.',
    }),
  ),
};

export const MediaRegister = Named('MediaRegister', Type.Object({ assetId: Uuid, ...described }));
export const MediaImport = Named(
  'MediaImport',
  Type.Object({
    url: Type.String({
      minLength: 1,
      maxLength: 2048,
      description: 'A public https address; the file is fetched once.',
    }),
    ...described,
  }),
);

export const MediaQuery = Type.Object({
  ...paging,
  kind: Maybe(ClosedEnum('MediaKindInput', mediaKinds, 'The kind of a file.')),
  folder: Maybe(Folder),
  clientId: Maybe(Uuid),
  search: Maybe(Type.String({ maxLength: 200, description: 'Part of the name, ignoring case.' })),
});

const Variant = Named(
  'MediaVariant',
  Type.Object({
    platform: Platform,
    use: MediaUse,
    status: Readiness,
    contentType: Nullable(Type.String()),
    width: Side,
    height: Side,
    durationMs: Duration,
    bytes: Nullable(Bytes),
    url: Address,
    failure: Nullable(MediaFailure),
  }),
);

export const Media = Named(
  'Media',
  Type.Object({
    id: Uuid,
    object: Type.Literal('media'),
    status: OpenEnum('MediaStatus', mediaStatuses, 'pending: an upload that is not registered yet.'),
    publishable: Type.Boolean({ description: 'True: a post may use it.' }),
    kind: Nullable(MediaKind),
    clientId: Nullable(Type.String({ ...Uuid, description: 'Null: for posts of every client.' })),
    folder: Nullable(Type.String()),
    name: Type.String(),
    contentType: Nullable(Type.String({ description: 'As claimed by the caller, until the file is probed.' })),
    bytes: Nullable(Bytes),
    sha256: Nullable(Type.String()),
    width: Side,
    height: Side,
    durationMs: Duration,
    altText: Nullable(Type.String()),
    url: Address,
    posterUrl: Address,
    failure: Nullable(MediaFailure),
    readiness: Type.Record(Type.String(), Readiness, { description: 'By platform.' }),
    progress: Nullable(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'Progress of the present work. Null: unknown, or there is none.',
      }),
    ),
    variants: Type.Array(Variant),
    ...stamps,
  }),
);

/** The rest of a deleted asset. */
export const MediaDeletion = Named(
  'MediaDeletion',
  Type.Object({
    id: Uuid,
    object: Type.Literal('media_deletion'),
    deletedAt: Instant,
    ...stamps,
  }),
);

/** The answer to a call that starts the processing of an asset. */
export const MediaAccepted = Named(
  'MediaAccepted',
  Type.Object({
    ...Media.properties,
    readyEvent: Type.Literal('media.ready', { description: 'The webhook event that reports the asset as usable.' }),
  }),
);

export const MediaUpload = Named(
  'MediaUpload',
  Type.Object({
    object: Type.Literal('media_upload'),
    assetId: Uuid,
    key: Type.String(),
    url: Nullable(
      Type.String({ description: 'PUT the file here, until expiresAt. Null once the asset is registered.' }),
    ),
    headers: Type.Record(Type.String(), Type.String(), { description: 'Headers that the PUT must carry.' }),
    expiresAt: Nullable(Instant),
  }),
);
