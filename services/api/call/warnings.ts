import { isDeepStrictEqual } from 'node:util';
import type { Pool } from 'pg';
import { within } from '#contracts/base/pause.ts';
import { parkedRows } from '#projections/engine/positions.ts';
import type { BodyNotes } from '#schemas/http/clean.ts';
import type { Warning } from '#schemas/http/common.ts';
import { idOf, kindOf } from '#schemas/topics.ts';

/**
 * Warnings beside the data of an answer: the data shows an older state, because a later event of the stream is parked.
 */

/** How long the list of parked streams is used before it is read again, milliseconds. */
const freshMs = 750;
/** How long a GET waits for the list of parked streams, milliseconds; then it uses the last list. */
const patienceMs = 1_000;
const maxWarnings = 20;
/** The resource of an answer and the resources directly inside of it: a post and its targets. */
const deepest = 3;

/**
 * Members that were sent and that a resource which was there already does not have so.
 * @param shown the resource as it is answered; a member that it does not show counts as another
 */
export const keptWarnings = (
  { notes, body }: { readonly notes: BodyNotes; readonly body: Readonly<Record<string, unknown>> },
  names: readonly string[],
  shown: Readonly<Record<string, unknown>> & { readonly id: string; readonly object: string },
): readonly Warning[] =>
  names
    .filter((name) => notes.given.has(name) && !isDeepStrictEqual(body[name], shown[name]))
    .map((name) => ({
      ...{ code: 'member_without_effect', id: shown.id, path: `/${name}` },
      message: `the ${shown.object} was there already and stays as it is`,
    }));

const nouns: Readonly<Record<string, string>> = { target: 'post target', apikey: 'key' };

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

  /**
   * Warnings for this workspace's streams alone, at most 20. Usually empty, and the data is then not looked at; also
   * empty when the database does not answer.
   */
  async of(workspaceId: string, data: () => unknown): Promise<readonly Warning[]> {
    if (performance.now() - this.#asOf > freshMs) await this.#ask();
    const own = this.#parked.get(workspaceId);
    if (own === undefined) return [];
    return [...idsIn(data())]
      .flatMap((id): Warning[] => {
        const noun = own.get(id);
        if (noun === undefined) return [];
        const message = `A later change of this ${noun} is stored and cannot be shown yet. The answer shows the state before it.`;
        return [{ code: 'stands_still', id, message }];
      })
      .slice(0, maxWarnings);
  }

  /** One query serves all calls that ask meanwhile. An answer does not fail when the query fails. */
  #ask(): Promise<void> {
    const rows = () =>
      within(patienceMs, parkedRows(this.#pool), () => {
        throw new Error(`no answer within ${patienceMs} ms`);
      });
    this.#asking ??= rows()
      .then(
        (found) => {
          const byWorkspace = Map.groupBy(found, (row) => row.workspaceId);
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
