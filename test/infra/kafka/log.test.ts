import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { logSuite } from '#contracts/ports/log.suite.ts';
import { type LanePosition, LogError, type LogRecord } from '#contracts/ports/log.ts';
import { connect, replicationOf } from '#infra/kafka/client.ts';
import { openKafkaLog } from '#infra/kafka/log.ts';
import { KafkaSubscription } from '#infra/kafka/subscription.ts';
import { openKafkaLogWriter } from '#infra/kafka/writer.ts';
import { rowsOfRun } from '#test/support/drawing.ts';
import { kafkaMissing } from '#test/support/kafka.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { tcpProxy } from '#test/support/tcp-proxy.ts';
import { until } from '#test/support/until.ts';
import { kafkaHarness, through } from './harness.ts';

const record = ({ revision, value }: { revision: bigint; value: Buffer }): LogRecord => ({
  topic: 'posts',
  partition: 5,
  key: 'k',
  stream: 'post-k',
  id: randomUUID(),
  type: 'PostCreated',
  revision,
  position: revision,
  time: new Date().toISOString(),
  value,
  metadata: Buffer.from('{}'),
});

const missing = await kafkaMissing({ private: true });

suite('log: Kafka', { timeoutMs: 180_000 }, (t) => {
  if (missing !== null) {
    t.skip('the log suite and the adapter’s own cases', missing);
    return;
  }
  let brokers: readonly string[] = [];
  const offers = rowsOfRun('what befalls a broker', ['kill9', 'writeLosingAck', 'repeat', 'truncate'] as const, String);
  logSuite(
    t,
    async () => {
      const harness = await kafkaHarness((await testDatabase()).url);
      brokers = harness.brokers;
      return harness;
    },
    offers,
  );

  const own = (): { brokers: readonly string[]; topics: string[]; prefix: string } => ({
    brokers,
    topics: ['posts'],
    prefix: `${randomUUID()}.`,
  });
  const isLogError = (code: string) => (error: unknown) => error instanceof LogError && error.code === code;

  t('refuses to start on a topic with another count of partitions', async () => {
    const options = own();
    const log = await openKafkaLog({ ...options, partitions: 3 });
    await log.close();
    await assert.rejects(openKafkaLog({ ...options, partitions: 4 }), isLogError('partition_mismatch'));
    await assert.rejects(openKafkaLogWriter(options), isLogError('partition_mismatch'));
  });

  t('creates missing topics once though two processes start together', async () => {
    const options = own();
    const logs = await Promise.all([openKafkaLog(options), openKafkaLog(options), openKafkaLog(options)]);
    assert.equal((await logs[0]?.ends(['posts']))?.length, 12);
    await Promise.all(logs.map((log) => log.close()));
  });

  t('sends batches that are larger than a broker takes at once', async () => {
    const options = own();
    const [log, writer] = await Promise.all([openKafkaLog(options), openKafkaLogWriter(options)]);
    const value = Buffer.alloc(400_000, 'x');
    await writer.send(Array.from({ length: 8 }, (_, i) => record({ revision: BigInt(i), value })));
    assert.equal((await log.ends(['posts'])).find(({ lane }) => lane === 'posts-5')?.nextOffset, 8n);
    await Promise.all([log.close(), writer.close()]);
  });

  t('names the last record of each lane, and after a reset there is none', async () => {
    const options = own();
    const [log, writer] = await Promise.all([openKafkaLog(options), openKafkaLogWriter(options)]);
    const newest = async () => (await writer.lastRecords()).map(({ position }) => position);
    assert.deepEqual(await newest(), []);
    const value = Buffer.from('{}');
    const at = (revision: bigint, partition: number) => ({ ...record({ revision, value }), partition });
    await writer.send([at(3n, 1), at(70n, 2), at(71n, 2), at(9n, 11)]);
    assert.deepEqual(await newest(), [71n, 9n, 3n]);
    assert.deepEqual(await log.reset?.(), [`${options.prefix}posts`]);
    await Promise.all([log.close(), writer.close()]);
    await until('the topic is gone', async () => {
      const again = await openKafkaLogWriter(options);
      try {
        return (await again.lastRecords()).length === 0;
      } finally {
        await again.close();
      }
    });
    const groups = await connect(options);
    const { groups: left } = await groups.admin((admin) => admin.listGroups());
    await groups.close();
    assert.deepEqual(
      left.filter(({ groupId }) => groupId.startsWith(options.prefix)),
      [],
    );
  });

  t('creates topics with up to three replicas, two of them in sync, or as configured', async () => {
    for (const [count, options, factor, minInSync] of [
      [1, {}, 1, 1],
      [2, {}, 2, 1],
      [3, {}, 3, 2],
      [9, {}, 3, 2],
      [9, { replicationFactor: 5 }, 5, 4],
      [3, { replicationFactor: 2, minInSyncReplicas: 2 }, 2, 2],
      [3, { minInSyncReplicas: 3 }, 3, 3],
    ] as const) {
      assert.deepEqual(replicationOf(count, options), { factor, minInSync });
    }
    assert.throws(() => replicationOf(2, { minInSyncReplicas: 3 }), /KAFKA_MIN_INSYNC_REPLICAS is 3, 2 brokers/);
    const options = own();
    await assert.rejects(
      openKafkaLog({ ...options, replicationFactor: 2 }),
      /KAFKA_REPLICATION_FACTOR is 2.* 1 brokers/,
    );
    const connection = await connect(options);
    try {
      // Kafka's numbers, which kafkajs exports as a type alone.
      const topicKind = 2;
      const ofTopic = 1;
      const { resources } = await connection.admin((admin) =>
        admin.describeConfigs({
          includeSynonyms: false,
          resources: [{ type: topicKind, name: connection.topicName('posts') }],
        }),
      );
      const entry = resources[0]?.configEntries.find(({ configName }) => configName === 'min.insync.replicas');
      assert.deepEqual([entry?.configValue, entry?.configSource], ['1', ofTopic], 'said for the topic itself');
    } finally {
      await connection.close();
    }
  });

  t('hands over no record behind a gap until the broker reports its first offset', async () => {
    const options = own();
    const connection = await connect(options);
    const writer = await openKafkaLogWriter(options);
    let silent = false;
    const stop = new AbortController();
    const { promise: go, resolve: release } = Promise.withResolvers<void>();
    const applied: bigint[] = [];
    const overrun: LanePosition[] = [];
    let asked = 0;
    let handling = false;
    let stored: LanePosition = { lane: 'posts-5', nextOffset: null, position: null };
    const bounds: typeof connection.bounds = async (topics) => {
      asked += 1;
      if (silent) throw new LogError('unavailable', 'asked for');
      return connection.bounds(topics);
    };
    const subscription = new KafkaSubscription(
      { ...connection, bounds },
      {
        group: 'jumping',
        topics: ['posts'],
        signal: stop.signal,
        handlers: {
          assigned: async (lanes) =>
            lanes.map((lane) => (lane === stored.lane ? stored : { lane, nextOffset: null, position: null })),
          batch: async ({ records, nextOffset, position }) => {
            handling = true;
            await go;
            applied.push(...records.map(({ revision }) => revision));
            stored = { lane: stored.lane, nextOffset, position };
          },
          outOfRange: async (lanes) => {
            for (const { from, firstOffset } of lanes) {
              overrun.push(from);
              stored = { lane: from.lane, nextOffset: firstOffset, position: from.position };
            }
            return [stored];
          },
        },
      },
    );
    try {
      const ten = (from: number) =>
        Array.from({ length: 10 }, (_, i) => record({ revision: BigInt(from + i), value: Buffer.from('{}') }));
      await writer.send(ten(0));
      await until('the first batch waits in its handler', () => handling);
      await writer.send(ten(10));
      await connection.admin((admin) =>
        admin.deleteTopicRecords({
          topic: connection.topicName('posts'),
          partitions: [{ partition: 5, offset: '20' }],
        }),
      );
      await writer.send(ten(20));
      silent = true;
      const before = asked;
      release();
      await until('it asks what the log has, twice', () => asked > before + 1);
      assert.deepEqual(
        applied.filter((revision) => revision >= 20n),
        [],
        'the store comes first',
      );
      silent = false;
      await until('it goes on', () => applied.includes(29n));
      assert.ok(overrun.length > 0, 'the store was read');
    } finally {
      stop.abort();
      await subscription.done;
      await writer.close();
      await connection.close();
    }
  });

  t('refuses a second send while one is under way', async () => {
    const writer = await openKafkaLogWriter(own());
    const batch = [record({ revision: 0n, value: Buffer.from('1') })];
    const first = writer.send(batch);
    await assert.rejects(writer.send(batch), isLogError('fatal'));
    await first;
    await writer.close();
  });

  t('a send without an acknowledgement fails as unavailable, and its repeat succeeds', async () => {
    const [host = '', port = ''] = brokers[0]?.split(':') ?? [];
    const proxy = await tcpProxy({ host, port: Number(port) });
    const options = own();
    const log = await openKafkaLog(options);
    const writer = await openKafkaLogWriter({ ...options, socketFactory: through(proxy), patienceMs: 500 });
    try {
      const batch = [record({ revision: 0n, value: Buffer.from('1') })];
      await writer.send(batch);
      proxy.cut();
      await assert.rejects(writer.send(batch), isLogError('unavailable'));
      proxy.heal();
      const other = [record({ revision: 1n, value: Buffer.from('2') })];
      await writer.send(other);
      await writer.send(batch);
      assert.equal((await log.ends(['posts'])).find(({ lane }) => lane === 'posts-5')?.nextOffset, 3n);
    } finally {
      await Promise.all([log.close(), writer.close()]);
      await proxy.close();
    }
  });

  t('fails as unavailable when no broker answers', async () => {
    await assert.rejects(openKafkaLog({ ...own(), brokers: ['127.0.0.1:1'] }), isLogError('unavailable'));
  });
});
