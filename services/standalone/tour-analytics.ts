import { setTimeout as delay } from 'node:timers/promises';
import type { Receiver } from './receiver.ts';
import type { Screen } from './screen.ts';
import type { TourClient } from './tour-client.ts';

/**
 * A week of figures in a few seconds: the tour moves the clock of its sandbox day by day, and requests fresh figures each
 * day.
 */

export interface AnalyticsTour {
  readonly http: TourClient;
  /** With a first-party session: a refresh takes no key. */
  readonly member: TourClient;
  /** Time zone of the workspace, which decides where days begin. */
  readonly timezone: string;
  readonly receiver: Receiver;
  readonly screen: Screen;
  readonly signal: AbortSignal;
}

interface Clock {
  readonly now: string;
}

type Figures = Readonly<Record<string, number | null>>;

interface Overview {
  readonly asOf: string | null;
  readonly totals: Figures;
  readonly byPlatform: readonly (Figures & { readonly platform: string })[];
  readonly series: readonly (Figures & { readonly day: string })[];
}

const dayMs = 86_400_000;
const days = 7;
const patienceMs = 60_000;
/** Milliseconds between two looks at what has arrived here, and at the figures, which cost the engine several queries. */
const arrivedEveryMs = 50;
const figuresEveryMs = 300;
const bars = '▁▂▃▄▅▆▇█';

/** One bar a day from 0 to the greatest value; a day without an observation is a gap. */
export const sparkline = (values: readonly (number | null)[]): string => {
  const most = Math.max(1, ...values.map((value) => value ?? 0));
  return values
    .map((value) => (value === null ? '·' : bars[Math.round((Math.max(0, value) / most) * (bars.length - 1))]))
    .join('');
};

const dayOf = (instant: Date, timezone: string): string =>
  new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short' }).format(instant);

const shown = (value: number | null | undefined): string => {
  if (value === null || value === undefined) return '–';
  return value.toLocaleString('en');
};
const share = (value: number | null | undefined): string =>
  value === null || value === undefined ? '–' : `${(value * 100).toFixed(1)} %`;

/** @throws when the figures do not come within a minute. */
const patiently = async <Value>(
  what: string,
  everyMs: number,
  signal: AbortSignal,
  look: () => Promise<Value | null>,
): Promise<Value> => {
  for (const until = performance.now() + patienceMs; performance.now() < until; ) {
    const value = await look();
    if (value !== null) return value;
    await delay(everyMs, undefined, { signal });
  }
  throw new Error(`${what} within ${patienceMs / 1_000} s`);
};

const members = ['impressions', 'reach', 'likes', 'comments', 'shares', 'saves', 'videoViews'] as const;

/** True when all seven days have their figures. */
export const showAnalytics = async (tour: AnalyticsTour): Promise<boolean> => {
  const { http, member, timezone, receiver, screen, signal } = tour;
  let { now } = await http.get<Clock>('/sandbox/clock');
  const from = dayOf(new Date(now), timezone);
  let to = from;
  let overview: Overview | null = null;
  for (let day = 1; day <= days; day += 1) {
    const next = new Date(Date.parse(now) + dayMs).toISOString();
    ({ now } = await http.post<Clock>('/sandbox/clock', { to: next }));
    to = dayOf(new Date(now), timezone);
    const { refreshId } = await member.post<{ refreshId: string }>('/analytics/refresh', {});
    await patiently('no webhook said that the figures are fresh', arrivedEveryMs, signal, async () =>
      receiver.received.some(({ type, data }) => type === 'analytics.refreshed' && data.refreshId === refreshId)
        ? true
        : null,
    );
    overview = await patiently(`the overview did not show ${to}`, figuresEveryMs, signal, async () => {
      const read = await http.get<Overview>(`/analytics/overview?from=${from}&to=${to}`);
      return read.series.some((one) => one.day === to && typeof one.impressions === 'number') ? read : null;
    });
    screen.event('a day later, figures are fresh', `${to}: ${shown(overview.totals.impressions)} impressions so far`);
  }
  if (overview === null) return false;
  const row = (name: string, figures: Figures): string[] => [
    name,
    ...members.map((one) => shown(figures[one])),
    share(figures.engagementRate),
  ];
  screen.table(
    ['overview', ...members, 'engagement rate'],
    [...overview.byPlatform.map((one) => row(one.platform, one)), row('workspace', overview.totals)],
    -1,
  );
  const daily = overview.series.map(({ impressions }) => impressions ?? null);
  screen.note(`impressions a day, ${from} to ${to}:  ${sparkline(daily)}`);
  screen.note(
    `– is what a network does not report or was not asked for, never a 0; as of ${overview.asOf}, the sandbox’s own time`,
  );
  return daily.filter((value) => value !== null).length >= days;
};
