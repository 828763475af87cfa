import type { Checkpoint, HandOverRequest, NativeScheduler, VerifyOutcome } from '#contracts/ports/platform.ts';
import { failureOf, membersAt } from '../kit/errors.ts';
import { changesOf } from '../kit/native.ts';
import type { Bound } from '../kit/network.ts';
import { at, secondOf } from '../meta/graph.ts';
import type { Members } from '../shared/members.ts';
import { type Found, foundOf, postIdOf, reconcile, scheduledAs, videoFields } from './find.ts';
import { failureIn, isOut, isUntouched, isVideo, says, shownOf, wayOf, wordsOf } from './post.ts';
import { badTime, handOver } from './publish.ts';
import { isPostId } from './tables.ts';

/** Facebook's own scheduler: a post that is not published, with the second at which it will be. */

const postFields = 'is_published,scheduled_publish_time,created_time,permalink_url,message';

/** Milliseconds since the epoch; null: it has no time. A post names the second as a number, a video as a date. */
const dueOf = (one: Members): number | null => {
  const said = String(membersAt(one, 'scheduled_publish_time')[0] ?? '');
  const ms = /^\d{1,12}$/.test(said) ? Number(said) * 1_000 : Date.parse(said);
  return Number.isNaN(ms) ? null : ms;
};

const isPublic = (request: HandOverRequest, one: Members): boolean =>
  isVideo(wayOf(request)) ? isOut(one) : one.is_published === true;

const seenOf = (bound: Bound, request: HandOverRequest, id: string): Promise<Found> =>
  foundOf(bound, request, id, isVideo(wayOf(request)) ? videoFields : postFields);

const stateOf = async (bound: Bound, request: HandOverRequest, id: string): Promise<VerifyOutcome> => {
  const seen = await seenOf(bound, request, id);
  if (seen.kind !== 'found') return seen;
  const { one } = seen;
  const isOfVideo = isVideo(wayOf(request));
  if (isPublic(request, one)) {
    const externalId = isOfVideo ? postIdOf(request, one, id) : id;
    return { kind: 'published', ...shownOf(request, one, externalId, bound.clock(), request.dueAt) };
  }
  const why = isOfVideo ? failureIn(one, null) : null;
  if (why === null && dueOf(one) !== null) return { kind: 'scheduled', nativeId: id };
  // The upload of a call that did not arrive.
  if (isOfVideo && why === null && isUntouched(one)) return { kind: 'absent' };
  const said = why?.platformMessage ?? 'Facebook has no time for the post any more';
  return { kind: 'failed', failure: failureOf('unscheduled', why?.platformCode ?? null, said) };
};

/** A call whose answer was lost: a video is asked itself, and a post is looked for among those to come and those that are out. */
const lostOf = async (bound: Bound, request: HandOverRequest, crossing: Checkpoint): Promise<VerifyOutcome> => {
  const [file = ''] = membersAt(crossing.data, 'mediaIds').map(String);
  if (isVideo(wayOf(request))) return stateOf(bound, request, file);
  const found = await scheduledAs(bound, request, crossing);
  if (found.kind === 'present') return { kind: 'scheduled', nativeId: found.externalId };
  if (found.kind === 'undecided') return found;
  const out = await reconcile(bound)(request, crossing);
  if (out.kind === 'present') return { ...out, kind: 'published' };
  return out.kind === 'absent' || out.kind === 'failed' ? out : { kind: 'undecided' };
};

const timeOf = (dueAt: string) => ({ scheduled_publish_time: secondOf(Date.parse(dueAt)) });

export const scheduler = (bound: Bound): NativeScheduler => ({
  handOver: handOver(bound),
  verify: (request, handed) =>
    handed.nativeId === null ? lostOf(bound, request, handed.boundary) : stateOf(bound, request, handed.nativeId),
  ...changesOf(bound, {
    badTime,
    look: async (request, id) => {
      const seen = isPostId(id) ? await seenOf(bound, request, id) : ({ kind: 'absent' } as const);
      if (seen.kind !== 'found') return seen;
      const due = dueOf(seen.one) ?? Number.POSITIVE_INFINITY;
      return { kind: 'waiting', one: seen.one, until: isPublic(request, seen.one) ? Number.NEGATIVE_INFINITY : due };
    },
    undo: (id) => ({ method: 'DELETE', path: at(id) }),
    move: (id, dueAt) => ({ method: 'POST', path: at(id), fields: timeOf(dueAt) }),
    shows: says,
    revise: (request, id, former, _one, isMoved) => {
      const words = wordsOf(request, former);
      const fields = { ...words, ...(isMoved ? timeOf(request.dueAt) : {}) };
      return words === null ? null : { method: 'POST', path: at(id), fields };
    },
  }),
});
