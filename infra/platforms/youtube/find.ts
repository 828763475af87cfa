import type { Checkpoint, Json, PlatformAdapter, PublishRequest, Undecided } from '#contracts/ports/platform.ts';
import { opened, sealed } from '../kit/app.ts';
import type { Ask } from '../kit/client.ts';
import { undecidedBy, unknown } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import {
  aroundCall,
  asAsked,
  type Between,
  comparable,
  crossingIn,
  crossingOf,
  findAll,
  lookFor,
  type OwnPosts,
} from '../kit/own-posts.ts';
import { whereIs } from '../kit/resumable.ts';
import { subjectOf } from '../kit/upload.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { namedInstant } from '../shared/outcomes.ts';
import { descriptionOf, failureIn, linkTo, shownOf, titleOf } from './post.ts';
import { isVideoId, reading, textAt } from './tables.ts';

/**
 * Looks for the video of a call whose answer was lost: the upload session names it. A session that has ended proves nothing,
 * and the videos of the channel are looked through by title, description and time.
 */

const [perPage, maxPages] = [50, 4];
const askMs = 20_000;

const contentOf = (request: PublishRequest): Json => [titleOf(request), descriptionOf(request)];

export const boundaryOf = ({ app, clock }: Bound, request: PublishRequest, session: string): Json => ({
  ...membersOf(crossingOf(contentOf(request), [], clock())),
  sealed: sealed(app, { session }),
});

/** `undecided`: YouTube gave no answer. */
export type Seen = { readonly kind: 'video'; readonly video: Members } | { readonly kind: 'absent' } | Undecided;

type Asked = Pick<PublishRequest, 'account' | 'targetId'>;
const ask = ({ client }: Bound, asked: Asked, what: Ask) =>
  client.call(subjectOf(asked), what, AbortSignal.timeout(askMs));

export const videoOf = async (bound: Bound, asked: Asked, id: string): Promise<Seen> => {
  const answer = await ask(bound, asked, reading('/videos', { part: 'snippet,status,processingDetails', id }));
  if (answer.kind !== 'ok') return undecidedBy(answer, bound.clock());
  if (!Array.isArray(answer.body.items)) return { kind: 'undecided', failure: unknown('there is no list of videos') };
  const video = listIn(answer.body, 'items').find((one) => textIn(one, 'id') === id);
  return video === undefined ? { kind: 'absent' } : { kind: 'video', video };
};

/** When it was uploaded; the video itself may be published later. */
const timeOf = (item: Members): number => Date.parse(textAt(item, 'snippet.publishedAt') ?? '');

/** Videos of the channel of a time, private ones and those that are processed too. */
const ownVideos = (bound: Bound, request: PublishRequest, between: Between): OwnPosts => {
  const [title, description] = [comparable(titleOf(request)), comparable(descriptionOf(request))];
  let playlistId: string | null = null;
  return {
    ...{ list: 'items', ...between, at: timeOf, maxPages },
    page: async (cursor) => {
      if (playlistId === null) {
        const { externalId: id } = request.account;
        const channels = await ask(bound, request, reading('/channels', { part: 'contentDetails', id }));
        if (channels.kind !== 'ok') return channels;
        playlistId = textAt(channels.body, 'items.contentDetails.relatedPlaylists.uploads');
        if (playlistId === null) return { kind: 'silent', reason: 'the channel names no list of its videos' };
      }
      const query = { part: 'snippet,contentDetails', playlistId, maxResults: String(perPage) };
      return ask(bound, request, reading('/playlistItems', cursor === null ? query : { ...query, pageToken: cursor }));
    },
    next: (body) => textIn(body, 'nextPageToken'),
    isIt: (item) =>
      comparable(textAt(item, 'snippet.title')) === title &&
      comparable(textAt(item, 'snippet.description')) === description,
    show: (item) => {
      const id = textAt(item, 'contentDetails.videoId') ?? '';
      return isVideoId(id) ? { externalId: id, permalink: linkTo(request, id) } : null;
    },
  };
};

/** What YouTube has of a call. */
export const seenOf = async (
  bound: Bound,
  request: PublishRequest,
  { data }: Pick<Checkpoint, 'data'>,
  handle: Json = null,
): Promise<Seen> => {
  const known = textIn(handle, 'id');
  if (known !== null) return videoOf(bound, request, known);
  const crossed = crossingIn(data, contentOf(request));
  if (crossed === null) return { kind: 'undecided' };
  const session = textIn(opened(bound.app, textIn(data, 'sealed') ?? ''), 'session');
  const found =
    session === null ? ({ kind: 'gone' } as const) : await whereIs(bound, request, session, AbortSignal.timeout(askMs));
  if (found.kind === 'made') {
    const id = textIn(found.body, 'id') ?? '';
    const made = await videoOf(bound, request, id);
    // It was there: that it is not shown now proves nothing.
    const failure = unknown(`YouTube does not show the video ${id}`);
    return made.kind === 'absent' ? { kind: 'undecided', failure } : made;
  }
  // The last byte is not there, so there is no video.
  if (found.kind === 'at') return { kind: 'absent' };
  if (found.kind !== 'gone') return undecidedBy(found, bound.clock());
  const listed = await lookFor(ownVideos(bound, request, aroundCall(bound, crossed.at)), bound.clock);
  if (listed.kind === 'present') return videoOf(bound, request, listed.externalId);
  // The list may be behind: without its session nothing proves that there is no video.
  const failure = unknown('the upload session has ended, and the channel lists no such video: look there');
  return listed.kind === 'undecided' ? listed : { kind: 'undecided', failure };
};

/** YouTube may tell the owner the milliseconds that are left. */
const leftIn = (video: Members): number => {
  const said = textAt(video, 'processingDetails.processingProgress.timeLeftMs') ?? '';
  return /^\d{1,9}$/.test(said) ? Number(said) : askMs;
};

/** What has become of a video that is there. */
export const resultOf = ({ clock }: Bound, request: PublishRequest, video: Members) => {
  const failure = failureIn(video, request.media[0]?.mediaId ?? null);
  if (failure !== null) return { kind: 'failed', failure } as const;
  if (textAt(video, 'status.uploadStatus') !== 'uploaded') {
    return { kind: 'present', ...shownOf(request, video, clock()) } as const;
  }
  const handle = { id: textIn(video, 'id') ?? '' };
  return { kind: 'processing', handle, askAt: namedInstant(clock() + leftIn(video)) } as const;
};

export const reconcile =
  (bound: Bound): PlatformAdapter['reconcile'] =>
  async (request, crossing, handle = null) => {
    const found = await seenOf(bound, request, crossing, handle);
    return found.kind === 'video' ? resultOf(bound, request, found.video) : found;
  };

export const findPosts =
  (bound: Bound): NonNullable<PlatformAdapter['findPosts']> =>
  (request) =>
    findAll(ownVideos(bound, request, asAsked(request)), bound.clock);
