import { counters } from '#schemas/insights.ts';
import { list, quoted } from './sql.ts';
import { columnOf, type TableName, tableOf } from './tables.ts';

/** The statements of a recount, except those of gains. */

export interface Days {
  readonly version: number;
  /** The version under which the rows are written. */
  readonly drawn: string;
  readonly days: readonly { readonly workspaceId: string; readonly day: string }[];
}

const columns = counters.map(columnOf);
const summed = [...columns, 'rated_interactions', 'rated_impressions'];

const workspacesOf = ({ days }: Days): string => list([...new Set(days.map((one) => one.workspaceId))].map(quoted));
const pairsOf = ({ days }: Days): string =>
  list(days.map(({ workspaceId, day }) => `(${quoted(workspaceId)}, ${quoted(day)})`));
const inOrder = ({ days }: Days): readonly string[] => days.map(({ day }) => day).toSorted();
const firstDay = (days: Days): string => quoted(inOrder(days)[0] ?? '');
const lastDay = (days: Days): string => quoted(inOrder(days).at(-1) ?? '');

/** The bounds beside the pairs let ClickHouse use the primary key and the partitions. */
const within = (days: Days): string => `workspace_id in (${workspacesOf(days)})
  and day >= ${firstDay(days)} and day <= ${lastDay(days)} and (workspace_id, day) in (${pairsOf(days)})`;

/**
 * How many observations a count of these days reads, of how many targets, and when the first of those was published.
 */
export const lifetimesExtentStatement = (days: Days): string => `
select count() as looks, uniq(target_id) as targets, toUnixTimestamp64Milli(min(published_at)) as since
from ${tableOf('observations', days.version)} where ${within(days)}`;

/**
 * A counter of an observation as one number: null where it was not fetched, -1 where the network does not report it.
 * Counters are never negative and aggregates skip nulls, so the last value is the last one that was fetched.
 */
const lastFetched = columns.map(
  (one, bit) => `if(bitTest(fetched, ${bit}), ifNull(${one}, -1), null) as reported_${one}`,
);

const kept = ['workspace_id', 'post_id', 'target_id', 'day', 'client_id', 'account_id', 'platform'];
const keptOfLook = ['published_at', 'removed_at', 'more', 'observed_at'];

/**
 * For every target observed on these days, the last fetched values by the end of each day. Order is by time of
 * observation: a workspace that moved west lives a day again. Observations before the first of these days make one row
 * a target. Two observations of a target share an instant only where one was inserted twice.
 * @param first no observation of these days is earlier, milliseconds
 * @param since when the first of their targets was published, milliseconds
 */
export const lifetimesStatement = (
  days: Days,
  { first, since }: { readonly first: number; readonly since: number },
  slice: number,
  slices: number,
): string => {
  const table = tableOf('observations', days.version);
  const mine = slices === 1 ? '' : `and cityHash64(target_id) % ${slices} = ${slice}`;
  const begins = `fromUnixTimestamp64Milli(toInt64(${first}), 'UTC')`;
  // A Date before 1970 wraps to 2149.
  const from = Math.max(Math.min(first, since), 2 * 86_400_000);
  const targets = `workspace_id in (${workspacesOf(days)}) ${mine}
    and day >= toDate(fromUnixTimestamp64Milli(toInt64(${from}), 'UTC')) - 2 and day <= toDate(${lastDay(days)}) + 2
    and (workspace_id, target_id) in (select workspace_id, target_id from ${table} where ${within(days)} ${mine})`;
  const all = [...kept, ...keptOfLook];
  return `
insert into ${tableOf('post_days', days.version)} (${list([...all, 'fetched', ...columns, 'version'])})
select ${list(all)}, known_fetched, ${list(columns.map((one) => `nullIf(known_${one}, -1)`))}, ${days.drawn}
from (
  select ${list(all)}, groupBitOr(fetched) over so_far as known_fetched, max(observed_at) over same_day as newest,
    ${list(columns.map((one) => `anyLast(reported_${one}) over so_far as known_${one}`))}
  from (
    select ${list([...all, 'fetched', ...lastFetched])} from ${table} where ${targets} and observed_at >= ${begins}
    union all
    select workspace_id, any(post_id), target_id, toDate(0), any(client_id), any(account_id), any(platform),
      any(published_at), null, '', toDateTime64(0, 3, 'UTC'), groupBitOr(fetched),
      ${list(columns.map((one) => `argMaxIf(reported_${one}, observed_at, reported_${one} is not null)`))}
    from (select ${list([...all, 'fetched', ...lastFetched])} from ${table} where ${targets} and observed_at < ${begins})
    group by workspace_id, target_id
  )
  window same_day as (partition by workspace_id, target_id, day),
    so_far as (partition by workspace_id, target_id order by observed_at
      rows between unbounded preceding and current row)
)
where observed_at = newest and (workspace_id, day) in (${pairsOf(days)})
limit 1 by workspace_id, target_id, day`;
};

const sumGrain = (days: Days, name: TableName, keys: readonly string[], shown: readonly string[]): string => `
insert into ${tableOf(name, days.version)}
  (${list([...keys, ...shown.map((one) => one.split(' as ')[1] ?? one), 'targets', ...summed])},
   observed_at, open_until, fetched, version)
select ${list([...keys, ...shown])}, sum(posts), ${list(summed.map((one) => `sum(slice_${one})`))},
  max(observed), max(open), groupBitOr(asked_for), ${days.drawn}
from (
  select ${list(['workspace_id', 'day', 'account_id', 'client_id', 'platform'])}, targets as posts, observed_at as observed,
    open_until as open, fetched as asked_for, ${list(summed.map((one) => `${one} as slice_${one}`))}
  from ${tableOf('gain_slices', days.version)}
  where version = ${days.drawn} and (workspace_id, day) in (${pairsOf(days)})
  -- A statement that ran on after its caller gave it up has written the same rows.
  limit 1 by slice, workspace_id, day, account_id, client_id, platform
)
group by ${list(keys)}`;

/**
 * Overwrites rows that no longer exist with empty ones, for example those of an account that moved to another client.
 */
const emptied = (days: Days, name: TableName, keys: readonly string[], shown: readonly string[]): string => {
  const table = tableOf(name, days.version);
  return `
insert into ${table} (${list([...keys, ...shown])}, targets, observed_at, fetched, version)
select ${list([...keys, ...shown.map((one) => `any(${one})`)])}, 0, toDateTime64(0, 3, 'UTC'), 0, ${days.drawn}
from ${table}
where ${within(days)} and version < ${days.drawn} and (${list(keys)}) not in (
  select ${list(keys)} from ${table} where ${within(days)} and version = ${days.drawn})
group by ${list(keys)}`;
};

const accountDays = ['workspace_id', 'account_id', 'day'];
const clientDays = ['workspace_id', 'client_id', 'day', 'platform'];
const workspaceDays = ['workspace_id', 'day', 'platform'];

/** Run after all slices of the gains: the grains add the slices up. */
export const grainStatements = (days: Days): readonly string[] => [
  sumGrain(days, 'account_days', accountDays, [
    'argMax(client_id, observed) as client_id',
    'any(platform) as platform',
  ]),
  sumGrain(days, 'client_days', clientDays, []),
  sumGrain(days, 'workspace_days', workspaceDays, []),
  emptied(days, 'account_days', accountDays, ['client_id', 'platform']),
  emptied(days, 'client_days', clientDays, []),
  emptied(days, 'workspace_days', workspaceDays, []),
];

/**
 * The key finds the newest row: the raw answers about accounts are long, and sorting would hold all of them in memory.
 */
const accountFigures = (days: Days): string => `
insert into ${tableOf('account_figures_days', days.version)}
  (workspace_id, account_id, day, client_id, platform, follower_count, demographics, observed_at, version)
select workspace_id, account_id, day, client_id, platform,
  JSONExtract(figures, 'followerCount', 'Nullable(Int64)'), demographics, observed_at, ${days.drawn}
from ${tableOf('account_observations', days.version)}
where ${within(days)} and event_id in (
  select argMax(event_id, (observed_at, event_id)) from ${tableOf('account_observations', days.version)}
  where ${within(days)} group by workspace_id, account_id, day)`;

const figuresWithin = (days: Days): string => `workspace_id in (${workspacesOf(days)})
  and figures_day is not null and (workspace_id, assumeNotNull(figures_day)) in (${pairsOf(days)})`;

/** By the network's own day, which may differ by any number of days from the day of the observation. */
const accountAudience = (days: Days): string => `
insert into ${tableOf('account_audience_days', days.version)}
  (workspace_id, account_id, day, client_id, platform, figures, observed_at, version)
select workspace_id, account_id, assumeNotNull(figures_day), client_id, platform, figures, observed_at, ${days.drawn}
from ${tableOf('account_observations', days.version)}
where ${figuresWithin(days)} and event_id in (
  select argMax(event_id, (observed_at, event_id)) from ${tableOf('account_observations', days.version)}
  where ${figuresWithin(days)} group by workspace_id, account_id, figures_day)`;

/** Statements for observations of accounts, not of posts. */
export const accountStatements = (days: Days): readonly string[] => [accountFigures(days), accountAudience(days)];
