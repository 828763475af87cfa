import type { ClickHouseClient } from '@clickhouse/client';
import { changedBy, type DaySpan, lookTimesOf, type Zones } from './calendar.ts';
import type { Mark } from './dirty.ts';
import { extentStatement, type GainDays, gainsStatement } from './gains.sql.ts';
import {
  accountStatements,
  type Days,
  grainStatements,
  lifetimesExtentStatement,
  lifetimesStatement,
} from './recount.sql.ts';
import { callClickHouse } from './unavailable.ts';

/**
 * Recounts the grains of days from the raw observations, under a new version. No row passes through this process:
 * ClickHouse reads, counts and writes.
 */

/** Observations and targets that one statement goes through; more are counted in slices by target. */
const sliceLooks = 300_000;
const sliceTargets = 50_000;
/** Time-out of a statement, here and in the server. */
const statementSeconds = 240;
const statementMs = (statementSeconds + 5) * 1_000;

const sizes = {
  // Rows are long, so an insert gathers this much before it writes.
  min_insert_block_size_bytes: '67108864',
  max_execution_time: statementSeconds,
  // The text of the statement holds the days.
  max_query_size: '4194304',
  max_partitions_per_insert_block: '0',
  max_ast_elements: '1000000',
  max_expanded_ast_elements: '1000000',
  max_memory_usage: '2000000000',
  max_bytes_before_external_sort: '400000000',
  max_bytes_before_external_group_by: '400000000',
} as const;

interface Extent {
  readonly slices: number;
  /** When the first of the targets was published, milliseconds. */
  readonly since: number;
}

export interface CountOptions {
  /** Default: as many as the observations need. */
  readonly slices?: number;
  readonly signal?: AbortSignal;
}

class Count {
  readonly #client: ClickHouseClient;
  readonly #options: CountOptions;

  constructor(client: ClickHouseClient, options: CountOptions) {
    this.#client = client;
    this.#options = options;
  }

  #ends(): AbortSignal {
    const { signal } = this.#options;
    const late = AbortSignal.timeout(statementMs);
    return signal === undefined ? late : AbortSignal.any([signal, late]);
  }

  async command(query: string): Promise<void> {
    const abort_signal = this.#ends();
    await callClickHouse(() => this.#client.command({ query, clickhouse_settings: sizes, abort_signal }));
  }

  /** Null: there is no observation. */
  async extent(query: string): Promise<Extent | null> {
    const abort_signal = this.#ends();
    const answer = await callClickHouse(() =>
      this.#client.query({ query, format: 'JSONEachRow', clickhouse_settings: sizes, abort_signal }),
    );
    const [found] = await answer.json<Record<'looks' | 'targets' | 'since', string>>();
    if (found === undefined || Number(found.looks) === 0) return null;
    const needed = Math.max(Number(found.looks) / sliceLooks, Number(found.targets) / sliceTargets);
    return { slices: this.#options.slices ?? Math.ceil(needed), since: Number(found.since) };
  }
}

type Marked = Pick<Mark, 'workspaceId' | 'kind' | 'day'>;

/** Each day once, though several marks may change it. */
const gainDaysOf = (marks: readonly Marked[], zones: ReadonlyMap<string, Zones>): GainDays['days'] => {
  const days = new Map<string, DaySpan & { readonly workspaceId: string }>();
  for (const { workspaceId, day } of marks) {
    for (const span of changedBy(zonesIn(zones, workspaceId), day)) {
      days.set(`${workspaceId} ${span.day}`, { workspaceId, ...span });
    }
  }
  return [...days.values()];
};

const zonesIn = (zones: ReadonlyMap<string, Zones>, workspaceId: string): Zones => {
  const found = zones.get(workspaceId);
  if (found === undefined) throw new TypeError(`the zones of workspace ${workspaceId} were not read`);
  return found;
};

/**
 * @param drawn the version of the rows: higher than that of any earlier count of these days
 * @param zones of each marked workspace
 */
export const countDays = async (
  client: ClickHouseClient,
  version: number,
  marks: readonly Marked[],
  drawn: string,
  zones: ReadonlyMap<string, Zones>,
  options: CountOptions = {},
): Promise<void> => {
  const count = new Count(client, options);
  const ofKind = (...kinds: readonly Mark['kind'][]) => marks.filter(({ kind }) => kinds.includes(kind));
  const [posts, accounts] = [ofKind('post'), ofKind('account')];
  if (posts.length > 0) await countLifetimes(count, { version, drawn, days: posts }, zones);
  const days = gainDaysOf(ofKind('post', 'gains'), zones);
  if (days.length > 0) await countGains(count, { version, drawn, days });
  if (accounts.length > 0) {
    for (const query of accountStatements({ version, drawn, days: accounts })) await count.command(query);
  }
};

const countLifetimes = async (count: Count, days: Days, zones: ReadonlyMap<string, Zones>): Promise<void> => {
  const extent = await count.extent(lifetimesExtentStatement(days));
  if (extent === null) return;
  const begins = days.days.map(({ workspaceId, day }) => lookTimesOf(zonesIn(zones, workspaceId), day).first);
  const bounds = { first: Math.min(...begins), since: extent.since };
  for (let slice = 0; slice < extent.slices; slice += 1) {
    await count.command(lifetimesStatement(days, bounds, slice, extent.slices));
  }
};

const countGains = async (count: Count, wanted: GainDays): Promise<void> => {
  const extent = await count.extent(extentStatement(wanted));
  for (let slice = 0; extent !== null && slice < extent.slices; slice += 1) {
    await count.command(gainsStatement(wanted, extent.since, slice, extent.slices));
  }
  for (const query of grainStatements(wanted)) await count.command(query);
};
