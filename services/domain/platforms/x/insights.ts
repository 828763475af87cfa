/**
 * X, API v2. Sources: docs.x.com, "Metrics" (public_metrics; non_public_metrics of own posts of the last 30 days),
 * "Post analytics" and "Media analytics", whose values may be decimal strings.
 *
 * Of a post `{data, includes, analytics, media_analytics}`: the post of the lookup, the post's row of `/2/tweets/analytics`
 * and the first medium's of `/2/media/analytics`. `post.fields` has other names for the same members; both are read.
 */
import {
  asCount,
  count,
  derived,
  digits,
  type FigureSource,
  first,
  items,
  mapped,
  minutesOf,
  ofVideo,
} from '#domain/platforms/figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '#domain/platforms/insights-table.ts';

const watched = digits('media_analytics.watch_time_ms');
const views = digits('media_analytics.video_views');

/** Null as soon as one of the two is null; undefined as soon as one is missing. */
const both = <A, B, C>(one: FigureSource<A>, other: FigureSource<B>, join: (a: A, b: B) => C | null): FigureSource<C> =>
  derived(`${one.name}, ${other.name}`, (raw) => {
    const a = one.read(raw);
    const b = other.read(raw);
    if (a === undefined || b === undefined) return undefined;
    return a === null || b === null ? null : join(a, b);
  });

const secondsEach = both(watched, views, (ms, plays) => (plays === 0 ? null : ms / 1000 / plays));
const durations = derived('duration_ms', (raw) => {
  const media = items(raw, 'includes.media');
  const reported = media?.find(({ duration_ms }) => duration_ms !== undefined)?.duration_ms;
  return reported === undefined || reported === null ? reported : asCount(reported, 'duration_ms');
});
const share = (seconds: number, durationMs: number): number | null =>
  durationMs === 0 ? null : Math.min(Math.round((seconds / (durationMs / 1000)) * 10_000) / 100, 1000);

const quarters = [
  'playback_0_count',
  'playback_25_count',
  'playback_50_count',
  'playback_75_count',
  'playback_100_count',
];

export const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    impressions: count('data.public_metrics.impression_count'),
    likes: count('data.public_metrics.like_count'),
    comments: count('data.public_metrics.reply_count'),
    // A repost is no share: X counts shares apart.
    shares: digits('analytics.shares'),
    saves: count('data.public_metrics.bookmark_count'),
    clicks: count('data.non_public_metrics.url_link_clicks'),
    follows: digits('analytics.follows'),
    profileVisits: digits('analytics.user_profile_clicks'),
    totalInteractions: count('data.non_public_metrics.engagements'),
    reposts: first(count('data.public_metrics.retweet_count'), count('data.public_metrics.repost_count')),
    quotes: count('data.public_metrics.quote_count'),
    // X counts the views of all posts that use the medium.
    videoViews: ofVideo(
      derived('includes.media[].public_metrics.view_count', (raw) => {
        const media = items(raw, 'includes.media');
        if (media === null || media === undefined) return media;
        const reported = media.flatMap(({ public_metrics }) => {
          const one = count('view_count').read(public_metrics ?? {});
          return one === null || one === undefined ? [] : [one];
        });
        return reported.length === 0
          ? undefined
          : asCount(
              reported.reduce((sum, one) => sum + one, 0),
              'view_count',
            );
      }),
    ),
    watchTimeMinutes: ofVideo(minutesOf(watched)),
    avgViewDurationSeconds: ofVideo(mapped(secondsEach, Math.floor)),
    avgViewPercentage: ofVideo(both(secondsEach, durations, share)),
    audienceRetention: ofVideo(
      derived(quarters.join(', '), (raw) => {
        const played = quarters.map((name) => digits(`media_analytics.${name}`).read(raw));
        const [from] = played;
        if (played.includes(undefined)) return undefined;
        if (from === null || from === undefined || from === 0 || played.includes(null)) return null;
        return played.map((one, quarter) => ({ position: quarter / 4, ratio: ratioOf(one ?? 0, from) }));
      }),
    ),
  }),
  account: { ...unreportedAccount, followerCount: count('data.public_metrics.followers_count') },
  demographics: null,
};

function ratioOf(played: number, from: number): number {
  return Math.round((played / from) * 10_000) / 10_000;
}
