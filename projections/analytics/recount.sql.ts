import { interactionParts } from '#domain/engagement.ts';
import { BrokenInvariant } from '#runtime/invariant.ts';
import { counters } from '#schemas/metrics.ts';
import type { Mark } from './dirty.ts';
import { columnOf, type TableName, tableOf } from './tables.ts';

/** The statements of a recount. Ids and days come from Postgres, which knows them as such, and stand in the text. */

export interface Days {
  readonly version: number;
  /** Under which the rows are written. */
  readonly drawn: string;
  readonly marks: readonly Pick<Mark, 'workspaceId' | 'day'>[];
}

const columns = counters.map(columnOf);
const gains = columns.map((one) => `gain_${one}`);
const ratedGains = ['gain_rated_interactions', 'gain_rated_impressions'];
/** What `engagementRate` is made of: of a target whose interactions and impressions are both known, else of neither. */
const rated = ['rated_interactions', 'rated_impressions'];

const list = (all: readonly string[]): string => all.join(', ');
const quoted = (text: string): string => {
  if (!/^[\da-f-]{10,36}$/.test(text)) throw new BrokenInvariant(`no id or day: ${text}`);
  return `'${text}'`;
};

const workspacesOf = ({ marks }: Days): string => list([...new Set(marks.map((one) => one.workspaceId))].map(quoted));
const pairsOf = ({ marks }: Days): string =>
  list(marks.map(({ workspaceId, day }) => `(${quoted(workspaceId)}, ${quoted(day)})`));
const inOrder = ({ marks }: Days): readonly string[] => marks.map(({ day }) => day).toSorted();
const firstDay = (days: Days): string => quoted(inOrder(days)[0] ?? '');
const lastDay = (days: Days): string => quoted(inOrder(days).at(-1) ?? '');

/** The bounds beside the pairs are what the primary key and the partitions are searched by. */
const within = (days: Days): string => `workspace_id in (${workspacesOf(days)})
  and day >= ${firstDay(days)} and day <= ${lastDay(days)} and (workspace_id, day) in (${pairsOf(days)})`;

/** How many observations a recount of these days looks at, at most. */
export const observationsStatement = (days: Days): string => `
select count() as n from ${tableOf('observations', days.version)}
where workspace_id in (${workspacesOf(days)}) and day <= ${lastDay(days)}`;

/**
 * A counter of an observation as one number: null where it was not fetched, -1 where the network does not tell it. None is
 * negative, and what is null the aggregates pass over: so the last one of them is the last that was fetched.
 */
const told = columns.map((one, bit) => `if(bitTest(fetched, ${bit}), ifNull(${one}, -1), null) as told_${one}`);
const parts = interactionParts.map((one) => `nullIf(known_${columnOf(one)}, -1)`);
/** As `interactionsOf` has it. */
const interactions = `coalesce(nullIf(known_total_interactions, -1),
  if(coalesce(${list(parts)}) is null, null, ${parts.map((one) => `ifNull(${one}, 0)`).join(' + ')}))`;
/** What was fetched of it on the day itself. */
const ofDay = columns.map((one, bit) => `if(bitTest(day_fetched, ${bit}), nullIf(known_${one}, -1), null)`);

/**
 * Of every target observed on these days what was fetched of it last, by the end of each, and beside each counter the last
 * value that was known before. Earlier is what was observed earlier: a workspace that moved west lives a day again. A counter that a day does not tell gains nothing on it, and the next that is told
 * gains all since the last one known: so the gains of all days add up to the last value known. No two observations of a
 * target are of one instant, but for those that were inserted twice.
 */
export const postDaysStatement = (days: Days, slice: number, slices: number): string => {
  const table = tableOf('observations', days.version);
  const mine = slices === 1 ? '' : `and cityHash64(target_id) % ${slices} = ${slice}`;
  const kept = [
    ...['workspace_id', 'post_id', 'target_id', 'day', 'client_id', 'account_id', 'platform'],
    ...['published_at', 'removed_at', 'more', 'observed_at'],
  ];
  return `
insert into ${tableOf('post_days', days.version)} (${list([...kept, 'fetched', ...columns, ...gains, ...ratedGains, 'version'])})
select ${list(kept)}, known_fetched, ${list(columns.map((one) => `nullIf(known_${one}, -1)`))},
  ${list(columns.map((one, at) => `${ofDay[at]} - ifNull(before_${one}, 0)`))},
  ${list(rated.map((one) => `${one} - ifNull(before_${one}, 0)`))}, ${days.drawn}
from (
  select ${list(kept)}, known_fetched, day_fetched, ${list(columns.map((one) => `known_${one}`))}, ${list(rated)},
    ${list(columns.map((one) => `anyLast(nullIf(known_${one}, -1)) over earlier as before_${one}`))},
    ${list(rated.map((one) => `anyLast(${one}) over earlier as before_${one}`))}
  from (
    with ${interactions} as interactions, nullIf(known_impressions, -1) as shown
    select *, if(shown is null, null, interactions) as rated_interactions,
      if(interactions is null, null, shown) as rated_impressions
    from (
    select * from (
      select ${list(kept)}, groupBitOr(fetched) over so_far as known_fetched,
        groupBitOr(fetched) over same_day as day_fetched, max(observed_at) over same_day as newest,
        ${list(columns.map((one) => `anyLast(told_${one}) over so_far as known_${one}`))}
      from (
        select ${list([...kept, 'fetched', ...told])} from ${table}
        where workspace_id in (${workspacesOf(days)}) and day <= ${lastDay(days)} ${mine}
          and (workspace_id, target_id) in (
            select distinct workspace_id, target_id from ${table} where ${within(days)} ${mine})
      )
      window same_day as (partition by workspace_id, target_id, day),
        so_far as (partition by workspace_id, target_id order by observed_at
          rows between unbounded preceding and current row)
    )
    where observed_at = newest
    limit 1 by workspace_id, target_id, day
    )
  )
  window earlier as (partition by workspace_id, target_id order by observed_at rows between unbounded preceding and 1 preceding)
)
where (workspace_id, day) in (${pairsOf(days)})`;
};

const sumGrain = (days: Days, name: TableName, keys: readonly string[], shown: readonly string[]): string => `
insert into ${tableOf(name, days.version)}
  (${list([...keys, ...shown.map((one) => one.split(' as ')[1] ?? one), 'targets', ...columns])},
   rated_interactions, rated_impressions, observed_at, version)
select ${list([...keys, ...shown])}, count(), ${list(gains.map((one) => `sum(${one})`))},
  ${list(ratedGains.map((one) => `sum(${one})`))}, max(observed), ${days.drawn}
from (
  select ${list(['workspace_id', 'day', 'account_id', 'client_id', 'platform', ...gains, ...ratedGains])},
    observed_at as observed
  from ${tableOf('post_days', days.version)}
  where ${within(days)} and version = ${days.drawn}
  -- A statement that was given up and went on has written the same rows.
  limit 1 by workspace_id, target_id, day
)
group by ${list(keys)}`;

/** An account that went to another client: what the former one showed of these days is empty, not what it was. */
const emptied = (days: Days): string => {
  const table = tableOf('client_days', days.version);
  const keys = 'workspace_id, client_id, day, platform';
  return `
insert into ${table} (${keys}, targets, observed_at, version)
select distinct ${keys}, 0, toDateTime64(0, 3, 'UTC'), ${days.drawn} from ${table}
where ${within(days)} and version < ${days.drawn} and (${keys}) not in (
  select ${keys} from ${table} where ${within(days)} and version = ${days.drawn})`;
};

/** The newest is found by the key: what networks told of accounts is long, and sorting would hold all of it. */
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

/** By the day that they are of, which is another than the one on which they were told: any. */
const accountAudience = (days: Days): string => `
insert into ${tableOf('account_audience_days', days.version)}
  (workspace_id, account_id, day, client_id, platform, figures, observed_at, version)
select workspace_id, account_id, assumeNotNull(figures_day), client_id, platform, figures, observed_at, ${days.drawn}
from ${tableOf('account_observations', days.version)}
where ${figuresWithin(days)} and event_id in (
  select argMax(event_id, (observed_at, event_id)) from ${tableOf('account_observations', days.version)}
  where ${figuresWithin(days)} group by workspace_id, account_id, figures_day)`;

/** After all slices of the posts' days, whose rows of this version they add up. */
export const grainStatements = (days: Days): readonly string[] => [
  sumGrain(
    days,
    'account_days',
    ['workspace_id', 'account_id', 'day'],
    ['argMax(client_id, observed) as client_id', 'any(platform) as platform'],
  ),
  sumGrain(days, 'client_days', ['workspace_id', 'client_id', 'day', 'platform'], []),
  emptied(days),
  sumGrain(days, 'workspace_days', ['workspace_id', 'day', 'platform'], []),
  accountFigures(days),
  accountAudience(days),
];
