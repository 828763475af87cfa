import { setTimeout as delay } from 'node:timers/promises';
import { pickFairly } from '#runtime/work/fair-pick.ts';
import type { Slots, Taker } from '#runtime/work/slots.ts';

/** A round over the accounts of one network, fair to workspaces: each is tried once. */

export interface Subject {
  readonly accountId: string;
  readonly workspaceId: string;
}

export interface FairRound<T> {
  /** The next that are due, the first of each workspace before the second of any; none: nobody is left. */
  readonly read: (tried: ReadonlySet<string>) => Promise<readonly T[]>;
  readonly subjectOf: (one: T) => Subject;
  readonly slots: Slots;
  /** Waits before each begins. */
  readonly pause?: () => Promise<void>;
  /** Its error ends the round. */
  readonly work: (one: T) => Promise<void>;
}

/** Milliseconds after which what was read is read anew: who came since waits for no full page of another. */
const rereadMs = 5_000;

/** Ends when every work that began has ended. @throws the first error of a work */
export const fairRound = async <T>(round: FairRound<T>, signal: AbortSignal): Promise<void> => {
  const { read, subjectOf, slots, pause, work } = round;
  const takerOf = (one: T): Taker => ({ workspaceId: subjectOf(one).workspaceId });
  const tried = new Set<string>();
  const running = new Set<Promise<void>>();
  const fault: { error: unknown } = { error: null };
  let waiting: readonly T[] = [];
  let readAt = Number.NEGATIVE_INFINITY;
  const begin = (one: T): void => {
    tried.add(subjectOf(one).accountId);
    slots.take(takerOf(one));
    const done = work(one)
      .catch((error: unknown) => {
        fault.error ??= error;
      })
      .finally(() => {
        slots.give(takerOf(one));
        running.delete(done);
      });
    running.add(done);
  };
  while (!signal.aborted && fault.error === null) {
    if (waiting.length === 0 || performance.now() - readAt >= rereadMs) {
      waiting = (await read(tried)).filter((one) => !tried.has(subjectOf(one).accountId));
      readAt = performance.now();
      if (waiting.length === 0 && running.size === 0) break;
    }
    const [next] = pickFairly(waiting, { slots, takerOf });
    if (next === undefined) {
      await oneOf(running, signal);
      continue;
    }
    await pause?.();
    if (signal.aborted) break;
    waiting = waiting.filter((one) => one !== next);
    begin(next);
  }
  await Promise.all(running);
  if (fault.error !== null) throw fault.error;
};

/** Resolves when one of them has ended, or after this time: those who run may all be of one workspace. */
const oneOf = async (running: ReadonlySet<Promise<void>>, signal: AbortSignal): Promise<void> => {
  const over = new AbortController();
  const late = delay(rereadMs, undefined, { signal: AbortSignal.any([signal, over.signal]) }).catch(() => undefined);
  await Promise.race([...running, late]);
  over.abort();
};
