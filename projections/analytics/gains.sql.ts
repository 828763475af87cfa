import { interactionParts } from '#domain/engagement.ts';
import { counters } from '#schemas/insights.ts';
import { type DaySpan, longestGapMs } from './calendar.ts';
import { list, quoted } from './sql.ts';
import { columnOf, tableOf } from './tables.ts';

/**
 * The statement that counts what posts gained on days. An observation holds each counter's value at an instant. Between
 * two observations that are at most 36 h apart the value at a midnight is interpolated and rounded, and before the
 * first observation it was 0 at the publication; a gain over a longer time falls on the day of the later observation. A
 * day's gain is the difference of its midnights, so the gains of all days add up to the last value.
 *
 * Each observation gives a piece of gain to each day between it and the previous observation with the same counter. A
 * day adds its pieces up. A counter without a piece is null on the day.
 */

export interface WantedDay extends DaySpan {
  readonly workspaceId: string;
}

export interface GainDays {
  readonly version: number;
  /** The version under which the rows are written. */
  readonly drawn: string;
  readonly days: readonly WantedDay[];
}

const dayMs = 86_400_000;
const columns = counters.map(columnOf);
const each = (of: (column: string, at: number) => string): string => list(columns.map(of));
const instant = (ms: number): string => `fromUnixTimestamp64Milli(toInt64(${ms}), 'UTC')`;

const workspacesOf = ({ days }: GainDays): string =>
  list([...new Set(days.map(({ workspaceId }) => workspaceId))].map(quoted));
/** Observations from the first instant on are read one by one; of earlier ones the last values suffice. */
const firstInstant = ({ days }: GainDays): number => Math.min(...days.map(({ start }) => start));
/** An observation after this instant is too late to contribute to any of the days. */
const lastInstant = ({ days }: GainDays): number => Math.max(...days.map(({ end }) => end)) + longestGapMs;

/**
 * Days of rows that may have these instants: a day is named in a zone and is at most two days off. A Date before 1970
 * wraps to 2149, and the query would find nothing: posts without a known publication count as published in 1970.
 */
const daysAround = (first: number, last: number): string =>
  `day between toDate(${instant(Math.max(first, 2 * dayMs))}) - 2 and toDate(${instant(last)}) + 2`;

const looks = (wanted: GainDays): string => `workspace_id in (${workspacesOf(wanted)})
  and ${daysAround(firstInstant(wanted), lastInstant(wanted))}
  and observed_at >= ${instant(firstInstant(wanted))} and observed_at < ${instant(lastInstant(wanted))}`;

/**
 * How many observations a count of these days reads, of how many targets, and when the first of those was published.
 */
export const extentStatement = (wanted: GainDays): string => `
select count() as looks, uniq(target_id) as targets, toUnixTimestamp64Milli(min(published_at)) as since
from ${tableOf('observations', wanted.version)} where ${looks(wanted)}`;

const arrayOf = (all: readonly string[]): string => `[${list(all)}]`;
const parts = interactionParts.map((one) => counters.indexOf(one) + 1);
const shown = counters.indexOf('impressions') + 1;
const total = counters.indexOf('totalInteractions') + 1;

/**
 * Rows of observations: the counters in one list, null where the observation has none, and beside it when each was
 * observed. The observations of a target before the first instant make one row: the last value of each counter, and its
 * time.
 */
const looksOf = (wanted: GainDays, since: number, mine: string): string => {
  const table = tableOf('observations', wanted.version);
  const first = firstInstant(wanted);
  const cells = `workspace_id, target_id, client_id, account_id, platform, removed_at is not null as removed,
      toUnixTimestamp64Milli(observed_at) as at, toUnixTimestamp64Milli(published_at) as published,
      ${arrayOf(columns)} as held, arrayMap(one -> if(one is null, null, at), held) as held_at,
      fetched as asked`;
  const mineOf = (bounds: string): string => `workspace_id in (${workspacesOf(wanted)}) and ${bounds} ${mine}
      and (workspace_id, target_id) in (select workspace_id, target_id from ${table} where ${looks(wanted)} ${mine})`;
  const before = `${daysAround(Math.min(first, since - dayMs), first)} and observed_at < ${instant(first)}`;
  const firstOf = (cell: string): string => `minOrNull(${cell})`;
  return `
  select ${cells}, held_at[${shown}] as shown_at, arrayMin(${partsOf('held_at')}) as parts_at, held_at[${total}] as total_at
  from ${table} where ${mineOf(looks(wanted))} limit 1 by workspace_id, target_id, at
  union all
  select workspace_id, target_id, any(client_id), any(account_id), any(platform), false, -1, any(published),
    argMaxForEach(held, held_at), maxForEach(held_at), 0, ${firstOf(`held_at[${shown}]`)},
    ${firstOf(`arrayMin(${partsOf('held_at')})`)}, ${firstOf(`held_at[${total}]`)}
  from (select ${cells} from ${table} where ${mineOf(before)}) group by workspace_id, target_id`;
};

/** The known parts of the interactions, from a list of all counters. */
const partsOf = (all: string): string =>
  `arrayFilter(one -> one is not null, ${arrayOf(parts.map((at) => `${all}[${at}]`))})`;

/**
 * A row for each observation: beside the counters, their previous values and times. Without a previous value, the
 * counter was 0 at the publication. `rated_since`: from then on the target's interactions and impressions are both
 * known.
 */
const lookRows = (wanted: GainDays, since: number, mine: string): string => {
  const known = (from: string): string => `if(${from} - published <= ${longestGapMs}, 0, ${from})`;
  return `
select *, parts_since is not null as by_parts, ifNull(parts_since, total_since) as made_since,
  if(shown_since is null or made_since is null, null, greatest(${known('shown_since')}, ${known('made_since')})) as rated_since
from (
  select workspace_id, target_id, client_id, account_id, platform, removed, at, published, held, asked,
    anyLastForEach(held) over earlier as before, anyLastForEach(held_at) over earlier as before_at,
    max(at) over target as newest, min(shown_at) over target as shown_since, min(parts_at) over target as parts_since,
    min(total_at) over target as total_since
  from (${looksOf(wanted, since, mine)})
  window target as (partition by workspace_id, target_id order by at rows between unbounded preceding and unbounded following),
    earlier as (partition by workspace_id, target_id order by at rows between unbounded preceding and 1 preceding)
)
where at >= 0`;
};

/** The wanted days by the UTC day of the observations that may contribute to them. */
const wantedDays = ({ days }: GainDays): string => {
  // A day that the clock leapt over has no instant, and no gain.
  const lived = days.filter(({ start, end }) => start < end);
  return `
select workspace_id, day, start, end, arrayJoin(range(toUInt32(intDiv(start, ${dayMs})),
  toUInt32(intDiv(end + ${longestGapMs - 1}, ${dayMs}) + 1))) as utc_day
from values('workspace_id UUID, day Date, start Int64, end Int64',
  ${list(lived.map(({ workspaceId, day, start, end }) => `(${quoted(workspaceId)}, ${quoted(day)}, ${start}, ${end})`))})`;
};

/**
 * The share of each counter that an observation gives to a day; `within`: the observation was on the day. The day
 * before and the day after use the same number at their midnight.
 */
const pieces = (): string => {
  const from = 'ifNull(before_at, least(published, at))';
  const gained = 'held - ifNull(before, 0)';
  const until = (end: string): string =>
    `toInt64(round((${gained}) * least(1, greatest(0, (${end} - ${from}) / greatest(at - ${from}, 1)))))`;
  return `arrayMap((held, before, before_at) -> multiIf(held is null, null,
      at - ${from} > ${longestGapMs}, if(within, ${gained}, null),
      ${from} < end, ${until('end')} - ${until('start')}, null),
    held, befores, befores_at)`;
};

/**
 * The parts of `engagementRate`, of a target whose interactions and impressions are both known. The first such
 * observation brings everything counted before, so that neither part counts without the other.
 */
const ratedPieces = (): string => {
  const sumOf = (all: string): string =>
    `if(empty(${partsOf(all)}), null, arraySum(one -> assumeNotNull(one), ${partsOf(all)}))`;
  const made = (all: string): string => `if(by_parts, ${sumOf(all)}, ${all}[${total}])`;
  const rated = (of: (all: string) => string): string => `multiIf(rated_since is null or at < rated_since, null,
    at = rated_since, if(within, ${of('known')}, null), ${of('pieces')})`;
  return `${rated(made)} as rated_interactions, ${rated((all) => `${all}[${shown}]`)} as rated_impressions`;
};

const hourMs = 3_600_000;
/** How long after its publication a post is observed, milliseconds: must equal the value in services/insights. */
const lifeMs = 90 * 24 * hourMs;
/**
 * Until when another observation may change the day of the newest one. A post past its life is not observed again. A
 * story is not observed after its 23rd hour, where any other post is observed in its 24th, with retries. Without both
 * rules, each workspace with stories or old posts would always have a provisional day.
 */
const awaitedUntil = `least(at + ${longestGapMs}, published + ${lifeMs}, if(at >= published + ${23 * hourMs - hourMs / 2}
  and at < published + ${24 * hourMs}, published + ${26 * hourMs}, at + ${longestGapMs}))`;

const summed = [...columns, 'rated_interactions', 'rated_impressions'];

/**
 * Sums of each account's posts, of one slice of the targets; the grains add the slices up. A day without an observation
 * belongs to the client of the observation that contributes to it, else to that of the last observation on the day. The
 * day of a target's newest observation stays open for the next one, which is due within 36 h.
 */
export const gainsStatement = (wanted: GainDays, since: number, slice: number, slices: number): string => {
  const mine = slices === 1 ? '' : `and cityHash64(target_id) % ${slices} = ${slice}`;
  return `
insert into ${tableOf('gain_slices', wanted.version)}
  (version, slice, workspace_id, day, account_id, client_id, platform, targets, observed_at, open_until, fetched,
   ${list(summed)})
select ${wanted.drawn}, ${slice}, workspace_id, day, account_id, client, platform, count(),
  fromUnixTimestamp64Milli(max(observed), 'UTC'), fromUnixTimestamp64Milli(max(open), 'UTC'), groupBitOr(asked_for),
  ${each((_one, at) => `sumForEach(gains)[${at + 1}]`)}, sum(gain_interactions), sum(gain_impressions)
from (
  select workspace_id, target_id, day, any(account_id) as account_id, any(platform) as platform,
    argMax(client_id, if(within, at, -at)) as client, maxIf(at, within or contributes) as observed,
    groupBitOrIf(asked, within or contributes) as asked_for,
    max(if(within and at = newest and not removed, ${awaitedUntil}, 0)) as open, sumForEach(pieces) as gains,
    sum(rated_interactions) as gain_interactions, sum(rated_impressions) as gain_impressions
  from (
    select *, arrayExists(one -> one is not null, pieces) as contributes, ${ratedPieces()}
    from (
      select workspace_id, target_id, account_id, platform, client_id, removed, newest, day, at, published, asked, by_parts,
        rated_since, at >= start and at < end as within, arrayMap((held, before) -> ifNull(held, before), held, befores) as known,
        ${pieces()} as pieces
      from (select * except (before, before_at), arrayResize(before, ${columns.length}, null) as befores,
          arrayResize(before_at, ${columns.length}, null) as befores_at
        from (${lookRows(wanted, since, mine)})) as looks
      inner join (${wantedDays(wanted)}) as wanted
        on looks.workspace_id = wanted.workspace_id and toUInt32(intDiv(looks.at, ${dayMs})) = wanted.utc_day
      where at >= start and at < end + ${longestGapMs}
    )
  )
  group by workspace_id, target_id, day having max(within or contributes)
)
group by workspace_id, day, account_id, client, platform`;
};
