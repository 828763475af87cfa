import { wellFormedInstant, wellFormedText } from '#runtime/eventing/well-formed.ts';
import type { Failure } from '#schemas/target.ts';
import type { WorkContext } from './context.ts';

/** When a rate limit lets the publisher try again. */

/**
 * Milliseconds that the publisher waits at most, whatever instant the network names: the longest window of a network's
 * rate limits is a day. Past it the network is asked again; after several such limits the target fails. So a wrong
 * answer parks no post for years.
 */
const longestMs = 24 * 3_600_000;

interface Limited {
  /** The instant that the network named. */
  readonly retryAt: string;
  readonly failure: Failure;
}

/** The instant is now or later, and within a day. If the network named a later one, the failure says so. */
export const namedRetry = (
  { tools, leased }: WorkContext,
  targetId: string,
  { retryAt, failure }: Limited,
): Limited => {
  const now = Date.parse(leased.now());
  const named = wellFormedInstant(retryAt);
  const at = named === null ? now : Date.parse(named);
  const latest = now + longestMs;
  if (at <= latest) return { retryAt: new Date(Math.max(at, now)).toISOString(), failure };
  tools.logger.warn({ targetId, named }, 'a network named an instant over a day away; it is asked again within a day');
  const message = `The network names ${named} for the next try; it is asked again within a day. ${failure.message}`;
  return { retryAt: new Date(latest).toISOString(), failure: { ...failure, message: wellFormedText(message, 2_000) } };
};
