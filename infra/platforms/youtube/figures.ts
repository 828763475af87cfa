import {
  accountDays,
  type InsightsAccount,
  type InsightsSource,
  type InsightsSubject,
  type PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import type { NetworkAnswer, OkAnswer } from '../kit/errors.ts';
import { byBatch, gathered, type NoFigures, observedAt, withoutFigures } from '../kit/figures.ts';
import type { Bound } from '../kit/network.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { zone } from './tables.ts';

/**
 * Counts of videos by the batch, and reports of each: developers.google.com/youtube, "Videos: list", "Channel reports" of the
 * Analytics API. Reports are whole for days of California that are two to three days old; a younger video has none yet.
 */

const perCall = 50;
const dayMs = 86_400_000;
/** Before it no report has a row. */
const lagMs = 2 * dayMs;

const dayOf = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' });

const totals = [
  ...['views', 'likes', 'comments', 'shares', 'estimatedMinutesWatched', 'averageViewDuration'],
  ...['averageViewPercentage', 'subscribersGained', 'subscribersLost'],
];

/** "Channel reports": what may be asked for together. */
const reports: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  totals: { metrics: totals.join() },
  retention: { metrics: 'audienceWatchRatio', dimensions: 'elapsedVideoTimeRatio' },
  traffic: { metrics: 'views', dimensions: 'insightTrafficSourceType', sort: '-views' },
  viewers: { metrics: 'viewerPercentage', dimensions: 'ageGroup,gender' },
  countries: { metrics: 'views', dimensions: 'country', sort: '-views', maxResults: '200' },
  devices: { metrics: 'views', dimensions: 'deviceType', sort: '-views' },
};

const askingOf = (bound: Bound, account: InsightsAccount, signal: AbortSignal) => {
  const get = async (path: string, query: Readonly<Record<string, string>>): Promise<NetworkAnswer> => {
    const ask = { method: 'GET', path, query, isOptional: true } as const;
    const answer = await bound.client.call({ accountId: account.id, targetId: null }, ask, signal);
    signal.throwIfAborted();
    return answer;
  };
  return {
    ...{ bound, account, get },
    report: (startDate: string, query: Readonly<Record<string, string>>): Promise<NetworkAnswer> => {
      const endDate = dayOf.format(bound.clock());
      return get('{figures}/reports', { ids: `channel==${account.externalId}`, startDate, endDate, ...query });
    },
  };
};

type Asking = ReturnType<typeof askingOf>;

/** The table alone: what else an answer has is of the call. */
const tableOf = ({ body: { columnHeaders = [], rows } }: OkAnswer): Members => ({
  columnHeaders: columnHeaders as Members[string],
  ...(rows === undefined ? {} : { rows }),
});

const reportsOf = async (
  { bound, report }: Asking,
  { externalId, publishedAt }: InsightsSubject,
): Promise<Members | NoFigures> => {
  const from = Date.parse(publishedAt);
  if (bound.clock() - from < lagMs) return {};
  const filters = `video==${externalId}`;
  const answers = await gathered(
    Object.fromEntries(
      Object.entries(reports).map(([name, query]) => [name, () => report(dayOf.format(from), { ...query, filters })]),
    ),
  );
  // The owner may have left that permission out.
  if ('kind' in answers && answers.kind === 'refused' && answers.failure.category === 'permission') return {};
  if ('kind' in answers) return withoutFigures(answers, bound.clock());
  return Object.fromEntries([...answers].map(([name, answer]) => [name, tableOf(answer)]));
};

type Batch = ReadonlyMap<string, PostInsightsAnswer>;

const batchOf = async (
  asking: Asking,
  ids: readonly string[],
  posts: readonly InsightsSubject[],
): Promise<Batch | NoFigures> => {
  const { bound, get } = asking;
  const videos = await get('/videos', { part: 'statistics,status', id: ids.join(), maxResults: String(perCall) });
  if (videos.kind !== 'ok') return withoutFigures(videos, bound.clock());
  if (!Array.isArray(videos.body.items)) return { kind: 'unavailable', reason: 'the answer has no list of videos' };
  const at = { observedAt: observedAt(videos.headers, bound.clock()) };
  const shown = new Map(listIn(videos.body, 'items').map((one) => [textIn(one, 'id') ?? '', one]));
  const found = new Map<string, PostInsightsAnswer>();
  for (const id of ids) {
    const video = shown.get(id);
    const post = posts.find(({ externalId }) => externalId === id);
    // The owner sees private videos too: one that is not there is gone.
    if (video === undefined || textIn(membersOf(video.status), 'uploadStatus') === 'deleted') {
      found.set(id, { kind: 'removed', raw: null, ...at });
      continue;
    }
    const more = post === undefined ? {} : await reportsOf(asking, post);
    const { statistics = {} } = video;
    found.set(
      id,
      'kind' in more ? (more as NoFigures) : { kind: 'reported', raw: { video: { id, statistics }, ...more }, ...at },
    );
  }
  return found;
};

export const postFigures =
  (bound: Bound): InsightsSource['fetchPostInsights'] =>
  (_platform, account, posts, signal) => {
    const asking = askingOf(bound, account, signal);
    return byBatch<Batch>(
      posts,
      {
        perCall,
        group: () => '',
        ask: (ids) => batchOf(asking, ids, posts),
        answer: ({ externalId }, _group, batch) =>
          batch.get(externalId) ?? { kind: 'unavailable', reason: 'YouTube does not show the video' },
      },
      signal,
    );
  };

/** Rows of a report by day, the newest first. */
const daysOf = ({ body }: OkAnswer) => {
  const columns = listIn(body, 'columnHeaders').map(({ name }) => ({ name: name ?? '' }));
  const at = columns.findIndex(({ name }) => name === 'day');
  const rows = (Array.isArray(body.rows) ? body.rows : []).filter((row) => Array.isArray(row));
  return rows
    .flatMap((row) => {
      const day = row[at];
      const raw = { day: { columnHeaders: columns, rows: [row] } };
      return typeof day === 'string' && /^\d{4}-\d\d-\d\d$/.test(day) ? [{ day, raw }] : [];
    })
    .toSorted((a, b) => b.day.localeCompare(a.day));
};

export const accountFigures =
  (bound: Bound): InsightsSource['fetchAccountInsights'] =>
  async (_platform, account, signal) => {
    signal.throwIfAborted();
    const { get, report } = askingOf(bound, account, signal);
    const from = dayOf.format(bound.clock() - (accountDays + 3) * dayMs);
    const answers = await gathered({
      channel: () => get('/channels', { part: 'snippet,statistics', id: account.externalId }),
      days: () => report(from, { metrics: 'views,estimatedMinutesWatched', dimensions: 'day', sort: 'day' }),
    });
    if ('kind' in answers) return withoutFigures(answers, bound.clock());
    const [channel] = listIn(answers.get('channel')?.body, 'items');
    const days = answers.get('days');
    const [newest, ...earlier] = days === undefined ? [] : daysOf(days);
    const statistics = membersOf(channel?.statistics);
    return {
      kind: 'reported',
      raw: { ...(statistics === null ? {} : { channel: { statistics } }), ...newest?.raw },
      figuresOf: newest?.day ?? null,
      observedAt: observedAt([...answers.values()].at(-1)?.headers ?? {}, bound.clock()),
      ...(earlier.length === 0 ? {} : { earlier: earlier.slice(0, accountDays - 1) }),
      ...(channel === undefined ? {} : { profile: profileOf(channel) }),
    };
  };

/** "Channels" resource. The handle is the one name that people know a channel by. */
export const profileOf = ({ snippet }: Members) => {
  const picture = membersOf(membersOf(membersOf(snippet)?.thumbnails)?.default);
  return {
    username: (textIn(snippet, 'customUrl') ?? '').replace(/^@/, '') || null,
    displayName: textIn(snippet, 'title') || null,
    avatarUrl: textIn(picture, 'url') || null,
  };
};
