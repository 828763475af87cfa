import { setTimeout as delay } from 'node:timers/promises';

/** The answer, or what `late` gives or throws when there is none after that time; the work itself is not stopped. */
export const within = async <T>(ms: number, work: Promise<T>, late: () => T): Promise<T> => {
  const over = new AbortController();
  // What it still throws later is nobody's any more.
  work.catch(() => undefined);
  try {
    return await Promise.race([work, delay(ms, undefined, { signal: over.signal }).then(late)]);
  } finally {
    over.abort();
  }
};
