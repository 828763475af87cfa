import {
  accountDays,
  type InsightsAccount,
  type InsightsSource,
  type InsightsSubject,
  type PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import { observedAt, withoutFigures } from '../kit/figures.ts';
import type { Bound } from '../kit/network.ts';
import {
  callsOf,
  dayIn,
  daysOf,
  figuresOfMissing,
  insightsGiven,
  type MetaCall,
  newestOf,
  postByPost,
} from '../meta/figures.ts';
import { dayMs, isGone, isMediaId, secondOf } from '../meta/graph.ts';
import { profileOfPage } from '../meta/login.ts';
import { listIn, membersOf } from '../shared/members.ts';
import { filesOf } from './post.ts';
import { isPostId } from './tables.ts';

/**
 * Figures of posts, one by one, and of the page by its days: "Page Insights", "Video Insights" of the Graph API, after the
 * retirements of 2025-11-15 and 2026-06-15.
 */

const ofPost = [
  ...['post_media_view', 'post_total_media_view_unique', 'post_clicks', 'post_clicks_by_type'],
  'post_reactions_by_type_total',
];
const ofPostWithVideo = [...ofPost, 'post_video_view_time', 'post_video_views'];
const ofEveryVideo = ['post_video_avg_time_watched', 'post_video_followers', 'total_video_view_total_time'];
const ofVideo = {
  feed: [...ofEveryVideo, 'total_video_views', 'total_video_complete_views', 'total_video_retention_graph'],
  reel: [...ofEveryVideo, 'fb_reels_total_plays', 'blue_reels_play_count', 'post_video_retention_graph'],
};

const plain = 'id,permalink_url,shares,attachments{media_type,target{id},subattachments}';
/** Without `pages_read_user_content` Facebook refuses the whole call. */
const counted = `${plain},reactions.summary(total_count).limit(0),comments.summary(true).limit(0)`;

const figuresOf = async (
  call: MetaCall,
  account: InsightsAccount,
  post: InsightsSubject,
  now: number,
): Promise<PostInsightsAnswer> => {
  const { externalId: id, use, hasVideo } = post;
  if (!isPostId(id)) return { kind: 'unavailable', reason: 'this is no id of a post' };
  const all = await call(id, { fields: counted });
  const isLess = all.kind === 'refused' && all.failure.category === 'permission';
  const shown = isLess ? await call(id, { fields: plain }) : all;
  if (shown.kind !== 'ok') {
    if (shown.kind !== 'refused' || !isGone(shown) || use === 'story') return withoutFigures(shown, now);
    return figuresOfMissing(call, `${account.externalId}/published_posts`, post, shown, now);
  }
  const { attachments: _, ...node } = shown.body;
  const at = observedAt(shown.headers, now);
  // What Facebook tells of stories is 0 for many that people have seen.
  if (use === 'story') return { kind: 'reported', raw: { post: node }, observedAt: at };
  const data = await insightsGiven(call, `${id}/insights`, hasVideo ? ofPostWithVideo : ofPost, { period: 'lifetime' });
  if ('kind' in data) return withoutFigures(data, now);
  const raw = { post: node, insights: { data } };
  const video = hasVideo ? (filesOf(shown.body).find(isMediaId) ?? null) : null;
  if (video === null) return { kind: 'reported', raw, observedAt: at };
  const watched = await insightsGiven(call, `${video}/video_insights`, ofVideo[use === 'reel' ? 'reel' : 'feed']);
  if ('kind' in watched) return withoutFigures(watched, now);
  return { kind: 'reported', raw: { ...raw, video_insights: { data: watched } }, observedAt: at };
};

export const postFigures = (bound: Bound): InsightsSource['fetchPostInsights'] => postByPost(bound, figuresOf);

const ofDay = ['page_media_view', 'page_views_total', 'page_total_actions'];
/** Retired without a successor on 2026-06-15, and read where Facebook still answers them. */
const ofDayOnce = ['page_video_views', 'page_video_view_time'];
const ofFollowers = ['page_follows_country', 'page_follows_city'];

export const accountFigures =
  (bound: Bound): InsightsSource['fetchAccountInsights'] =>
  async (_platform, account, signal) => {
    const call = callsOf(bound, account, signal);
    const { clock } = bound;
    const { externalId: page } = account;
    const who = await call(page, { fields: 'id,name,username,followers_count,picture{url}' });
    if (who.kind !== 'ok') return withoutFigures(who, clock());
    const span = { period: 'day', since: secondOf(clock() - (accountDays + 1) * dayMs), until: secondOf(clock()) };
    const data = await insightsGiven(call, `${page}/insights`, ofDay, span);
    if ('kind' in data) return withoutFigures(data, clock());
    const former = await insightsGiven(call, `${page}/insights`, ofDayOnce, span);
    if ('kind' in former) return withoutFigures(former, clock());
    const followers = await insightsGiven(call, `${page}/insights`, ofFollowers, span);
    if ('kind' in followers) return withoutFigures(followers, clock());
    // The day that goes on has no end yet.
    const [newest, ...earlier] = daysOf([...data, ...former]).filter(({ day }) => day < dayIn.format(clock()));
    const { followers_count: count } = who.body;
    const own = listIn(membersOf(newest?.raw)?.insights, 'data');
    const node = count === undefined ? {} : { followers_count: count };
    return {
      kind: 'reported',
      raw: { page: node, insights: { data: [...own, ...followers.map(newestOf)] } },
      figuresOf: newest?.day ?? null,
      observedAt: observedAt(who.headers, clock()),
      ...(earlier.length === 0 ? {} : { earlier: earlier.slice(0, accountDays - 1) }),
      profile: profileOfPage(who.body),
    };
  };
