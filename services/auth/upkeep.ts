import { setTimeout as delay } from 'node:timers/promises';
import type { PeopleDeps } from './people/deps.ts';
import { expirePeopleRows } from './people/expiry.ts';

/** Work on the tables of people and apps that nobody waits for. Every process does it; what one has done, another finds done. */

const everyMs = 60_000;

export interface UpkeepOptions {
  /** Further rounds, such as the sweep of the authorization server. */
  readonly also?: readonly (() => Promise<unknown>)[];
}

export interface Upkeep {
  stop(): Promise<void>;
}

export const startUpkeep = (deps: PeopleDeps, { also = [] }: UpkeepOptions = {}): Upkeep => {
  const stopping = new AbortController();
  const { signal } = stopping;
  const rounds = [() => expirePeopleRows(deps), ...also];
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      // Processes that started together do not work together.
      await delay(everyMs * (0.5 + Math.random()), undefined, { signal, ref: false }).catch(() => undefined);
      for (const round of rounds) {
        if (signal.aborted) return;
        await round().catch((err: unknown) => deps.logger.warn({ err }, 'a round of upkeep failed: it is repeated'));
      }
    }
  };
  const running = run();
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
};
