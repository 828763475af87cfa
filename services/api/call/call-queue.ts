import type { Pool } from 'pg';
import { FairQueue } from '#runtime/work/fair-queue.ts';
import { atMost, type Share, Slots, type Taker } from '#runtime/work/slots.ts';
import { Refusal } from './refusal.ts';

interface CallLimits {
  /** The work that is limited, in the plural, for the text of a refusal. */
  readonly noun: string;
  /** How many run at once: of one workspace, and of all workspaces. */
  readonly each: number;
  readonly total: number;
  /** How many of one workspace may wait. */
  readonly waiting: number;
  /** The longest wait, milliseconds. */
  readonly waitMs: number;
}

/** Retry-After of a refusal, seconds. */
const retryAfterSeconds = 2;

export const busy = (detail: string): Refusal =>
  new Refusal('unavailable', detail, { headers: { 'Retry-After': String(retryAfterSeconds) } });

/** Limits how much work of callers runs at once, so that a workspace with a full share never delays another. */
export class CallQueue {
  readonly #queue: FairQueue;

  constructor({ noun, each, total, waiting, waitMs }: CallLimits) {
    const full = `Too many ${noun} of this workspace are requested at once. Wait until some are answered.`;
    const late = `Other ${noun} of this workspace have not ended yet. Wait until they are answered, or narrow the request.`;
    const refusal = (reason: 'full' | 'late'): Refusal => busy(reason === 'full' ? full : late);
    this.#queue = new FairQueue({ slots: new Slots(total, atMost(each)), limits: { waiting, waitMs, refusal } });
  }

  /** @throws Refusal `unavailable` when too many wait already, or this work has waited too long. */
  run<T>(workspaceId: string, work: () => Promise<T>): Promise<T> {
    return this.#queue.run({ workspaceId }, work);
  }
}

/**
 * For what a workspace may have so many of, and counts in the database: a caller holds a connection while it waits for
 * its turn to count. So one caller of a workspace counts at a time, and few of all workspaces.
 */
export const countingQueue = (noun: string) => {
  const queueOf = new WeakMap<Pool, CallQueue>();
  return <T>(pool: Pool, workspaceId: string, work: () => Promise<T>): Promise<T> => {
    const queue = queueOf.get(pool) ?? new CallQueue({ noun, each: 1, total: 4, waiting: 100, waitMs: 5_000 });
    queueOf.set(pool, queue);
    return queue.run(workspaceId, work);
  };
};

/** Questions of callers to networks under way in this process: of all networks, of one, and there of one workspace. */
const [questions, ofNetwork, ofWorkspace] = [32, 8, 4];

const share: Share = (taker, slots) => slots.on(taker.network ?? '') < ofNetwork && slots.ofBoth(taker) < ofWorkspace;

/** A network that hangs holds up no other, and the questions of a workspace those of no other workspace. */
export const questionTurns = (): (<T>(taker: Taker, ask: () => Promise<T>) => Promise<T>) => {
  const refusal = (): Refusal => busy('Too many questions to this network wait. Ask again in some seconds.');
  const limits = { waiting: 50, waitMs: 5_000, refusal };
  const queue = new FairQueue({ slots: new Slots(questions, share), limits });
  return (taker, ask) => queue.run(taker, ask);
};
