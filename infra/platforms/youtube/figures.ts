import {
  accountDays,
  type InsightsAccount,
  type InsightsSource,
  type InsightsSubject,
  type PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import type { NetworkAnswer, OkAnswer } from '../kit/errors.ts';
import { gathered, type NoFigures, observedAt, withoutFigures } from '../kit/figures.ts';
import type { Bound } from '../kit/network.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { reading, textAt, zone } from './tables.ts';

/**
 * Counts of videos by the batch, and reports of each: developers.google.com/youtube, "Videos: list", "Channel reports" of the
 * Analytics API. Reports are whole for days of California that are two to three days old; a younger video has none yet.
 */

const perCall = 50;
const dayMs = 86_400_000;
/** A younger video is in no report. */
const lagMs = 2 * dayMs;

const dayOf = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' });

const watched = 'estimatedMinutesWatched,averageViewDuration,averageViewPercentage';

/** "Channel reports": what may be asked for together. */
const reports: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  totals: { metrics: `views,likes,comments,shares,${watched},subscribersGained,subscribersLost` },
  retention: { metrics: 'audienceWatchRatio', dimensions: 'elapsedVideoTimeRatio' },
  traffic: { metrics: 'views', dimensions: 'insightTrafficSourceType', sort: '-views' },
  viewers: { metrics: 'viewerPercentage', dimensions: 'ageGroup,gender' },
  countries: { metrics: 'views', dimensions: 'country', sort: '-views', maxResults: '200' },
  devices: { metrics: 'views', dimensions: 'deviceType', sort: '-views' },
};

const askingOf = (bound: Bound, account: InsightsAccount, signal: AbortSignal) => {
  const get = async (path: string, query: Readonly<Record<string, string>>): Promise<NetworkAnswer> => {
    const ask = { ...reading(path, query), isOptional: true } as const;
    const answer = await bound.client.call({ accountId: account.id, targetId: null }, ask, signal);
    signal.throwIfAborted();
    return answer;
  };
  const range = (startDate: string) => ({ startDate, endDate: dayOf.format(bound.clock()) });
  const report = (from: string, query: Readonly<Record<string, string>>): Promise<NetworkAnswer> =>
    get('{figures}/reports', { ids: `channel==${account.externalId}`, ...range(from), ...query });
  return { bound, get, report };
};

type Asking = ReturnType<typeof askingOf>;

/** Reports have no member of that name. */
const isNone = (found: Members | NoFigures): found is NoFigures => 'kind' in found;

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
  return Object.fromEntries([...answers].map(([name, answer]) => [name, answer.body]));
};

/** Members of these videos by id. The owner sees private ones too: one that is not there is gone. */
const videosOf = async (
  { bound, get }: Asking,
  ids: readonly string[],
): Promise<{ readonly shown: ReadonlyMap<string, Members>; readonly observedAt: string } | NoFigures> => {
  const answer = await get('/videos', { part: 'statistics,status', id: ids.join(), maxResults: String(perCall) });
  if (answer.kind !== 'ok') return withoutFigures(answer, bound.clock());
  if (!Array.isArray(answer.body.items)) return { kind: 'unavailable', reason: 'the answer has no list of videos' };
  const items = listIn(answer.body, 'items').filter(({ status }) => textIn(status, 'uploadStatus') !== 'deleted');
  const shown = new Map(items.map((one) => [textIn(one, 'id') ?? '', one]));
  return { shown, observedAt: observedAt(answer.headers, bound.clock()) };
};

/** Counts come by fifty videos; a post waits for its own reports alone. */
export const postFigures = (bound: Bound): InsightsSource['fetchPostInsights'] =>
  async function* (_platform, account, posts, signal) {
    signal.throwIfAborted();
    const asking = askingOf(bound, account, signal);
    const ids = [...new Set(posts.map(({ externalId }) => externalId))];
    const batches = new Map<number, Awaited<ReturnType<typeof videosOf>>>();
    const answerOf = async (post: InsightsSubject): Promise<PostInsightsAnswer> => {
      const { externalId: id } = post;
      const from = Math.floor(ids.indexOf(id) / perCall) * perCall;
      const batch = batches.get(from) ?? (await videosOf(asking, ids.slice(from, from + perCall)));
      batches.set(from, batch);
      if ('kind' in batch) return batch;
      const { shown, observedAt: at } = batch;
      const video = shown.get(id);
      if (video === undefined) return { kind: 'removed', raw: null, observedAt: at };
      const more = await reportsOf(asking, post);
      if (isNone(more)) return more;
      return { kind: 'reported', raw: { video: { id, statistics: video.statistics ?? {} }, ...more }, observedAt: at };
    };
    for (const post of posts) yield await answerOf(post);
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
export const profileOf = (channel: Members) => ({
  username: (textAt(channel, 'snippet.customUrl') ?? '').replace(/^@/, '') || null,
  displayName: textAt(channel, 'snippet.title') || null,
  avatarUrl: textAt(channel, 'snippet.thumbnails.default.url') || null,
});
