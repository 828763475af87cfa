/**
 * Shared by every connection to Postgres: short keep-alive, and a deadline on every statement. pg's own `query_timeout`
 * answers the caller and leaves the connection in the middle of the statement: a rollback on it would wait for the same
 * silent server.
 */
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type pg from 'pg';
import { QueryTimeout } from '#contracts/ports/database.ts';

/** Milliseconds for a statement without its own `query_timeout`. */
export const defaultAnswerMs = 30_000;
/** Milliseconds to establish a connection. */
export const defaultConnectMs = 5_000;
/** Milliseconds for a server to close a connection after the goodbye. */
const goodbyeMs = 2_000;

export const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: 5_000 } as const;

/**
 * The server's half: it frees the locks of a client that vanished within 5 + 3 × 2 seconds, of one that closed its
 * connection in the middle of a statement within 5, and of one that fell silent in a transaction within 60. Not every
 * platform can detect a client that left.
 */
export const sessionSettings = `
  set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3;
  set idle_in_transaction_session_timeout = 60000;
  do $$ begin perform set_config('client_connection_check_interval', '5000', false);
    exception when others then null; end $$`;

const connectionOf = (client: pg.ClientBase): EventEmitter & { readonly stream: Socket } =>
  (client as unknown as { readonly connection: EventEmitter & { readonly stream: Socket } }).connection;

const socketOf = (client: pg.ClientBase): Socket => connectionOf(client).stream;

/** Member of a query that has its own deadline. pg's types know `query_timeout` for connections only. */
export const answeredWithin = (milliseconds: number): object => ({ query_timeout: milliseconds });

type Ask = (...args: unknown[]) => unknown;

/** Takes `query_timeout` out of the query: pg's own timer would only answer the caller. */
const timeOf = (args: unknown[], otherwise: number): number => {
  const [query] = args;
  if (typeof query !== 'object' || query === null || !('query_timeout' in query)) return otherwise;
  const { query_timeout: own, ...rest } = query;
  args[0] = rest;
  return typeof own === 'number' ? own : otherwise;
};

/**
 * From now on a statement of this client without an answer in time destroys the connection and fails with QueryTimeout.
 */
export const limitAnswers = (client: pg.ClientBase, answerMs: number): void => {
  /**
   * Deadlines of the statements that wait for an answer, in order. Only the first counts down: the server works on it.
   */
  const times: number[] = [];
  let timer: NodeJS.Timeout | undefined;
  const watch = (): void => {
    clearTimeout(timer);
    const [ms] = times;
    timer = ms === undefined ? undefined : setTimeout(() => socketOf(client).destroy(new QueryTimeout(ms)), ms);
  };
  const rest = (): void => {
    times.length = 0;
    watch();
  };
  // The next statement reports a connection destroyed in between; without a listener its error would end the process.
  client.on('error', rest).on('drain', rest).on('end', rest);
  // A busy pool hands the connection to its next user before the queue drains: the deadline must restart with each
  // answer, or the time of earlier users would count against the next one.
  connectionOf(client).on('readyForQuery', () => {
    times.shift();
    watch();
  });
  const query = client.query.bind(client) as Ask;
  client.query = ((...args: unknown[]) => {
    times.push(timeOf(args, answerMs));
    if (times.length === 1) watch();
    return query(...args);
  }) as typeof client.query;
  limitGoodbye(client);
};

/** Destroys the socket of a server that does not answer the goodbye: an open one would keep the process alive. */
export const limitGoodbye = (client: pg.ClientBase): void => {
  const closing = client as pg.Client;
  const end = closing.end.bind(closing) as Ask;
  closing.end = ((...args: unknown[]) => {
    const late = setTimeout(() => socketOf(client).destroy(), goodbyeMs);
    closing.once('end', () => clearTimeout(late));
    return end(...args);
  }) as typeof closing.end;
};
