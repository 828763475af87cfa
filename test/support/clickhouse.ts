/**
 * A real analytics store for tests, one database for a file. The server is, in this order: `TEST_CLICKHOUSE_URL` (set by
 * `test/run.ts` for its files), `CLICKHOUSE_URL`, a container, or chdb in a child process of this one behind its HTTP front.
 */
import { randomBytes } from 'node:crypto';
import type { ClickHouseClient } from '@clickhouse/client';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { type EmbeddedAnalytics, startEmbeddedAnalytics } from '#infra/clickhouse/embedded.ts';
import { engineAnswers } from './container-engine.ts';
import { serverFolder } from './postgres.ts';
import { afterFile } from './suite.ts';

export interface TestClickHouse {
  readonly client: ClickHouseClient;
  /** With credentials and database; `openAnalytics({ url })` opens it. */
  readonly url: string;
  /** Runs automatically at the end of the file, at the latest. */
  drop(): Promise<void>;
}

export interface SharedClickHouse {
  readonly url: string;
  readonly source: string;
  stop(): Promise<void>;
}

let shared: Promise<SharedClickHouse> | undefined;

/** An empty database on the shared server. */
export const testClickHouse = async (): Promise<TestClickHouse> => {
  shared ??= sharedClickHouse().then((server) => {
    afterFile(() => {
      shared = undefined;
      return server.stop();
    });
    return server;
  });
  const server = await shared;
  const name = `test_${randomBytes(8).toString('hex')}`;
  const admin = openAnalytics({ url: server.url });
  await admin.command({ query: `create database ${name}` });
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  const client = openAnalytics({ url: url.href });
  let dropped: Promise<void> | undefined;
  const drop = (): Promise<void> => {
    dropped ??= (async () => {
      await client.close();
      await admin.command({ query: `drop database if exists ${name}` });
      await admin.close();
    })();
    return dropped;
  };
  afterFile(drop);
  return { client, url: url.href, drop };
};

/** The server for a whole run. The caller stops it; a given server is left running. */
export const sharedClickHouse = async (): Promise<SharedClickHouse> => {
  for (const name of ['TEST_CLICKHOUSE_URL', 'CLICKHOUSE_URL']) {
    const url = process.env[name];
    if (url) return { url, source: name, stop: async () => {} };
  }
  if (await engineAnswers()) {
    const { GenericContainer, Wait } = await import('testcontainers');
    const container = await new GenericContainer('clickhouse/clickhouse-server:25.8.33.6')
      .withEnvironment({ CLICKHOUSE_USER: 'test', CLICKHOUSE_PASSWORD: 'test', CLICKHOUSE_DB: 'postline' })
      .withExposedPorts(8123)
      .withWaitStrategy(Wait.forHttp('/ping', 8123))
      .start();
    const url = `http://test:test@${container.getHost()}:${container.getMappedPort(8123)}/postline`;
    return { url, source: 'container', stop: async () => void (await container.stop()) };
  }
  const { embedded, remove } = await embeddedClickHouse();
  return { url: embedded.url, source: 'chdb', stop: remove };
};

/** A private server in its own folder, deleted with this process: for tests that kill it. */
export const embeddedClickHouse = async (
  memoryBytes = 2 * 1024 ** 3,
): Promise<{ readonly embedded: EmbeddedAnalytics; readonly dir: string; remove(): Promise<void> }> => {
  const { dataDir: dir, drop } = serverFolder();
  const embedded = await startEmbeddedAnalytics({ dir, memoryBytes });
  const remove = async (): Promise<void> => {
    await embedded.stop();
    await drop();
  };
  return { embedded, dir, remove };
};
