import { setTimeout as delay } from 'node:timers/promises';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import { patience } from '#test/support/patience.ts';

/** A call whose outcome is still unknown after this long is a violation, milliseconds. */
export const patienceMs = 90_000 * patience;

/** Repeats a read of the store, which is safe to repeat, for as long as a dependency is unavailable. */
export const insist = async <T>(ask: () => Promise<T>): Promise<T> => {
  for (const until = performance.now() + patienceMs; ; await delay(100)) {
    try {
      return await ask();
    } catch (error) {
      // The sandbox wraps its database's error: the cause shows whether the database is unavailable.
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
      if (!isInfrastructureFault(cause) || performance.now() > until) throw error;
    }
  }
};
