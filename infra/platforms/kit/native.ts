import type {
  HandOverRequest,
  NativeScheduler,
  PublishRequest,
  Undecided,
  UndoNotDone,
} from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Members } from '../shared/members.ts';
import type { Ask } from './client.ts';
import { beforeBoundary, failureOf, refusedTime, unknown } from './errors.ts';
import type { Bound } from './network.ts';
import { subjectOf } from './upload.ts';

/** A post that waits with a network's own scheduler: it is changed or taken back while it is safely before its time. */

/** A network publishes at its time, and a call may be late. */
export const nearMs = 60_000;
export const askMs = 20_000;

/** What a network has of a scheduled post. `until`: milliseconds since the epoch, from when on it may be out. */
export type Waiting =
  | { readonly kind: 'waiting'; readonly one: Members; readonly until: number }
  | { readonly kind: 'absent' }
  | Undecided;

interface Changes {
  /** The network's name of a time that it does not take. */
  readonly badTime: string;
  look(request: HandOverRequest, nativeId: string): Promise<Waiting>;
  undo(nativeId: string): Ask;
  /** @param dueAt ISO 8601 @param one what `look` saw */
  move(nativeId: string, dueAt: string, one: Members): Ask;
  /** Whether the post that `look` saw has the words of the request. */
  shows(request: HandOverRequest, one: Members): boolean;
  /** Null: the network changes of no scheduled post what differs. @param isMoved the post has another time */
  revise(
    request: HandOverRequest,
    nativeId: string,
    former: PublishRequest,
    one: Members,
    isMoved: boolean,
  ): Ask | null;
}

export const changesOf = (
  { client, clock, tables: { platform } }: Bound,
  { badTime, look, undo, move, shows, revise }: Changes,
): Required<Pick<NativeScheduler, 'undo' | 'reschedule' | 'revise'>> => {
  const seenOf = async (request: HandOverRequest, id: string) => {
    const seen = await look(request, id);
    if (seen.kind === 'waiting') return { ...seen, isNear: seen.until - clock() < nearMs };
    const failure = 'failure' in seen ? seen.failure : undefined;
    return {
      kind: 'unknown',
      failure: failure ?? unknown(`${rulesOf(platform).name} does not show the post`),
    } as const;
  };
  const tooLate = () =>
    ({ kind: 'too_late', failure: failureOf('undoTooLate', null, 'the post is public, or about to be') }) as const;
  /** Null: done. */
  const send = async (request: HandOverRequest, ask: Ask): Promise<UndoNotDone | null> => {
    const answer = await client.call(subjectOf(request), ask, AbortSignal.timeout(askMs));
    return answer.kind === 'ok' ? null : { kind: 'unknown', failure: beforeBoundary(answer, clock()).failure };
  };
  /** What is out already is not touched. */
  const change = async (request: HandOverRequest, id: string, askOf: (one: Members) => Ask) => {
    const seen = await seenOf(request, id);
    if (seen.kind === 'unknown') return seen;
    return seen.isNear ? tooLate() : send(request, askOf(seen.one));
  };
  return {
    undo: async (request, id) => (await change(request, id, () => undo(id))) ?? { kind: 'undone' },
    reschedule: async (request, id) => {
      const { dueAt } = request;
      const refused = refusedTime(platform, badTime, dueAt, clock());
      return refused ?? (await change(request, id, (one) => move(id, dueAt, one))) ?? { kind: 'rescheduled' };
    },
    revise: async (request, id, former) => {
      const { dueAt } = request;
      const seen = await seenOf(request, id);
      if (seen.kind === 'unknown') return seen;
      const { one, until, isNear } = seen;
      // A call whose answer was lost may have had effect.
      if (isNear) return shows(request, one) ? { kind: 'revised' } : tooLate();
      // Networks know seconds.
      const isMoved = Math.floor(until / 1_000) !== Math.floor(Date.parse(dueAt) / 1_000);
      const refused = isMoved ? refusedTime(platform, badTime, dueAt, clock()) : null;
      if (refused !== null) return refused;
      const ask = revise(request, id, former, one, isMoved);
      const failed = ask === null ? null : await send(request, ask);
      if (ask === null || failed?.failure.category === 'invalid_content') return { kind: 'other_post' };
      return failed ?? { kind: 'revised' };
    },
  };
};
