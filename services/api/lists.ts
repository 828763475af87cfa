import type { Knex } from 'knex';
import { openReadPool, type ReadPoolOptions, readMs } from './read-pool.ts';
import { Refusal } from './refusal.ts';

/**
 * Lists have connections of their own, a deadline, and a share per workspace: a search through long texts keeps the
 * database busy for seconds, and ten of them a second would hold up every other tenant's requests.
 */

/** Filters that no index serves: such a list walks the tenant's rows until a page is full. */
const walkedFilters = ['search', 'platform', 'campaignId'] as const;
/** Seconds after which it is worth asking again. */
const retryAfterSeconds = 2;
const canceledByDeadline = '57014';

interface Shares {
  /** Lists of one workspace under way at once, and of all. */
  readonly each: number;
  readonly total: number;
}

/** Lists of one workspace that may wait. */
const maxWaiting = 20;

interface Waiter {
  readonly begin: () => void;
}

const busy = (detail: string): Refusal =>
  new Refusal('unavailable', detail, { headers: { 'Retry-After': String(retryAfterSeconds) } });

/** Who may begin, and who waits: workspaces take turns, and a full share of one is never in the way of another's. */
export class Turns {
  readonly #shares: Shares;
  readonly #waitMs: number;
  readonly #underWay = new Map<string, number>();
  #all = 0;
  /** Workspaces of which somebody waits, in the order of their turns. */
  readonly #waiting = new Map<string, Waiter[]>();

  constructor(shares: Shares, waitMs = readMs) {
    this.#shares = shares;
    this.#waitMs = waitMs;
  }

  /** @throws Refusal `unavailable` when too many wait already, or this one has waited too long. */
  async run<T>(workspaceId: string, work: () => Promise<T>): Promise<T> {
    if (this.#mayBegin(workspaceId) && !this.#waiting.has(workspaceId)) this.#begin(workspaceId);
    else await this.#wait(workspaceId);
    try {
      return await work();
    } finally {
      this.#end(workspaceId);
    }
  }

  #mayBegin(workspaceId: string): boolean {
    return this.#all < this.#shares.total && (this.#underWay.get(workspaceId) ?? 0) < this.#shares.each;
  }

  #begin(workspaceId: string): void {
    this.#all += 1;
    this.#underWay.set(workspaceId, (this.#underWay.get(workspaceId) ?? 0) + 1);
  }

  #wait(workspaceId: string): Promise<void> {
    const line = this.#waiting.get(workspaceId) ?? [];
    if (line.length >= maxWaiting) {
      throw busy('Too many lists of this workspace are asked for at once. Wait until some are answered.');
    }
    this.#waiting.set(workspaceId, line);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        begin: () => {
          clearTimeout(timer);
          this.#begin(workspaceId);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        line.splice(line.indexOf(waiter), 1);
        if (line.length === 0) this.#waiting.delete(workspaceId);
        reject(busy('Other lists of this workspace have not ended yet. Wait until they are answered, or narrow them.'));
      }, this.#waitMs);
      line.push(waiter);
    });
  }

  #end(workspaceId: string): void {
    this.#all -= 1;
    const left = (this.#underWay.get(workspaceId) ?? 0) - 1;
    if (left > 0) this.#underWay.set(workspaceId, left);
    else this.#underWay.delete(workspaceId);
    for (const [next, line] of [...this.#waiting]) {
      if (!this.#mayBegin(next)) continue;
      line.shift()?.begin();
      // To the end of the turns, or out of them.
      this.#waiting.delete(next);
      if (line.length > 0) this.#waiting.set(next, line);
    }
  }
}

export class Lists {
  readonly #knex: Knex;
  readonly #walks: Turns;
  readonly #pages: Turns;

  constructor(options: ReadPoolOptions) {
    const { connections } = options;
    this.#knex = openReadPool(options);
    // Half of the connections is never taken by walks: a page by index is answered beside any number of them.
    const half = Math.max(1, connections >> 1);
    this.#walks = new Turns({ each: 2, total: half });
    this.#pages = new Turns({ each: 4, total: connections - half });
  }

  /** Runs the queries of one list, when it is the workspace's turn. @throws Refusal `unavailable` */
  async run<T>(workspaceId: string, query: object, work: (knex: Knex) => Promise<T>): Promise<T> {
    const turns = walkedFilters.some((name) => Object.hasOwn(query, name)) ? this.#walks : this.#pages;
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
