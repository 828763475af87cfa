/** The topics are made anew while consumers of this database have read the former ones. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { openKafkaLog } from '#infra/kafka/log.ts';
import { openKafkaLogWriter } from '#infra/kafka/writer.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { consume } from '#runtime/consuming/consume.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore, partitionKeyOf, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { resetLog } from '#services/admin/installation.ts';
import { startRelay } from '#services/relay/loop.ts';
import { type Broker, kafkaBroker, kafkaMissing } from '#test/support/kafka.ts';
import { MemoryRelayCheckpoint } from '#test/support/memory-relay-checkpoint.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const missing = await kafkaMissing();

suite('log reset', (t) => {
  if (missing !== null) {
    t.skip('a consumer leaves out nothing, whichever comes first', missing);
    return;
  }
  const codec = new EventCodec(new TestKeys());
  const logger = createLogger('test', 'silent');
  const checkpoint = new MemoryRelayCheckpoint();
  const closers: (() => Promise<unknown>)[] = [];
  let broker: Broker;
  let pool: pg.Pool;
  let events: PostgresEventStore;
  t.before(async () => {
    const found = await kafkaBroker();
    if ('skip' in found) throw new Error(found.skip);
    broker = found;
    closers.push(() => found.stop());
    const { url } = await preparedDatabase();
    pool = new pg.Pool({ connectionString: url, max: 4 });
    closers.push(() => pool.end());
    events = await PostgresEventStore.open({ url, pollMs: 50 });
    closers.push(() => events.close());
  });
  t.after(async () => {
    for (const close of closers.reverse()) await close();
  });

  const clientId = randomUUID();
  const append = async (revision: number): Promise<void> => {
    const id = uuidv7();
    const context = {
      ...{ workspaceId: randomUUID(), actor: { type: 'admin', id: 'test' } as const, correlationId: id },
      ...{ causationId: id, commandId: id, now: new Date().toISOString() },
    };
    const event =
      revision === 0
        ? { type: 'ClientCreated', data: clientFields }
        : { type: 'ClientUpdated', data: { name: `Name ${revision}` } };
    const store = new DomainStore(events, codec, defaultPartitions);
    await store.append(`client-${clientId}`, revision - 1, [event], context, partitionKeyOf('client', clientId));
  };

  t('a consumer leaves out nothing, though the new topics are as long as what it had read of the former', async () => {
    const options = { brokers: broker.brokers, prefix: `reset-${randomUUID().slice(0, 8)}-` };
    /** Until all that is stored is in the log. */
    const relayed = async (): Promise<void> => {
      const stop = new AbortController();
      const writer = await openKafkaLogWriter(options);
      const relay = startRelay({
        ...{ store: events, writer, checkpoint, holder: randomUUID(), partitions: defaultPartitions },
        signal: stop.signal,
      });
      const head = await events.head();
      await until('all is in the log', () => checkpoint.position === head);
      stop.abort();
      await relay.done;
      await writer.close();
    };
    const seen: number[] = [];
    const read = async (upTo: number): Promise<void> => {
      const stop = new AbortController();
      const log = await openKafkaLog(options);
      const consumer = consume({
        ...{ log, store: events, pool, codec, logger, group: 'readers', topics: ['workspace'], signal: stop.signal },
        apply: async (_, batch) => {
          seen.push(...batch.map(({ revision }) => Number(revision)));
          return null;
        },
      });
      await until('it has read', () => seen.includes(upTo));
      stop.abort();
      await consumer.done;
      await log.close();
    };
    await append(0);
    await relayed();
    await read(0);

    const log = await openKafkaLog(options);
    const reset = () => resetLog({ log, pool } as Parameters<typeof resetLog>[0], { has: () => true } as never);
    const { deleted } = (await reset()) as { readonly deleted: string };
    assert.match(deleted, /workspace/);
    await log.close();
    await append(1);
    await append(2);
    await relayed();
    await read(2);
    assert.deepEqual([...new Set(seen)], [0, 1, 2]);
    assert.deepEqual(seen, seen.toSorted());
  });
});
