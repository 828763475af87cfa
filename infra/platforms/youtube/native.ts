import type { HandOverRequest, Json, NativeScheduler, VerifyOutcome } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import { failureOf } from '../kit/errors.ts';
import { changesOf } from '../kit/native.ts';
import type { Bound } from '../kit/network.ts';
import { comparable } from '../kit/own-posts.ts';
import { instantOf, type Members, membersOf, textIn } from '../shared/members.ts';
import { type Seen, seenOf, videoOf } from './find.ts';
import { descriptionOf, failureIn, resourceOf, shownOf, titleOf } from './post.ts';
import { badTime, handOver } from './publish.ts';
import { textAt } from './tables.ts';

/** YouTube's own scheduler: a private video with `publishAt`, which YouTube makes public then. */

/** Of `videos.update`, whose part takes the place of the whole one: what is left out falls back to its default. */
const ofOwner = ['embeddable', 'publicStatsViewable', 'defaultLanguage', 'defaultAudioLanguage'];
const ofPost = ['license', 'selfDeclaredMadeForKids', 'containsSyntheticMedia'];
const keptOf = (part: Json | undefined, names: readonly string[]): Members =>
  Object.fromEntries(Object.entries(membersOf(part) ?? {}).filter(([name]) => names.includes(name)));
const update = (parts: Members, id: string): Ask => ({
  ...{ method: 'PUT', path: '/videos', query: { part: Object.keys(parts).join() } },
  json: { id, ...parts },
});

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
      const others = keptOf(status, [...ofOwner, ...ofPost]);
      return update({ status: { ...others, privacyStatus: 'private', publishAt } }, id);
    },
    shows: (request, video) =>
      comparable(textAt(video, 'snippet.title')) === comparable(titleOf(request)) &&
      comparable(textAt(video, 'snippet.description')) === comparable(descriptionOf(request)),
    // Its time goes along: without it the video would be private for ever.
    revise: (request, id, _former, video) => {
      const { snippet, status } = resourceOf(request, request.dueAt);
      return update(
        {
          snippet: { ...keptOf(video.snippet, ofOwner), ...membersOf(snippet) },
          status: { ...keptOf(video.status, ofOwner), ...membersOf(status) },
        },
        id,
      );
    },
  }),
});
