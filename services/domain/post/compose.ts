import type { Platform } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import type { MediaFailure, MediaKind, MediaProbe } from '#schemas/media.ts';
import type { PostBody } from '#schemas/post.ts';
import { maxIssues } from '#schemas/validator.ts';
import {
  coverOf,
  type GateInput,
  type GateMedia,
  gate,
  grantsOf,
  replyOverrides,
  showsNothing,
  takesCoverFrame,
  withoutMarkup,
} from '../platforms/index.ts';
import { contentFor, goesOutAsThread } from './content.ts';
import { type Destination, scheduleIssues } from './scheduling.ts';

/** Checks a composed body for contradictions, and for content that the networks of its targets would refuse. */

/** How far the rendition for one network and use is. */
export type PostRendition =
  | { readonly status: 'wanted' | 'planned' | 'fits' | 'ready' }
  | { readonly status: 'failed'; readonly failure: MediaFailure };

/** The members of a file that the checks of a post need. */
export interface PostAsset {
  /** Null: of the whole workspace. */
  readonly clientId: string | null;
  readonly kind: MediaKind;
  readonly status: string;
  readonly publishable: boolean;
  readonly probe: MediaProbe | null;
  readonly altText: string | null;
  /** Of its bytes, in hex; null: they are not known yet. */
  readonly sha256: string | null;
  /** By `needKey`: the renditions that were requested. */
  readonly needs: ReadonlyMap<string, PostRendition>;
}
/** By id: every file the body names that is known in its workspace. */
export type PostAssets = ReadonlyMap<string, PostAsset>;

export interface MediaIssues {
  /** Unknown ids, a cover that is no image, a cover frame after the end of its video. */
  readonly invalid: readonly Issue[];
  readonly notPublishable: readonly Issue[];
  readonly notInClient: readonly Issue[];
}

/** Contradictions within the body; they are refused in drafts too. */
export const bodyIssues = (body: PostBody, clientId: string): readonly Issue[] => [
  ...scheduleIssues(body.schedule, body.timezone),
  ...selectionIssues(body, clientId),
  ...body.variants.flatMap((variant, index) =>
    body.variants.findIndex((one) => one.platform === variant.platform) < index
      ? [repeated(`/variants/${index}/platform`, `${variant.platform} has a variant already`)]
      : [],
  ),
];

const repeated = (path: string, message: string): Issue => ({ path, code: 'repeated', message });
const missing = (path: string, message: string): Issue => ({ path, code: 'required', message });

const selectionIssues = ({ targetSelection }: PostBody, clientId: string): readonly Issue[] => {
  const { mode, clientId: group, accountIds } = targetSelection;
  if (mode === 'group') {
    if (group === null) return [missing('/targets/clientId', 'is required when mode is group')];
    return group === clientId
      ? []
      : [{ path: '/targets/clientId', code: 'mismatch', message: 'must equal clientId of the post' }];
  }
  if (accountIds === null || accountIds.length === 0) {
    return [missing('/targets/accountIds', `is required when mode is ${mode}`)];
  }
  return [];
};

/** A reader on this network would see nothing of the post, or of the head of its thread. */
const isEmptyOn = (body: PostBody, platform: Platform): boolean => {
  const { segments, overrides } = contentFor(body, platform);
  const [{ content, mediaIds }] = segments;
  return mediaIds.length === 0 && showsNothing(withoutMarkup(platform, content, overrides));
};

export interface EmptyIssues {
  readonly empty: readonly Issue[];
  /** Targets without content on networks that have no threads: those networks do not get the segments of a thread. */
  readonly threadless: readonly Issue[];
}

/** A draft may be empty. A published post may not be empty on any of its targets or in any segment of its thread. */
export const emptyIssues = (body: PostBody, destinations: readonly Destination[]): EmptyIssues => {
  const segments = (body.thread?.segments ?? []).flatMap((segment, index) =>
    segment.mediaIds.length === 0 && showsNothing(segment.content)
      ? [{ path: `/thread/segments/${index}`, code: 'empty', message: 'a segment needs text or media' } as const]
      : [],
  );
  const whole = destinations
    .filter(({ platform }) => !goesOutAsThread(body, platform) && isEmptyOn(body, platform))
    .map(
      ({ accountId, platform }): Issue => ({
        path: pointer(body, platform, 0, '/content'),
        code: body.thread === null ? 'empty' : 'thread_not_supported',
        message:
          body.thread === null
            ? 'a post needs text or media'
            : 'a post on a network without threads needs text or media of its own',
        accountId,
        platform,
      }),
    );
  return body.thread === null ? { empty: whole, threadless: [] } : { empty: segments, threadless: whole };
};

/**
 * The rules of their networks that targets break: the first of every target, then the further ones. A network is asked
 * once for all accounts that allow the same, and for no more faults than an answer shows.
 */
export const gateIssues = (
  body: PostBody,
  destinations: readonly Destination[],
  assets: PostAssets,
): readonly Issue[] => {
  const answers = new Map<string, readonly Issue[]>();
  const found = destinations.flatMap((destination) => {
    const { accountId, platform } = destination;
    const key = `${platform} ${grantsOf(platform, destination.scopes)}`;
    const issues = answers.get(key) ?? [...ruleIssues(body, destination, assets).take(maxIssues)];
    answers.set(key, issues);
    return issues.map((issue, rank) => ({ rank, issue: { ...issue, accountId, platform } }));
  });
  return found.toSorted((a, b) => a.rank - b.rank).map(({ issue }) => issue);
};

/** Every rule of its network that a target breaks, segment by segment, computed as they are taken. */
export function* ruleIssues(body: PostBody, destination: Destination, assets: PostAssets): Generator<Issue> {
  const { platform } = destination;
  const { segments } = contentFor(body, platform);
  for (const [part, input] of inputsOf(body, destination, assets).entries()) {
    const isWhole = segments[part]?.mediaIds.length === input.media.length;
    for (const error of gate(input)) {
      const { code, message, mediaId } = error;
      // The number and the kinds of files can be judged only where all of them are known.
      if (!isWhole && error.path === '/mediaIds' && mediaId === null) continue;
      const path = pointer(body, platform, part, error.path);
      yield mediaId === null ? { path, code, message } : { path, code, message, mediaId };
    }
  }
}

/** Turns a path of the gate, relative to the target, into the path where the caller wrote the member. */
export const pointer = (body: PostBody, platform: Platform, part: number, path: string): string => {
  if (path.startsWith('/mediaAltTexts/')) return path;
  if (goesOutAsThread(body, platform) && (path === '/content' || path === '/mediaIds')) {
    return `/thread/segments/${part}${path}`;
  }
  const index = body.variants.findIndex((one) => one.platform === platform);
  const variant = body.variants[index];
  if (variant === undefined) return path.startsWith('/overrides/') ? '/variants' : path;
  if (path === '/coverMediaId') return path;
  if (path === '/content') return variant.contentOverride === null ? path : `/variants/${index}/contentOverride`;
  if (path === '/mediaIds') return variant.mediaIdsOverride === null ? path : `/variants/${index}/mediaIdsOverride`;
  return `/variants/${index}${path}`;
};

/** One for each segment that goes out. */
export const inputsOf = (
  body: PostBody,
  { platform, scopes }: Pick<Destination, 'platform' | 'scopes'>,
  assets: PostAssets,
): readonly GateInput[] => {
  const { segments, overrides } = contentFor(body, platform);
  const known = (id: string): readonly GateMedia[] => {
    const asset = assets.get(id);
    if (asset === undefined) return [];
    const alt = { own: body.mediaAltTexts?.[id] ?? null, asset: asset.altText };
    return [{ id, kind: asset.kind, probe: asset.probe, alt }];
  };
  const [cover = null] = body.coverMediaId === null ? [] : known(body.coverMediaId);
  return segments.map(({ content, mediaIds }, index) => ({
    platform,
    content,
    overrides: index === 0 ? overrides : replyOverrides(platform, overrides),
    scopes,
    media: mediaIds.flatMap(known),
    cover,
  }));
};

/** One place where a body names a file, and the targets that get the file from there. */
interface Mention {
  readonly path: string;
  readonly id: string;
  readonly goesTo: (destination: Destination) => boolean;
}

const mentionsOf = (body: PostBody): readonly Mention[] => {
  const threaded = ({ platform }: Destination): boolean => goesOutAsThread(body, platform);
  const each = (path: string, ids: readonly string[], goesTo: Mention['goesTo']): readonly Mention[] =>
    ids.map((id, index) => ({ path: `${path}/${index}`, id, goesTo }));
  const overridden = new Set(
    body.variants.flatMap(({ platform, mediaIdsOverride }) => (mediaIdsOverride === null ? [] : [platform])),
  );
  return [
    ...each('/mediaIds', body.mediaIds, (one) => !overridden.has(one.platform) && !threaded(one)),
    ...body.variants.flatMap(({ platform, mediaIdsOverride }, index) =>
      each(
        `/variants/${index}/mediaIdsOverride`,
        mediaIdsOverride ?? [],
        (one) => one.platform === platform && !threaded(one),
      ),
    ),
    ...(body.thread?.segments ?? []).flatMap(({ mediaIds }, index) =>
      each(`/thread/segments/${index}/mediaIds`, mediaIds, threaded),
    ),
    ...(body.coverMediaId === null
      ? []
      : [{ path: '/coverMediaId', id: body.coverMediaId, goesTo: ({ platform }: Destination) => coverOf(platform) }]),
  ];
};

/** Faults of the files that a body names, without the rules of networks. Each place is named once. */
export const mediaIssues = (body: PostBody, destinations: readonly Destination[], assets: PostAssets): MediaIssues => {
  const invalid: Issue[] = [];
  const notPublishable: Issue[] = [];
  const notInClient: Issue[] = [];
  for (const { path, id, goesTo } of mentionsOf(body)) {
    const asset = assets.get(id);
    if (asset === undefined) {
      invalid.push(unknownFile(path));
      continue;
    }
    if (path === '/coverMediaId' && asset.kind !== 'image') {
      invalid.push({ path, code: 'media_wrong_kind', message: 'must be an image', mediaId: id });
    }
    if (!asset.publishable) {
      notPublishable.push({ path, code: 'media_not_publishable', message: `is ${asset.status}`, mediaId: id });
    }
    const { clientId } = asset;
    if (clientId !== null && destinations.some((one) => goesTo(one) && one.clientId !== clientId)) {
      notInClient.push(strangerFile(path, id));
    }
  }
  return { invalid: [...invalid, ...frameIssues(body, destinations, assets)], notPublishable, notInClient };
};

/** The first place in the body from which a target gets this file. */
export const placeOf = (body: PostBody, destination: Destination, mediaId: string): string =>
  mentionsOf(body).find(({ id, goesTo }) => id === mediaId && goesTo(destination))?.path ?? '/mediaIds';

/** Whether an issue of the body concerns this target. */
export const concerns = (body: PostBody, destination: Destination, { path, accountId }: Issue): boolean => {
  if (accountId !== undefined) return accountId === destination.accountId;
  const mention = mentionsOf(body).find((one) => one.path === path);
  if (mention !== undefined) return mention.goesTo(destination);
  if (path.startsWith('/thread/')) return goesOutAsThread(body, destination.platform);
  if (path === '/coverFrameMs') return takesCoverFrame(destination.platform);
  const [, index] = /^\/variants\/(\d+)\/overrides\//.exec(path) ?? [];
  return index !== undefined && body.variants[Number(index)]?.platform === destination.platform;
};

/**
 * Faults of the files that a draft names. Its targets are not known, so nothing is said of what a network takes: a file
 * must be known, and be the client's own or the workspace's.
 */
export const draftMediaIssues = (
  body: PostBody,
  clientId: string,
  assets: PostAssets,
): Pick<MediaIssues, 'invalid' | 'notInClient'> => {
  const invalid: Issue[] = [];
  const notInClient: Issue[] = [];
  for (const { path, id } of mentionsOf(body)) {
    const asset = assets.get(id);
    if (asset === undefined) invalid.push(unknownFile(path));
    else if (asset.clientId !== null && asset.clientId !== clientId) notInClient.push(strangerFile(path, id));
  }
  return { invalid, notInClient };
};

const unknownFile = (path: string): Issue => ({ path, code: 'unknown_id', message: 'is not known' });
const strangerFile = (path: string, mediaId: string): Issue => ({
  path,
  code: 'media_not_in_client',
  message: 'belongs to another client than the post goes to',
  mediaId,
});

/**
 * A cover frame at or after the end of a video that goes out alone. With several videos no network lets the caller
 * choose a frame.
 */
const frameIssues = (body: PostBody, destinations: readonly Destination[], assets: PostAssets): readonly Issue[] => {
  const { coverFrameMs } = body;
  if (coverFrameMs === null) return [];
  const lengths = destinations
    .filter(({ platform }) => takesCoverFrame(platform))
    .flatMap(({ platform }) => {
      const [id, ...more] = contentFor(body, platform).segments[0].mediaIds;
      const asset = id === undefined || more.length > 0 ? undefined : assets.get(id);
      return asset?.kind === 'video' ? (asset.probe?.durationMs ?? []) : [];
    });
  const shortest = Math.min(...lengths);
  return coverFrameMs < shortest
    ? []
    : [
        {
          path: '/coverFrameMs',
          code: 'too_large',
          message: `must lie before the end of the video, which has ${shortest} ms`,
        },
      ];
};
