import type { Pool } from 'pg';
import { parkedRows } from '#projections/parked.ts';
import type { Warning } from '#schemas/http/common.ts';
import { idOf, kindOf } from '#schemas/topics.ts';

/** What an answer says beside its data: that something it shows stands still, because an event of it is parked. */

/** What is known of parked streams is believed for so long, milliseconds. */
const freshMs = 750;
const mostWarnings = 20;
/** An answer's resource, those inside of it, and no deeper: a post and its targets. */
const deepest = 3;

const nouns: Readonly<Record<string, string>> = { target: 'post target', apikey: 'key', account: 'account' };

const idsIn = (value: unknown, depth = 0, found: Set<string> = new Set()): Set<string> => {
  if (typeof value !== 'object' || value === null || depth > deepest) return found;
  if (!Array.isArray(value) && 'id' in value && typeof value.id === 'string') found.add(value.id);
  for (const one of Object.values(value)) idsIn(one, Array.isArray(value) ? depth : depth + 1, found);
  return found;
};

export class Warnings {
  readonly #pool: Pool;
  /** Workspace → id of a resource → its noun. */
  #parked: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map();
  #asOf = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | null = null;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Of this workspace's streams alone. Empty as a rule. */
  async of(workspaceId: string, data: unknown): Promise<readonly Warning[]> {
    if (performance.now() - this.#asOf > freshMs) await this.#ask();
    const own = this.#parked.get(workspaceId);
    if (own === undefined) return [];
    return [...idsIn(data)]
      .flatMap((id): Warning[] => {
        const noun = own.get(id);
        if (noun === undefined) return [];
        const message = `A later change of this ${noun} is stored and cannot be shown yet: here is how it was before.`;
        return [{ code: 'stands_still', id, message }];
      })
      .slice(0, mostWarnings);
  }

  /** One query serves all who ask meanwhile. Where it fails no answer fails with it. */
  #ask(): Promise<void> {
    this.#asking ??= parkedRows(this.#pool)
      .then(
        (rows) => {
          const byWorkspace = Map.groupBy(rows, (row) => row.workspaceId);
          this.#parked = new Map(
            [...byWorkspace].map(([workspace, own]) => [
              workspace,
              new Map(own.map(({ stream }) => [idOf(stream), nouns[kindOf(stream)] ?? kindOf(stream)])),
            ]),
          );
        },
        () => undefined,
      )
      .finally(() => {
        this.#asOf = performance.now();
        this.#asking = null;
      });
    return this.#asking;
  }
}
