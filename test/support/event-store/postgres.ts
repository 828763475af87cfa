/** A harness of the event store suite over one database, with the faults that a Postgres connection can meet. */
import pg from 'pg';
import type { Harness, Offer } from '#contracts/ports/event-store.suite.ts';
import { PostgresEventStore, type PostgresEventStoreOptions } from '#infra/postgres/event-store.ts';
import { workspaceStatements } from '#infra/postgres/workspace-index.sql.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { tcpProxy } from '#test/support/tcp-proxy.ts';

export const postgresOffers: readonly Offer[] = [
  'dropReplyAfterCommit',
  'killConnections',
  'restart',
  'index',
  'buffered',
];

const mute = { info: () => {}, warn: () => {} };
const nextLook = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

/** Runs one statement on a connection of its own. */
export const runSql = async (url: string, sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end();
  }
};

/** Ends every session of the database except the one that runs this. */
export const killSessions = async (url: string): Promise<void> => {
  await runSql(
    url,
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
  );
};

export interface PostgresHarness extends Harness {
  /** Straight to the server, past the proxy. */
  readonly url: string;
  open(options?: Partial<PostgresEventStoreOptions>): Promise<PostgresEventStore>;
  /** The server is unreachable until `heal`. */
  cut(): void;
  heal(): void;
}

export const postgresHarness = async (): Promise<PostgresHarness> => {
  const database = await testDatabase();
  const direct = new URL(database.url);
  const proxy = await tcpProxy({ host: direct.hostname, port: Number(direct.port || 5432) });
  const proxied = new URL(database.url);
  proxied.hostname = '127.0.0.1';
  proxied.port = String(proxy.port);
  const handles: PostgresEventStore[] = [];
  const proxiedStore = (): PostgresEventStore => {
    const [first] = handles;
    if (first === undefined) throw new Error('no handle is open');
    return first;
  };
  return {
    url: database.url,
    async open(options = {}) {
      const handle = await PostgresEventStore.open({ url: proxied.href, ...options });
      handles.push(handle);
      return handle;
    },
    async close() {
      await Promise.all(handles.map((handle) => handle.close()));
      await proxy.close();
      await database.drop();
    },
    async dropReplyAfterCommit() {
      void proxy.loseAnswer((request) => request.includes('\0append\0'));
    },
    killConnections: () => killSessions(database.url),
    async restart() {
      // A restart as a client sees it: every session ends, and for a while the server does not answer.
      proxy.cut();
      await killSessions(database.url);
      await new Promise((resolve) => setTimeout(resolve, 300));
      proxy.heal();
    },
    async index() {
      const stop = new AbortController();
      const keeping = proxiedStore().keepWorkspaceIndex({ signal: stop.signal, logger: mute, pieceEvents: 700 });
      try {
        while ((await runSql(database.url, workspaceStatements('es').behind)).length > 0) await nextLook();
      } finally {
        stop.abort();
        await keeping;
      }
    },
    buffered: () => handles.reduce((sum, handle) => sum + handle.tail.cachedEvents, 0),
    cut: () => proxy.cut(),
    heal: () => proxy.heal(),
  };
};
