import {
  accountDays,
  type InsightsAccount,
  type InsightsSource,
  type InsightsSubject,
  type PostInsightsAnswer,
  type ReportedDay,
} from '#contracts/ports/platform-insights.ts';
import type { PostFigures } from '#schemas/insights.ts';
import type { NotOk } from '../kit/errors.ts';
import { isLeftOut, observedAt, withoutFigures } from '../kit/figures.ts';
import type { Bound } from '../kit/network.ts';
import { laterDay, spanOfDay, yesterdayOf } from '../meta/days.ts';
import { callsOf, figuresOfMissing, insightsGiven, insightsOf, type MetaCall, postByPost } from '../meta/figures.ts';
import { isMediaId } from '../meta/graph.ts';
import { profileOfInstagram } from '../meta/login.ts';
import type { Members } from '../shared/members.ts';
import { isByFacebook } from './publish.ts';
import { isGone } from './tables.ts';

/**
 * Figures of posts, one by one, each by the set of metrics of its kind, and of the account by days of California. "Instagram
 * Media Insights", "Instagram User Insights".
 */

type Query = Readonly<Record<string, string>>;

type Field = keyof PostFigures;

/** One metric of another kind fails the whole call: each kind has its own set. */
interface Kind {
  readonly metrics: readonly string[];
  /** Metrics that want a call of their own, and the breakdown with which it asks. */
  readonly apart: Readonly<Record<string, Query>>;
  readonly fields: readonly Field[];
}

const ofAll = ['views', 'reach', 'shares', 'total_interactions', 'reposts'];
const afterwards = ['follows', 'profile_visits'];
const activity = { profile_activity: { breakdown: 'action_type' } };
const liked = ['likes', 'comments', 'saved'];
const fieldsOfAll: readonly Field[] = ['impressions', 'reach', 'shares', 'totalInteractions', 'reposts', 'permalink'];
const fieldsAfterwards: readonly Field[] = ['follows', 'profileVisits', 'profileActivity'];
const fieldsLiked: readonly Field[] = ['likes', 'comments', 'saves'];

const kinds: Readonly<Record<'feed' | 'reel' | 'story', Kind>> = {
  feed: {
    ...{ metrics: [...ofAll, ...liked, ...afterwards], apart: activity },
    fields: [...fieldsOfAll, ...fieldsLiked, ...fieldsAfterwards],
  },
  reel: {
    metrics: [...ofAll, ...liked, 'ig_reels_avg_watch_time', 'ig_reels_video_view_total_time', 'reels_skip_rate'],
    apart: {},
    fields: [...fieldsOfAll, ...fieldsLiked, 'videoViews', 'watchTimeMinutes', 'avgViewDurationSeconds', 'skipRate'],
  },
  story: {
    metrics: [...ofAll, 'replies', ...afterwards],
    apart: { ...activity, navigation: { breakdown: 'story_navigation_action_type' } },
    fields: [...fieldsOfAll, ...fieldsAfterwards, 'comments', 'navigation', 'linkClicks'],
  },
};

/** With Facebook Login alone. */
const ofLinks = { link_clicks: {} };

const figuresOf = async (
  isOfFacebook: boolean,
  call: MetaCall,
  account: InsightsAccount,
  post: InsightsSubject,
  now: number,
): Promise<PostInsightsAnswer> => {
  const { externalId, use } = post;
  if (!isMediaId(externalId)) return { kind: 'unavailable', reason: 'this is no id of a post' };
  const shown = await call(externalId, { fields: 'id,permalink' });
  if (shown.kind !== 'ok') {
    if (shown.kind !== 'refused' || !isGone(shown)) return withoutFigures(shown, now);
    // Meta was seen not to find what is there.
    const edge = `${account.externalId}/${use === 'story' ? 'stories' : 'media'}`;
    return figuresOfMissing(call, edge, post, shown, now, use !== 'story');
  }
  const kind = kinds[use === 'reel' || use === 'story' ? use : 'feed'];
  const path = `${externalId}/insights`;
  const data = await insightsOf(call, path, kind.metrics);
  // A story that few have seen has none yet: "Not enough viewers".
  if ('kind' in data && !(use === 'story' && isLeftOut(data) && !isUnpermitted(data))) return withoutFigures(data, now);
  const all: Members[] = 'kind' in data ? [] : [...data];
  const apart: Kind['apart'] = { ...kind.apart, ...(use === 'story' && isOfFacebook ? ofLinks : {}) };
  for (const [metric, query] of Object.entries(apart)) {
    const more = await insightsGiven(call, path, [metric], query);
    if ('kind' in more) return withoutFigures(more, now);
    all.push(...more);
  }
  const raw = { media: shown.body, insights: { data: all } };
  return { kind: 'reported', raw, observedAt: observedAt(shown.headers, now), fields: kind.fields };
};

const isUnpermitted = (answer: NotOk): boolean => answer.kind === 'refused' && answer.failure.category === 'permission';

export const postFigures = (bound: Bound): InsightsSource['fetchPostInsights'] =>
  postByPost(bound, (call, account, post, now) => figuresOf(isByFacebook(bound), call, account, post, now));

/** Followers by what they are; Instagram tells it of accounts with 100 of them, one breakdown a call. */
const demographicsOf = async (call: MetaCall, path: string): Promise<Members> => {
  const found: Record<string, Members> = {};
  const lifetime = { period: 'lifetime', metric_type: 'total_value', timeframe: 'this_month' };
  for (const breakdown of ['country', 'city', 'age', 'gender']) {
    const data = await insightsOf(call, path, ['follower_demographics'], { ...lifetime, breakdown });
    // What it refuses of one it refuses of all.
    if ('kind' in data) break;
    found[breakdown] = { data };
  }
  return found;
};

const profileFields = 'id,username,name,profile_picture_url';

export const accountFigures =
  (bound: Bound): InsightsSource['fetchAccountInsights'] =>
  async (_platform, account, signal) => {
    const call = callsOf(bound, account, signal);
    const { clock } = bound;
    const path = `${account.externalId}/insights`;
    const ofDay = async (day: string): Promise<Members | NotOk> => {
      const span = { period: 'day', metric_type: 'total_value', ...spanOfDay(day) };
      const data = await insightsOf(call, path, ['accounts_engaged', 'profile_links_taps', 'profile_views'], span);
      if ('kind' in data) return data;
      const views = await insightsOf(call, path, ['views'], { ...span, breakdown: 'media_product_type' });
      if ('kind' in views && !isLeftOut(views)) return views;
      return { insights: { data }, ...('kind' in views ? {} : { views: { data: views } }) };
    };
    const user = await call(account.externalId, { fields: `${profileFields},followers_count` });
    if (user.kind !== 'ok') return withoutFigures(user, clock());
    const yesterday = yesterdayOf(clock());
    const newest = await ofDay(yesterday);
    if (isNotOk(newest)) return withoutFigures(newest, clock());
    const earlier: ReportedDay[] = [];
    for (let before = 1; before < accountDays; before += 1) {
      const day = laterDay(yesterday, -before);
      const raw = await ofDay(day);
      if (!isNotOk(raw)) earlier.push({ day, raw });
    }
    return {
      ...{ kind: 'reported', figuresOf: yesterday, earlier, profile: profileOfInstagram(user.body) },
      raw: { user: user.body, ...newest, follower_demographics: await demographicsOf(call, path) },
      observedAt: observedAt(user.headers, clock()),
      fields: [
        ...(['followerCount', 'profileViews', 'accountsEngaged', 'profileLinkTaps'] as const),
        ...(['videoViews', 'contentPlays', 'demographics'] as const),
      ],
    };
  };

/** An answer has members of its own names, and none is `kind`. */
const isNotOk = (one: Members | NotOk): one is NotOk => typeof one.kind === 'string';
