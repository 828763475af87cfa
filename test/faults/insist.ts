import { setTimeout as delay } from 'node:timers/promises';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import { patience } from '#test/support/patience.ts';

/** A call whose outcome is still not known after this long is a violation, milliseconds. */
export const patienceMs = 90_000 * patience;

/** Repeats a question to the store, which may be asked twice, for as long as a part of ours is unavailable. */
export const insist = async <T>(ask: () => Promise<T>): Promise<T> => {
  for (const until = performance.now() + patienceMs; ; await delay(100)) {
    try {
      return await ask();
    } catch (error) {
      // The sandbox wraps the error of its database: the cause says whether that one is unavailable.
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
      if (!isInfrastructureFault(cause) || performance.now() > until) throw error;
    }
  }
};
