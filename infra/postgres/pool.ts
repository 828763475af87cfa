/** Postgres connections: pools, deadlines, the parsing of 64-bit integers, and the classification of errors. */

import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import pg from 'pg';
import { backOff } from '#contracts/base/back-off.ts';
import { QueryTimeout } from '#contracts/ports/database.ts';

/**
 * Shared by every connection to Postgres: short keep-alive, and a deadline on every statement. pg's own `query_timeout`
 * answers the caller and leaves the connection in the middle of the statement: a rollback on it would wait for the same
 * silent server.
 */

/** Milliseconds for a statement without its own `query_timeout`. */
const defaultAnswerMs = 30_000;
/** Milliseconds to establish a connection. */
export const defaultConnectMs = 5_000;
/** Milliseconds for a server to close a connection after the goodbye. */
const goodbyeMs = 2_000;

export const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: 5_000 } as const;

/**
 * The server's half: it frees the locks of a client that vanished within 5 + 3 × 2 seconds, of one that closed its
 * connection in the middle of a statement within 5, and of one that fell silent in a transaction within 60.
 */
const sessionSettings = `
  set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3;
  set idle_in_transaction_session_timeout = 60000`;
const leaversNoticed = 'set client_connection_check_interval = 5000';
const refusedValue = '22023';

/**
 * Sets them, and these beside them. Not every platform detects a client that left: such a server refuses that setting,
 * and with it the others of its statement. A block that caught the refusal would load PL/pgSQL into every session.
 */
export const setSession = async (client: pg.ClientBase, more: string, about: object = {}): Promise<void> => {
  const settings = `${sessionSettings}; ${more}`;
  try {
    await client.query({ ...about, text: `${settings}; ${leaversNoticed}` });
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== refusedValue) throw error;
    await client.query({ ...about, text: settings });
  }
};

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

/** An idle connection is closed after this long: a burst after a few quiet seconds does not wait for new ones. */
const idleMs = 60_000;
const int8 = 20;
const timestamptz = 1184;

/** Caches the last answer: events of one transaction share one instant, which is then parsed and written once. */
export const cachingLast = <A, B>(answer: (input: A) => B): ((input: A) => B) => {
  let last: { readonly input: A; readonly answer: B } | null = null;
  return (input) => {
    if (last === null || last.input !== input) last = { input, answer: answer(input) };
    return last.answer;
  };
};

const anyInstant = pg.types.getTypeParser(timestamptz) as (text: string) => Date;
const plainInstant = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00$/;
/** For the format of sessions in UTC, at a tenth of the cost of the general parser: every event has an instant. */
const instantOf = cachingLast(
  (text: string): Date =>
    plainInstant.test(text) ? new Date(`${text.slice(0, 10)}T${text.slice(11, -3)}Z`) : anyInstant(text),
);

const parsers: Readonly<Record<number, (text: string) => unknown>> = { [int8]: BigInt, [timestamptz]: instantOf };

/** Type parsers of a query whose int8 columns are BigInt. pg's global parsers stay unchanged for all other queries. */
export const bigintTypes = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    parsers[oid] ?? pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

interface PoolOptions {
  readonly url: string;
  /** Most connections. Default 4. */
  readonly max?: number;
  /** Shown in `pg_stat_activity`. */
  readonly name?: string;
  /** Milliseconds a caller waits for a connection. Default 5000. */
  readonly connectTimeoutMs?: number;
  /** Milliseconds for a statement without a `query_timeout` of its own. Default 30,000. */
  readonly answerMs?: number;
  /** Whether every statement finds its rows by key or position: then each is planned once a session. */
  readonly byKey?: boolean;
}

/**
 * Postgres plans a statement anew for each call where it hopes for a better plan, which takes as long as a short page.
 * A plan made while its table was small would scan it, and is kept while the table grows.
 */
const plannedOnce = 'set plan_cache_mode = force_generic_plan; set enable_seqscan = off';

/** A statement without an answer in time fails with QueryTimeout, and its connection leaves the pool. */
export const openPool = (options: PoolOptions): pg.Pool => {
  const { connectTimeoutMs = defaultConnectMs, answerMs = defaultAnswerMs, byKey = false } = options;
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.max ?? 4,
    application_name: options.name ?? 'events',
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: idleMs,
    ...keepAlive,
    onConnect: async (client) => {
      limitAnswers(client, answerMs);
      await setSession(client, byKey ? plannedOnce : '', answeredWithin(connectTimeoutMs));
    },
  });
  // An idle connection that dies is replaced at the next query; without a listener it would end the process.
  pool.on('error', () => {});
  return pool;
};

/** Waiting time before the next try, milliseconds: 100 ms doubling up to 5 s. */
export const backoffMs = (failures: number): number => backOff(failures, { firstMs: 100, maxMs: 5_000 });

/**
 * Shutdown, crash, start-up and time-outs that end a session. By code: the text of the severity follows the server's
 * language.
 */
const endsSession = /^(08...|57P..|25P03|25P04)$/;

/** True when the session is lost (or was never established), false when the server refused one statement. */
export const isConnectionLost = (error: unknown): boolean => {
  if (!(error instanceof pg.DatabaseError)) return true;
  return error.severity === 'FATAL' || endsSession.test(error.code ?? '');
};

/** Wrong password, no such role, missing right: trying again does not help. */
export const isAccessDenied = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && (error.code?.startsWith('28') || error.code === '42501');

/** Checks a schema name, so that it can be written into SQL. */
export const checkSchemaName = (schema: string): string => {
  if (!/^[a-z_][a-z0-9_]{0,40}$/.test(schema))
    throw new Error(`schema name ${JSON.stringify(schema)} is invalid: use lower-case letters, digits and _`);
  return schema;
};
