import type { HandOverRequest, NativeScheduler, Undecided, UndoNotDone } from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Members } from '../shared/members.ts';
import type { Ask } from './client.ts';
import { beforeBoundary, failureOf, refusedTime, unknown } from './errors.ts';
import type { Bound } from './network.ts';
import { subjectOf } from './upload.ts';

/** A post that waits with a network's own scheduler: it is moved or taken back while it is safely before its time. */

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
}

export const changesOf = (
  { client, clock, tables: { platform } }: Bound,
  { badTime, look, undo, move }: Changes,
): Required<Pick<NativeScheduler, 'undo' | 'reschedule'>> => {
  /** What is out already is not touched. Null: done. */
  const change = async (
    request: HandOverRequest,
    id: string,
    askOf: (one: Members) => Ask,
  ): Promise<UndoNotDone | null> => {
    const seen = await look(request, id);
    if (seen.kind !== 'waiting') {
      const failure = 'failure' in seen ? seen.failure : undefined;
      return { kind: 'unknown', failure: failure ?? unknown(`${rulesOf(platform).name} does not show the post`) };
    }
    if (seen.until - clock() < nearMs) {
      return { kind: 'too_late', failure: failureOf('undoTooLate', null, 'the post is public, or about to be') };
    }
    const answer = await client.call(subjectOf(request), askOf(seen.one), AbortSignal.timeout(askMs));
    return answer.kind === 'ok' ? null : { kind: 'unknown', failure: beforeBoundary(answer, clock()).failure };
  };
  return {
    undo: async (request, id) => (await change(request, id, () => undo(id))) ?? { kind: 'undone' },
    reschedule: async (request, id) => {
      const { dueAt } = request;
      const refused = refusedTime(platform, badTime, dueAt, clock());
      return refused ?? (await change(request, id, (one) => move(id, dueAt, one))) ?? { kind: 'rescheduled' };
    },
  };
};
