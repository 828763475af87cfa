import { setTimeout as delay } from 'node:timers/promises';
import { patience } from './patience.ts';

export interface UntilOptions {
  /** Deadline in milliseconds on a quiet machine; default 30,000. */
  readonly withinMs?: number;
  /** First pause between two questions in milliseconds; default 10. */
  readonly everyMs?: number;
}

/** For questions that spend the rate limit of an api, or would disturb what a bench measures. */
export const sparing: UntilOptions = { everyMs: 50 };

/**
 * A pause grows with the time that was waited, up to this: questions of many tests at once would take the machine from
 * what they wait for. Milliseconds.
 */
const longestPauseMs = 250;
/** Part of the time waited that the next pause may add to it. */
const pausePart = 0.1;

type Answer<T> = T | false | null | undefined;

/**
 * Asks again and again until the answer is none of false, null and undefined, and returns it.
 * @param what the awaited condition, for the error
 * @throws Error at the deadline, and whatever `ask` throws
 */
export const until = async <T>(
  what: string,
  ask: () => Answer<T> | Promise<Answer<T>>,
  { withinMs = 30_000, everyMs = 10 }: UntilOptions = {},
): Promise<T> => {
  const limitMs = withinMs * patience;
  const begun = performance.now();
  for (;;) {
    const answer = await ask();
    if (answer !== false && answer !== null && answer !== undefined) return answer;
    const waitedMs = performance.now() - begun;
    if (waitedMs > limitMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await delay(Math.max(everyMs, Math.min(longestPauseMs, waitedMs * pausePart)));
  }
};
