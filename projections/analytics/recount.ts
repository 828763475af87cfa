import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import type { Pool } from 'pg';
import { Unavailable } from '#runtime/domain-store.ts';
import { faultPoint } from '#runtime/fault-point.ts';
import { isInfrastructureFault } from '#runtime/faults.ts';
import { BrokenInvariant } from '#runtime/invariant.ts';
import { withConnection } from '#runtime/transactions.ts';
import { asking } from './away.ts';
import { clearMarks, dirtyWorkspaces, type Mark, marksOf } from './dirty.ts';
import { ensureTables } from './live.ts';
import { type Days, grainStatements, observationsStatement, postDaysStatement } from './recount.sql.ts';

/**
 * Counts the grains of marked days anew, from raw observations, under a new version. Nothing goes through this process:
 * ClickHouse reads, counts and writes.
 */

/** Days of one round, and the workspaces they are of. */
const mostDays = 1_000;
const mostWorkspaces = 64;
/** Observations that are sorted at once; more are counted in slices by target. */
const sliceRows = 400_000;
/** A statement that takes longer is given up, by the server too: nobody waits for it any more. */
const statementSeconds = 240;
const statementMs = (statementSeconds + 5) * 1_000;

const sizes = {
  // Of rows that are long, what is gathered before it is written.
  min_insert_block_size_bytes: '67108864',
  max_execution_time: statementSeconds,
  // The days are in the text of the statement.
  max_query_size: '4194304',
  max_partitions_per_insert_block: '0',
  max_ast_elements: '1000000',
  max_expanded_ast_elements: '1000000',
  max_memory_usage: '2000000000',
  max_bytes_before_external_sort: '400000000',
  max_bytes_before_external_group_by: '400000000',
} as const;

const slicesOf = async (client: ClickHouseClient, days: Days, abort_signal: AbortSignal): Promise<number> => {
  const query = observationsStatement(days);
  const answer = await asking(() =>
    client.query({ query, format: 'JSONEachRow', clickhouse_settings: sizes, abort_signal }),
  );
  const [found] = await answer.json<{ n: string }>();
  return Math.max(1, Math.ceil(Number(found?.n ?? 0) / sliceRows));
};

const tell = async (client: ClickHouseClient, query: string, abort_signal: AbortSignal): Promise<void> => {
  await asking(() => client.command({ query, clickhouse_settings: sizes, abort_signal }));
};

/**
 * Counts days anew, whoever marked them.
 * @param drawn the version of the rows: higher than that of any earlier count of these days
 * @param options.slices default: as many as their observations need
 */
export const countDays = async (
  client: ClickHouseClient,
  version: number,
  marks: readonly Pick<Mark, 'workspaceId' | 'day'>[],
  drawn: string,
  { slices, signal }: { readonly slices?: number; readonly signal?: AbortSignal } = {},
): Promise<void> => {
  const days: Days = { version, drawn, marks };
  const ends = (): AbortSignal => {
    const late = AbortSignal.timeout(statementMs);
    return signal === undefined ? late : AbortSignal.any([signal, late]);
  };
  const parts = slices ?? (await slicesOf(client, days, ends()));
  for (let slice = 0; slice < parts; slice += 1) await tell(client, postDaysStatement(days, slice, parts), ends());
  for (const query of grainStatements(days)) await tell(client, query, ends());
};

/** A workspace whose days could not be counted rests, so that the others are. Milliseconds. */
const leastRestMs = 5_000;
const mostRestMs = 600_000;

interface Trouble {
  readonly failures: number;
  /** Of `performance.now()`. */
  readonly until: number;
  readonly reason: string;
}

/** Whether these statements are what failed: a store or a database that is away fails for everybody. */
const isItsOwn = (error: unknown): boolean => {
  const cause = error instanceof Unavailable ? error.cause : error;
  const late = cause instanceof Error && /^(Timeout|Abort)Error$/.test(cause.name);
  return late || cause instanceof ClickHouseError || !isInfrastructureFault(error);
};

export class Recounter {
  readonly #client: ClickHouseClient;
  readonly #pool: Pool;
  readonly #version: number;
  readonly #troubles = new Map<string, Trouble>();
  /** Rounds to come that take one workspace each: one of several failed, and it is not known which. */
  #singles = 0;

  constructor(client: ClickHouseClient, pool: Pool, version: number) {
    this.#client = client;
    this.#pool = pool;
    this.#version = version;
  }

  /** Why the days of a workspace are not counted; null when none rests. */
  trouble(): string | null {
    const [first] = this.#troubles;
    return first === undefined ? null : `the days of workspace ${first[0]} cannot be counted: ${first[1].reason}`;
  }

  /**
   * One round. Returns how many days were counted; 0: there are none, or others count them now.
   * If we die after the inserts the marks are still there, and the days are counted again under a newer version; if we die
   * before, as well. A statement that goes on without us, or whose lock was lost with its session, writes an older version
   * than whoever takes the lock next.
   * @throws Unavailable
   */
  async round(signal?: AbortSignal): Promise<number> {
    const now = performance.now();
    const resting = [...this.#troubles].flatMap(([id, { until }]) => (until > now ? [id] : []));
    const most = this.#singles > 0 ? 1 : mostWorkspaces;
    const waiting = await dirtyWorkspaces(this.#pool, this.#version, resting, most);
    this.#singles = Math.max(0, this.#singles - 1);
    if (waiting.length === 0) return 0;
    await ensureTables(this.#client, this.#version, this.#pool);
    faultPoint('analytics:before-recount');
    try {
      const counted = await this.#locked(waiting, (ours) => this.#countMarked(ours, signal));
      for (const id of waiting) this.#troubles.delete(id);
      return counted;
    } catch (error) {
      if (signal?.aborted !== true && isItsOwn(error)) this.#blame(waiting, error);
      throw error;
    }
  }

  async #countMarked(workspaces: readonly string[], signal: AbortSignal | undefined): Promise<number> {
    // Read under the lock, before anything is counted: what is marked from now on keeps its mark.
    const marks = workspaces.length === 0 ? [] : await marksOf(this.#pool, this.#version, workspaces, mostDays);
    if (marks.length === 0) return 0;
    const drawn = await this.#draw();
    await countDays(this.#client, this.#version, marks, drawn, signal === undefined ? {} : { signal });
    faultPoint('analytics:after-recount');
    await clearMarks(this.#pool, this.#version, marks);
    return marks.length;
  }

  /** Higher than any before, also where the database came back from a copy or lost what its sequence had handed out. */
  async #draw(): Promise<string> {
    const { rows } = await this.#pool.query<{ drawn: string }>(
      `select setval('ops.analytics_recounts', greatest(nextval('ops.analytics_recounts'),
         (extract(epoch from clock_timestamp()) * 1000000)::int8))::text as drawn`,
    );
    const [row] = rows;
    if (row === undefined) throw new BrokenInvariant('a sequence answered nothing');
    return row.drawn;
  }

  #blame(workspaces: readonly string[], error: unknown): void {
    const [only, second] = workspaces;
    if (only === undefined || second !== undefined) {
      this.#singles = workspaces.length;
      return;
    }
    const failures = (this.#troubles.get(only)?.failures ?? 0) + 1;
    const rest = Math.min(mostRestMs, leastRestMs * 2 ** Math.min(failures - 1, 10));
    const reason = error instanceof Error ? error.message : String(error);
    this.#troubles.set(only, { failures, until: performance.now() + rest, reason });
  }

  /** All that is marked now and until it is done, as far as others do not count it. */
  async all(signal?: AbortSignal): Promise<number> {
    let days = 0;
    for (let counted = Infinity; counted > 0; days += counted) {
      signal?.throwIfAborted();
      counted = await this.round(signal);
    }
    return days;
  }

  /** With those of the workspaces that nobody else counts. No transaction is open meanwhile: it would hold back vacuum. */
  async #locked<T>(workspaces: readonly string[], work: (ours: readonly string[]) => Promise<T>): Promise<T> {
    return withConnection(this.#pool, async (session, died) => {
      try {
        const { rows } = await session.query<{ id: string }>({
          name: 'analytics-lock',
          text: `select id from unnest($2::text[]) as w (id)
                 where pg_try_advisory_lock(hashtextextended('analytics ' || $1 || ' ' || id, 0))`,
          values: [String(this.#version), workspaces],
        });
        return await work(rows.map((row) => row.id));
      } finally {
        await session.query('select pg_advisory_unlock_all()').catch(died);
      }
    });
  }
}
