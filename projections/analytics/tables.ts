import type { SchemaFile } from '#contracts/base/numbered-files.ts';
import { type CounterName, counters } from '#schemas/insights.ts';

/**
 * The tables of the analytics store. Raw observations are complete and keyed by their event, so a repeat is the same
 * row. The grains are daily and separate: a recount writes each row as a whole under a new `version`, and readers take
 * the newest. Every key begins with the workspace. A day is one of the zone that the workspace had when the network was
 * asked.
 */

/** Figures are deleted this many months after their day. */
export const retentionMonths = 25;
/** The gains of the first retained day begin from earlier observations: posts are observed for 90 days. */
const rawMonths = retentionMonths + 4;

/** `watchTimeMinutes` → `watch_time_minutes`. */
export const columnOf = (counter: string): string => counter.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const columns = (type: string): string => counters.map((one: CounterName) => `${columnOf(one)} ${type}`).join(',\n  ');

/** When the position in Postgres moves it is on the disk, and so must be the rows that it stands for. */
const durable = 'settings fsync_after_insert = 1, fsync_part_directory = 1';
const grain = (order: string): string =>
  `engine = ReplacingMergeTree(version) partition by toYYYYMM(day) order by (${order})
  ttl day + interval ${retentionMonths} month ${durable}`;

/**
 * For the sums of days: a read takes a few hundred neighbouring rows of a workspace with all their columns, so the
 * columns share one file and granules are small.
 */
const sumsGrain = (order: string): string =>
  `${grain(order)}, index_granularity = 512, min_bytes_for_wide_part = 1073741824`;

/** Sums of the gains of many posts on a day. Null: no network reports the figure for any of them. */
const sums = `
  -- Posts that gained on the day or were observed on it; 0: the row is empty.
  targets UInt32,
  ${columns('Nullable(Int64)')},
  -- The parts of engagementRate: of posts whose impressions and interactions are both known.
  rated_interactions Nullable(Int64), rated_impressions Nullable(Int64),
  -- The newest snapshot in the count; it may be from the night after the day.
  observed_at DateTime64(3, 'UTC'), version UInt64,
  -- Until then an observation of one of its posts may change the day; 0: none will.
  open_until DateTime64(3, 'UTC') default toDateTime64(0, 3, 'UTC'),
  -- The bits of all observations in the count.
  fetched UInt32`;

export const tableNames = [
  'observations',
  'account_observations',
  'post_days',
  'gain_slices',
  'account_days',
  'account_figures_days',
  'account_audience_days',
  'client_days',
  'workspace_days',
] as const;
export type TableName = (typeof tableNames)[number];

export const tableOf = (name: TableName, version: number): string => `${name}_v${version}`;

/** Which of `tableFiles` were carried out for a version, beside its tables. */
export const appliedTable = (version: number): string => `schema_versions_v${version}`;

export const createApplied = (version: number): string => `create table if not exists ${appliedTable(version)} (
  number UInt16, name String, checksum String, applied_at DateTime default now()
) engine = ReplacingMergeTree order by number ${durable}`;

/**
 * The numbered files of a version of the whole set: a rebuild makes the next one beside it. ClickHouse has no
 * transactions, so a file is one statement that may be carried out twice. A file that a release brought never changes:
 * a further counter is a further file for each table, and the lists of columns here then stay as they are.
 */
export const tableFiles = (version: number): readonly SchemaFile[] =>
  createStatements(version).map((sql, at) => {
    const number = at + 1;
    const table = tableNames[at] ?? '';
    return { number, name: `${String(number).padStart(3, '0')}-${table.replaceAll('_', '-')}`, sql };
  });

/** In the order of `tableNames`. */
export const createStatements = (v: number): readonly string[] => [
  `create table if not exists ${tableOf('observations', v)} (
  workspace_id UUID, day Date, target_id UUID, observed_at DateTime64(3, 'UTC'), event_id UUID, position UInt64,
  post_id UUID, client_id UUID, account_id UUID, platform LowCardinality(String),
  published_at DateTime64(3, 'UTC'), removed_at Nullable(DateTime64(3, 'UTC')),
  -- Bit n: the n-th counter was fetched. A null counter with its bit set: the network does not report it.
  fetched UInt32,
  ${columns('Nullable(Int64)')},
  -- JSON of the figures that are no counters, as in the event.
  more String codec(ZSTD(3)),
  raw String codec(ZSTD(3)), source LowCardinality(String)
) engine = ReplacingMergeTree partition by toYYYYMM(day) order by (workspace_id, day, target_id, observed_at, event_id)
  ttl day + interval ${rawMonths} month ${durable}`,
  `create table if not exists ${tableOf('account_observations', v)} (
  workspace_id UUID, day Date, account_id UUID, observed_at DateTime64(3, 'UTC'), event_id UUID, position UInt64,
  client_id UUID, platform LowCardinality(String),
  -- The network's own day of the daily figures; null: the network names none.
  figures_day Nullable(Date),
  -- JSON of the figures and of the demographics ('' = absent), as in the event.
  figures String codec(ZSTD(3)), demographics String codec(ZSTD(3)),
  raw String codec(ZSTD(3)), source LowCardinality(String)
) engine = ReplacingMergeTree partition by toYYYYMM(day) order by (workspace_id, day, account_id, observed_at, event_id)
  ttl day + interval ${rawMonths} month ${durable}`,
  // Ordered as posts are listed, so a page of them lies together. Lifetime figures of a post's target at the end of an
  // observed day, each as it was last fetched.
  `create table if not exists ${tableOf('post_days', v)} (
  workspace_id UUID, post_id UUID, target_id UUID, day Date,
  client_id UUID, account_id UUID, platform LowCardinality(String),
  published_at DateTime64(3, 'UTC'), removed_at Nullable(DateTime64(3, 'UTC')),
  fetched UInt32,
  ${columns('Nullable(Int64)')},
  more String codec(ZSTD(3)),
  observed_at DateTime64(3, 'UTC'), version UInt64
) ${grain('workspace_id, published_at, post_id, target_id, day')}`,
  // Lives during one recount: sums of a slice of the targets, which the grains below add up. A crash makes it useless,
  // so it is not flushed to the disk.
  `create table if not exists ${tableOf('gain_slices', v)} (
  version UInt64, slice UInt16, workspace_id UUID, day Date, account_id UUID, client_id UUID, platform LowCardinality(String),
  targets UInt32,
  ${columns('Nullable(Int64)')},
  rated_interactions Nullable(Int64), rated_impressions Nullable(Int64),
  observed_at DateTime64(3, 'UTC'), open_until DateTime64(3, 'UTC'), fetched UInt32, made Date default today()
) engine = MergeTree partition by made order by (version, workspace_id, day, account_id)
  ttl made + interval 2 day settings ttl_only_drop_parts = 1`,
  `create table if not exists ${tableOf('account_days', v)} (
  workspace_id UUID, account_id UUID, day Date, client_id UUID, platform LowCardinality(String), ${sums}
) ${sumsGrain('workspace_id, account_id, day')}`,
  // The account itself: the newest observation of the day.
  `create table if not exists ${tableOf('account_figures_days', v)} (
  workspace_id UUID, account_id UUID, day Date, client_id UUID, platform LowCardinality(String),
  follower_count Nullable(Int64),
  demographics String codec(ZSTD(3)),
  observed_at DateTime64(3, 'UTC'), version UInt64
) ${grain('workspace_id, account_id, day')}`,
  // Its daily figures by the network's own day: the newest report of that day.
  `create table if not exists ${tableOf('account_audience_days', v)} (
  workspace_id UUID, account_id UUID, day Date, client_id UUID, platform LowCardinality(String),
  figures String codec(ZSTD(3)),
  observed_at DateTime64(3, 'UTC'), version UInt64
) ${grain('workspace_id, account_id, day')}`,
  `create table if not exists ${tableOf('client_days', v)} (
  workspace_id UUID, client_id UUID, day Date, platform LowCardinality(String), ${sums}
) ${sumsGrain('workspace_id, client_id, day, platform')}`,
  `create table if not exists ${tableOf('workspace_days', v)} (
  workspace_id UUID, day Date, platform LowCardinality(String), ${sums}
) ${sumsGrain('workspace_id, day, platform')}`,
];
