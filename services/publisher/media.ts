import { contentFor } from '#domain/content.ts';
import { type Asset, type MadeFile, type MediaState, needKey } from '#domain/media.ts';
import { kindOfType } from '#domain/media-types.ts';
import { type GateMedia, posterFits, takesCover, useOf } from '#domain/platforms/index.ts';
import { needsOfTarget } from '#domain/post-media.ts';
import { mediaMissing, renditionMissing } from '#domain/publish-failures.ts';
import { asFacts, type Loaded } from '#runtime/eventing/domain-store.ts';
import type { Platform } from '#schemas/common.ts';
import type { MediaEvent, MediaKind, MediaNeed, MediaUse } from '#schemas/media.ts';
import type { PostBody } from '#schemas/post.ts';
import type { Failure } from '#schemas/target.ts';
import type { Content } from './subject.ts';

/** The files of one target: whether each is there as its network takes it. */

export type Assets = ReadonlyMap<string, Loaded<MediaState>>;

/** A file as it goes out: the source itself, or what was made of it. */
export interface Outgoing extends MadeFile {
  readonly mediaId: string;
  readonly kind: MediaKind;
  readonly use: MediaUse;
  readonly altText: string | null;
}

/** The files of one segment. */
export interface SegmentFiles {
  /** The sources, as the rules look at them. */
  readonly gate: readonly GateMedia[];
  readonly media: readonly Outgoing[];
  readonly cover: Outgoing | null;
}

/** By the segments of the target's content. */
export type TargetFiles = readonly SegmentFiles[];

export type MediaReadiness =
  | { readonly kind: 'ready'; readonly files: TargetFiles }
  | {
      readonly kind: 'waiting';
      /** All that is not there, in the order of the post. */
      readonly waiting: readonly [AwaitedFile, ...AwaitedFile[]];
      /** Needs that nobody has asked for. */
      readonly missing: readonly {
        readonly mediaId: string;
        readonly loaded: Loaded<MediaState>;
        readonly needs: MediaNeed[];
      }[];
    }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly part?: number };

/** A need whose rendition is not there. */
export interface AwaitedFile {
  readonly mediaId: string;
  /** Of a thread: the first segment that shows it. */
  readonly part?: number;
  /** Milliseconds since the epoch at which it was last asked for; null: with the file itself, or not at all. */
  readonly askedAt: number | null;
}

export const noSegmentFiles: SegmentFiles = { gate: [], media: [], cover: null };
export const noFiles = { kind: 'ready', files: [] } as const satisfies MediaReadiness;

type Found =
  | { readonly kind: 'there'; readonly file: Outgoing }
  | { readonly kind: 'waiting'; readonly asked: boolean }
  | { readonly kind: 'failed'; readonly failure: Failure };

const refused: readonly MediaState['status'][] = ['none', 'offered', 'deleted', 'failed', 'quarantined'];
const isUsable = (state: MediaState): state is Asset => !refused.includes(state.status);

/** @param from the segments before it are out, and nothing is asked of their files */
export const readinessOf = (
  content: Content & { readonly body: PostBody },
  from: number,
  platform: Platform,
  workspaceId: string,
  assets: Assets,
): MediaReadiness => {
  const usable = (id: string): Asset | null => {
    const loaded = assets.get(id);
    // A file of somebody else is none.
    if (loaded === undefined || loaded.events[0]?.metadata.workspaceId !== workspaceId) return null;
    return isUsable(loaded.state) ? loaded.state : null;
  };
  const kindOf = (id: string): MediaKind => usable(id)?.stored?.kind ?? 'image';
  const { body, segments } = content;
  const needs = needsOfTarget(body, platform, kindOf, from);
  const partOf = (mediaId: string): { readonly part?: number } => {
    const part = segments.findIndex((one, index) => index >= from && one.mediaIds.includes(mediaId));
    return segments.length === 1 || part < 0 ? {} : { part };
  };
  const alt = (id: string, asset: Asset): string | null => body.mediaAltTexts?.[id] ?? asset.details.altText;
  const found = needs.map(({ mediaId, need }) => {
    const asset = usable(mediaId);
    const one: Found =
      asset === null
        ? { kind: 'failed', failure: mediaMissing(mediaId) }
        : foundOf(mediaId, need, asset, alt(mediaId, asset));
    return { mediaId, need, one };
  });
  for (const { mediaId, one } of found) if (one.kind === 'failed') return { ...one, ...partOf(mediaId) };
  const waiting = found.filter(({ one }) => one.kind === 'waiting');
  const [first, ...others] = waiting.map(({ mediaId, need }) => ({
    mediaId,
    ...partOf(mediaId),
    askedAt: askedAt(assets.get(mediaId), need),
  }));
  if (first !== undefined) {
    const missing = new Map<string, MediaNeed[]>();
    for (const { mediaId, need, one } of waiting) {
      if (one.kind === 'waiting' && !one.asked) missing.set(mediaId, [...(missing.get(mediaId) ?? []), need]);
    }
    return {
      kind: 'waiting',
      waiting: [first, ...others],
      missing: [...missing].flatMap(([mediaId, wanted]) => {
        const loaded = assets.get(mediaId);
        return loaded === undefined ? [] : [{ mediaId, loaded, needs: wanted }];
      }),
    };
  }
  const files = found.flatMap(({ one }) => (one.kind === 'there' ? [one.file] : []));
  const overrides = contentFor(body, platform).overrides;
  return {
    kind: 'ready',
    files: segments.map(({ mediaIds }, index): SegmentFiles => {
      if (index < from) return noSegmentFiles;
      const kinds = mediaIds.map(kindOf);
      const use = useOf(platform, overrides, kinds);
      const media = mediaIds.flatMap((id) => files.find((one) => one.mediaId === id && one.use === use) ?? []);
      const own = takesCover(platform, use, kinds) ? files.find((one) => one.use === 'cover') : undefined;
      return {
        gate: mediaIds.map((id) => ({ id, kind: kindOf(id), probe: usable(id)?.probe ?? null })),
        media,
        cover: own ?? posterOf(platform, media, usable),
      };
    }),
  };
};

const foundOf = (mediaId: string, need: MediaNeed, asset: Asset, altText: string | null): Found => {
  const state = asset.needs.get(needKey(need));
  if (state?.status === 'failed') return { kind: 'failed', failure: renditionMissing(mediaId, state.failure) };
  const { stored, probe } = asset;
  const about = { mediaId, use: need.use, altText };
  if (state?.status === 'ready') {
    const { file } = state;
    return { kind: 'there', file: { ...about, ...file, kind: kindOfType(file.contentType) ?? 'image' } };
  }
  if (state?.status === 'fits' && stored !== null) {
    const { width = null, height = null, durationMs = null } = probe ?? {};
    return { kind: 'there', file: { ...about, ...stored, width, height, durationMs } };
  }
  return { kind: 'waiting', asked: state !== undefined };
};

const askedAt = (loaded: Loaded<MediaState> | undefined, need: MediaNeed): number | null => {
  const asked = asFacts<MediaEvent>(loaded?.events ?? []).findLast(
    ({ event }) =>
      event.type === 'MediaRenditionsRequested' && event.data.needs.some((one) => needKey(one) === needKey(need)),
  );
  return asked === undefined ? null : Date.parse(asked.fact.occurredAt);
};

/** The still that the first video has anyway, where a cover is taken and this one fits: nobody made it for the network. */
const posterOf = (
  platform: Platform,
  shown: readonly Outgoing[],
  assetOf: (id: string) => Asset | null,
): Outgoing | null => {
  const video = shown.find(({ kind }) => kind === 'video');
  if (video === undefined) return null;
  const { mediaId, altText, use } = video;
  const kinds = shown.map(({ kind }) => kind);
  const poster = takesCover(platform, use, kinds) ? (assetOf(mediaId)?.poster ?? null) : null;
  if (poster === null || !posterFits(platform, poster)) return null;
  return { ...poster, mediaId, altText, kind: 'image', use: 'cover', durationMs: null };
};
