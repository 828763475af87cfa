/**
 * YouTube, Data API v3 and Analytics API v2. Sources: developers.google.com/youtube, "videos.batchGetStats" (decimal
 * strings, fresh), "Channel reports" (columns and rows, 48 to 72 hours late; no rows where there is nothing yet).
 *
 * Of a post `{video, totals, retention, traffic, viewers, countries, devices}`: the video, and one report for each kind of
 * row. Of an account `{channel, day}`.
 */
import {
  asAmount,
  asDigits,
  asLabel,
  asList,
  type Counted,
  counted,
  derived,
  dig,
  digits,
  type FigureSource,
  first,
  items,
} from '#domain/platforms/figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '#domain/platforms/insights-table.ts';

/** The rows of a report, each as a function from a column to its cell; undefined where the report has no rows. */
const rowsOf = (raw: unknown, report: string) => {
  const columns = items(raw, `${report}.columnHeaders`);
  const rows = dig(raw, `${report}.rows`);
  if (!columns || rows === null || rows === undefined) return undefined;
  const names = columns.map(({ name }) => asLabel(name, `${report}.columnHeaders`));
  return asList(rows, `${report}.rows`).map((row) => {
    const cells = asList(row, `${report}.rows`);
    return (column: string): unknown => cells[names.indexOf(column)];
  });
};

const cell = <T>(report: string, column: string, check: (value: unknown, name: string) => T): FigureSource<T> => ({
  ...digits(column),
  name: `${report}.${column}`,
  read: (raw) => {
    const value = rowsOf(raw, report)?.[0]?.(column);
    return value === undefined || value === null ? value : check(value, column);
  },
});
const total = (column: string) => cell('totals', column, asDigits);

const byLabel = (
  report: string,
  column: string,
  value: string,
  check: (value: unknown, name: string) => number,
): FigureSource<Counted> =>
  derived(`${report}: ${value} by ${column}`, (raw) => {
    const rows = rowsOf(raw, report);
    return rows && counted(rows.map((row) => [asLabel(row(column), column), check(row(value), value)] as const));
  });

const breakdowns = {
  ageGroup: byLabel('viewers', 'ageGroup', 'viewerPercentage', asAmount),
  gender: byLabel('viewers', 'gender', 'viewerPercentage', asAmount),
  country: byLabel('countries', 'country', 'views', asDigits),
  deviceType: byLabel('devices', 'deviceType', 'views', asDigits),
};

export const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    // Missing where the channel hides its likes.
    likes: first(digits('video.statistics.likeCount'), total('likes')),
    comments: first(digits('video.statistics.commentCount'), total('comments')),
    shares: total('shares'),
    videoViews: first(digits('video.statistics.viewCount'), total('views')),
    watchTimeMinutes: total('estimatedMinutesWatched'),
    avgViewDurationSeconds: total('averageViewDuration'),
    avgViewPercentage: cell('totals', 'averageViewPercentage', asAmount),
    subscribersGained: total('subscribersGained'),
    subscribersLost: total('subscribersLost'),
    // Above 1 where viewers watch a part again.
    audienceRetention: derived('retention: audienceWatchRatio by elapsedVideoTimeRatio', (raw) =>
      rowsOf(raw, 'retention')?.map((row) => ({
        position: asAmount(row('elapsedVideoTimeRatio'), 'elapsedVideoTimeRatio'),
        ratio: asAmount(row('audienceWatchRatio'), 'audienceWatchRatio'),
      })),
    ),
    trafficSources: byLabel('traffic', 'insightTrafficSourceType', 'views', asDigits),
    audienceBreakdown: derived('viewers, countries, devices', (raw) => {
      const found = Object.entries(breakdowns).flatMap(([dimension, source]) => {
        const reported = source.read(raw);
        return reported === null || reported === undefined ? [] : [[dimension, reported] as const];
      });
      return found.length === 0 ? undefined : Object.fromEntries(found);
    }),
  }),
  account: {
    ...unreportedAccount,
    followerCount: digits('channel.statistics.subscriberCount'),
    videoViews: cell('day', 'views', asDigits),
    videoWatchTimeMinutes: cell('day', 'estimatedMinutesWatched', asDigits),
  },
  demographics: null,
};
