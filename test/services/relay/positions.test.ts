/** Which positions the relay keeps and goes on from, over the real adapter and a server that answers as the real one. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventStoreDbStore } from '#infra/eventstoredb/event-store.ts';
import { startRelay } from '#services/relay/loop.ts';
import { EventStoreDouble } from '#test/support/eventstoredb/double.ts';
import { MemoryRelayCheckpoint } from '#test/support/memory-relay-checkpoint.ts';
import { RecordingLogWriter } from '#test/support/recording-log-writer.ts';
import { suite } from '#test/support/suite.ts';
import { eventFor, keepsTheLaw, until } from './world.ts';

suite('relay, positions of EventStoreDB', (t) => {
  let double: EventStoreDouble;
  let store: EventStoreDbStore;
  t.before(async () => {
    double = await EventStoreDouble.start();
    store = new EventStoreDbStore({ url: double.url });
  });
  t.after(async () => {
    await store.close();
    await double.stop();
  });

  const started = (checkpoint: MemoryRelayCheckpoint, writer: RecordingLogWriter) => {
    const stopped = new AbortController();
    const { signal } = stopped;
    const relay = startRelay({
      store,
      writer,
      checkpoint,
      holder: randomUUID(),
      partitions: 12,
      signal,
      leaseMs: 3_000,
    });
    return {
      ...relay,
      stop: async () => {
        stopped.abort();
        await relay.done;
      },
    };
  };

  const append = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      const post = randomUUID();
      await store.append(`post-${post}`, 'none', [eventFor(post)]);
    }
  };

  const isSent = (checkpoint: MemoryRelayCheckpoint) =>
    until(() => checkpoint.position === double.log.all.at(-1)?.position);

  t('a backlog of whole pages of the server, then more, then a new instance: the log has every event', async () => {
    const [checkpoint, writer] = [new MemoryRelayCheckpoint(), new RecordingLogWriter()];
    await append(32);
    const first = started(checkpoint, writer);
    await isSent(checkpoint);
    await append(3);
    await isSent(checkpoint);
    await first.stop();
    await append(29);
    const second = started(checkpoint, writer);
    await isSent(checkpoint);
    await second.stop();
    const third = started(checkpoint, writer);
    await append(3);
    await isSent(checkpoint);
    await third.stop();
    keepsTheLaw(double.log.all, writer.log.records);
    assert.equal(writer.log.records.length, double.log.all.length);
  });
});
