import type { ClickHouseClient } from '@clickhouse/client';
import type { Pool, PoolClient } from 'pg';
import { inTransaction } from '#runtime/consume.ts';
import { faultPoint } from '#runtime/fault-point.ts';
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
const statementMs = 240_000;

const sizes = {
  // The days are in the text of the statement.
  max_query_size: '4194304',
  max_partitions_per_insert_block: '0',
  max_ast_elements: '1000000',
  max_expanded_ast_elements: '1000000',
  max_memory_usage: '2000000000',
  max_bytes_before_external_sort: '400000000',
  max_bytes_before_external_group_by: '400000000',
} as const;

export class Recounter {
  readonly #client: ClickHouseClient;
  readonly #pool: Pool;
  readonly #version: number;

  constructor(client: ClickHouseClient, pool: Pool, version: number) {
    this.#client = client;
    this.#pool = pool;
    this.#version = version;
  }

  /**
   * One round. Returns how many days were counted; 0: there are none, or others count them now.
   * If we die after the inserts the marks are still there, and the days are counted again under a newer version; if we die
   * before, as well. A statement that goes on without us writes an older version than whoever takes the lock next.
   * @throws Unavailable
   */
  async round(): Promise<number> {
    const waiting = await dirtyWorkspaces(this.#pool, this.#version, mostWorkspaces);
    if (waiting.length === 0) return 0;
    await ensureTables(this.#client, this.#version);
    faultPoint('analytics:before-recount');
    return inTransaction(this.#pool, async (tx) => {
      const ours = await this.#lock(tx, waiting);
      // Read under the lock, before anything is counted: what is marked from now on keeps its mark.
      const marks = ours.length === 0 ? [] : await marksOf(tx, this.#version, ours, mostDays);
      if (marks.length === 0) return { commit: false, result: 0 };
      const { rows } = await tx.query(`select nextval('ops.analytics_recounts') as drawn`);
      await this.count(marks, String(rows[0].drawn));
      faultPoint('analytics:after-recount');
      await clearMarks(tx, this.#version, marks);
      return { commit: true, result: marks.length };
    });
  }

  /** All that is marked now and until it is done, as far as others do not count it. */
  async all(signal?: AbortSignal): Promise<number> {
    let days = 0;
    for (let counted = Infinity; counted > 0; days += counted) {
      signal?.throwIfAborted();
      counted = await this.round();
    }
    return days;
  }

  /**
   * @param drawn the version of the rows: higher than that of any earlier count of these days
   * @param slices default: as many as their observations need
   */
  async count(marks: readonly Pick<Mark, 'workspaceId' | 'day'>[], drawn: string, slices?: number): Promise<void> {
    const days: Days = { version: this.#version, drawn, marks };
    const parts = slices ?? (await this.#slices(days));
    for (let slice = 0; slice < parts; slice += 1) await this.#tell(postDaysStatement(days, slice, parts));
    for (const query of grainStatements(days)) await this.#tell(query);
  }

  async #slices(days: Days): Promise<number> {
    const query = observationsStatement(days);
    const answer = await asking(() => this.#client.query({ query, format: 'JSONEachRow', clickhouse_settings: sizes }));
    const [found] = await answer.json<{ n: string }>();
    return Math.max(1, Math.ceil(Number(found?.n ?? 0) / sliceRows));
  }

  async #tell(query: string): Promise<void> {
    await asking(() =>
      this.#client.command({
        query,
        clickhouse_settings: sizes,
        abort_signal: AbortSignal.timeout(statementMs),
      }),
    );
  }

  /** Those of the workspaces that nobody else counts, held to the end of the transaction. */
  async #lock(tx: PoolClient, workspaces: readonly string[]): Promise<readonly string[]> {
    const { rows } = await tx.query<{ id: string }>({
      name: 'analytics-lock',
      text: `select id from unnest($2::text[]) as w (id)
             where pg_try_advisory_xact_lock(hashtextextended('analytics ' || $1 || ' ' || id, 0))`,
      values: [String(this.#version), workspaces],
    });
    return rows.map((row) => row.id);
  }
}
