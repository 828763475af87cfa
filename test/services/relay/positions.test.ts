/** Which positions the relay keeps and goes on from, over the real adapter and a server that answers as the real one. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventStoreDbStore } from '#infra/eventstoredb/event-store.ts';
import { startRelay } from '#services/relay/loop.ts';
import { EventStoreDouble } from '#test/support/eventstoredb/double.ts';
import { MemoryRelayCheckpoint } from '#test/support/memory-relay-checkpoint.ts';
import { RecordingLogWriter } from '#test/support/recording-log-writer.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { eventFor, keepsTheLaw } from './world.ts';

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

  const started = (checkpoint: MemoryRelayCheckpoint, writer: RecordingLogWriter, from = store) => {
    const stopped = new AbortController();
    const { signal } = stopped;
    const relay = startRelay({
      store: from,
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
    until('all events are sent', () => checkpoint.position === double.log.all.at(-1)?.position);

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

  /** Another server that was given what lies in this one, up to an event, and then other events. */
  const restored = async (upTo: number, more: number) => {
    const server = await EventStoreDouble.start();
    for (const { stream, id, type, data, metadata } of double.log.all.slice(0, upTo)) {
      server.log.append(stream, 'none', [{ id, type, data, metadata, partitionKey: '' }]);
    }
    const there = new EventStoreDbStore({ url: server.url });
    for (let i = 0; i < more; i++) {
      const post = randomUUID();
      await there.append(`post-${post}`, 'none', [eventFor(post)]);
    }
    return {
      store: there,
      server,
      close: async () => {
        await there.close();
        await server.stop();
      },
    };
  };

  t(
    'a store with another history is refused: shorter than the position, longer, or with another event there',
    async () => {
      const [checkpoint, writer] = [new MemoryRelayCheckpoint(), new RecordingLogWriter()];
      await append(10);
      const first = started(checkpoint, writer);
      await isSent(checkpoint);
      await first.stop();
      const { last } = checkpoint;
      assert.ok(last !== null && last.eventId !== null);
      const sent = writer.log.records.length;
      const all = double.log.all.length;
      const cases = [
        { ...(await restored(all - 5, 0)), says: /the store ends at position \d+/ },
        { ...(await restored(0, 0)), says: /the store is empty/ },
        // Events of one length: the position of what was lost was given to another one.
        { ...(await restored(all - 5, 8)), says: /the store has event [0-9a-f-]{36} there/ },
      ];
      const odd = await restored(all - 5, 0);
      const [post, other] = [randomUUID(), randomUUID()];
      await odd.store.append(`post-${post}`, 'none', [
        { ...eventFor(post), data: Buffer.from('{"text":"another length"}') },
      ]);
      for (let i = 0; i < 8; i++)
        await odd.store.append(`post-${other}`, i === 0 ? 'none' : BigInt(i - 1), [eventFor(other)]);
      for (const { says, ...one } of [...cases, { ...odd, says: /no event of the store begins there/ }]) {
        const relay = started(checkpoint, writer, one.store);
        await until('the relay stops', () => relay.status().role === 'stopped');
        const { reason } = relay.status();
        assert.match(reason ?? '', says);
        for (const reported of [String(last.position), last.eventId, 'restore the database from a backup']) {
          assert.ok(reason?.includes(reported), `${reason} says ${reported}`);
        }
        await relay.stop();
        await one.close();
      }
      assert.equal(writer.log.records.length, sent);
      assert.equal(checkpoint.last, last);
    },
  );

  t('a store that is restored while the relay runs stops the relay', async () => {
    const [checkpoint, writer] = [new MemoryRelayCheckpoint(), new RecordingLogWriter()];
    const server = await EventStoreDouble.start();
    const there = new EventStoreDbStore({ url: server.url });
    const posts = Array.from({ length: 6 }, () => randomUUID());
    for (const post of posts) await there.append(`post-${post}`, 'none', [eventFor(post)]);
    const relay = started(checkpoint, writer, there);
    await until('all events are sent', () => checkpoint.position === server.log.all.at(-1)?.position);
    const { port } = server;
    const kept = server.log.all.slice(0, 3);
    await server.stop();
    const older = await EventStoreDouble.start({ port });
    for (const { stream, id, type, data, metadata } of kept) {
      older.log.append(stream, 'none', [{ id, type, data, metadata, partitionKey: '' }]);
    }
    await until('the relay stops', () => relay.status().role === 'stopped');
    assert.match(relay.status().reason ?? '', /restored to an earlier day/);
    await relay.stop();
    await there.close();
    await older.stop();
  });
});
