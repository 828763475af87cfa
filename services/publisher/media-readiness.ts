import { type Asset, type MadeFile, type MediaState, needKey } from '#domain/media.ts';
import { kindOfType } from '#domain/media-types.ts';
import { type AltTexts, type GateMedia, posterFits, sentAltText, takesCover, useOf } from '#domain/platforms/index.ts';
import { contentFor, needsOfTarget } from '#domain/post/content.ts';
import { mediaMissing, renditionMissing } from '#domain/publish-failures.ts';
import { asFacts, type Loaded } from '#runtime/eventing/domain-store.ts';
import type { Platform } from '#schemas/common.ts';
import type { MediaEvent, MediaKind, MediaNeed, MediaUse } from '#schemas/media.ts';
import type { PostBody } from '#schemas/post.ts';
import type { Failure } from '#schemas/target.ts';
import type { Assets, Content } from './related-streams.ts';

/** Whether the files of one target are ready in the formats that its network takes. */

/** A file that the network gets: the source or a rendition of it. */
export interface Outgoing extends MadeFile {
  readonly mediaId: string;
  readonly kind: MediaKind;
  readonly use: MediaUse;
  readonly altText: string | null;
}

/** The files of one segment. */
export interface SegmentFiles {
  /** The sources, as the network's rules check them. */
  readonly gate: readonly GateMedia[];
  readonly media: readonly Outgoing[];
  readonly cover: Outgoing | null;
}

/** By the index of the segment. */
export type TargetFiles = readonly SegmentFiles[];

export type MediaReadiness =
  | { readonly kind: 'ready'; readonly files: TargetFiles }
  | {
      readonly kind: 'waiting';
      /** Every file that is not ready, in the order of the post. */
      readonly waiting: readonly [AwaitedFile, ...AwaitedFile[]];
      /** Needs that nobody has requested. */
      readonly missing: readonly MissingRenditions[];
    }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly segmentIndex?: number };

/** A need whose rendition is not ready. */
export interface AwaitedFile {
  readonly mediaId: string;
  /** The first segment of a thread that shows it. */
  readonly segmentIndex?: number;
  /** Milliseconds since the epoch of the last request; null: requested with the file itself, or not at all. */
  readonly askedAt: number | null;
  /** Of the file's stream when it was read. */
  readonly revision: number;
}

export interface MissingRenditions {
  readonly mediaId: string;
  readonly loaded: Loaded<MediaState>;
  readonly needs: MediaNeed[];
}

export const noSegmentFiles: SegmentFiles = { gate: [], media: [], cover: null };
export const noFiles = { kind: 'ready', files: [] } as const satisfies MediaReadiness;

type Found =
  | { readonly kind: 'ready'; readonly file: Outgoing }
  | { readonly kind: 'waiting'; readonly requested: boolean }
  | { readonly kind: 'failed'; readonly failure: Failure };

interface FoundNeed {
  readonly mediaId: string;
  readonly need: MediaNeed;
  readonly found: Found;
}

const refused: readonly MediaState['status'][] = ['none', 'offered', 'deleted', 'failed', 'quarantined'];
const isUsable = (state: MediaState): state is Asset => !refused.includes(state.status);

/** @param from index of the first unpublished segment; the files of earlier segments are ignored */
export const readinessOf = (
  content: Content & { readonly body: PostBody },
  from: number,
  platform: Platform,
  workspaceId: string,
  assets: Assets,
): MediaReadiness => {
  const { body, segments } = content;
  const usable = (id: string): Asset | null => {
    const loaded = assets.get(id);
    // A target may not use a file of another workspace.
    if (loaded === undefined || loaded.events[0]?.metadata.workspaceId !== workspaceId) return null;
    return isUsable(loaded.state) ? loaded.state : null;
  };
  const kindOf = (id: string): MediaKind => usable(id)?.stored?.kind ?? 'image';
  const segmentOf = (mediaId: string): { readonly segmentIndex?: number } => {
    const segmentIndex = segments.findIndex((one, index) => index >= from && one.mediaIds.includes(mediaId));
    return segments.length === 1 || segmentIndex < 0 ? {} : { segmentIndex };
  };
  const altOf = (id: string): AltTexts => ({
    own: body.mediaAltTexts?.[id] ?? null,
    asset: usable(id)?.details.altText ?? null,
  });
  const needs = needsOfTarget(body, platform, kindOf, from).map(({ mediaId, need }): FoundNeed => {
    const asset = usable(mediaId);
    if (asset === null) return { mediaId, need, found: { kind: 'failed', failure: mediaMissing(mediaId) } };
    const altText = (kind: MediaKind) => sentAltText(platform, { use: need.use, kind }, altOf(mediaId));
    return { mediaId, need, found: foundOf(mediaId, need, asset, altText) };
  });
  for (const { mediaId, found } of needs) if (found.kind === 'failed') return { ...found, ...segmentOf(mediaId) };
  const [first, ...others] = needs
    .filter(({ found }) => found.kind === 'waiting')
    .map(({ mediaId, need }) => ({
      mediaId,
      ...segmentOf(mediaId),
      askedAt: requestedAt(assets.get(mediaId), need),
      revision: assets.get(mediaId)?.revision ?? -1,
    }));
  if (first !== undefined) return { kind: 'waiting', waiting: [first, ...others], missing: missingOf(needs, assets) };
  const files = needs.flatMap(({ found }) => (found.kind === 'ready' ? [found.file] : []));
  const { overrides } = contentFor(body, platform);
  return {
    kind: 'ready',
    files: segments.map(({ mediaIds }, index): SegmentFiles => {
      if (index < from) return noSegmentFiles;
      const kinds = mediaIds.map(kindOf);
      const use = useOf(platform, overrides, kinds);
      const shown = mediaIds.flatMap((id) => files.find((one) => one.mediaId === id && one.use === use) ?? []);
      const ownCover = takesCover(platform, use, kinds) ? files.find((one) => one.use === 'cover') : undefined;
      return {
        gate: mediaIds.map((id) => ({ id, kind: kindOf(id), probe: usable(id)?.probe ?? null, alt: altOf(id) })),
        media: shown,
        cover: ownCover ?? posterOf(platform, shown, usable),
      };
    }),
  };
};

/** The needs that nobody has requested, by their asset. */
const missingOf = (needs: readonly FoundNeed[], assets: Assets): readonly MissingRenditions[] => {
  const missing = new Map<string, MediaNeed[]>();
  for (const { mediaId, need, found } of needs) {
    if (found.kind === 'waiting' && !found.requested) missing.set(mediaId, [...(missing.get(mediaId) ?? []), need]);
  }
  return [...missing].flatMap(([mediaId, wanted]) => {
    const loaded = assets.get(mediaId);
    return loaded === undefined ? [] : [{ mediaId, loaded, needs: wanted }];
  });
};

const foundOf = (
  mediaId: string,
  need: MediaNeed,
  asset: Asset,
  altText: (kind: MediaKind) => string | null,
): Found => {
  const state = asset.needs.get(needKey(need));
  if (state?.status === 'failed') return { kind: 'failed', failure: renditionMissing(mediaId, state.failure) };
  const { stored, probe } = asset;
  const about = { mediaId, use: need.use };
  if (state?.status === 'ready') {
    const { file } = state;
    const kind = kindOfType(file.contentType) ?? 'image';
    return { kind: 'ready', file: { ...about, ...file, kind, altText: altText(kind) } };
  }
  if (state?.status === 'fits' && stored !== null) {
    const { width = null, height = null, durationMs = null } = probe ?? {};
    const file = { ...about, ...stored, width, height, durationMs, altText: altText(stored.kind) };
    return { kind: 'ready', file };
  }
  return { kind: 'waiting', requested: state !== undefined };
};

const requestedAt = (loaded: Loaded<MediaState> | undefined, need: MediaNeed): number | null => {
  const request = asFacts<MediaEvent>(loaded?.events ?? []).findLast(
    ({ event }) =>
      event.type === 'MediaRenditionsRequested' && event.data.needs.some((one) => needKey(one) === needKey(need)),
  );
  return request === undefined ? null : Date.parse(request.fact.occurredAt);
};

/**
 * The poster frame of the first video shown. Null where the network takes no cover or the poster does not fit.
 */
const posterOf = (
  platform: Platform,
  shown: readonly Outgoing[],
  assetOf: (id: string) => Asset | null,
): Outgoing | null => {
  const video = shown.find(({ kind }) => kind === 'video');
  if (video === undefined) return null;
  const { mediaId, use } = video;
  const kinds = shown.map(({ kind }) => kind);
  const poster = takesCover(platform, use, kinds) ? (assetOf(mediaId)?.poster ?? null) : null;
  if (poster === null || !posterFits(platform, poster)) return null;
  return { ...poster, mediaId, altText: null, kind: 'image', use: 'cover', durationMs: null };
};
