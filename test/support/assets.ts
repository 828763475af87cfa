/** Assets of the library as the worker leaves them, for tests and benches without a worker. */
import { createHash, randomUUID } from 'node:crypto';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { DomainStore, Positions } from '#runtime/eventing/domain-store.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { MediaEvent, MediaKind, MediaNeed, MediaProbe } from '#schemas/media.ts';
import { commandContext } from './domain.ts';

export interface AssetOptions {
  readonly id?: string;
  readonly clientId?: string | null;
  readonly folder?: string | null;
  readonly name?: string;
  readonly altText?: string | null;
  /** Networks whose needs the source fits; default: every network that accepts the kind. */
  readonly platforms?: readonly Platform[];
  /** Replaces the needs that follow from `platforms`. */
  readonly needs?: readonly MediaNeed[];
  /** Members of the probe that differ; `video`, `image` and `audio` are replaced whole. */
  readonly probe?: Partial<MediaProbe>;
  /** The file itself; the events then state its length and hash. */
  readonly body?: Uint8Array;
  /** The frame of a video that stands for it, a JPEG; default: none. */
  readonly poster?: { readonly body: Uint8Array; readonly width: number; readonly height: number };
}

export interface ReadyAsset {
  readonly id: string;
  readonly probe: MediaProbe;
  /** Key of the source in the blob store. */
  readonly key: string;
}

const video: MediaProbe['video'] = {
  container: 'mp4',
  codec: 'h264',
  profile: 'high',
  pixelFormat: 'yuv420p',
  rotation: 0,
  squarePixels: true,
  fps: 30,
  constantRate: true,
  interlaced: false,
  hdr: false,
  bitrate: 3_000_000,
  indexFirst: true,
  editList: false,
  located: false,
};
const aac: MediaProbe['audio'] = { codec: 'aac', profile: 'lc', channels: 2, sampleRate: 48_000, bitrate: 128_000 };
const still = { alpha: false, srgb: true, upright: true, located: false };

const probes: Readonly<Record<MediaKind, MediaProbe>> = {
  image: {
    kind: 'image',
    contentType: 'image/jpeg',
    bytes: 300_000,
    width: 1_080,
    height: 1_080,
    durationMs: null,
    frames: 1,
    image: { format: 'jpeg', ...still },
    video: null,
    audio: null,
    digitalSourceType: null,
  },
  // 9:16 and 10 s: accepted as a reel, a short and a feed video.
  video: {
    kind: 'video',
    contentType: 'video/mp4',
    bytes: 4_000_000,
    width: 1_080,
    height: 1_920,
    durationMs: 10_000,
    frames: 300,
    image: null,
    video,
    audio: aac,
    digitalSourceType: null,
  },
  gif: {
    kind: 'gif',
    contentType: 'image/gif',
    bytes: 200_000,
    width: 480,
    height: 480,
    durationMs: 2_000,
    frames: 20,
    image: { format: 'gif', ...still },
    video: null,
    audio: null,
    digitalSourceType: null,
  },
  document: {
    kind: 'document',
    contentType: 'application/pdf',
    bytes: 100_000,
    width: null,
    height: null,
    durationMs: null,
    frames: null,
    image: null,
    video: null,
    audio: null,
    digitalSourceType: null,
  },
};

/** A probe that every network which accepts the kind accepts unchanged. */
export const fittingProbe = (kind: MediaKind, over: Partial<MediaProbe> = {}): MediaProbe => ({
  ...probes[kind],
  ...over,
});

const takers: Readonly<Record<MediaKind, readonly Platform[]>> = {
  image: platforms.filter((one) => one !== 'youtube'),
  video: platforms,
  gif: ['x', 'linkedin', 'telegram'],
  document: ['linkedin', 'telegram'],
};
const covered: readonly Platform[] = ['instagram', 'tiktok', 'youtube', 'facebook', 'pinterest'];

const needsOf = (kind: MediaKind, wanted: readonly Platform[]): MediaNeed[] =>
  takers[kind].flatMap((platform) => {
    if (!wanted.includes(platform)) return [];
    const meta = platform === 'instagram' || platform === 'facebook';
    const visual = kind === 'image' || kind === 'video';
    const uses: MediaNeed['use'][] = ['feed', ...(visual ? (['carousel'] as const) : [])];
    if (meta && kind === 'video') uses.push('reel');
    if (meta && visual) uses.push('story');
    if (kind === 'image' && covered.includes(platform)) uses.push('cover');
    return uses.map((use) => ({ platform, use }));
  });

const extensions: Readonly<Record<MediaKind, string>> = { image: 'jpg', video: 'mp4', gif: 'gif', document: 'pdf' };

/** Every event of an asset until it is publishable: its source fits each of its needs. */
export const assetEvents = (
  workspaceId: string,
  id: string,
  kind: MediaKind,
  options: AssetOptions = {},
): readonly MediaEvent[] => {
  const { clientId = null, folder = null, altText = null, body } = options;
  const name = options.name ?? `${kind}.${extensions[kind]}`;
  const own = options.platforms ?? platforms;
  const probe = fittingProbe(kind, { ...(body === undefined ? {} : { bytes: body.length }), ...options.probe });
  const { contentType, bytes } = probe;
  const sha256 = createHash('sha256')
    .update(body ?? id)
    .digest('hex');
  const at = `${workspaceId}/${id}`;
  const expiresAt = '2026-01-01T01:00:00.000Z';
  const needs = options.needs ?? needsOf(kind, own);
  return [
    {
      type: 'MediaUploadOffered',
      data: { fileName: name, clientId, folder, contentType, bytes, key: `${at}/upload`, expiresAt },
    },
    { type: 'MediaRegistered', data: { name, clientId, folder, altText, platforms: [...own] } },
    { type: 'MediaStored', data: { key: `${at}/original`, contentType, bytes, sha256, kind } },
    { type: 'MediaProbed', data: { probe } },
    {
      type: 'MediaRenditionsPlanned',
      data: { initial: true, needs: needs.map((need) => ({ ...need, rendition: null })), renditions: [] },
    },
    { type: 'MediaTranscoded', data: { poster: posterOf(at, options) } },
  ];
};

const posterOf = (at: string, { poster }: AssetOptions) => {
  if (poster === undefined) return null;
  const { body, width, height } = poster;
  const sha256 = createHash('sha256').update(body).digest('hex');
  return { key: `${at}/poster.jpg`, contentType: 'image/jpeg', bytes: body.length, sha256, width, height };
};

/** Stores a ready asset; with `blobs`, `body` and `poster`, its files too. */
export const readyAsset = async (
  store: DomainStore,
  workspaceId: string,
  kind: MediaKind,
  options: AssetOptions & { readonly blobs?: BlobStore; readonly positions?: Positions } = {},
): Promise<ReadyAsset> => {
  const id = options.id ?? randomUUID();
  const events = assetEvents(workspaceId, id, kind, options);
  const key = `${workspaceId}/${id}/original`;
  const probe = events.flatMap((one) => (one.type === 'MediaProbed' ? [one.data.probe] : []))[0] as MediaProbe;
  if (options.blobs !== undefined && options.body !== undefined) {
    await options.blobs.put(key, options.body, { contentType: probe.contentType, bytes: options.body.length });
  }
  const { blobs, poster } = options;
  if (blobs !== undefined && poster !== undefined) {
    const { body } = poster;
    await blobs.put(`${workspaceId}/${id}/poster.jpg`, body, { contentType: 'image/jpeg', bytes: body.length });
  }
  const stream = `media-${id}`;
  await store.append(stream, -1, events, commandContext({ workspaceId }), stream, options.positions);
  return { id, probe, key };
};
