import type { Pool } from 'pg';
import { findUnknownTargets, type WalkCursor } from '#projections/due-targets.ts';
import type { DueRow } from './due-row.ts';
import { limitsOf, type SearchScope } from './search.ts';

/**
 * Finds targets whose outcome is unknown and whose next question is due. The last question left that instant in the lease
 * of the target. A target without such a lease (its worker died, or the rows were lost) is found by the instant at which
 * its outcome became unknown.
 */

/** Leases whose rest is over that one search looks at. */
const restedRows = 1_000;
/** Targets that one search looks at, with a lease or without; nearly all have one. */
const bareRows = 300;
/** Milliseconds between two such steps, and between two walks over all unknown outcomes. */
const stepEveryMs = 250;
const passEveryMs = 1_000;

export class UnknownSearch {
  readonly #pool: Pool;
  readonly #kind: string;
  readonly #rested: number;
  readonly #bare: number;
  readonly #stepEveryMs: number;
  readonly #passEveryMs: number;
  #restedFrom: WalkCursor | null = null;
  #bareFrom: WalkCursor | null = null;
  #goesOn = false;
  #bareAt = Number.NEGATIVE_INFINITY;

  /** @param kind of the leases */
  constructor(
    pool: Pool,
    kind: string,
    { rested = restedRows, bare = bareRows, stepEveryMs: stepMs = stepEveryMs, passEveryMs: passMs = passEveryMs } = {},
  ) {
    this.#pool = pool;
    this.#kind = kind;
    this.#rested = rested;
    this.#bare = bare;
    this.#stepEveryMs = stepMs;
    this.#passEveryMs = passMs;
  }

  /**
   * Answers in no order. Where more are due than one search looks at, every other search begins with those whose rest
   * ended last, so that a new one does not wait behind a million others; the searches between go on where the last ended.
   */
  async find(scope: SearchScope): Promise<readonly DueRow[]> {
    const rested = this.#goesOn ? this.#restedFrom : null;
    const everyMs = this.#bareFrom === null ? this.#passEveryMs : this.#stepEveryMs;
    const looksForBare = performance.now() - this.#bareAt >= everyMs;
    const rows = await findUnknownTargets(
      this.#pool,
      { from: rested, rows: this.#rested },
      { from: this.#bareFrom, rows: looksForBare ? this.#bare : 0 },
      scope.shares.roomOf({ workspaceId: '', network: '' }),
      limitsOf(scope, this.#kind),
    );
    const edge = (kind: 'rested' | 'bare'): WalkCursor | null => rows.find((row) => row.kind === kind) ?? null;
    if (this.#goesOn || this.#restedFrom === null) this.#restedFrom = edge('rested');
    this.#goesOn = !this.#goesOn;
    if (looksForBare) {
      this.#bareFrom = edge('bare');
      this.#bareAt = performance.now();
    }
    return rows.filter((row) => row.kind === 'target' && !scope.staleRows.has(row));
  }
}
