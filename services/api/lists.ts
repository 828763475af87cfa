import type { Knex } from 'knex';
import { openReadPool, type ReadPoolOptions, readMs } from './read-pool.ts';
import { busy, Turns } from './turns.ts';

/**
 * Lists have connections of their own, a deadline, and a share per workspace: a search through long texts keeps the
 * database busy for seconds, and ten of them a second would hold up every other tenant's requests.
 */

/** Filters that no index serves: the database walks the tenant's rows until a page is full. */
const walkedFilters = ['search', 'platform', 'clientIds'] as const;
/** Lists in the order of a figure, of all workspaces. */
const sortsAtOnce = 6;
const canceledByDeadline = '57014';
/** How long a list waits for its turn, and how many lists of a workspace may wait. */
const line = { noun: 'lists', waiting: 20, waitMs: readMs };

export class Lists {
  readonly #knex: Knex;
  readonly #walks: Turns;
  readonly #pages: Turns;
  readonly #sorts: Turns;

  constructor(options: ReadPoolOptions) {
    const { connections } = options;
    this.#knex = openReadPool(options);
    // Walks never take half of the connections, so that pages by index are answered beside any number of walks.
    const half = Math.max(1, connections >> 1);
    this.#walks = new Turns({ ...line, each: 2, total: half });
    this.#pages = new Turns({ ...line, each: 4, total: connections - half });
    // These lists also wait for the analytics store. They have their own limit, so that a store that hangs does not
    // delay lists that do not need it.
    this.#sorts = new Turns({ ...line, noun: 'sorted lists', each: 2, total: sortsAtOnce });
  }

  /** Runs the queries of one list when its workspace has its turn. @throws Refusal `unavailable` */
  async run<T>(workspaceId: string, query: object, work: (knex: Knex) => Promise<T>): Promise<T> {
    const isWalk = walkedFilters.some((name) => Object.hasOwn(query, name));
    const turns = Object.hasOwn(query, 'sort') ? this.#sorts : isWalk ? this.#walks : this.#pages;
    try {
      return await turns.run(workspaceId, () => work(this.#knex));
    } catch (error) {
      if ((error as { code?: unknown }).code !== canceledByDeadline) throw error;
      throw busy('The list took too long. Narrow it, by status, client or time, and ask again.');
    }
  }

  close(): Promise<void> {
    return this.#knex.destroy();
  }
}
