import { problems, Refusal } from './answer.ts';
import type { State } from './state.ts';

interface Bucket {
  readonly key: string;
  readonly header: string;
  readonly limit: number;
  readonly ms: number;
}

const quarterMs = 900_000;
const dayMs = 86_400_000;

const bucketsOf = ({ limits }: State, route: string, personId: string): readonly Bucket[] => {
  const limit = limits.person[route];
  const quarter =
    limit === undefined ? [] : [{ key: `${route} ${personId}`, header: 'x-rate-limit', limit, ms: quarterMs }];
  if (route !== 'POST /2/tweets') return quarter;
  return [
    ...quarter,
    { key: `day ${personId}`, header: 'x-user-limit-24hour', limit: limits.personDay, ms: dayMs },
    { key: 'day app', header: 'x-app-limit-24hour', limit: limits.appDay, ms: dayMs },
  ];
};

/** Counts the call in each of its buckets. @returns the headers of the answer. @throws Refusal 429: one is empty */
export const counted = (state: State, route: string, personId: string): Readonly<Record<string, string>> => {
  const now = state.now();
  const buckets = bucketsOf(state, route, personId).map((bucket) => {
    const seen = state.counts.get(bucket.key);
    const count = seen !== undefined && seen.reset > now ? seen : { used: 0, reset: now + bucket.ms };
    state.counts.set(bucket.key, count);
    return { bucket, count };
  });
  const isEmpty = buckets.some(({ bucket, count }) => count.used >= bucket.limit);
  if (!isEmpty) for (const { count } of buckets) count.used += 1;
  const headers = Object.fromEntries(
    buckets.flatMap(({ bucket: { header, limit }, count }) => [
      [`${header}-limit`, String(limit)],
      [`${header}-remaining`, String(limit - count.used)],
      [`${header}-reset`, String(Math.ceil(count.reset / 1_000))],
    ]),
  );
  if (isEmpty) throw new Refusal({ ...problems.too_many_requests, headers });
  return headers;
};
