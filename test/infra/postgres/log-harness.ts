/** The log's harness over an event table: what is appended is what the log carries. */

import { type EventStore, EventStoreError, type EventToAppend } from '#contracts/ports/event-store.ts';
import type { Fact, LogHarness } from '#contracts/ports/log.suite.ts';
import type { Log, LogRecord } from '#contracts/ports/log.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPostgresLog } from '#infra/postgres/log.ts';
import { topicOf } from '#schemas/events.ts';
import { defaultPartitions, partitionOf } from '#schemas/topics.ts';
import { type TcpProxy, tcpProxy } from '#test/support/tcp-proxy.ts';

const eventOf = ({ id, type, value, metadata, key }: Fact): EventToAppend => ({
  id,
  type,
  data: value,
  metadata,
  partitionKey: key,
});

/** Appends until the store says it did: after an unknown outcome the same ids say what became of it. */
const append = async (store: EventStore, facts: readonly Fact[]): Promise<readonly LogRecord[]> => {
  const [first] = facts;
  if (first === undefined) return [];
  const expected = first.revision === 0n ? 'none' : first.revision - 1n;
  const deadline = performance.now() + 60_000;
  for (;;) {
    try {
      const { position } = await store.append(first.stream, expected, facts.map(eventOf));
      return facts.map((fact) => ({
        ...fact,
        topic: topicOf(fact.stream) ?? '',
        partition: partitionOf(fact.key, defaultPartitions),
        position: position ?? 0n,
        time: '',
      }));
    } catch (error) {
      const again = error instanceof EventStoreError && /^(unavailable|outcome_unknown)$/.test(error.code);
      if (!again || performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
};

/** `kill9` restarts the server behind `url`, where it is ours alone. */
export const postgresHarness = async (options: {
  readonly url: string;
  readonly effectsUrl: string;
  readonly kill9?: () => Promise<void>;
}): Promise<LogHarness & { readonly store: PostgresEventStore }> => {
  const store = await PostgresEventStore.open({ url: options.url });
  const logs: Log[] = [];
  const proxies: TcpProxy[] = [];
  const open = async (url: string): Promise<Log> => {
    const log = await openPostgresLog({ url });
    logs.push(log);
    return log;
  };
  return {
    store,
    effectsUrl: options.effectsUrl,
    sessionMs: 2000,
    open: () => open(options.url),
    openCuttable: async () => {
      const url = new URL(options.url);
      const proxy = await tcpProxy({ host: url.hostname, port: Number(url.port || 5432) });
      proxies.push(proxy);
      url.host = `127.0.0.1:${proxy.port}`;
      return { log: await open(url.href), cut: proxy.cut };
    },
    write: async (facts) => {
      const appends = Map.groupBy(facts, ({ stream }) => stream);
      return (await Promise.all([...appends.values()].map((list) => append(store, list)))).flat();
    },
    ...(options.kill9 === undefined ? {} : { kill9: options.kill9 }),
    close: async () => {
      await Promise.allSettled([...logs, store].map((one) => one.close()));
      await Promise.allSettled(proxies.map((proxy) => proxy.close()));
    },
  };
};
