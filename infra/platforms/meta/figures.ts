import type {
  InsightsAccount,
  InsightsSource,
  InsightsSubject,
  PostInsightsAnswer,
  ReportedDay,
} from '#contracts/ports/platform-insights.ts';
import type { NetworkAnswer, NotOk } from '../kit/errors.ts';
import { isLeftOut, metricsOf, observedAt, withoutFigures } from '../kit/figures.ts';
import { listIn, type Members } from '../shared/members.ts';
import { reading, secondOf, timeIn } from './graph.ts';

/** Figures as Meta's networks report them: post by post, metrics in lists, days that end at midnight of California. */

export type MetaCall = (path: string, query: Readonly<Record<string, string>>) => Promise<NetworkAnswer>;

interface Reader {
  readonly clock: () => number;
  readonly client: {
    call(
      subject: { readonly accountId: string; readonly targetId: null },
      ask: { readonly method: 'GET'; readonly path: string; readonly query: Readonly<Record<string, string>> },
      signal: AbortSignal,
    ): Promise<NetworkAnswer>;
  };
}

export const callsOf = ({ client }: Reader, { id: accountId }: InsightsAccount, signal: AbortSignal): MetaCall => {
  signal.throwIfAborted();
  return async (path, query) => {
    signal.throwIfAborted();
    const answer = await client.call({ accountId, targetId: null }, reading(path, query), signal);
    signal.throwIfAborted();
    return answer;
  };
};

/** A metric that Meta refuses, as it does one that it has retired, costs no others. */
export const insightsOf = async (
  call: MetaCall,
  path: string,
  metrics: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<readonly Members[] | NotOk> => {
  const asked = await metricsOf(metrics, (some) => call(path, { metric: some.join(','), ...more }));
  return asked.kind === 'asked' ? [...new Set(asked.bodies.values())].flatMap((body) => listIn(body, 'data')) : asked;
};

/** The same where a refusal of all is a list of none: the owner may have left a permission out. */
export const insightsGiven = async (...asked: Parameters<typeof insightsOf>): Promise<readonly Members[] | NotOk> => {
  const data = await insightsOf(...asked);
  return 'kind' in data && isLeftOut(data) ? [] : data;
};

type FiguresOf = (
  call: MetaCall,
  account: InsightsAccount,
  post: InsightsSubject,
  now: number,
) => Promise<PostInsightsAnswer>;

export const postByPost = (bound: Reader, figuresOf: FiguresOf): InsightsSource['fetchPostInsights'] =>
  async function* (_platform, account, posts, signal) {
    const call = callsOf(bound, account, signal);
    for (const post of posts) yield await figuresOf(call, account, post, bound.clock());
  };

/** Of our clock and the network's. */
const skewMs = 120_000;

/**
 * Of a post that the network does not show: it may be closed to us. It is gone where the list of the minutes in which it went out
 * lacks it too.
 * @param edge that lists the account's own posts
 * @param takesSpan it may be asked for some minutes alone
 */
export const figuresOfMissing = async (
  call: MetaCall,
  edge: string,
  { externalId, publishedAt }: InsightsSubject,
  shown: Extract<NotOk, { readonly kind: 'refused' }>,
  now: number,
  takesSpan = true,
): Promise<PostInsightsAnswer> => {
  const at = Date.parse(publishedAt);
  const span = takesSpan ? { since: secondOf(at - skewMs), until: secondOf(at + skewMs) } : {};
  const listed = await call(edge, { fields: 'id', limit: '100', ...span });
  if (listed.kind !== 'ok') return withoutFigures(listed, now);
  if (listIn(listed.body, 'data').some(({ id }) => id === externalId)) return withoutFigures(shown, now);
  return { kind: 'removed', raw: null, observedAt: observedAt(shown.headers, now) };
};

export const zone = 'America/Los_Angeles';
export const dayIn = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' });

/** What each day has of each metric; a value is of the day that ends with it. */
export const daysOf = (data: readonly Members[]): readonly ReportedDay[] => {
  const days = new Map<string, Members[]>();
  for (const { name = '', period = 'day', values } of data) {
    for (const value of listIn({ values: values ?? [] }, 'values')) {
      const end = timeIn(value, 'end_time');
      if (Number.isNaN(end)) continue;
      const day = dayIn.format(end - 1);
      days.set(day, [...(days.get(day) ?? []), { name, period, values: [value] }]);
    }
  }
  const sorted = [...days].toSorted(([a], [b]) => b.localeCompare(a));
  return sorted.map(([day, own]) => ({ day, raw: { insights: { data: own } } }));
};

/** The last value: a snapshot. */
export const newestOf = ({ name = '', period = 'day', values }: Members): Members => ({
  ...{ name, period },
  values: listIn({ values: values ?? [] }, 'values').slice(-1),
});
