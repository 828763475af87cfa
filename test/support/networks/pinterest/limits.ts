import { problems, Refusal } from './answer.ts';
import type { Category, State } from './state.ts';

/**
 * "Rate limits": with standard access calls of a category in a minute by person and app, with trial access in a day by the
 * app. The form of the headers was measured at `org_analytics` with standard access.
 */

const windows = { standard: 60, trial: 86_400 } as const;

/** Headers of an answer. @throws Refusal with them */
export const counted = (state: State, category: Category, personId: string): Readonly<Record<string, string>> => {
  const limit = state.limits[category];
  const seconds = windows[state.tier];
  const whose = state.tier === 'trial' ? 'app_id' : 'app_id_user_id';
  const key = state.tier === 'trial' ? category : `${category} ${personId}`;
  const now = state.now();
  const kept = state.counts.get(key);
  const count = kept === undefined || kept.reset <= now ? { used: 0, reset: now + seconds * 1_000 } : kept;
  state.counts.set(key, count);
  const isFull = count.used >= limit;
  if (!isFull) count.used += 1;
  const net = `100;w=1;name="safety_net_${whose}"`;
  const headers = {
    'x-ratelimit-limit': `${limit}, ${net}, ${limit};w=${seconds};name="${category}_${whose}"`,
    'x-ratelimit-remaining': String(limit - count.used),
    'x-ratelimit-reset': String(Math.max(1, Math.ceil((count.reset - now) / 1_000))),
  };
  if (isFull) throw new Refusal({ ...problems.too_many_requests, headers });
  return headers;
};
