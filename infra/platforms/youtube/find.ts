import type { Checkpoint, Json, PlatformAdapter, PublishRequest, Undecided } from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { opened, sealed } from '../kit/app.ts';
import { beforeBoundary, type NetworkAnswer, type NotOk } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { crossingIn, crossingOf, findAll, lookFor, type OwnPosts } from '../kit/own-posts.ts';
import { subjectOf } from '../kit/upload.ts';
import { instantOf, integerIn, listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { namedInstant } from '../shared/outcomes.ts';
import { whereIs } from './media.ts';
import { descriptionOf, linkTo, resourceOf, shownOf, stateOf } from './post.ts';
import { isVideoId } from './tables.ts';

/**
 * Looks for the video of a call whose answer was lost: the upload session names it. A session that has ended proves nothing,
 * and the videos of the channel are looked through by title, description and time.
 */

const { publish: rules } = rulesOf('youtube');

const titleIn = (resource: Members): string => textIn(membersOf(resource.snippet), 'title') ?? '';

/** What tells the video from others. */
const contentOf = (request: PublishRequest): Json => [titleIn(resourceOf(request, null)), descriptionOf(request)];

export const boundaryOf = ({ app, clock }: Bound, request: PublishRequest, session: string): Json => ({
  ...membersOf(crossingOf(contentOf(request), [], clock())),
  sealed: sealed(app, { session }),
});

/** Null: YouTube has no such video, or does not show it. */
export const videoOf = async (
  { client, boundaryDeadlineMs }: Bound,
  request: Pick<PublishRequest, 'account' | 'targetId'>,
  id: string,
  parts = 'snippet,status,processingDetails',
): Promise<Members | null | NotOk> => {
  const ask = { method: 'GET', path: '/videos', query: { part: parts, id } } as const;
  const answer = await client.call(subjectOf(request), ask, AbortSignal.timeout(Math.min(boundaryDeadlineMs, 20_000)));
  if (answer.kind !== 'ok') return answer;
  if (!Array.isArray(answer.body.items)) return { kind: 'silent', reason: 'the answer has no list of videos' };
  return listIn(answer.body, 'items').find((one) => textIn(one, 'id') === id) ?? null;
};

/** An answer that says nothing of a video. Members of a video are no kind of answer. */
export const isNotOk = (found: Members | NotOk): found is NotOk => typeof found.kind === 'string' && !('id' in found);

export type Seen = { readonly kind: 'video'; readonly video: Members } | { readonly kind: 'absent' } | Undecided;

const undecided = (answer: NotOk, { clock }: Bound): Undecided => ({
  kind: 'undecided',
  failure: beforeBoundary(answer, clock()).failure,
});

const byId = async (bound: Bound, request: PublishRequest, id: string): Promise<Seen> => {
  const video = await videoOf(bound, request, id);
  if (video === null) return { kind: 'absent' };
  return isNotOk(video) ? undecided(video, bound) : { kind: 'video', video };
};

/** Of our clock and YouTube's. */
const skewMs = 60_000;
const perPage = 50;
const maxPages = 4;

/** When it was uploaded; the video itself may be published later. */
const timeOf = (item: Members): number => Date.parse(textIn(membersOf(item.snippet), 'publishedAt') ?? '');
const seen = (text: string): string => text.normalize('NFC').replaceAll(/\s+/gu, ' ').trim();

/** Videos of the channel from a time on, private ones and those that are processed too. */
const ownVideos = (
  { client, boundaryDeadlineMs }: Bound,
  request: PublishRequest,
  since: number,
  until: number,
): OwnPosts => {
  const [title, description] = [titleIn(resourceOf(request, null)), descriptionOf(request)].map(seen);
  const signal = () => AbortSignal.timeout(Math.min(boundaryDeadlineMs, 20_000));
  let playlistId = '';
  const get = (path: string, query: Readonly<Record<string, string>>): Promise<NetworkAnswer> =>
    client.call(subjectOf(request), { method: 'GET', path, query }, signal());
  return {
    ...{ list: 'items', since, at: timeOf, maxPages },
    page: async (cursor) => {
      if (playlistId === '') {
        const channels = await get('/channels', { part: 'contentDetails', id: request.account.externalId });
        if (channels.kind !== 'ok') return channels;
        const [channel] = listIn(channels.body, 'items');
        const lists = membersOf(membersOf(channel?.contentDetails)?.relatedPlaylists);
        playlistId = textIn(lists, 'uploads') ?? '';
        if (playlistId === '') return { kind: 'silent', reason: 'the channel names no list of its videos' };
      }
      const query = { part: 'snippet,contentDetails', playlistId, maxResults: String(perPage) };
      return get('/playlistItems', cursor === null ? query : { ...query, pageToken: cursor });
    },
    next: (body) => textIn(body, 'nextPageToken'),
    isIt: (item) => {
      const snippet = membersOf(item.snippet);
      const isThen = !(timeOf(item) > until);
      return (
        isThen &&
        [title, description].join() === ['title', 'description'].map((one) => seen(textIn(snippet, one) ?? '')).join()
      );
    },
    show: (item) => {
      const externalId = textIn(membersOf(item.contentDetails), 'videoId');
      return externalId === null || !isVideoId(externalId)
        ? null
        : { externalId, permalink: linkTo(request, externalId) };
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
  if (known !== null) return byId(bound, request, known);
  const crossed = crossingIn(data, contentOf(request));
  if (crossed === null) return { kind: 'undecided' };
  const session = textIn(opened(bound.app, textIn(data, 'sealed') ?? ''), 'session');
  const signal = AbortSignal.timeout(Math.min(bound.boundaryDeadlineMs, 20_000));
  const found = session === null ? ({ kind: 'gone' } as const) : await whereIs(bound, request, session, signal);
  switch (found.kind) {
    case 'made':
      return byId(bound, request, textIn(found.video, 'id') ?? '');
    // The last byte is not there, so there is no video.
    case 'at':
      return { kind: 'absent' };
    case 'gone': {
      const until = crossed.at + bound.boundaryDeadlineMs + rules.settleWindowMs + skewMs;
      const listed = await lookFor(ownVideos(bound, request, crossed.at - skewMs, until), bound.clock);
      if (listed.kind === 'present') return byId(bound, request, listed.externalId);
      return listed.kind === 'absent' || listed.kind === 'undecided' ? listed : { kind: 'undecided' };
    }
    default:
      return undecided(found, bound);
  }
};

/** Seconds to minutes for a short video; YouTube tells the time that is left to the owner, where it knows it. */
const usualAskMs = 20_000;

export const processing = (video: Members, now: number) => {
  const details = membersOf(video.processingDetails);
  const said = membersOf(details?.processingProgress)?.timeLeftMs;
  const left =
    typeof said === 'string' && /^\d{1,9}$/.test(said)
      ? Number(said)
      : integerIn(details?.processingProgress, 'timeLeftMs');
  return { handle: { id: textIn(video, 'id') ?? '' }, askAt: namedInstant(now + (left ?? usualAskMs)) };
};

export const reconcile =
  (bound: Bound): PlatformAdapter['reconcile'] =>
  async (request, boundary, handle = null) => {
    const found = await seenOf(bound, request, boundary, handle);
    if (found.kind !== 'video') return found;
    const state = stateOf(found.video, request.media[0]?.mediaId ?? null);
    if (state.kind === 'failed') return state;
    if (state.kind === 'processing') return { kind: 'processing', ...processing(found.video, bound.clock()) };
    return { kind: 'present', ...shownOf(request, found.video, bound.clock()) };
  };

export const findPosts =
  (bound: Bound): NonNullable<PlatformAdapter['findPosts']> =>
  (request) =>
    findAll(ownVideos(bound, request, Date.parse(request.from), Date.parse(request.until)), bound.clock);

/** When YouTube makes a private video public, milliseconds since the epoch; null: it has no such time. */
export const timeIn = ({ status }: Members): number | null => {
  const at = Date.parse(textIn(status, 'publishAt') ?? '');
  return textIn(status, 'privacyStatus') === 'private' && instantOf(at) !== null ? at : null;
};
