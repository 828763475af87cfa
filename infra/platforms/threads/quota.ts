import { beforeBoundary, failureOf, type NotOk } from '../kit/errors.ts';
import { at } from '../meta/graph.ts';
import { integerIn, listIn } from '../shared/members.ts';
import { type Failed, namedInstant } from '../shared/outcomes.ts';
import type { ContainerWork } from './containers.ts';
import { edgeOf, pageOf, timeOf } from './find.ts';

/**
 * How many posts and replies Threads takes in a moving day (`threads_publishing_limit`): asked before a post is prepared, so
 * that one too many waits for its slot instead of failing.
 */

/** The answer is advice: without one the call that publishes is refused. */
const holdsUp = (answer: NotOk): boolean =>
  ['lapsed', 'resting', 'unavailable'].includes(answer.kind) ||
  (answer.kind === 'refused' && ['lapsed', 'limited'].includes(answer.row.means));

/** Posts that no app made do not count, so the slot may be a later one: it is asked for again then. */
const [soonestMs, latestMs] = [900_000, 3_600_000];

/** When as many posts leave the window as are too many: what leaves it within the hour is asked for. */
const slotOf = async (work: ContainerWork, edge: string, seconds: number, tooMany: number): Promise<number> => {
  const now = work.bound.clock();
  const from = now - seconds * 1_000;
  const answer = await pageOf(work, edge, 'id,timestamp', { from, until: from + latestMs })(null);
  const times = answer.kind === 'ok' ? listIn(answer.body, 'data').map(timeOf) : [];
  const leaves = times.filter((one) => one >= from).sort((a, b) => a - b)[tooMany];
  return leaves === undefined ? now + latestMs : Math.max(leaves + seconds * 1_000, now + soonestMs);
};

/** Null: one more is taken. */
export const noneLeft = async (work: ContainerWork, isReply: boolean): Promise<Failed | null> => {
  const { bound, subject, user, signal } = work;
  const [usage, config] = isReply ? ['reply_quota_usage', 'reply_config'] : ['quota_usage', 'config'];
  const path = at(`${user}/threads_publishing_limit`);
  const ask = { method: 'GET', path, query: { fields: `${usage},${config}` } } as const;
  const answer = await bound.client.call(subject, ask, signal);
  if (answer.kind !== 'ok') return holdsUp(answer) ? beforeBoundary(answer, bound.clock()) : null;
  const [said = {}] = listIn(answer.body, 'data');
  const [used, limit] = [integerIn(said, usage), integerIn(said[config], 'quota_total')];
  const seconds = integerIn(said[config], 'quota_duration') ?? 86_400;
  if (used === null || limit === null || limit < 1 || seconds < 1 || seconds > 31 * 86_400) return null;
  const name = `${isReply ? 'replies' : 'posts'} in ${Math.round(seconds / 3_600)} hours`;
  const edge = edgeOf(user, isReply);
  const slot = used < limit ? null : namedInstant(await slotOf(work, edge, seconds, used - limit));
  // The cadence counts posts.
  if (!isReply) bound.onLimits?.(subject.accountId, [{ name, seconds, limit, used, resetsAt: slot }]);
  if (slot === null) return null;
  const failure = failureOf('limited', 'quota', `${used} of ${limit} ${name} are out`);
  return { kind: 'rate_limited', retryAt: slot, failure };
};
