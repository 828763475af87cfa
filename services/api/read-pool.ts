import type { Socket } from 'node:net';
import knexFactory, { type Knex } from 'knex';
import type { Logger } from 'pino';

/** Connections for reading the read models, with a deadline that the server keeps and one that we keep. */

/** What one read may take, milliseconds; then the server cancels it. */
export const readMs = 3_000;
/** A server that says nothing for so long, although it cancels sooner, is gone: its connection is destroyed. */
export const silenceMs = 5_000;

export interface ReadPoolOptions {
  readonly url: string;
  readonly connections: number;
  readonly logger: Pick<Logger, 'debug'>;
  /** Milliseconds of silence, of a connection or of a server that is asked for one. Default 5,000. */
  readonly silenceMs?: number;
}

/**
 * A read takes one core, and the rows of its own tenant: Postgres would else read the whole table of a large tenant's
 * neighbours with three processes. Statements, not parameters of the connection: a pooler in between may refuse those.
 */
export const readSettings = `set statement_timeout = ${readMs}; set max_parallel_workers_per_gather = 0; set enable_seqscan = off`;

interface Connection {
  /** False while an answer is waited for. */
  readonly readyForQuery: boolean;
  readonly connection: { readonly stream: Socket };
  query(text: string, done: (error: unknown) => void): void;
}

/** An idle connection is closed after this long: a burst after a few quiet seconds does not wait for new ones. */
const idleMs = 60_000;

export const openReadPool = (options: ReadPoolOptions): Knex => {
  const { url: connectionString, silenceMs: longest = silenceMs } = options;
  // Knex writes to the console unless told otherwise; what it says is an error that the call gets as well.
  const say = (message: unknown) => options.logger.debug({ knex: String(message) }, 'knex');
  return knexFactory({
    client: 'pg',
    // All connections may be silent: who waits for one of them to be replaced waits for no second round.
    acquireConnectionTimeout: 2 * longest,
    connection: { connectionString, keepAlive: true, connectionTimeoutMillis: longest },
    pool: {
      min: 0,
      max: options.connections,
      idleTimeoutMillis: idleMs,
      afterCreate: (client: Connection, done: (...told: unknown[]) => void) => {
        const { stream } = client.connection;
        // One that only rests is silent, too.
        stream.setTimeout(longest).on('timeout', () => {
          if (!client.readyForQuery) stream.destroy();
        });
        client.query(readSettings, (error) => done(error, client));
      },
    },
    log: { warn: say, error: say, debug: say, deprecate: say },
  });
};
