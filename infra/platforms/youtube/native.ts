import type { HandOverRequest, NativeScheduler, UndoNotDone, VerifyOutcome } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import { beforeBoundary, failureOf, refusedTime, unknown } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { subjectOf } from '../kit/upload.ts';
import { instantOf, type Members, membersOf, textIn } from '../shared/members.ts';
import { type Seen, seenOf, videoOf } from './find.ts';
import { failureIn, shownOf } from './post.ts';
import { badTime, handOver, nearMs } from './publish.ts';

/** YouTube's own scheduler: a private video with `publishAt`, which YouTube makes public then. */

/** Of `videos.update`, whose part takes the place of the whole one: what is left out falls back to its default. */
const kept = ['license', 'embeddable', 'publicStatsViewable', 'selfDeclaredMadeForKids', 'containsSyntheticMedia'];

const isPrivate = ({ status }: Members): boolean => textIn(status, 'privacyStatus') === 'private';

/** When YouTube makes it public, milliseconds since the epoch; null: it has no such time. */
const timeIn = (video: Members): number | null => {
  const at = Date.parse(textIn(video.status, 'publishAt') ?? '');
  return isPrivate(video) && instantOf(at) !== null ? at : null;
};

const shownTo = ({ clock }: Bound, request: HandOverRequest, seen: Seen): VerifyOutcome => {
  if (seen.kind !== 'video') return seen;
  const { video } = seen;
  const why = failureIn(video, null);
  if (why === null && timeIn(video) !== null) return { kind: 'scheduled', nativeId: textIn(video, 'id') ?? '' };
  if (why === null && !isPrivate(video)) return { kind: 'published', ...shownOf(request, video, clock()) };
  const said = why?.platformMessage ?? 'YouTube has no time for the video any more';
  return { kind: 'failed', failure: failureOf('unscheduled', why?.platformCode ?? null, said) };
};

/** Changes a video that is safely before its time: what is public already is not touched. Null: done. */
const change = async (
  bound: Bound,
  request: HandOverRequest,
  nativeId: string,
  askOf: (video: Members) => Ask,
): Promise<UndoNotDone | null> => {
  const { client, clock } = bound;
  const seen = await videoOf(bound, request, nativeId);
  if (seen.kind !== 'video') {
    const failure = 'failure' in seen ? seen.failure : undefined;
    return { kind: 'unknown', failure: failure ?? unknown('YouTube does not show the video') };
  }
  const at = timeIn(seen.video);
  if (at === null || at - clock() < nearMs) {
    return { kind: 'too_late', failure: failureOf('undoTooLate', null, 'the video is public, or about to be') };
  }
  const answer = await client.call(subjectOf(request), askOf(seen.video), AbortSignal.timeout(20_000));
  return answer.kind === 'ok' ? null : { kind: 'unknown', failure: beforeBoundary(answer, clock()).failure };
};

export const scheduler = (bound: Bound): NativeScheduler => ({
  handOver: handOver(bound),
  verify: async (request, handed) => {
    const { nativeId: id } = handed;
    return shownTo(bound, request, await seenOf(bound, request, handed.boundary, id === null ? null : { id }));
  },
  undo: async (request, id) => {
    const ask: Ask = { method: 'DELETE', path: '/videos', query: { id } };
    return (await change(bound, request, id, () => ask)) ?? { kind: 'undone' };
  },
  reschedule: async (request, id) => {
    const { dueAt: publishAt } = request;
    const askOf = ({ status }: Members): Ask => {
      const others = Object.entries(membersOf(status) ?? {}).filter(([name]) => kept.includes(name));
      const json = { id, status: { ...Object.fromEntries(others), privacyStatus: 'private', publishAt } };
      return { method: 'PUT', path: '/videos', query: { part: 'status' }, json };
    };
    const refused = refusedTime('youtube', badTime, publishAt, bound.clock());
    return refused ?? (await change(bound, request, id, askOf)) ?? { kind: 'rescheduled' };
  },
});
