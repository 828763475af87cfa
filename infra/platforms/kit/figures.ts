import type { Json } from '#contracts/ports/platform.ts';
import type { InsightsSubject, PostInsightsAnswer } from '#contracts/ports/platform-insights.ts';
import { instantOf } from '../shared/members.ts';
import { beforeBoundary, type NetworkAnswer, type NotOk, type OkAnswer } from './errors.ts';
import type { Headers } from './limits.ts';

/** Figures: posts by the batch, metrics that a network refuses one by one, and answers without figures. */

export type NoFigures = Exclude<PostInsightsAnswer, { readonly kind: 'reported' | 'removed' }>;

export const withoutFigures = (answer: NotOk, now: number): NoFigures => {
  if (answer.kind === 'spent' && answer.until === null) return { kind: 'unavailable', reason: answer.reason };
  const outcome = beforeBoundary(answer, now);
  if (outcome.kind === 'rate_limited') return { kind: 'rate_limited', retryAt: outcome.retryAt };
  const { failure } = outcome;
  const reason = failure.platformMessage ?? failure.message;
  return { kind: failure.category === 'reauth_required' ? 'reauth_required' : 'unavailable', reason };
};

/** By the network's clock, where it tells the time. */
export const observedAt = (headers: Headers, now: number): string =>
  instantOf(Date.parse(headers.date ?? '')) ?? new Date(now).toISOString();

interface Batches<Batch> {
  readonly perCall: number;
  /** Posts with the same word are asked for together: a network may refuse some figures of old posts. */
  group(post: InsightsSubject): string;
  ask(ids: readonly string[], group: string): Promise<Batch | NoFigures>;
  answer(post: InsightsSubject, group: string, batch: Batch): PostInsightsAnswer;
}

/**
 * One answer for each post in their order. Each batch is asked for when its first post is due, so that answers which are
 * there already are not held up.
 */
export async function* byBatch<Batch extends object>(
  posts: readonly InsightsSubject[],
  { perCall, group, ask, answer }: Batches<Batch>,
  signal: AbortSignal,
): AsyncGenerator<PostInsightsAnswer> {
  signal.throwIfAborted();
  const plans = new Map<string, { readonly ids: readonly string[]; batch: Promise<Batch | NoFigures> | null }>();
  for (const [word, some] of Map.groupBy(posts, group)) {
    const ids = [...new Set(some.map(({ externalId }) => externalId))];
    for (let at = 0; at < ids.length; at += perCall) {
      const plan = { ids: ids.slice(at, at + perCall), batch: null };
      for (const id of plan.ids) plans.set(`${word} ${id}`, plan);
    }
  }
  for (const post of posts) {
    const word = group(post);
    const plan = plans.get(`${word} ${post.externalId}`);
    if (plan === undefined) throw new Error('a post without a batch');
    plan.batch ??= ask(plan.ids, word);
    const batch = await plan.batch;
    signal.throwIfAborted();
    yield 'kind' in batch ? batch : answer(post, word, batch);
  }
}

/** The network refuses this call alone, for what is in it or for want of a permission. */
export const isLeftOut = (answer: NetworkAnswer): boolean =>
  answer.kind === 'refused' &&
  ['permission', 'invalid_content'].includes(answer.failure.category) &&
  !['unpaid', 'sunset'].includes(answer.row.means);

/**
 * What several calls answered, by name and one after the other. Those that the network refuses are left out; where it
 * refuses all, the first refusal is the answer.
 */
export const gathered = async (
  calls: Readonly<Record<string, () => Promise<NetworkAnswer>>>,
): Promise<ReadonlyMap<string, OkAnswer> | NotOk> => {
  const found = new Map<string, OkAnswer>();
  let refused: NotOk | null = null;
  for (const [name, call] of Object.entries(calls)) {
    const answer = await call();
    if (answer.kind === 'ok') found.set(name, answer);
    else if (isLeftOut(answer)) refused ??= answer;
    else return answer;
  }
  return refused !== null && found.size === 0 ? refused : found;
};

/** Asks about so many ids a call, one call after the other; the first that gets no answer is the answer. */
export const inParts = async (
  ids: readonly string[],
  perCall: number,
  ask: (some: readonly string[]) => Promise<NetworkAnswer>,
): Promise<readonly OkAnswer[] | NotOk> => {
  const parts: OkAnswer[] = [];
  for (let at = 0; at < ids.length; at += perCall) {
    const answer = await ask(ids.slice(at, at + perCall));
    if (answer.kind !== 'ok') return answer;
    parts.push(answer);
  }
  return parts;
};

export interface MetricAnswers {
  readonly kind: 'asked';
  /** What the network answered, by metric; of metrics that were asked for together the same answer. */
  readonly bodies: ReadonlyMap<string, { readonly [name: string]: Json }>;
  /** Metrics that the network refuses, such as ones that it has retired. */
  readonly refused: readonly string[];
  readonly headers: Headers;
}

/**
 * Asks for all metrics at once, and one by one where the network refuses the call for what is in it: one retired metric
 * must not cost the others.
 * @param ask one call for these metrics
 */
export const metricsOf = async (
  metrics: readonly string[],
  ask: (some: readonly string[]) => Promise<NetworkAnswer>,
): Promise<MetricAnswers | NotOk> => {
  const first = await ask(metrics);
  if (first.kind === 'ok') {
    return {
      kind: 'asked',
      bodies: new Map(metrics.map((one) => [one, first.body])),
      refused: [],
      headers: first.headers,
    };
  }
  const isOfContent =
    first.kind === 'refused' && first.failure.category === 'invalid_content' && first.row.means !== 'gone';
  if (!isOfContent || metrics.length === 1) return first;
  const bodies = new Map<string, { readonly [name: string]: Json }>();
  const refused: string[] = [];
  let { headers } = first;
  for (const metric of metrics) {
    const answer = await ask([metric]);
    if (answer.kind === 'ok') {
      bodies.set(metric, answer.body);
      headers = answer.headers;
    } else if (answer.kind === 'refused' && answer.failure.category === 'invalid_content') refused.push(metric);
    else return answer;
  }
  return bodies.size === 0 ? first : { kind: 'asked', bodies, refused, headers };
};
