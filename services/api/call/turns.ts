import type { Pool } from 'pg';
import { Refusal } from './refusal.ts';

export interface Shares {
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

interface Waiter {
  readonly begin: () => void;
}

/** Retry-After of a refusal, seconds. */
const retryAfterSeconds = 2;

export const busy = (detail: string): Refusal =>
  new Refusal('unavailable', detail, { headers: { 'Retry-After': String(retryAfterSeconds) } });

/**
 * Limits how much work runs at once. Workspaces take turns, so that a workspace with a full share never delays another.
 */
export class Turns {
  readonly #shares: Shares;
  readonly #underWay = new Map<string, number>();
  #all = 0;
  /** Workspaces with waiting work, in the order of their turns. */
  readonly #waiting = new Map<string, Waiter[]>();

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  /** @throws Refusal `unavailable` when too many wait already, or this work has waited too long. */
  async run<T>(workspaceId: string, work: () => Promise<T>): Promise<T> {
    if (this.#mayBegin(workspaceId) && !this.#waiting.has(workspaceId)) this.#begin(workspaceId);
    else await this.#wait(workspaceId);
    try {
      return await work();
    } finally {
      this.#end(workspaceId);
    }
  }

  #mayBegin(workspaceId: string): boolean {
    return this.#all < this.#shares.total && (this.#underWay.get(workspaceId) ?? 0) < this.#shares.each;
  }

  #begin(workspaceId: string): void {
    this.#all += 1;
    this.#underWay.set(workspaceId, (this.#underWay.get(workspaceId) ?? 0) + 1);
  }

  #wait(workspaceId: string): Promise<void> {
    const { noun, waiting, waitMs } = this.#shares;
    const line = this.#waiting.get(workspaceId) ?? [];
    if (line.length >= waiting) {
      throw busy(`Too many ${noun} of this workspace are requested at once. Wait until some are answered.`);
    }
    this.#waiting.set(workspaceId, line);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        begin: () => {
          clearTimeout(timer);
          this.#begin(workspaceId);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        line.splice(line.indexOf(waiter), 1);
        if (line.length === 0) this.#waiting.delete(workspaceId);
        reject(
          busy(
            `Other ${noun} of this workspace have not ended yet. Wait until they are answered, or narrow the request.`,
          ),
        );
      }, waitMs);
      line.push(waiter);
    });
  }

  #end(workspaceId: string): void {
    this.#all -= 1;
    const left = (this.#underWay.get(workspaceId) ?? 0) - 1;
    if (left > 0) this.#underWay.set(workspaceId, left);
    else this.#underWay.delete(workspaceId);
    for (const [next, line] of [...this.#waiting]) {
      if (!this.#mayBegin(next)) continue;
      line.shift()?.begin();
      // The workspace goes to the end of the queue, or leaves the queue when it has no waiting work.
      this.#waiting.delete(next);
      if (line.length > 0) this.#waiting.set(next, line);
    }
  }
}

/**
 * For what a workspace may have so many of, and counts in the database: a caller holds a connection while it waits for
 * its turn to count. So one caller of a workspace counts at a time, and few of all workspaces.
 */
export const countingTurns = (noun: string) => {
  const turnsOf = new WeakMap<Pool, Turns>();
  return <T>(pool: Pool, workspaceId: string, work: () => Promise<T>): Promise<T> => {
    const turns = turnsOf.get(pool) ?? new Turns({ noun, each: 1, total: 4, waiting: 100, waitMs: 5_000 });
    turnsOf.set(pool, turns);
    return turns.run(workspaceId, work);
  };
};
