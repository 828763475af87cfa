import { randomUUID } from 'node:crypto';
import { within } from '#contracts/base/pause.ts';
import { type Lane, LogError, type LogWriter } from '#contracts/ports/log.ts';
import { type Connection, disconnect, laneOf } from './client.ts';
import { toRecord } from './cloudevents.ts';

/** A join of the group, then one fetch of each broker. */
const deadlineMs = 30_000;

/**
 * The last record of each lane that has one, the newest first. kafkajs reads only as a member of a group, so a group of
 * its own reads them once, and is deleted.
 * @throws LogError `unavailable`; `fatal` for a message that this log did not write
 */
export const lastRecords = async (connection: Connection): Promise<Awaited<ReturnType<LogWriter['lastRecords']>>> => {
  const bounds = await connection.bounds(connection.topics);
  const last = new Map<Lane, bigint>(
    [...bounds].flatMap(([lane, { first, end }]) => (end > first ? [[lane, end]] : [])),
  );
  if (last.size === 0) return [];
  const groupId = connection.topicName(`newest-${randomUUID()}`);
  const consumer = connection.kafka.consumer({
    groupId,
    allowAutoTopicCreation: false,
    maxWaitTimeInMs: 100,
    retry: { retries: 5, restartOnFailure: async () => false },
  });
  const found = new Map<Lane, ReturnType<typeof toRecord>>();
  const { promise: all, resolve, reject } = Promise.withResolvers<void>();
  all.catch(() => undefined);
  consumer.on('consumer.crash', ({ payload }) => reject(payload.error));
  const read = async (): Promise<void> => {
    await consumer.connect();
    await consumer.subscribe({ topics: connection.topics.map(connection.topicName), fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async ({ batch }) => {
        const topic = connection.topicOf(batch.topic);
        const message = batch.messages.at(-1);
        if (message === undefined) return;
        const lane = laneOf(topic, batch.partition);
        found.set(lane, toRecord(topic, batch.partition, message));
        if (BigInt(message.offset) + 1n >= (last.get(lane) ?? 0n)) last.delete(lane);
        if (last.size === 0) resolve();
      },
    });
    for (const [lane, end] of last) {
      const dash = lane.lastIndexOf('-');
      const at = { topic: connection.topicName(lane.slice(0, dash)), partition: Number(lane.slice(dash + 1)) };
      consumer.seek({ ...at, offset: String(end - 1n) });
    }
    await all;
  };
  try {
    await within(deadlineMs, read());
    return [...found.values()]
      .map(({ position, id, time }) => ({ position, id, time }))
      .sort((a, b) => (a.position > b.position ? -1 : 1));
  } catch (cause) {
    if (cause instanceof LogError) throw cause;
    throw new LogError('unavailable', 'the log does not give its newest records', { cause });
  } finally {
    await disconnect(consumer);
    await connection.admin((admin) => admin.deleteGroups([groupId])).catch(() => undefined);
  }
};
