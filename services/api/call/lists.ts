import type { Socket } from 'node:net';
import knexFactory, { type Knex } from 'knex';
import type { Logger } from 'pino';
import { busy, CallQueue } from './call-queue.ts';

/**
 * Connections that read the read models, with two deadlines: the server cancels a slow query, and this process closes a
 * silent connection.
 */

/** How long one read may take, milliseconds; then the server cancels the query. */
const readMs = 3_000;
/**
 * A server that is silent for this long is unreachable, because it would have canceled the query before: the pool
 * destroys the connection. Milliseconds.
 */
export const silenceMs = 5_000;

interface ReadPoolOptions {
  readonly url: string;
  readonly connections: number;
  readonly logger: Pick<Logger, 'debug'>;
  /** Milliseconds that a connection, or a server during connecting, may be silent. Default 5,000. */
  readonly silenceMs?: number;
}

/**
 * Keeps a read on one core and on indexes. Otherwise Postgres scans the whole table, with all other tenants, in three
 * processes. These are statements and not parameters of the connection, because a pooler in between may refuse such
 * parameters.
 */
export const readSettings = `set statement_timeout = ${readMs}; set max_parallel_workers_per_gather = 0; set enable_seqscan = off`;

interface Connection {
  /** False while a query waits for its answer. */
  readonly readyForQuery: boolean;
  readonly connection: { readonly stream: Socket };
  query(text: string, done: (error: unknown) => void): void;
}

/**
 * How long an idle connection stays open, milliseconds: a burst after a few quiet seconds does not wait for new
 * connections.
 */
const idleMs = 60_000;

export const openReadPool = (options: ReadPoolOptions): Knex => {
  const { url: connectionString, silenceMs: longest = silenceMs } = options;
  // Without a log of its own, knex writes to the console. The call gets each of these errors as well.
  const say = (message: unknown) => options.logger.debug({ knex: String(message) }, 'knex');
  return knexFactory({
    client: 'pg',
    // All connections may be silent at once. A call then waits until one of them is replaced, and not for a second
    // round.
    acquireConnectionTimeout: 2 * longest,
    connection: { connectionString, keepAlive: true, connectionTimeoutMillis: longest },
    pool: {
      min: 0,
      max: options.connections,
      idleTimeoutMillis: idleMs,
      afterCreate: (client: Connection, done: (...result: unknown[]) => void) => {
        const { stream } = client.connection;
        // An idle connection is silent too, and stays.
        stream.setTimeout(longest).on('timeout', () => {
          if (!client.readyForQuery) stream.destroy();
        });
        client.query(readSettings, (error) => done(error, client));
      },
    },
    log: { warn: say, error: say, debug: say, deprecate: say },
  });
};

/** Filters that no index serves: the database walks the tenant's rows until a page is full. */
const walkedFilters = ['search', 'platform', 'clientIds'] as const;
/** Lists in the order of a figure, of all workspaces. */
const sortsAtOnce = 6;
const canceledByDeadline = '57014';
/** How long a list waits for its turn, and how many lists of a workspace may wait. */
const line = { noun: 'lists', waiting: 20, waitMs: readMs };

/**
 * Lists have connections of their own, a deadline, and a share per workspace: a search through long texts keeps the
 * database busy for seconds, and ten of them a second would hold up every other tenant's requests.
 */
export class Lists {
  readonly #knex: Knex;
  readonly #walks: CallQueue;
  readonly #pages: CallQueue;
  readonly #sorts: CallQueue;

  constructor(options: ReadPoolOptions) {
    const { connections } = options;
    this.#knex = openReadPool(options);
    // Walks never take half of the connections, so that pages by index are answered beside any number of walks.
    const half = Math.max(1, connections >> 1);
    this.#walks = new CallQueue({ ...line, each: 2, total: half });
    this.#pages = new CallQueue({ ...line, each: 4, total: connections - half });
    // These lists also wait for the analytics store. They have their own limit, so that a store that hangs does not
    // delay lists that do not need it.
    this.#sorts = new CallQueue({ ...line, noun: 'sorted lists', each: 2, total: sortsAtOnce });
  }

  /** Runs the queries of one list when its workspace has its turn. @throws Refusal `unavailable` */
  async run<T>(workspaceId: string, query: object, work: (knex: Knex) => Promise<T>): Promise<T> {
    const isWalk = walkedFilters.some((name) => Object.hasOwn(query, name));
    const queue = Object.hasOwn(query, 'sort') ? this.#sorts : isWalk ? this.#walks : this.#pages;
    try {
      return await queue.run(workspaceId, () => work(this.#knex));
    } catch (error) {
      if ((error as { code?: unknown }).code !== canceledByDeadline) throw error;
      throw busy('The list took too long. Narrow it, by status, client or time, and ask again.');
    }
  }

  close(): Promise<void> {
    return this.#knex.destroy();
  }
}
