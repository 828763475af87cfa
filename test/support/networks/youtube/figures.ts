import { type Answer, invalid, refuse } from './answer.ts';
import { accessOf, analytics, onlyHeaders, queryOf, type Request } from './request.ts';
import type { State } from './state.ts';

/**
 * developers.google.com/youtube/analytics, "Reports: query", "Channel reports": which metrics and dimensions go together. A
 * report has days of California until two days ago, and no rows where there is nothing.
 */

const counts = [
  ...['views', 'likes', 'comments', 'shares', 'estimatedMinutesWatched', 'averageViewDuration'],
  ...['averageViewPercentage', 'subscribersGained', 'subscribersLost', 'engagedViews'],
];

interface Report {
  readonly metrics: readonly string[];
  /** Only of one video. */
  readonly ofVideo?: true;
  rows(values: Readonly<Record<string, number>>): readonly (readonly (string | number)[])[];
}

const shares =
  (...labels: readonly string[]) =>
  ({ views = 0 }: Readonly<Record<string, number>>) =>
    labels.map((label, at) => [label, Math.floor(views / (at + 2))]);

const reports: Readonly<Record<string, Report>> = {
  elapsedVideoTimeRatio: {
    ...{ metrics: ['audienceWatchRatio', 'relativeRetentionPerformance'], ofVideo: true },
    rows: () => Array.from({ length: 100 }, (_, at) => [(at + 1) / 100, Math.round((1.2 - at / 100) * 1_000) / 1_000]),
  },
  insightTrafficSourceType: {
    metrics: ['views', 'estimatedMinutesWatched'],
    rows: shares('YT_SEARCH', 'RELATED_VIDEO', 'SUBSCRIBER'),
  },
  'ageGroup,gender': {
    metrics: ['viewerPercentage'],
    rows: () => [
      ['age18-24', 'female', 60.5],
      ['age25-34', 'male', 39.5],
    ],
  },
  country: { metrics: ['views'], rows: shares('DE', 'AT') },
  deviceType: { metrics: ['views'], rows: shares('MOBILE', 'DESKTOP') },
};

const valuesOf = (views: number): Readonly<Record<string, number>> => ({
  ...{ views, engagedViews: views, likes: Math.floor(views / 10), comments: Math.floor(views / 100) },
  ...{ shares: Math.floor(views / 50), estimatedMinutesWatched: Math.floor(views / 2), averageViewDuration: 30 },
  ...{ averageViewPercentage: 61.3, subscribersGained: Math.floor(views / 200), subscribersLost: 1 },
});

const dateForm = /^\d{4}-\d\d-\d\d$/;

const answered = (names: readonly string[], dimensions: readonly string[], rows: readonly unknown[]): Answer => ({
  status: 200,
  body: {
    kind: 'youtubeAnalytics#resultTable',
    columnHeaders: names.map((name) => {
      const isDimension = dimensions.includes(name);
      return { name, columnType: isDimension ? 'DIMENSION' : 'METRIC', dataType: isDimension ? 'STRING' : 'FLOAT' };
    }),
    ...(rows.length === 0 ? {} : { rows }),
  },
});

export const report = (state: State, request: Request): Answer => {
  onlyHeaders(request);
  const { channelId } = accessOf(state, request, analytics);
  const asked = queryOf(
    request,
    ...['ids', 'startDate', 'endDate', 'metrics', 'dimensions?', 'filters?', 'sort?', 'maxResults?'],
  );
  if (asked.ids !== `channel==${channelId}` && asked.ids !== 'channel==MINE') throw refuse('forbidden');
  const { startDate = '', endDate = '', dimensions = '' } = asked;
  if (!dateForm.test(startDate) || !dateForm.test(endDate) || startDate > endDate) throw invalid('dates');
  const metrics = (asked.metrics ?? '').split(',');
  const sort = (asked.sort ?? metrics[0] ?? '').replace(/^-/, '');
  if (![...metrics, dimensions].includes(sort)) throw refuse('no_report');
  const id = /^video==([\w-]{11})$/.exec(asked.filters ?? '')?.[1];
  if (asked.filters !== undefined && id === undefined) throw refuse('no_report');
  const video = id === undefined ? null : state.video(id);
  const last = state.day(2);
  // A video that is gone is in no report.
  const isEmpty = startDate > last || (id !== undefined && (video === null || video.channelId !== channelId));
  const since = video === null ? 30 : Math.floor((state.now() - video.at) / 86_400_000);
  const values = valuesOf(since * 1_000);
  const own = metrics.map((name) => values[name] ?? 0);
  if (dimensions === '') {
    if (metrics.some((one) => !counts.includes(one))) throw refuse('no_report');
    return answered(metrics, [], isEmpty ? [] : [own]);
  }
  if (dimensions === 'day') {
    if (metrics.some((one) => !counts.includes(one))) throw refuse('no_report');
    const days = Array.from({ length: 40 }, (_, ago) => state.day(ago + 2)).filter(
      (day) => day >= startDate && day <= endDate,
    );
    return answered(
      ['day', ...metrics],
      ['day'],
      days.toReversed().map((day) => [day, ...own]),
    );
  }
  const known = reports[dimensions];
  if (known === undefined || metrics.some((one) => !known.metrics.includes(one))) throw refuse('no_report');
  if (known.ofVideo === true && id === undefined) throw refuse('no_report');
  const labels = dimensions.split(',');
  const rows = known.rows(values).map((row) => row.slice(0, labels.length + metrics.length));
  return answered([...labels, ...metrics], labels, isEmpty ? [] : rows);
};
