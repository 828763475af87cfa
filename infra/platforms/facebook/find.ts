import type { Checkpoint, Json, PlatformAdapter, PublishRequest, Undecided } from '#contracts/ports/platform.ts';
import { undecidedBy } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import {
  aroundCall,
  asAsked,
  askAbout,
  type Between,
  crossingIn,
  crossingOf,
  findAll,
  lookFor,
  type OwnPosts,
} from '../kit/own-posts.ts';
import { isGone, pagesBy, reading, secondOf, timeIn } from '../meta/graph.ts';
import { integerIn, type Members, textIn } from '../shared/members.ts';
import { namedInstant } from '../shared/outcomes.ts';
import { failureIn, isOf, isOut, isUntouched, isVideo, shownOf, wayOf } from './post.ts';
import { isPostId } from './tables.ts';

/**
 * Looks for the post of a call whose answer was lost: a video tells of itself; texts, photos and photo stories are looked for in
 * the page's own lists, which may be behind.
 */

const [perPage, maxPages] = [25, 4];
const soonMs = 20_000;

const contentOf = (request: PublishRequest): Json => [wayOf(request), request.content];

/** @param ids of the files */
export const boundaryOf = (request: PublishRequest, ids: readonly string[], now: number): Json =>
  crossingOf(contentOf(request), ids, now);

export const videoFields = 'status,permalink_url,post_id,created_time,published,scheduled_publish_time,description';

export type Found = { readonly kind: 'found'; readonly one: Members } | { readonly kind: 'absent' } | Undecided;

/** What Facebook has of a post or a video. */
export const foundOf = async (bound: Bound, request: PublishRequest, id: string, fields: string): Promise<Found> => {
  const answer = await askAbout(bound, request, reading(id, { fields }));
  if (answer.kind === 'ok') return { kind: 'found', one: answer.body };
  return isGone(answer) ? { kind: 'absent' } : undecidedBy(answer, bound.clock());
};

/** Id of a post of the page: Facebook names it whole, by its own half, or not at all. */
export const postIdOf = ({ account }: PublishRequest, video: Members, id: string): string => {
  const said = textIn(video, 'post_id') ?? integerIn(video, 'post_id')?.toString() ?? id;
  return said.includes('_') ? said : `${account.externalId}_${said}`;
};

const listOf = (bound: Bound, request: PublishRequest, edge: string, query: Readonly<Record<string, string>>) => {
  const path = `${request.account.externalId}/${edge}`;
  return { ...pagesBy((asked) => askAbout(bound, request, reading(path, asked)), query, perPage), maxPages };
};

const files = 'attachments{media_type,target{id},subattachments}';
const createdAt = (post: Members): number => timeIn(post, 'created_time');

/** Posts of the page. @param photos of the post; null: nobody knows them */
const ownPosts = (
  bound: Bound,
  request: PublishRequest,
  between: Between,
  photos: readonly string[] | null,
): OwnPosts => ({
  ...listOf(bound, request, 'published_posts', {
    ...{ fields: `id,message,created_time,permalink_url,${files}`, since: secondOf(between.since) },
  }),
  ...{ ...between, at: createdAt },
  isIt: (post) => isOf(post, request, photos),
  show: (post) => {
    const id = textIn(post, 'id') ?? '';
    return isPostId(id) ? shownOf(request, post, id, bound.clock()) : null;
  },
});

/** "Page Stories": a story names the photo or video that it shows. */
const ownStories = (bound: Bound, request: PublishRequest, since: number, file: string): OwnPosts => ({
  ...listOf(bound, request, 'stories', {
    ...{ fields: 'post_id,status,creation_time,media_type,media_id,url', since: secondOf(since) },
  }),
  ...{ since, at: (story) => Number(textIn(story, 'creation_time') ?? Number.NaN) * 1_000 },
  isIt: (story) => textIn(story, 'media_id') === file,
  show: (story) => {
    const externalId = textIn(story, 'post_id') ?? '';
    return isPostId(externalId) ? { externalId, permalink: textIn(story, 'url') } : null;
  },
});

/** Facebook does not say when it will be ready. */
export const processingOf = ({ clock }: Bound, video: string) => ({
  ...{ handle: { video }, askAt: namedInstant(clock() + soonMs) },
});

/** What has become of a video. @param isKnown Facebook said that it has the whole of it */
export const fateOf = async (bound: Bound, request: PublishRequest, id: string, isKnown: boolean, since: number) => {
  const found = await foundOf(bound, request, id, videoFields);
  if (found.kind !== 'found') return found;
  const { one: video } = found;
  const failure = failureIn(video, request.media[0]?.mediaId ?? null);
  if (failure !== null) return { kind: 'failed', failure } as const;
  if (isOut(video)) {
    if (wayOf(request) === 'video_stories') {
      const story = await lookFor(ownStories(bound, request, since, id), bound.clock);
      // It is out: the list is behind.
      return story.kind === 'absent' ? ({ kind: 'undecided' } as const) : story;
    }
    return { kind: 'present', ...shownOf(request, video, postIdOf(request, video, id), bound.clock()) } as const;
  }
  if (!isKnown && isUntouched(video)) return { kind: 'absent' } as const;
  return { kind: 'processing', ...processingOf(bound, id) } as const;
};

export const reconcile =
  (bound: Bound): PlatformAdapter['reconcile'] =>
  async (request, { data }, handle = null) => {
    const way = wayOf(request);
    const crossed = crossingIn(data, contentOf(request));
    if (crossed === null) return { kind: 'undecided' };
    const { mediaIds } = crossed;
    const between = aroundCall(bound, crossed.at);
    if (isVideo(way)) {
      const known = textIn(handle, 'video');
      return fateOf(bound, request, known ?? mediaIds[0] ?? '', known !== null, between.since);
    }
    if (way === 'photo_stories')
      return lookFor(ownStories(bound, request, between.since, mediaIds[0] ?? ''), bound.clock);
    return lookFor(ownPosts(bound, request, between, mediaIds), bound.clock);
  };

/** By text, time and number of files. A video has no other text than its post; stories have none. */
export const findPosts =
  (bound: Bound): NonNullable<PlatformAdapter['findPosts']> =>
  async (request) => {
    if (wayOf(request).endsWith('stories')) return { kind: 'not_askable' };
    return findAll(ownPosts(bound, request, asAsked(request), null), bound.clock);
  };

/** Scheduled posts of the page with these photos or this text. */
export const scheduledAs = async (bound: Bound, request: PublishRequest, { data }: Pick<Checkpoint, 'data'>) => {
  const crossed = crossingIn(data, contentOf(request));
  if (crossed === null) return { kind: 'undecided' } as const;
  const own = ownPosts(bound, request, aroundCall(bound, crossed.at), crossed.mediaIds);
  const fields = `id,message,created_time,scheduled_publish_time,${files}`;
  const scheduled = listOf(bound, request, 'scheduled_posts', { fields });
  return lookFor({ ...own, ...scheduled, until: Number.POSITIVE_INFINITY, isUnordered: true }, bound.clock);
};
