/** The log's harness over a real broker of its own. */

import { connect as dial } from 'node:net';
import { type ISocketFactory, Kafka, logLevel } from 'kafkajs';
import type { Fact, LogHarness } from '#contracts/ports/log.suite.ts';
import type { Log, LogRecord, LogWriter } from '#contracts/ports/log.ts';
import { openKafkaLog } from '#infra/kafka/log.ts';
import { openKafkaLogWriter } from '#infra/kafka/writer.ts';
import { topicOf } from '#schemas/events.ts';
import { defaultPartitions, partitionOf } from '#schemas/topics.ts';
import { kafkaBroker } from '#test/support/kafka.ts';
import { type TcpProxy, tcpProxy } from '#test/support/tcp-proxy.ts';

const topics = ['posts', 'media'];
const prefix = 'suite.';
const sessionMs = 2000;
/** First bytes of a request: its length, then the number of its kind; produce is 0. */
const isProduce = (request: Buffer): boolean => request.length >= 6 && request.readInt16BE(4) === 0;

/** All connections of a client through the proxy, whatever address the broker names. */
export const through =
  (proxy: TcpProxy): ISocketFactory =>
  ({ onConnect }) =>
    // kafkajs unrefs a socket again at every try to close it; each adds a listener.
    dial(proxy.port, '127.0.0.1', onConnect).setMaxListeners(0);

export const kafkaHarness = async (
  effectsUrl: string,
): Promise<LogHarness & { readonly brokers: readonly string[] }> => {
  const broker = await kafkaBroker({ private: true });
  if ('skip' in broker) throw new Error(broker.skip);
  const options = { brokers: broker.brokers, topics, prefix, sessionTimeoutMs: sessionMs };
  const [host = '', port = ''] = broker.brokers[0]?.split(':') ?? [];
  const logs: Log[] = [];
  const proxies: TcpProxy[] = [];
  const writers: LogWriter[] = [];
  let position = 1000n;

  const proxied = async (): Promise<TcpProxy> => {
    const proxy = await tcpProxy({ host, port: Number(port) });
    proxies.push(proxy);
    return proxy;
  };
  const writer = await openKafkaLogWriter(options);
  writers.push(writer);
  const lossy = await proxied();
  const lossyWriter = await openKafkaLogWriter({ ...options, socketFactory: through(lossy) });
  writers.push(lossyWriter);

  const recordOf = (fact: Fact): LogRecord => {
    position += 1n + BigInt(Math.floor(Math.random() * 500));
    return {
      ...fact,
      topic: topicOf(fact.stream) ?? '',
      partition: partitionOf(fact.key, defaultPartitions),
      position,
      time: new Date().toISOString(),
    };
  };
  const sendBy = async (by: LogWriter, records: readonly LogRecord[]): Promise<readonly LogRecord[]> => {
    await by.send(records);
    return records;
  };

  return {
    brokers: broker.brokers,
    effectsUrl,
    sessionMs,
    open: async () => {
      const log = await openKafkaLog(options);
      logs.push(log);
      return log;
    },
    openCuttable: async () => {
      const proxy = await proxied();
      const log = await openKafkaLog({ ...options, socketFactory: through(proxy) });
      logs.push(log);
      return { log, cut: proxy.cut };
    },
    write: (facts) => sendBy(writer, facts.map(recordOf)),
    writeLosingAck: async (facts) => {
      const lost = lossy.loseAnswer(isProduce);
      const records = await sendBy(lossyWriter, facts.map(recordOf));
      await lost;
      return records;
    },
    repeat: async (records) => {
      await sendBy(lossyWriter, records);
    },
    truncate: async (names) => {
      const admin = new Kafka({ brokers: [...broker.brokers], logLevel: logLevel.NOTHING }).admin();
      await admin.connect();
      try {
        for (const topic of names.map((name) => prefix + name)) {
          const offsets = await admin.fetchTopicOffsets(topic);
          await admin.deleteTopicRecords({
            topic,
            partitions: offsets.map(({ partition, high }) => ({ partition, offset: high })),
          });
        }
      } finally {
        await admin.disconnect();
      }
    },
    kill9: async () => {
      await broker.kill9();
      await broker.start();
    },
    close: async () => {
      await Promise.allSettled([...logs, ...writers].map((one) => one.close()));
      await Promise.allSettled(proxies.map((proxy) => proxy.close()));
      await broker.stop();
    },
  };
};
