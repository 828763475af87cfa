import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { Json, PlatformAdapter, Processing, PublishRequest, ReconcileOutcome } from '#contracts/ports/platform.ts';
import { permalinkOf } from '#domain/platforms/index.ts';
import type { Failure } from '#schemas/target.ts';
import { failureOf, type Meaning, type NotOk, undecidedBy } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import {
  asAsked,
  askAbout,
  type Between,
  comparable,
  crossingIn,
  crossingOf,
  findAll,
  lookFor,
  type OwnPosts,
  skewMs,
} from '../kit/own-posts.ts';
import { subjectOf } from '../kit/upload.ts';
import { integerIn, type Members, membersOf, numberIn, textIn } from '../shared/members.ts';
import { levelOf } from './post.ts';
import { isPostId, posting } from './tables.ts';

/**
 * What became of a post. TikTok gives each a `publish_id`, which says how far it is; the id by which people see it comes later,
 * and of a post that is not public never. A picture post whose answer was lost has none: it is looked for among the public posts,
 * and what is not there proves nothing.
 */

export type Status =
  | { readonly kind: 'working'; readonly uploaded: number | null; readonly isUpload: boolean }
  /** `postId`: null, TikTok has none that the public sees, or not yet. */
  | { readonly kind: 'out'; readonly postId: string | null }
  | { readonly kind: 'ended'; readonly reason: string };

/** TikTok's spelling. A list of integers of 64 bits, which some answers write as texts. */
const postIdIn = ({ publicaly_available_post_id: listed }: Members): string | null => {
  const [first] = Array.isArray(listed) ? (listed as readonly Json[]) : [];
  const id = typeof first === 'number' || typeof first === 'string' ? String(first) : '';
  return isPostId(id) && id !== '0' ? id : null;
};

/** "Get Post Status". What it does not name is on its way. */
export const statusOf = async (
  { client }: Pick<Bound, 'client'>,
  subject: NetworkCall['subject'],
  publishId: string,
  signal: AbortSignal,
): Promise<Status | NotOk> => {
  const ask = posting('/post/publish/status/fetch/', { publish_id: publishId });
  const answer = await client.call(subject, ask, signal);
  if (answer.kind !== 'ok') return answer;
  const data = membersOf(answer.body.data) ?? {};
  const status = textIn(data, 'status') ?? '';
  if (status === 'PUBLISH_COMPLETE') return { kind: 'out', postId: postIdIn(data) };
  if (status === 'FAILED') return { kind: 'ended', reason: textIn(data, 'fail_reason') || 'FAILED' };
  return { kind: 'working', uploaded: integerIn(data, 'uploaded_bytes'), isUpload: status === 'PROCESSING_UPLOAD' };
};

/** Bytes of a video that TikTok has; `over`: it takes no more of them. */
export const uploadedOf = async (...asked: Parameters<typeof statusOf>): Promise<number | 'over' | NotOk> => {
  const status = await statusOf(...asked);
  if (status.kind === 'working') return status.uploaded ?? 0;
  return status.kind === 'out' || status.kind === 'ended' ? 'over' : status;
};

const ofFile = [
  'file_format_check_failed',
  'duration_check_failed',
  'frame_rate_check_failed',
  'picture_size_check_failed',
];

/** "Get Post Status", fail reasons; another one is about the content. */
const meanings: Readonly<Record<string, Meaning>> = {
  ...Object.fromEntries(ofFile.map((reason) => [reason, 'media'] as const)),
  ...{ video_pull_failed: 'later', photo_pull_failed: 'later', internal: 'down', auth_removed: 'lapsed' },
  ...{ spam_risk_too_many_posts: 'limited', spam_risk_user_banned_from_posting: 'forbidden' },
};

export const failureFor = (reason: string, { media }: Pick<PublishRequest, 'media'>): Failure => {
  const meaning = meanings[reason] ?? 'content';
  const [file] = media;
  const isOne = meaning === 'media' && media.length === 1 && file !== undefined;
  return failureOf(meaning, reason, `TikTok did not publish it: ${reason}`, isOne ? file.mediaId : null);
};

/** Seconds between two questions by the age of the post: most are out within a minute, and moderation may take hours. */
const rests: readonly (readonly [age: number, every: number])[] = [
  [30, 5],
  [330, 15],
  [7_200, 60],
  [Number.POSITIVE_INFINITY, 3_600],
];

export const processingOf = (publishId: string, since: number, now: number): Processing => {
  const age = (now - since) / 1_000;
  const every = rests.find(([until]) => age < until)?.[1] ?? 60;
  return { handle: { publishId }, askAt: new Date(now + every * 1_000).toISOString() };
};

/** Without an id that the public sees, `publish_id` names the post: figures then ask for the other one again. */
export const shownAs = ({ account, media }: PublishRequest, publishId: string, postId: string | null) => ({
  externalId: postId ?? publishId,
  permalink:
    // The form of addresses of pictures is not documented: their figures bring it.
    postId === null || media[0]?.kind !== 'video'
      ? null
      : permalinkOf('tiktok', { id: postId, username: account.username, account: account.externalId }),
});

const contentOf = (request: PublishRequest): Json => {
  const { content, media } = request;
  return [content, levelOf(request), media.map(({ sha256 }) => sha256)];
};

/** @param publishId null: the call of the boundary brings it */
export const boundaryOf = (request: PublishRequest, publishId: string | null, now: number): Json =>
  crossingOf(contentOf(request), publishId === null ? [] : [publishId], now);

/** Members of a post that the list is asked for: `fields` is a must. */
const fields = 'id,create_time,title,video_description,share_url';
const perPage = 20;
const maxPages = 5;

const timeOf = (video: Members): number => (numberIn(video, 'create_time') ?? Number.NaN) * 1_000;

/** TikTok lists the caption as the description. */
const isIt = (video: Members, { content }: PublishRequest): boolean =>
  [textIn(video, 'video_description'), textIn(video, 'title')].some((one) => comparable(one) === comparable(content));

/** "List Videos": the account's own public posts, newest first. */
const publicPosts = (bound: Bound, request: PublishRequest, between: Between): OwnPosts => ({
  ...{ list: 'videos', ...between, at: timeOf, maxPages },
  isIt: (video) => isIt(video, request),
  page: async (cursor) => {
    const json = { max_count: perPage, ...(cursor === null ? {} : { cursor: Number(cursor) }) };
    const answer = await askAbout(bound, request, posting('/video/list/', json, { fields }));
    return answer.kind === 'ok' ? { ...answer, body: membersOf(answer.body.data) ?? {} } : answer;
  },
  next: (body) => (body.has_more === true ? (integerIn(body, 'cursor')?.toString() ?? null) : null),
  show: (video) => {
    const externalId = textIn(video, 'id') ?? '';
    return isPostId(externalId) ? { externalId, permalink: textIn(video, 'share_url') } : null;
  },
});

const isPublic = (request: PublishRequest): boolean => levelOf(request) === 'PUBLIC_TO_EVERYONE';

/** Of a post without a `publish_id`. It may be pulled and published an hour later. */
const amongPublic = async (bound: Bound, request: PublishRequest, at: number): Promise<ReconcileOutcome> => {
  if (!isPublic(request)) return { kind: 'undecided' };
  const until = at + bound.boundaryDeadlineMs + 2 * 3_600_000;
  const found = await lookFor(publicPosts(bound, request, { since: at - skewMs, until }), bound.clock);
  return found.kind === 'absent' ? { kind: 'undecided' } : found;
};

export const reconcile =
  (bound: Bound): PlatformAdapter['reconcile'] =>
  async (request, { data }, handle) => {
    const isSame = crossingIn(data, contentOf(request)) !== null;
    const [crossed] = (membersOf(data)?.mediaIds ?? []) as readonly Json[];
    const publishId = textIn(handle, 'publishId') ?? (typeof crossed === 'string' ? crossed : null);
    const at = Date.parse(textIn(data, 'at') ?? '');
    if (publishId === null) return isSame ? amongPublic(bound, request, at) : { kind: 'undecided' };
    const signal = AbortSignal.timeout(bound.boundaryDeadlineMs);
    const status = await statusOf(bound, subjectOf(request), publishId, signal);
    switch (status.kind) {
      case 'out': {
        const publishedAt = new Date(handle === undefined ? at : bound.clock()).toISOString();
        return { kind: 'present', ...shownAs(request, publishId, status.postId), publishedAt };
      }
      case 'ended':
        return { kind: 'failed', failure: failureFor(status.reason, request) };
      case 'working': {
        const { uploaded, isUpload } = status;
        const processing = { kind: 'processing', ...processingOf(publishId, at, bound.clock()) } as const;
        if (handle !== undefined || !isUpload) return processing;
        // Of another file, or of none, the size says nothing. Of this one it is proof, since the address takes no more an hour later.
        if (!isSame || uploaded === null) return { kind: 'undecided' };
        return uploaded < (request.media[0]?.bytes ?? 0) ? { kind: 'absent' } : processing;
      }
      default:
        return undecidedBy(status, bound.clock());
    }
  };

/** By time and caption, of public posts alone: the list has no others. */
export const findPosts =
  (bound: Bound): NonNullable<PlatformAdapter['findPosts']> =>
  async (request) => {
    if (!isPublic(request)) return { kind: 'not_askable' };
    return findAll(publicPosts(bound, request, asAsked(request)), bound.clock);
  };
