import type { Socket } from 'node:net';
import knexFactory, { type Knex } from 'knex';
import type { Logger } from 'pino';

/**
 * Connections that read the read models, with two deadlines: the server cancels a slow query, and this process closes a
 * silent connection.
 */

/** How long one read may take, milliseconds; then the server cancels the query. */
export const readMs = 3_000;
/**
 * A server that is silent for this long is unreachable, because it would have canceled the query before: the pool
 * destroys the connection. Milliseconds.
 */
export const silenceMs = 5_000;

export interface ReadPoolOptions {
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
