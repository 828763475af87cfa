import type { Taker } from '#runtime/work/slots.ts';
import type { DueRow } from './shares.ts';

/** Milliseconds for which this process remembers a stale row; the read model has caught up by then. */
const rememberMs = 30_000;

/** Rows of the read model that lack what this process wrote to their streams. Searches pass them over. */
export class StaleRows {
  readonly #at = new Map<string, { readonly row: DueRow; readonly revision: number; readonly since: number }>();
  readonly #of = new Map<string, { readonly taker: Required<Taker>; rows: number }>();

  /** @param revision of the target's stream, which the row has not reached */
  add(row: DueRow, revision: number): void {
    this.#delete(row.id);
    this.#at.set(row.id, { row, revision, since: performance.now() });
    const key = `${row.workspaceId} ${row.network}`;
    const of = this.#of.get(key) ?? { taker: row, rows: 0 };
    of.rows += 1;
    this.#of.set(key, of);
  }

  /** Whether the row is still behind its target's stream. */
  has({ id, revision }: Pick<DueRow, 'id' | 'revision'>): boolean {
    return revision < (this.#at.get(id)?.revision ?? 0);
  }

  /** Forgets rows that were added long ago. */
  expire(): void {
    const before = performance.now() - rememberMs;
    for (const [id, { since }] of this.#at) {
      if (since > before) break;
      this.#delete(id);
    }
  }

  /** Counts stale rows by workspace and network. */
  counts(): readonly (readonly [Required<Taker>, number])[] {
    return [...this.#of.values()].map(({ taker, rows }) => [taker, rows]);
  }

  #delete(id: string): void {
    const known = this.#at.get(id);
    if (known === undefined) return;
    this.#at.delete(id);
    const key = `${known.row.workspaceId} ${known.row.network}`;
    const of = this.#of.get(key);
    if (of === undefined) return;
    of.rows -= 1;
    if (of.rows === 0) this.#of.delete(key);
  }
}
