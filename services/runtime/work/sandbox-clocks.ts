import type { Pool } from 'pg';
import { within } from '#contracts/base/pause.ts';

/** The clocks of sandbox workspaces, each some time ahead of ours for its workspace alone. */

/** SQL of how far the clock of a workspace is ahead. @param workspace an SQL expression, a uuid */
export const aheadSql = (workspace: string): string =>
  `(coalesce((select c.ahead_ms from ops.sandbox_clocks c where c.workspace_id = ${workspace}), 0) * interval '1 millisecond')`;

/** SQL of the time by the clock of a workspace. @param workspace an SQL expression, a uuid */
export const nowSql = (workspace: string): string => `(now() + ${aheadSql(workspace)})`;

export interface MovedClock {
  readonly workspaceId: string;
  /** Milliseconds, more than 0. */
  readonly aheadMs: number;
  /** In real time, milliseconds since the epoch. */
  readonly movedAt: number;
}

/** Milliseconds for which a process goes by what it read; a move waits as long before it is answered. */
export const believedMs = 300;
/** After so many milliseconds a reading is made beside the work that goes by the last one. */
const freshMs = 150;
/** Milliseconds that the database has to answer. */
const answerMs = 2_000;

interface MovedRow {
  readonly newest: string;
  readonly workspaceId: string | null;
  readonly aheadMs: number | null;
  readonly movedAt: Date | null;
}

const movedSql = `
select v.version::text as newest, c.workspace_id::text as "workspaceId", c.ahead_ms::float8 as "aheadMs", c.moved_at as "movedAt"
from ops.sandbox_clock_version v left join ops.sandbox_clocks c on c.version > $1 order by c.version`;

/** As this process knows them. A process reads all clocks once, and from then on those that were moved since. */
export class SandboxClocks {
  readonly #pool: Pick<Pool, 'query'>;
  /** The latest moved last. */
  readonly #moved = new Map<string, MovedClock>();
  #version = 0n;
  #at = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;

  constructor(pool: Pick<Pool, 'query'>) {
    this.#pool = pool;
  }

  /** Milliseconds by which the clock of this workspace is ahead. @throws where the database does not answer */
  async aheadOf(workspaceId: string): Promise<number> {
    await this.read();
    return this.latest(workspaceId);
  }

  /** The same as it was last read: for those who must not wait, and have called `read` before. */
  latest(workspaceId: string): number {
    return this.#moved.get(workspaceId)?.aheadMs ?? 0;
  }

  /** When it was moved last, in real time; 0: never. Milliseconds since the epoch. */
  movedAt(workspaceId: string): number {
    return this.#moved.get(workspaceId)?.movedAt ?? 0;
  }

  /** The same where the database may be gone: what a live workspace does depends on no clock of a sandbox. */
  readonly known = async (workspaceId: string): Promise<number> => {
    await this.read().catch(() => undefined);
    return this.latest(workspaceId);
  };

  /** All that are ahead, as they were last read; the latest moved last. */
  moved(): readonly MovedClock[] {
    return [...this.#moved.values()];
  }

  /** From then on what this process goes by was read at most `believedMs` ago. @throws where the database does not answer */
  async read(): Promise<void> {
    const age = performance.now() - this.#at;
    if (age < freshMs) return;
    const reading = this.#again();
    if (age >= believedMs) return reading;
    // A reading that nobody awaits leaves its error to the next one.
    reading.catch(() => undefined);
  }

  /** From then on what this process goes by was read after the call. @throws where the database does not answer */
  async readAgain(): Promise<void> {
    await this.#reading?.catch(() => undefined);
    await this.#again();
  }

  #again(): Promise<void> {
    this.#reading ??= (async () => {
      // Before the query: what is moved while it runs may be missing.
      const at = performance.now();
      const asked = this.#pool.query<MovedRow>({ name: 'sandbox-clocks', text: movedSql, values: [this.#version] });
      const { rows } = await within(answerMs, asked);
      const newest = BigInt(rows[0]?.newest ?? 0);
      // A restore brought an older copy of the table: what was read before may not be in it.
      if (newest < this.#version) {
        this.#version = 0n;
        this.#moved.clear();
        return;
      }
      for (const { workspaceId, aheadMs, movedAt } of rows) {
        if (workspaceId === null || aheadMs === null || movedAt === null) continue;
        this.#moved.delete(workspaceId);
        this.#moved.set(workspaceId, { workspaceId, aheadMs, movedAt: movedAt.getTime() });
      }
      this.#version = newest;
      this.#at = at;
    })().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }
}
