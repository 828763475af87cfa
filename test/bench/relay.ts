/**
 * The relay beside bare kafkajs sending the same batches, and from EventStoreDB to Kafka beside the two bare halves one
 * after the other. One broker, one server (a real one where there is one, else the double), turn by turn. Run alone: `node test/bench/relay.ts`.
 */
import { randomUUID } from 'node:crypto';
import db from '@eventstore/db-client';
import type { EventStore, EventToAppend, RecordedEvent } from '#contracts/ports/event-store.ts';
import type { LogRecord } from '#contracts/ports/log.ts';
import { EventStoreDbStore } from '#infra/eventstoredb/event-store.ts';
import { connect } from '#infra/kafka/client.ts';
import { toMessage } from '#infra/kafka/cloudevents.ts';
import { openKafkaLogWriter } from '#infra/kafka/writer.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { PostgresRelayCheckpoint } from '#infra/postgres/relay-checkpoint.ts';
import { migrateSchema } from '#infra/postgres/schema.ts';
import type { LastEvent } from '#runtime/consuming/same-history.ts';
import { type RelayCheckpoint, startRelay } from '#services/relay/loop.ts';
import { toRecord } from '#services/relay/record.ts';
import { MemoryEventStore } from '#test/support/event-store/memory.ts';
import { eventStoreServer, measuredOn } from '#test/support/eventstoredb/server-handle.ts';
import { kafkaBroker } from '#test/support/kafka.ts';
import { MemoryRelayCheckpoint } from '#test/support/memory-relay-checkpoint.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { type BenchRow, printRows, spread } from './row.ts';

const batch = 500;
const topic = 'posts';

const eventOf = (post: string): EventToAppend => ({
  id: randomUUID(),
  type: 'PostCreated',
  data: Buffer.from(JSON.stringify({ text: 'x'.repeat(150), scheduledAt: '2026-01-31T08:00:00.000Z', mediaIds: [] })),
  metadata: Buffer.from(
    JSON.stringify({
      workspaceId: randomUUID(),
      partitionKey: post,
      actor: { type: 'apikey', id: randomUUID() },
      $correlationId: randomUUID(),
      $causationId: randomUUID(),
      commandId: randomUUID(),
      occurredAt: '2026-01-31T08:00:00.000Z',
      schemaVersion: 1,
    }),
  ),
  partitionKey: post,
});

/** The filled events: the position before them, and the last of them. A real server may hold other events too. */
interface Filled {
  readonly after: bigint | null;
  readonly last: bigint;
}

const fill = async (store: EventStore, events: number): Promise<Filled> => {
  const after = await store.head();
  let left = events / 10;
  let last = 0n;
  const write = async () => {
    while (left-- > 0) {
      const post = randomUUID();
      const { position } = await store.append(
        `post-${post}`,
        'none',
        Array.from({ length: 10 }, () => eventOf(post)),
      );
      if (position !== null && position > last) last = position;
    }
  };
  await Promise.all(Array.from({ length: 32 }, write));
  return { after, last };
};

/** Events a second of the relay from the first to the last of them, into fresh topics. */
const relayed = async (
  store: EventStore,
  brokers: readonly string[],
  checkpoint: RelayCheckpoint,
  events: number,
  { after, last }: Filled,
): Promise<number> => {
  const prefix = `b${randomUUID().slice(0, 8)}-`;
  const writer = await openKafkaLogWriter({ brokers, prefix, topics: [topic] });
  const stopped = new AbortController();
  const started = performance.now();
  const finished = Promise.withResolvers<void>();
  const watched = {
    acquire: async (holder: string, ttlMs: number) => {
      const lease = await checkpoint.acquire(holder, ttlMs);
      if (lease === null || after === null) return lease === null ? null : { ...lease, last: null };
      const [event] = await store.readAll({ from: after, limit: 1 });
      if (event === undefined) throw new Error(`no event at position ${after}`);
      return { ...lease, last: { position: after, eventId: event.id } };
    },
    renew: checkpoint.renew.bind(checkpoint),
    release: checkpoint.release.bind(checkpoint),
    save: async (saving: LastEvent, epoch: bigint) => {
      const saved = await checkpoint.save(saving, epoch);
      if (saving.position >= last) finished.resolve();
      return saved;
    },
  };
  const signal = stopped.signal;
  const relay = startRelay({ store, writer, checkpoint: watched, holder: 'bench', partitions: 12, signal });
  await Promise.race([finished.promise, relay.done]);
  const rate = (events * 1_000) / (performance.now() - started);
  stopped.abort();
  await relay.done;
  await writer.close();
  return rate;
};

/** Events a second of one producer, idempotent and acks=all, one send of 500 after the other, into fresh topics. */
const sent = async (records: readonly LogRecord[], brokers: readonly string[]): Promise<number> => {
  const prefix = `b${randomUUID().slice(0, 8)}-`;
  const connection = await connect({ brokers, prefix, topics: [topic] });
  const producer = connection.kafka.producer({
    idempotent: true,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
  });
  await producer.connect();
  const started = performance.now();
  for (let i = 0; i < records.length; i += batch) {
    const messages = records.slice(i, i + batch).map((record) => toMessage(record, '/eventstore'));
    await producer.send({ topic: connection.topicName(topic), acks: -1, messages });
  }
  const rate = (records.length * 1_000) / (performance.now() - started);
  await producer.disconnect();
  await connection.close();
  return rate;
};

/** Events a second of the bare client's subscription, which discards them. */
const subscribed = async (bare: db.EventStoreDBClient, events: number, after: bigint | null): Promise<number> => {
  let seen = 0;
  const started = performance.now();
  const fromPosition = after === null ? (db.START as 'start') : { commit: after, prepare: after };
  const subscription = bare.subscribeToAll({ fromPosition, filter: db.streamNameFilter({ regex: '^[^$]' }) });
  await new Promise<void>((resolve, reject) => {
    subscription.on('error', reject);
    subscription.on('data', () => {
      if (++seen === events) resolve();
    });
  });
  const rate = (events * 1_000) / (performance.now() - started);
  await subscription.unsubscribe();
  return rate;
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const events = quick ? 30_000 : 150_000;
  const rounds = quick ? 3 : 7;
  const broker = await kafkaBroker();
  if ('skip' in broker) {
    const missing = { unit: 'events/s', ours: Number.NaN, ok: false, note: broker.skip };
    return [{ name: 'relay', goal: '≥ 0.7 of bare kafkajs', ...missing }];
  }
  const server = await eventStoreServer();
  const store = new EventStoreDbStore({ url: server.url });
  const postgres = await sharedServer();
  const pool = openPool({ url: postgres.url });
  await migrateSchema(pool);
  const stored = () => new PostgresRelayCheckpoint({ pool, name: randomUUID() });
  const bare = db.EventStoreDBClient.connectionString(server.url);
  try {
    const memory = new MemoryEventStore();
    const inMemory = await fill(memory, events);
    const filled = await fill(store, events);
    const records = memory.log.all
      .map((event: RecordedEvent) => toRecord(event, 12))
      .filter((record) => record !== null);
    const figures = { memory: [] as number[], send: [] as number[], whole: [] as number[], subscribe: [] as number[] };
    const turns = [
      async () =>
        figures.memory.push(await relayed(memory, broker.brokers, new MemoryRelayCheckpoint(), events, inMemory)),
      async () => figures.send.push(await sent(records, broker.brokers)),
      async () => figures.whole.push(await relayed(store, broker.brokers, stored(), events, filled)),
      async () => figures.subscribe.push(await subscribed(bare, events, filled.after)),
    ];
    for (const turn of turns) await turn();
    for (const list of Object.values(figures)) list.length = 0;
    for (let round = 0; round < rounds; round++) {
      for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
    }
    const serial = figures.send.map((rate, i) => 1 / (1 / rate + 1 / (figures.subscribe[i] ?? Number.NaN)));
    const parts = `broker: ${broker.source}`;
    const rest = `${parts}; checkpoint in Postgres (${postgres.source}); ${measuredOn(server)}`;
    return [
      row('relay, memory → Kafka', figures.memory, figures.send, 'bare kafkajs, batches of 500', parts),
      row('relay, EventStoreDB → Kafka', figures.whole, serial, 'bare subscribe, then bare send', rest),
    ];
  } finally {
    await Promise.all([store.close(), bare.dispose()]);
    await server.stop();
    await pool.end();
    await postgres.stop();
    await broker.stop();
  }
};

const row = (
  name: string,
  ours: readonly number[],
  limit: readonly number[],
  what: string,
  parts: string,
): BenchRow => {
  const [mine, other] = [spread(ours), spread(limit)];
  const range = (s: { min: number; max: number }) => `${Math.round(s.min)} to ${Math.round(s.max)}`;
  return {
    name,
    unit: 'events/s',
    ours: mine.median,
    limit: other.median,
    goal: `≥ 0.7 of ${what}`,
    ok: mine.median >= 0.7 * other.median,
    note: `ratio ${(mine.median / other.median).toFixed(2)}; ours ${range(mine)}, limit ${range(other)}; ${parts}`,
  };
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));
