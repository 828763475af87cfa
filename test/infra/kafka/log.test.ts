import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { logSuite } from '#contracts/ports/log.suite.ts';
import { LogError, type LogRecord } from '#contracts/ports/log.ts';
import { openKafkaLog } from '#infra/kafka/log.ts';
import { openKafkaLogWriter } from '#infra/kafka/writer.ts';
import { kafkaMissing } from '#test/support/kafka.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { tcpProxy } from '#test/support/tcp-proxy.ts';
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
  logSuite(t, async () => {
    const harness = await kafkaHarness((await testDatabase()).url);
    brokers = harness.brokers;
    return harness;
  }, ['kill9', 'writeLosingAck', 'repeat', 'truncate']);

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

  t('refuses a second send while one is under way', async () => {
    const writer = await openKafkaLogWriter(own());
    const batch = [record({ revision: 0n, value: Buffer.from('1') })];
    const first = writer.send(batch);
    await assert.rejects(writer.send(batch), isLogError('fatal'));
    await first;
    await writer.close();
  });

  t('says unavailable when it is not acknowledged, and takes the batch again', async () => {
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

  t('says unavailable when no broker answers', async () => {
    await assert.rejects(openKafkaLog({ ...own(), brokers: ['127.0.0.1:1'] }), isLogError('unavailable'));
  });
});
