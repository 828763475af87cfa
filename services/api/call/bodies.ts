import { setTimeout as delay, setImmediate as nextLoop } from 'node:timers/promises';
import { busy, CallQueue } from './call-queue.ts';

/**
 * Large bodies are parsed and validated one after the other, in pieces with rests in between. One body holds the event
 * loop for some 30 ms; a hundred bodies that one caller sends at once would hold it for seconds, for all tenants.
 */

/** Cost of one value in the parser and the validator, as the number of bytes of text that take as long. */
const valueWeight = 100;
/** Lighter bodies take less than a millisecond. */
const heavy = 32 * 1_024;

interface Weight {
  readonly bytes: number;
  readonly values: number;
}

const weigh = ({ bytes, values }: Weight): number => bytes + values * valueWeight;

/**
 * Bytes that cost as much as a small call: a body of 390 KiB takes 150 ms of processor until it is stored, shown and
 * delivered, a small call takes two.
 */
const oneCall = 8 * 1_024;

/** Requests that a body counts for, in addition to the call's own. A light body counts for none. */
export const bodyCost = (weight: Weight): number => (weigh(weight) < heavy ? 0 : Math.floor(weigh(weight) / oneCall));

/** One piece of the work on a body, run now or later. */
export type Piece = <T>(work: () => T) => Promise<T>;

const atOnce: Piece = async (work) => work();

/**
 * Each rest is as long as the work before it, so that other calls have half of the processor however many large bodies
 * arrive.
 */
const rested: Piece = async (work) => {
  const begun = performance.now();
  try {
    return work();
  } finally {
    await delay(performance.now() - begun);
    // A short timer may end in the turn it began in.
    await nextLoop();
  }
};

export class HeavyBodies {
  readonly #queue = new CallQueue({ noun: 'large bodies', each: 1, total: 1, waiting: 128, waitMs: 10_000 });

  /** Works on a body when its workspace has its turn, and on a light body at once. @throws Refusal `unavailable` */
  run<T>(workspaceId: string, weight: Weight, work: (piece: Piece) => Promise<T>): Promise<T> {
    if (weigh(weight) < heavy) return work(atOnce);
    return this.#queue.run(workspaceId, () => work(rested));
  }
}

const mebibyte = 1024 * 1024;

interface BodyShares {
  /** Bytes that one workspace may hold. A single body may be larger: this budget refuses no body for its own size. */
  readonly each: number;
  readonly total: number;
  /**
   * Bytes that one workspace may hold even when the total is reached, so that workspaces which fill the total do not
   * block a small body of another.
   */
  readonly least: number;
}

const shares: BodyShares = { each: 16 * mebibyte, total: 128 * mebibyte, least: 64 * 1024 };

/** The bytes of one body. */
export interface HeldBytes {
  /** @throws Refusal `unavailable` when these bytes and those already held exceed the budget. */
  take(bytes: number): void;
  /** Gives the bytes back, however the call ended. */
  release(): void;
}

/**
 * The api holds a body in memory from its first byte to the answer. A caller may take a minute to send a body, or
 * announce more than it sends. Without a bound, a few hundred connections of one key hold a few hundred MiB.
 */
export class BodyBudget {
  readonly #shares: BodyShares;
  readonly #owners = new Map<string, number>();
  #all = 0;

  constructor(most: Partial<BodyShares> = {}) {
    this.#shares = { ...shares, ...most };
  }

  /** Bytes that all bodies hold now. */
  get held(): number {
    return this.#all;
  }

  hold(workspaceId: string): HeldBytes {
    let own = 0;
    const add = (bytes: number): void => {
      own += bytes;
      this.#all += bytes;
      const held = this.#of(workspaceId) + bytes;
      if (held === 0) this.#owners.delete(workspaceId);
      else this.#owners.set(workspaceId, held);
    };
    return {
      take: (bytes) => {
        this.#allow(workspaceId, bytes, own);
        add(bytes);
      },
      release: () => add(-own),
    };
  }

  #of(workspaceId: string): number {
    return this.#owners.get(workspaceId) ?? 0;
  }

  #allow(workspaceId: string, bytes: number, own: number): void {
    const { each, total, least } = this.#shares;
    const held = this.#of(workspaceId);
    if (held + bytes > each && held > own) {
      throw busy(
        `Bodies of this workspace that are not answered yet have ${each} bytes. Wait until some are answered.`,
      );
    }
    if (this.#all + bytes > total && held + bytes > least) {
      throw busy('The service holds too many large bodies. Wait until some are answered.');
    }
  }
}
