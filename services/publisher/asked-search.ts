import type { Pool } from 'pg';
import { findAskedTargets, type WalkCursor } from '#projections/queries/due-targets.ts';
import { limitsOf, type SearchScope } from './search.ts';
import { type DueRow, roomOf } from './shares.ts';

/**
 * Finds targets whose outcome a network has not said yet, and whose next question is due. The worker that asked last left
 * that instant in the target's lease. If the worker died or the lease rows were lost, the search finds the target by the
 * instant of its first question.
 */

/** Leases with an ended rest that one search reads. */
const restedRows = 1_000;
/** Targets that one search checks for a missing lease; nearly all have one. */
const bareRows = 300;
/** Milliseconds between two steps of the walk over all such targets, and between two walks. */
const stepEveryMs = 250;
const passEveryMs = 1_000;

export class AskedSearch {
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
   * Returns rows in no order. If more are due than one search reads, every other search begins with the latest ended
   * rests, so that a new target does not wait behind a million others. The searches between continue the walk.
   */
  async find(scope: SearchScope): Promise<readonly DueRow[]> {
    const rested = this.#goesOn ? this.#restedFrom : null;
    const everyMs = this.#bareFrom === null ? this.#passEveryMs : this.#stepEveryMs;
    const looksForBare = performance.now() - this.#bareAt >= everyMs;
    const rows = await findAskedTargets(
      this.#pool,
      { from: rested, rows: this.#rested },
      { from: this.#bareFrom, rows: looksForBare ? this.#bare : 0 },
      roomOf(scope.slots, { workspaceId: '', network: '' }),
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
