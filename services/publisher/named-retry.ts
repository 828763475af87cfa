import { backOff } from '#contracts/base/back-off.ts';
import { wellFormedInstant, wellFormedText } from '#runtime/eventing/well-formed.ts';
import type { Failure } from '#schemas/target.ts';
import type { WorkContext } from './context.ts';
import type { Tools } from './deps.ts';

/**
 * When a rate limit lets the publisher try again: the one place that judges the instant that a network names, for posts and
 * comments of every network. Adapters hand it on as it is, be it past, absurd or missing.
 */

/**
 * Milliseconds that the publisher waits at most, whatever instant the network names: the longest window of a network's
 * rate limits is a day. Past it the network is asked again; after several such limits the target fails. So a wrong
 * answer parks no post for years.
 */
const longestMs = 24 * 3_600_000;

/**
 * Milliseconds that the publisher waits at least after so many refusals in a row: four times as long after each. Without
 * it a network that names the present moment uses up every retry within a second.
 * @param refusals before this one
 */
export const shortestWait = ({ rateLimitBackOff, random }: Tools, refusals: number): number =>
  backOff(2 * refusals, rateLimitBackOff) * (1 + random() / 10);

interface Limited {
  /** The instant that the network named, in real time. */
  readonly retryAt: string;
  readonly failure: Failure;
}

/**
 * The instant lies between the shortest wait and a day ahead. If the network named a later one, the failure says so, and
 * with it `target.rate_limited` tells the owner.
 * @param shortestMs the shortest wait
 */
export const namedRetry = (
  { tools, leased }: WorkContext,
  targetId: string,
  { retryAt, failure }: Limited,
  shortestMs: number,
): Limited => {
  const now = Date.parse(leased.now());
  const earliest = now + shortestMs;
  const named = wellFormedInstant(retryAt);
  const at = named === null ? earliest : Date.parse(named) + tools.clockAheadMs();
  const latest = now + longestMs;
  if (at <= latest) return { retryAt: new Date(Math.min(Math.max(at, earliest), latest)).toISOString(), failure };
  tools.logger.warn({ targetId, named }, 'a network named an instant over a day away; it is asked again within a day');
  const message = `The network names ${named} for the next try; it is asked again within a day. ${failure.message}`;
  return { retryAt: new Date(latest).toISOString(), failure: { ...failure, message: wellFormedText(message, 2_000) } };
};
