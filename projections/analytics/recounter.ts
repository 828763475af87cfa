import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import type { Pool } from 'pg';
import { type BackOff, backOff } from '#contracts/base/back-off.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { withConnection } from '#runtime/postgres/transactions.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Zones } from './calendar.ts';
import { clearMarks, lockWaiting, type Mark, marksOf, unlock } from './dirty.ts';
import { ensureTables } from './live.ts';
import { countDays } from './recount.ts';
import type { ZonesOf } from './zones.ts';

/** Counts marked days beside other recounters: each takes the workspaces that it locked. */

/** Days and workspaces of one round. */
const maxDays = 1_000;
const maxWorkspaces = 64;
/** Scans of the queue in a round: another recounter may have counted the scanned marks before this one locked them. */
const maxLooks = 3;
/** Zones that are read at once. */
const width = 8;

/** A workspace whose count failed rests, so that the others are counted. Milliseconds. */
const rest: BackOff = { firstMs: 5_000, maxMs: 600_000 };

interface Trouble {
  readonly failures: number;
  /** Of `performance.now()`. */
  readonly until: number;
  readonly reason: string;
}

/** Whether these statements are at fault: an unavailable store or database fails for every workspace. */
const isItsOwn = (error: unknown): boolean => {
  const cause = error instanceof Unavailable ? error.cause : error;
  const late = cause instanceof Error && /^(Timeout|Abort)Error$/.test(cause.name);
  return late || cause instanceof ClickHouseError || !isInfrastructureFault(error);
};

export class Recounter {
  readonly #client: ClickHouseClient;
  readonly #pool: Pool;
  readonly #version: number;
  readonly #zonesOf: ZonesOf;
  readonly #troubles = new Map<string, Trouble>();
  /** The next rounds take one workspace each: one of several failed, and which one is unknown. */
  #singles = 0;

  constructor(client: ClickHouseClient, pool: Pool, version: number, zonesOf: ZonesOf) {
    this.#client = client;
    this.#pool = pool;
    this.#version = version;
    this.#zonesOf = zonesOf;
  }

  /** Why the days of a workspace are not counted; null when none rests. */
  trouble(): string | null {
    const [first] = this.#troubles;
    return first === undefined ? null : `the days of workspace ${first[0]} cannot be counted: ${first[1].reason}`;
  }

  /**
   * Runs one round. Returns how many marks it counted; 0: there are none, or other recounters count them. After a crash
   * the marks are still there, before and after the inserts, and the days are counted again under a newer version. A
   * statement that runs on after a crash, or after its lock was lost with the session, writes an older version than the
   * process that takes the lock next. No transaction is open meanwhile: it would hold back vacuum.
   * @throws Unavailable
   */
  async round(signal?: AbortSignal): Promise<number> {
    return withConnection(this.#pool, async (session, died) => {
      try {
        for (let look = 0; look < maxLooks; look += 1) {
          const max = this.#singles > 0 ? 1 : maxWorkspaces;
          const ours = await lockWaiting(session, this.#version, this.#resting(), max);
          this.#singles = Math.max(0, this.#singles - 1);
          const counted = ours.length === 0 ? null : await this.#countOurs(ours, signal);
          if (counted !== 0) return counted ?? 0;
        }
        return 0;
      } finally {
        await unlock(session).catch(died);
      }
    });
  }

  #resting(): readonly string[] {
    const now = performance.now();
    return [...this.#troubles].flatMap(([id, { until }]) => (until > now ? [id] : []));
  }

  async #countOurs(ours: readonly string[], signal: AbortSignal | undefined): Promise<number> {
    await ensureTables(this.#client, this.#version, this.#pool);
    faultPoint('analytics:before-recount');
    try {
      const counted = await this.#countMarked(ours, signal);
      for (const id of ours) this.#troubles.delete(id);
      return counted;
    } catch (error) {
      if (signal?.aborted !== true && isItsOwn(error)) this.#blame(ours, error);
      throw error;
    }
  }

  async #countMarked(workspaces: readonly string[], signal: AbortSignal | undefined): Promise<number> {
    // Read under the lock, before the count: days marked from now on keep their mark.
    const marks = await marksOf(this.#pool, this.#version, workspaces, maxDays);
    if (marks.length === 0) return 0;
    const zones = await this.#zones(marks);
    const drawn = await this.#draw();
    await countDays(this.#client, this.#version, marks, drawn, zones, signal === undefined ? {} : { signal });
    faultPoint('analytics:after-recount');
    await clearMarks(this.#pool, this.#version, marks);
    return marks.length;
  }

  async #zones(marks: readonly Mark[]): Promise<ReadonlyMap<string, Zones>> {
    const ids = [...new Set(marks.map(({ workspaceId }) => workspaceId))];
    const zones = new Map<string, Zones>();
    for (let at = 0; at < ids.length; at += width) {
      const some = ids.slice(at, at + width);
      await Promise.all(some.map(async (id) => zones.set(id, await this.#zonesOf(id))));
    }
    return zones;
  }

  /** Higher than any before, also where the database was restored or lost values that its sequence had handed out. */
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
    const restMs = backOff(failures - 1, rest);
    const reason = error instanceof Error ? error.message : String(error);
    this.#troubles.set(only, { failures, until: performance.now() + restMs, reason });
  }

  /** Counts all marks until the queue is empty, except those that other recounters count. */
  async all(signal?: AbortSignal): Promise<number> {
    let marks = 0;
    for (let counted = Infinity; counted > 0; marks += counted) {
      signal?.throwIfAborted();
      counted = await this.round(signal);
    }
    return marks;
  }
}
