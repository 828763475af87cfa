import type { HandOverRequest, NativeScheduler, VerifyOutcome } from '#contracts/ports/platform.ts';
import { failureOf } from '../kit/errors.ts';
import { changesOf } from '../kit/native.ts';
import type { Bound } from '../kit/network.ts';
import { instantOf, type Members, membersOf, textIn } from '../shared/members.ts';
import { type Seen, seenOf, videoOf } from './find.ts';
import { failureIn, shownOf } from './post.ts';
import { badTime, handOver } from './publish.ts';

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

export const scheduler = (bound: Bound): NativeScheduler => ({
  handOver: handOver(bound),
  verify: async (request, handed) => {
    const { nativeId: id } = handed;
    return shownTo(bound, request, await seenOf(bound, request, handed.boundary, id === null ? null : { id }));
  },
  ...changesOf(bound, {
    badTime,
    look: async (request, id) => {
      const seen = await videoOf(bound, request, id);
      if (seen.kind !== 'video') return seen;
      return { kind: 'waiting', one: seen.video, until: timeIn(seen.video) ?? Number.NEGATIVE_INFINITY };
    },
    undo: (id) => ({ method: 'DELETE', path: '/videos', query: { id } }),
    move: (id, publishAt, { status }) => {
      const others = Object.entries(membersOf(status) ?? {}).filter(([name]) => kept.includes(name));
      const json = { id, status: { ...Object.fromEntries(others), privacyStatus: 'private', publishAt } };
      return { method: 'PUT', path: '/videos', query: { part: 'status' }, json };
    },
  }),
});
