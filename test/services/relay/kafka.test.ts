/** The relay between its real neighbours: the EventStoreDB adapter on one side, a Kafka broker on the other. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { LogRecord, LogWriter } from '#contracts/ports/log.ts';
import { EventStoreDbStore } from '#infra/eventstoredb/event-store.ts';
import { openKafkaLog } from '#infra/kafka/log.ts';
import { openKafkaLogWriter } from '#infra/kafka/writer.ts';
import { type Relay, startRelay } from '#services/relay/loop.ts';
import { EventStoreDouble } from '#test/support/eventstoredb/double.ts';
import { type Broker, kafkaBroker } from '#test/support/kafka.ts';
import { MemoryRelayCheckpoint } from '#test/support/memory-relay-checkpoint.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { fill, keepsTheLaw } from './world.ts';

/** Everything in the log, each lane in its order. */
const readLog = async (brokers: readonly string[], prefix: string): Promise<LogRecord[]> => {
  const log = await openKafkaLog({ brokers, prefix });
  const stopped = new AbortController();
  const records: LogRecord[] = [];
  const next = new Map<string, bigint>();
  const ends = (await log.ends(['posts'])).filter((end) => (end.nextOffset ?? 0n) > 0n);
  const reading = log.subscribe({
    group: `reader-${randomUUID()}`,
    topics: ['posts'],
    signal: stopped.signal,
    handlers: {
      assigned: async (lanes) => lanes.map((lane) => ({ lane, nextOffset: null, position: null })),
      batch: async (batch) => {
        records.push(...batch.records);
        next.set(batch.lane, batch.nextOffset);
      },
    },
  });
  const isRead = () => ends.every((end) => (next.get(end.lane) ?? 0n) >= (end.nextOffset ?? 0n));
  await until('every lane is read', isRead, { withinMs: 40_000 });
  stopped.abort();
  await reading.done;
  await log.close();
  return records;
};

const found = await kafkaBroker({ private: true });

suite('relay from EventStoreDB to Kafka', { drawn: true, costs: 7 }, (t) => {
  if ('skip' in found) {
    t.skip('lost connections, a killed broker, a new instance', found.skip);
    return;
  }
  const broker: Broker = found;
  let double: EventStoreDouble;
  let store: EventStoreDbStore;
  const writers: LogWriter[] = [];
  t.before(async () => {
    double = await EventStoreDouble.start();
    store = new EventStoreDbStore({ url: double.url });
  });
  t.after(async () => {
    await Promise.all(writers.map((writer) => writer.close()));
    await store.close();
    await double.stop();
    await broker.stop();
  });

  t('lost connections, a killed broker, a new instance: the log has every event, each key in order', async () => {
    const prefix = `t${randomUUID().slice(0, 8)}-`;
    const checkpoint = new MemoryRelayCheckpoint();
    const start = async (): Promise<{ relay: Relay; stop(): Promise<void> }> => {
      const stopped = new AbortController();
      const writer = await openKafkaLogWriter({ brokers: broker.brokers, prefix });
      writers.push(writer);
      const holder = randomUUID();
      const relay = startRelay({ store, writer, checkpoint, holder, partitions: 12, signal: stopped.signal });
      return {
        relay,
        stop: async () => {
          stopped.abort();
          await relay.done;
        },
      };
    };
    const isAtEnd = () => checkpoint.position === double.log.all.at(-1)?.position;
    const reached = () => until('all events are sent', isAtEnd, { withinMs: 60_000 });
    const first = await start();
    await fill(store, 40, 4);
    double.killConnections();
    await fill(store, 40, 4);
    await reached();
    const filling = fill(store, 60, 6);
    await broker.kill9();
    await filling;
    double.endSubscriptions('aborted');
    await broker.start();
    await reached();
    await fill(store, 30, 3);
    await first.stop();
    const second = await start();
    await fill(store, 30, 3);
    await reached();
    await second.stop();
    const records = await readLog(broker.brokers, prefix);
    keepsTheLaw(double.log.all, records);
    assert.ok(records.length >= 2_000);
  });
});
