import type { Checkpoint, Json, PlatformAdapter, PublishRequest, Undecided } from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { membersAt, type NetworkAnswer, undecidedBy } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { crossingIn, crossingOf, findAll, lookFor, type OwnPosts, skewMs } from '../kit/own-posts.ts';
import { subjectOf } from '../kit/upload.ts';
import { isGone, pagesBy, reading, secondOf, timeIn } from '../meta/graph.ts';
import { integerIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { namedInstant } from '../shared/outcomes.ts';
import type { File } from './media.ts';
import { failureIn, isOf, isVideo, shownOf, type Way, wayOf } from './post.ts';
import { isPostId } from './tables.ts';

/**
 * Looks for the post of a call whose answer was lost: a video tells of itself; texts, photos and photo stories are looked for in
 * the page's own lists, which may be behind.
 */

const { publish: rules } = rulesOf('facebook');
const [perPage, maxPages] = [25, 4];
export const soonMs = 20_000;

const contentOf = (request: PublishRequest, way: Way): Json => [way, request.content];

export const boundaryOf = (request: PublishRequest, way: Way, files: readonly File[], now: number): Json => {
  const ids = files.map(({ id }) => id);
  return crossingOf(contentOf(request, way), ids, now);
};

type Asked = Pick<PublishRequest, 'account' | 'targetId'>;

const get = (
  { client, boundaryDeadlineMs }: Bound,
  asked: Asked,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<NetworkAnswer> =>
  client.call(subjectOf(asked), reading(path, query), AbortSignal.timeout(boundaryDeadlineMs));

const videoFields = 'status,permalink_url,post_id,created_time,published,scheduled_publish_time';

export type Seen = { readonly kind: 'video'; readonly video: Members } | { readonly kind: 'absent' } | Undecided;

export const videoOf = async (bound: Bound, asked: Asked, id: string): Promise<Seen> => {
  const answer = await get(bound, asked, id, { fields: videoFields });
  if (answer.kind === 'ok') return { kind: 'video', video: answer.body };
  return isGone(answer) ? { kind: 'absent' } : undecidedBy(answer, bound.clock());
};

const publishing = ({ status }: Members, name: string): string =>
  textIn(membersOf(status)?.publishing_phase, name) ?? '';

export const isOut = (video: Members): boolean => publishing(video, 'publish_status') === 'published';

/** Facebook has all of it and does nothing with it: the call that publishes it did not arrive. */
export const isUntouched = (video: Members): boolean =>
  publishing(video, 'status') === 'not_started' && textIn(video.status, 'video_status') === 'ready';

/** Id of a post of the page: Facebook names it whole, by its own half, or not at all. */
export const postIdOf = ({ account }: Asked, video: Members, id: string): string => {
  const said = textIn(video, 'post_id') ?? integerIn(video, 'post_id')?.toString() ?? id;
  return said.includes('_') ? said : `${account.externalId}_${said}`;
};

const listOf = (bound: Bound, request: PublishRequest, edge: string, query: Readonly<Record<string, string>>) => ({
  ...pagesBy((asked) => get(bound, request, `${request.account.externalId}/${edge}`, asked), query, perPage),
  maxPages,
});

const files = 'attachments{media_type,target{id},subattachments}';
const createdAt = (post: Members): number => timeIn(post, 'created_time');

/** Posts of the page between two times. @param photos of the post; null: nobody knows them */
const ownPosts = (
  bound: Bound,
  request: PublishRequest,
  [since, until]: readonly [number, number],
  photos: readonly string[] | null,
): OwnPosts => ({
  ...listOf(bound, request, 'published_posts', {
    ...{ fields: `id,message,created_time,permalink_url,${files}`, since: secondOf(since) },
  }),
  ...{ since, at: createdAt },
  isIt: (post) => !(createdAt(post) > until) && isOf(post, request, photos),
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

/** What has become of a video. @param isKnown Facebook said that it has the whole of it */
export const fateOf = async (bound: Bound, request: PublishRequest, id: string, isKnown: boolean, since: number) => {
  const found = await videoOf(bound, request, id);
  if (found.kind !== 'video') return found;
  const { video } = found;
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
  return { kind: 'processing', handle: { video: id }, askAt: namedInstant(bound.clock() + soonMs) } as const;
};

export const reconcile =
  (bound: Bound): PlatformAdapter['reconcile'] =>
  async (request, { data }, handle = null) => {
    const way = wayOf(request);
    const crossed = crossingIn(data, contentOf(request, way));
    if (crossed === null) return { kind: 'undecided' };
    const { at, mediaIds } = crossed;
    const since = at - skewMs;
    if (isVideo(way)) {
      const known = textIn(handle, 'video');
      return fateOf(bound, request, known ?? mediaIds[0] ?? '', known !== null, since);
    }
    if (way === 'photo_stories') return lookFor(ownStories(bound, request, since, mediaIds[0] ?? ''), bound.clock);
    const until = at + bound.boundaryDeadlineMs + rules.settleWindowMs + skewMs;
    return lookFor(ownPosts(bound, request, [since, until], mediaIds), bound.clock);
  };

/** By text, time and number of files. A video has no other text than its post; stories have none. */
export const findPosts =
  (bound: Bound): NonNullable<PlatformAdapter['findPosts']> =>
  async (request) => {
    if (wayOf(request).endsWith('stories')) return { kind: 'not_askable' };
    const span = [Date.parse(request.from), Date.parse(request.until)] as const;
    return findAll(ownPosts(bound, request, span, null), bound.clock);
  };

/** Scheduled posts of the page with these photos or this text. */
export const scheduledAs = async (bound: Bound, request: PublishRequest, { data }: Pick<Checkpoint, 'data'>) => {
  const crossed = crossingIn(data, contentOf(request, 'feed'));
  if (crossed === null) return { kind: 'undecided' } as const;
  const own = ownPosts(bound, request, [crossed.at - skewMs, Number.POSITIVE_INFINITY], crossed.mediaIds);
  const fields = `id,message,created_time,scheduled_publish_time,${files}`;
  const scheduled = listOf(bound, request, 'scheduled_posts', { fields });
  return lookFor({ ...own, ...scheduled, isUnordered: true }, bound.clock);
};

/** The boundary's video; empty: there is none. */
export const videoIn = (data: Json): string => String(membersAt(data, 'mediaIds')[0] ?? '');
