import { type Static, Type } from 'typebox';
import { type EventOf, Instant, Nullable, Platform, Uuid } from './common.ts';
import { Named, OpenEnum } from './published.ts';

/** A file of the content library: its origin, the result of its probe, and its renditions per network. */

export const mediaKinds = ['image', 'video', 'gif', 'document'] as const;
export const kindWords =
  'The kind of a file. image: a still picture; video: a film; gif: an animated or still GIF; document: a PDF.';
export const MediaKind = OpenEnum('MediaKind', mediaKinds, kindWords);
export type MediaKind = (typeof mediaKinds)[number];

export const mediaUses = ['feed', 'carousel', 'reel', 'story', 'cover'] as const;
export const MediaUse = OpenEnum(
  'MediaUse',
  mediaUses,
  'Where a network shows a file. feed: alone in a post; carousel: beside others in a post; reel: as a short video; story: for a day; cover: as the still that is shown before a video plays.',
);
export type MediaUse = (typeof mediaUses)[number];

/** One rendition that may be requested. */
export const MediaNeed = Type.Object({ platform: Platform, use: MediaUse });
export type MediaNeed = Static<typeof MediaNeed>;

const Text = (maxLength: number) => Type.String({ maxLength });
const Count = Type.Integer({ minimum: 0 });
const Pixels = Type.Integer({ minimum: 1 });
const ContentType = Text(200);
const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
/** Where a file lies in the blob store: `<workspace>/<asset>/…`. */
const BlobKey = Type.String({ minLength: 1, maxLength: 500 });

export const MediaFailure = Named(
  'MediaFailure',
  Type.Object(
    {
      code: Type.String({
        minLength: 1,
        maxLength: 100,
        description: 'Stable: branch on it. GET /errors/{code} explains it.',
        examples: ['media_unreadable'],
      }),
      message: Type.String({ maxLength: 500, description: 'What is wrong with the file, in words for a person.' }),
    },
    { description: 'Why an asset, or one of its renditions, cannot be used.' },
  ),
);
export type MediaFailure = Static<typeof MediaFailure>;

/** The result of a probe. Width and height are as displayed: rotation, EXIF orientation and pixel aspect applied. */
export const MediaProbe = Type.Object({
  kind: MediaKind,
  /** From the bytes, e.g. `video/mp4`, `video/quicktime`, `image/jpeg`, `application/pdf`. */
  contentType: ContentType,
  bytes: Count,
  width: Nullable(Pixels),
  height: Nullable(Pixels),
  durationMs: Nullable(Count),
  /** Pictures in the file: 1 for a still. Null where they were not counted. */
  frames: Nullable(Count),
  image: Nullable(
    Type.Object({
      /** `jpeg`, `png`, `webp`, `avif`, `heic`, `gif`, `tiff`. */
      format: Text(20),
      alpha: Type.Boolean(),
      /** Whether its colours are sRGB in 8 bits, without a colour profile that says otherwise. */
      srgb: Type.Boolean(),
      /** Whether its pixels are stored in display orientation. */
      upright: Type.Boolean(),
      /** Whether it carries a place (GPS). */
      located: Type.Boolean(),
    }),
  ),
  video: Nullable(
    Type.Object({
      /** ffprobe's format_name: `mp4`, `mov`, `webm`, `matroska`, `avi`, `mpegts`, `gif`. */
      container: Text(40),
      /** ffprobe's codec_name: `h264`, `hevc`, `vp9`, `vp8`, `av1`, `prores`, `gif`. */
      codec: Text(40),
      /** In lower case: `high`, `main`, `constrained baseline`, `main 10`. */
      profile: Nullable(Text(60)),
      pixelFormat: Nullable(Text(40)),
      /** Clockwise degrees by which a player turns the pictures: 0, 90, 180, 270. */
      rotation: Type.Integer({ minimum: 0, maximum: 270 }),
      squarePixels: Type.Boolean(),
      /** Pictures a second, on average. */
      fps: Nullable(Type.Number({ minimum: 0 })),
      constantRate: Type.Boolean(),
      interlaced: Type.Boolean(),
      /** PQ or HLG transfer, or BT.2020 primaries. */
      hdr: Type.Boolean(),
      /** Bits a second of the video stream, measured where the file states none, or others. */
      bitrate: Nullable(Count),
      /** MP4 and MOV: the whole index comes before the data. */
      indexFirst: Type.Boolean(),
      /** MP4 and MOV: an edit list that cuts, delays, or changes the speed. */
      editList: Type.Boolean(),
      /** Whether it carries a place or device metadata that must be removed. */
      located: Type.Boolean(),
      /** Index of its stream in the file. Absent: the first with pictures. */
      stream: Type.Optional(Count),
    }),
  ),
  audio: Nullable(
    Type.Object({
      codec: Text(40),
      profile: Nullable(Text(60)),
      channels: Count,
      sampleRate: Count,
      bitrate: Nullable(Count),
      /** Index of its stream in the file. Absent: the first with sound. */
      stream: Type.Optional(Count),
    }),
  ),
  /** IPTC digital source type found in XMP, IPTC or a C2PA manifest, e.g. `trainedAlgorithmicMedia`. */
  digitalSourceType: Nullable(Text(100)),
});
export type MediaProbe = Static<typeof MediaProbe>;

const Size = { width: Pixels, height: Pixels };
/** `scale`: the picture fills the frame; `pad`: the whole picture is fitted in and bars fill the rest. */
const Fit = Type.Enum(['scale', 'pad']);

/** How one file is made from a source, to the last parameter: equal specs are one rendition, whatever needs it. */
export const RenditionSpec = Type.Union([
  Type.Object({
    kind: Type.Literal('video'),
    /** `remux`: streams are copied into another container; width, height, fps and rates then only repeat the source. */
    mode: Type.Enum(['encode', 'remux']),
    ...Size,
    fit: Fit,
    /** Null keeps the source's rate. */
    fps: Nullable(Type.Number({ exclusiveMinimum: 0 })),
    videoKbps: Type.Integer({ minimum: 1 }),
    /** Null: no sound. */
    audio: Nullable(Type.Object({ kbps: Type.Integer({ minimum: 1 }), sampleRate: Count, channels: Count })),
    /** For a remux: the sound is encoded all the same. */
    sound: Type.Optional(Type.Literal('encode')),
    /** `hdr`: the source's own range, in HEVC Main 10. Absent: SDR in H.264. */
    range: Type.Optional(Type.Literal('hdr')),
    /** How often a gif plays in a row. Absent: once. */
    rounds: Type.Optional(Type.Integer({ minimum: 2 })),
    /** Upper limit of the file. Null: no limit. */
    maxBytes: Nullable(Count),
  }),
  Type.Object({
    kind: Type.Literal('image'),
    format: Type.Enum(['jpeg', 'png', 'webp', 'gif']),
    ...Size,
    fit: Fit,
    /** 1–100, to begin with; lowered step by step until the file is small enough. */
    quality: Type.Integer({ minimum: 1, maximum: 100 }),
    maxBytes: Nullable(Count),
  }),
  Type.Object({
    /** A still from a video. */
    kind: Type.Literal('frame'),
    format: Type.Literal('jpeg'),
    ...Size,
    fit: Fit,
    atMs: Count,
    quality: Type.Integer({ minimum: 1, maximum: 100 }),
    maxBytes: Nullable(Count),
  }),
]);
export type RenditionSpec = Static<typeof RenditionSpec>;

/** Hash of the spec, 32 hex digits. */
const RenditionId = Type.String({ pattern: '^[0-9a-f]{32}$' });
const File = { key: BlobKey, contentType: ContentType, bytes: Count, sha256: Sha256 };
const Seen = { width: Nullable(Pixels), height: Nullable(Pixels), durationMs: Nullable(Count) };

const described = {
  name: Type.String({ minLength: 1, maxLength: 255 }),
  clientId: Nullable(Uuid),
  folder: Nullable(Text(200)),
  altText: Nullable(Text(2000)),
  /** Networks whose renditions are made at once. */
  platforms: Type.Array(Platform),
};

export const mediaEvents = {
  /** `contentType` and `bytes` are the caller's claims; the upload URL accepts nothing else. */
  MediaUploadOffered: Type.Object({
    fileName: Type.String({ minLength: 1, maxLength: 255 }),
    clientId: Nullable(Uuid),
    folder: Nullable(Text(200)),
    contentType: ContentType,
    bytes: Count,
    key: BlobKey,
    expiresAt: Instant,
  }),
  MediaRegistered: Type.Object(described),
  /** Older events have the whole address in `url`. */
  MediaImportRequested: Type.Object({
    /** Without its query, which often is a credential. */
    url: Text(4096),
    /** Id of the stored whole address, until the file is imported. Missing: `url` is the whole address. */
    source: Type.Optional(Uuid),
    ...described,
  }),
  /** The file is stored where no caller can change it. `contentType` and `kind` are from its bytes. */
  MediaStored: Type.Object({ ...File, kind: MediaKind }),
  MediaProbed: Type.Object({ probe: MediaProbe }),
  /** Networks that were requested later: their renditions are made on demand. */
  MediaRenditionsRequested: Type.Object({
    needs: Type.Array(MediaNeed),
    /** The post or target that needs them. */
    for: Type.Object({ kind: Type.Enum(['post', 'target']), id: Uuid }),
  }),
  /** How each need is met; `null` = the source itself fits. MediaRenditionFailed reports a need that cannot be met. */
  MediaRenditionsPlanned: Type.Object({
    /** True when the needs of the asset's own platforms are among them. */
    initial: Type.Boolean(),
    needs: Type.Array(Type.Object({ ...MediaNeed.properties, rendition: Nullable(RenditionId) })),
    renditions: Type.Array(Type.Object({ id: RenditionId, spec: RenditionSpec })),
  }),
  /** One event for each need, though several may share the file. */
  MediaRenditionReady: Type.Object({ ...MediaNeed.properties, rendition: RenditionId, ...File, ...Seen }),
  MediaRenditionFailed: Type.Object({
    ...MediaNeed.properties,
    rendition: Nullable(RenditionId),
    failure: MediaFailure,
  }),
  /** Posts can use the asset now. `poster`: a still that represents it. */
  MediaTranscoded: Type.Object({ poster: Nullable(Type.Object({ ...File, ...Size })) }),
  MediaFailed: Type.Object({ failure: MediaFailure }),
  MediaQuarantined: Type.Object({ failure: MediaFailure }),
  /** No call finds it any more. A post that took it just before keeps its files until it is published. */
  MediaDeleted: Type.Object({}),
  /** No post needs it any more: its files are deleted. */
  MediaFilesRemoved: Type.Object({}),
} as const;
export type MediaEvent = EventOf<typeof mediaEvents>;
