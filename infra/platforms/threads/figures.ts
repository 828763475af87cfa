import {
  accountDays,
  type InsightsAccount,
  type InsightsSource,
  type InsightsSubject,
  type PostInsightsAnswer,
  type ReportedDay,
} from '#contracts/ports/platform-insights.ts';
import type { Ask } from '../kit/client.ts';
import { observedAt, withoutFigures } from '../kit/figures.ts';
import type { Bound } from '../kit/network.ts';
import { laterDay, spanOfDay, yesterdayOf } from '../meta/days.ts';
import { callsOf, figuresOfMissing, insightsOf, type MetaCall, postByPost } from '../meta/figures.ts';
import { at, isMediaId } from '../meta/graph.ts';
import { type Members, textIn } from '../shared/members.ts';
import { isGone } from './tables.ts';

/**
 * Figures of posts, one by one, and of the account by the days of Threads, which end at midnight of California
 * (developers.facebook.com/docs/threads/insights).
 */

const postMetrics = ['views', 'likes', 'replies', 'reposts', 'quotes', 'shares'];
const postFields = [
  ...(['impressions', 'likes', 'comments', 'reposts', 'quotes', 'shares', 'totalInteractions', 'permalink'] as const),
];

const figuresOf = async (
  call: MetaCall,
  { externalId: user }: InsightsAccount,
  post: InsightsSubject,
  now: number,
): Promise<PostInsightsAnswer> => {
  const { externalId } = post;
  if (!isMediaId(externalId)) return { kind: 'unavailable', reason: 'this is no id of a post' };
  const shown = await call(externalId, { fields: 'id,permalink' });
  if (shown.kind !== 'ok') {
    if (shown.kind !== 'refused' || !isGone(shown)) return withoutFigures(shown, now);
    return figuresOfMissing(call, `${user}/threads`, post, shown, now);
  }
  const data = await insightsOf(call, `${externalId}/insights`, postMetrics);
  if ('kind' in data) return withoutFigures(data, now);
  const raw = { media: shown.body, insights: { data } };
  return { kind: 'reported', raw, observedAt: observedAt(shown.headers, now), fields: postFields };
};

export const postFigures = (bound: Bound): InsightsSource['fetchPostInsights'] => postByPost(bound, figuresOf);

/** Followers by what they are; Threads tells it of accounts with 100 of them, one breakdown a call. */
const demographicsOf = async (call: MetaCall, path: string): Promise<Members> => {
  const found: Record<string, Members> = {};
  for (const breakdown of ['country', 'city', 'age', 'gender']) {
    const data = await insightsOf(call, path, ['follower_demographics'], { breakdown });
    // What it refuses of one it refuses of all.
    if ('kind' in data) break;
    found[breakdown] = { data };
  }
  return found;
};

export const accountFigures =
  (bound: Bound): InsightsSource['fetchAccountInsights'] =>
  async (_platform, account, signal) => {
    const call = callsOf(bound, account, signal);
    const { clock } = bound;
    const path = `${account.externalId}/threads_insights`;
    const ofDay = (day: string) => insightsOf(call, path, ['views', 'clicks'], spanOfDay(day));
    const who = await call(account.externalId, me.query);
    if (who.kind !== 'ok') return withoutFigures(who, clock());
    const yesterday = yesterdayOf(clock());
    const newest = await ofDay(yesterday);
    if ('kind' in newest) return withoutFigures(newest, clock());
    const earlier: ReportedDay[] = [];
    for (let before = 1; before < accountDays; before += 1) {
      const day = laterDay(yesterday, -before);
      const data = await ofDay(day);
      if (!('kind' in data) && data.length > 0) earlier.push({ day, raw: { threads_insights: { data } } });
    }
    // Threads counts those of accounts with a linked one of Instagram.
    const followers = await insightsOf(call, path, ['followers_count']);
    const data = [...newest, ...('kind' in followers ? [] : followers)];
    return {
      ...{ kind: 'reported', figuresOf: yesterday, earlier, profile: profileOf(who.body) },
      raw: { threads_insights: { data }, follower_demographics: await demographicsOf(call, path) },
      observedAt: observedAt(who.headers, clock()),
      fields: ['followerCount', 'profileViews', 'profileLinkTaps', 'demographics'],
    };
  };

/** Who the token is of. */
export const me = {
  ...{ method: 'GET', path: at('me'), query: { fields: 'id,username,name,threads_profile_picture_url' } },
} as const satisfies Ask;

export const profileOf = (body: Members) => ({
  username: textIn(body, 'username') || null,
  displayName: textIn(body, 'name') || null,
  avatarUrl: textIn(body, 'threads_profile_picture_url') || null,
});
