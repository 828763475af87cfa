import type { HandedOver, HandOverRequest, NativeScheduler, VerifyOutcome } from '#contracts/ports/platform.ts';
import { beforeBoundary, failureOf, type NotOk } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { subjectOf } from '../kit/upload.ts';
import { type Members, membersOf, textIn } from '../shared/members.ts';
import { isNotOk, type Seen, seenOf, timeIn, videoOf } from './find.ts';
import { shownOf, stateOf } from './post.ts';
import { handOver, nearMs, refusedTime } from './publish.ts';

/** YouTube's own scheduler: a private video with `publishAt`, which YouTube makes public then. */

/** Of `videos.update`, whose part takes the place of the whole one: what is left out falls back to its default. */
const kept = ['license', 'embeddable', 'publicStatsViewable', 'selfDeclaredMadeForKids', 'containsSyntheticMedia'];

const unknown = (answer: NotOk, { clock }: Bound) =>
  ({ kind: 'unknown', failure: beforeBoundary(answer, clock()).failure }) as const;

const callMs = 20_000;

const verify = async (
  bound: Bound,
  request: HandOverRequest,
  { boundary, nativeId }: HandedOver,
): Promise<VerifyOutcome> => {
  const seen: Seen = await seenOf(bound, request, boundary, nativeId === null ? null : { id: nativeId });
  if (seen.kind !== 'video') return seen;
  const { video } = seen;
  const state = stateOf(video, null);
  if (state.kind === 'failed') {
    const { platformCode, platformMessage } = state.failure;
    return { kind: 'failed', failure: failureOf('unscheduled', platformCode, platformMessage) };
  }
  if (timeIn(video) !== null) return { kind: 'scheduled', nativeId: textIn(video, 'id') ?? '' };
  if (textIn(membersOf(video.status), 'privacyStatus') === 'private') {
    const said = 'the video is private, and YouTube has no time for it any more';
    return { kind: 'failed', failure: failureOf('unscheduled', null, said) };
  }
  return { kind: 'published', ...shownOf(request, video, bound.clock()) };
};

type Found =
  | { readonly kind: 'waiting'; readonly video: Members }
  | Extract<Awaited<ReturnType<NativeScheduler['undo']>>, { readonly kind: 'too_late' | 'unknown' }>;

/** The video, as long as it is safely before its time: what is public already is not touched. */
const waiting = async (bound: Bound, request: HandOverRequest, nativeId: string): Promise<Found> => {
  const video = await videoOf(bound, request, nativeId, 'snippet,status');
  if (video === null) return { kind: 'unknown', failure: failureOf('gone', null, 'YouTube does not show the video') };
  if (isNotOk(video)) return unknown(video, bound);
  const at = timeIn(video);
  if (at !== null && at - bound.clock() >= nearMs) return { kind: 'waiting', video };
  return { kind: 'too_late', failure: failureOf('undoTooLate', null, 'the video is public, or about to be') };
};

const undo = async (bound: Bound, request: HandOverRequest, nativeId: string): ReturnType<NativeScheduler['undo']> => {
  const found = await waiting(bound, request, nativeId);
  if (found.kind !== 'waiting') return found;
  const ask = { method: 'DELETE', path: '/videos', query: { id: nativeId } } as const;
  const answer = await bound.client.call(subjectOf(request), ask, AbortSignal.timeout(callMs));
  return answer.kind === 'ok' ? { kind: 'undone' } : unknown(answer, bound);
};

const reschedule = async (
  bound: Bound,
  request: HandOverRequest,
  nativeId: string,
): ReturnType<NonNullable<NativeScheduler['reschedule']>> => {
  const refused = refusedTime(request.dueAt, bound.clock());
  if (refused !== null) return refused;
  const found = await waiting(bound, request, nativeId);
  if (found.kind !== 'waiting') return found;
  const status = membersOf(found.video.status) ?? {};
  const others = Object.fromEntries(kept.flatMap((name) => (status[name] === undefined ? [] : [[name, status[name]]])));
  const json = { id: nativeId, status: { ...others, privacyStatus: 'private', publishAt: request.dueAt } };
  const ask = { method: 'PUT', path: '/videos', query: { part: 'status' }, json } as const;
  const answer = await bound.client.call(subjectOf(request), ask, AbortSignal.timeout(callMs));
  return answer.kind === 'ok' ? { kind: 'rescheduled' } : unknown(answer, bound);
};

export const scheduler = (bound: Bound): NativeScheduler => ({
  handOver: handOver(bound),
  verify: (request, handed) => verify(bound, request, handed),
  undo: (request, nativeId) => undo(bound, request, nativeId),
  reschedule: (request, nativeId) => reschedule(bound, request, nativeId),
});
