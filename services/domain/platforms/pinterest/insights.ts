/**
 * Pinterest, API v5. Source: developers.pinterest.com, "Get Pin analytics", "Get user account analytics".
 * Of a post `{analytics, pin}`: the analytics since the day of publication, at most 90 days back, which covers all the days
 * we poll; and the pin with its `pin_metrics`. Of an account `{user_account, analytics}` for one day.
 */
import { count, derived, first, minutesOf, ofVideo, secondsOf } from '#domain/platforms/figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '#domain/platforms/insights-table.ts';

const since = (metric: string) => count(`analytics.all.summary_metrics.${metric}`);
const lifetime = (metric: string) => count(`analytics.all.lifetime_metrics.${metric}`);
const ofPin = (metric: string) => count(`pin.pin_metrics.lifetime_metrics.${metric}`);

const closeups = first(since('PIN_CLICK'), ofPin('pin_click'));
const outbound = first(since('OUTBOUND_CLICK'), ofPin('clickthrough'));

export const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    impressions: first(since('IMPRESSION'), ofPin('impression')),
    likes: first(lifetime('TOTAL_REACTIONS'), ofPin('reaction')),
    comments: first(lifetime('TOTAL_COMMENTS'), ofPin('comment')),
    saves: since('SAVE'),
    clicks: closeups,
    clicksByType: derived('PIN_CLICK, OUTBOUND_CLICK', (raw) => {
      const pin_click = closeups.read(raw);
      const outbound_click = outbound.read(raw);
      if (pin_click === undefined || outbound_click === undefined) return undefined;
      return pin_click === null || outbound_click === null ? null : { pin_click, outbound_click };
    }),
    follows: since('USER_FOLLOW'),
    profileVisits: since('PROFILE_VISIT'),
    videoViews: ofVideo(since('VIDEO_MRC_VIEW')),
    videoCompletions: ofVideo(since('QUARTILE_95_PERCENT_VIEW')),
    // Milliseconds as observed; Pinterest documents no unit.
    watchTimeMinutes: ofVideo(minutesOf(since('VIDEO_V50_WATCH_TIME'))),
    avgViewDurationSeconds: ofVideo(secondsOf(since('VIDEO_AVG_WATCH_TIME'))),
  }),
  account: {
    ...unreportedAccount,
    followerCount: count('user_account.follower_count'),
    // Pinterest answers these three only to requests that name no metrics.
    profileViews: since('PROFILE_VISIT'),
    videoViews: since('VIDEO_MRC_VIEW'),
    videoWatchTimeMinutes: minutesOf(since('VIDEO_V50_WATCH_TIME')),
    contentPlays: since('VIDEO_START'),
  },
  demographics: null,
};
