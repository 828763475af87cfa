import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { Turns } from './turns.ts';

/**
 * Large bodies are parsed and validated one after the other, in pieces with rests in between. One body holds the event
 * loop for some 30 ms; a hundred bodies that one caller sends at once would hold it for seconds, for all tenants.
 */

/** Cost of one value in the parser and the validator, as the number of bytes of text that take as long. */
const valueWeight = 100;
/** Lighter bodies take less than a millisecond. */
const heavy = 32 * 1_024;

export interface Weight {
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
    await turn();
  }
};

export class HeavyBodies {
  readonly #turns = new Turns({ noun: 'large bodies', each: 1, total: 1, waiting: 128, waitMs: 10_000 });

  /** Works on a body when its workspace has its turn, and on a light body at once. @throws Refusal `unavailable` */
  run<T>(workspaceId: string, weight: Weight, work: (piece: Piece) => Promise<T>): Promise<T> {
    if (weigh(weight) < heavy) return work(atOnce);
    return this.#turns.run(workspaceId, () => work(rested));
  }
}
