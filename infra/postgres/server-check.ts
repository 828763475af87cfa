/** Checks that a Postgres is usable before anything else connects: a fault found later shows only a symptom. */
import pg from 'pg';
import { SetupError } from '#contracts/ports/setup-error.ts';
import { keepAlive, limitAnswers } from './pool.ts';

/** Oldest release on which the tests and the tour pass. */
const minPostgres = 15;

/** When everything starts at once a first answer may take some seconds; 15 s without one is a failure. */
const answerMs = 15_000;

const whoAnswers = 'select pg_backend_pid() as pid';

/** Of this thread: the parts of standalone start together, on one server. */
const passed = new Map<string, Promise<void>>();

/**
 * A server that passed is not asked again.
 * @throws SetupError with the remedy, where the server is too old, where the database cannot hold every text, or where
 * a pooler spreads the statements of one connection over several sessions. A pooler that keeps a connection's session
 * (PgBouncer: `pool_mode = session`) passes. Connection errors pass unchanged.
 */
export const checkServer = (url: string): Promise<void> => {
  const known = passed.get(url);
  if (known !== undefined) return known;
  const asked = examine(url);
  passed.set(url, asked);
  asked.catch(() => passed.delete(url));
  return asked;
};

const examine = async (url: string): Promise<void> => {
  const clients = [connectionTo(url), connectionTo(url)] as const;
  try {
    const [one, other] = clients;
    await one.connect();
    const { rows } = await one.query<{ server_version: string }>('show server_version');
    requireVersion(rows[0]?.server_version ?? '');
    const encoding = await one.query<{ server_encoding: string }>('show server_encoding');
    requireEncoding(encoding.rows[0]?.server_encoding ?? '');
    await other.connect();
    // This order detects a pooler with one session, one whose two sessions alternate, and one that picks the newest
    // first.
    const pids: [Set<number>, Set<number>] = [new Set(), new Set()];
    for (const which of [0, 1, 1, 0, 1, 0, 0, 1] as const) {
      const answer = await clients[which].query<{ pid: number }>(whoAnswers);
      pids[which].add(answer.rows[0]?.pid ?? 0);
    }
    if (pids[0].size === 1 && pids[1].size === 1 && pids[0].isDisjointFrom(pids[1])) return;
    throw new SetupError(
      `DATABASE_URL (${addressOf(one)}) leads through a connection pooler that gives each transaction another session ` +
        '(transaction mode). LISTEN, advisory locks and prepared statements need one session for a connection: name the ' +
        "server's own address, or a port of the pooler in session mode (PgBouncer: pool_mode = session)",
    );
  } finally {
    await Promise.all(clients.map((client) => client.end().catch(() => undefined)));
  }
};

export const requireVersion = (version: string): void => {
  if (Number.parseInt(version, 10) >= minPostgres) return;
  throw new SetupError(
    `DATABASE_URL names a server of Postgres ${version}: at least ${minPostgres} is needed. Upgrade it, or name another`,
  );
};

/** Another encoding lacks characters that people write, or confuses bytes. */
const requireEncoding = (encoding: string): void => {
  if (encoding === 'UTF8') return;
  throw new SetupError(
    `DATABASE_URL names a database whose encoding is ${encoding}: UTF8 is needed. Create one with ` +
      "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and name that",
  );
};

/** Without user and password. */
const addressOf = ({ host, port }: pg.Client): string => `${host}:${port}`;

const connectionTo = (url: string): pg.Client => {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'start',
    connectionTimeoutMillis: answerMs,
    ...keepAlive,
  });
  limitAnswers(client, answerMs);
  return client;
};
