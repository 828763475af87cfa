import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventStoreError, type SubscriptionItem } from '#contracts/ports/event-store.ts';
import { LogError, type LogRecord } from '#contracts/ports/log.ts';
import type { LastEvent } from '#runtime/consuming/same-history.ts';
import { createRegistry, Readiness } from '#runtime/process/telemetry.ts';
import { partitionOf } from '#schemas/topics.ts';
import { watchRelay } from '#services/relay/health.ts';
import { type RelayOptions, startRelay } from '#services/relay/loop.ts';
import { MemoryEventStore } from '#test/support/event-store/memory.ts';
import { MemoryRelayCheckpoint } from '#test/support/memory-relay-checkpoint.ts';
import { RecordedLog, RecordingLogWriter } from '#test/support/recording-log-writer.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { eventFor, fill, keepsTheLaw } from './world.ts';

/** A relay over memory, stopped by `stop`. */
const relayOver = (over: Partial<RelayOptions> & Pick<RelayOptions, 'store' | 'writer' | 'checkpoint'>) => {
  const stopped = new AbortController();
  const relay = startRelay({ holder: randomUUID(), partitions: 12, signal: stopped.signal, leaseMs: 3_000, ...over });
  return {
    ...relay,
    stop: async () => {
      stopped.abort();
      await relay.done;
    },
  };
};

const parts = () => ({
  store: new MemoryEventStore(),
  writer: new RecordingLogWriter(),
  checkpoint: new MemoryRelayCheckpoint(),
});

const isAtEnd = (store: MemoryEventStore, checkpoint: MemoryRelayCheckpoint): boolean =>
  checkpoint.position === store.log.all.at(-1)?.position;
const isSent = (store: MemoryEventStore, checkpoint: MemoryRelayCheckpoint) =>
  until('all events are sent', () => isAtEnd(store, checkpoint));

suite('relay', (t) => {
  t('a log that has more than the store stops the relay before it sends, and the reason names what to do', async () => {
    const { store, writer, checkpoint } = parts();
    await fill(store, 3, 2);
    const before = relayOver({ store, writer, checkpoint });
    await isSent(store, checkpoint);
    await before.stop();
    const newest = (await writer.lastRecords())[0]?.position;
    const sent = writer.log.records.length;
    // The store and the checkpoint of an earlier day; the topics were left.
    const restored = new MemoryEventStore();
    await fill(restored, 1, 1);
    const relay = relayOver({ store: restored, writer, checkpoint: new MemoryRelayCheckpoint() });
    await until('the relay stops', () => relay.status().role === 'stopped');
    const { reason } = relay.status();
    const head = await restored.head();
    for (const said of [`position ${newest}`, `ends at position ${head}`, 'npm run admin -- log reset'])
      assert.ok(reason?.includes(said), `${reason} says ${said}`);
    assert.equal(writer.log.records.length, sent);
    await relay.stop();
  });

  t('a store that ends before what was sent stops a running relay at its next look', async () => {
    const { store, writer, checkpoint } = parts();
    await fill(store, 1, 1);
    let head: bigint | null | undefined;
    const shortened = {
      subscribe: store.subscribe.bind(store),
      readAll: store.readAll.bind(store),
      head: async () => (head === undefined ? store.head() : head),
    };
    const relay = relayOver({ store: shortened, writer, checkpoint, headLookMs: 20 });
    await isSent(store, checkpoint);
    head = null;
    await until('the relay stops', () => relay.status().role === 'stopped');
    assert.match(relay.status().reason ?? '', /the store is empty/);
    await relay.stop();
  });

  t('sends events with a topic as they were stored, and moves its checkpoint over all others', async () => {
    const { store, writer, checkpoint } = parts();
    const post = randomUUID();
    await store.append(`post-${post}`, 'none', [eventFor(post)]);
    await store.append(`target-${randomUUID()}`, 'none', [eventFor(post)]);
    const relay = relayOver({ store, writer, checkpoint });
    await until('a checkpoint is saved', () => checkpoint.position !== null);
    const request = randomUUID();
    const { position } = await store.append(`request-${request}`, 'none', [eventFor(request)]);
    await until('the event is sent', () => checkpoint.position === position);
    assert.deepEqual(relay.status(), { role: 'active', reason: null, position, waiting: 0, trouble: null });
    await relay.stop();
    const [event] = await store.read(`post-${post}`);
    assert.ok(event);
    const partition = partitionOf(post, 12);
    assert.deepEqual(
      writer.log.records.map((record) => [record.topic, record.partition, record.key]),
      [
        ['posts', partition, post],
        ['posts', partition, post],
      ],
    );
    assert.deepEqual(writer.log.records[0], {
      topic: 'posts',
      partition,
      key: post,
      stream: event.stream,
      id: event.id,
      type: event.type,
      revision: 0n,
      position: event.position,
      time: event.created.toISOString(),
      value: event.data,
      metadata: event.metadata,
    });
  });

  t('a new instance continues at the checkpoint', async () => {
    const { store, writer, checkpoint } = parts();
    await fill(store, 5, 4);
    const first = relayOver({ store, writer, checkpoint });
    await isSent(store, checkpoint);
    await first.stop();
    await fill(store, 5, 4);
    const second = relayOver({ store, writer, checkpoint });
    await isSent(store, checkpoint);
    await second.stop();
    keepsTheLaw(store.log.all, writer.log.records);
    assert.equal(new Set(writer.log.records.map((record) => record.id)).size, writer.log.records.length);
  });

  t('sends batches of up to 500, holds few of them, and pauses its reader', async () => {
    const { store, writer, checkpoint } = parts();
    await fill(store, 100, 20);
    let read = 0;
    const counting = {
      head: store.head.bind(store),
      readAll: store.readAll.bind(store),
      async *subscribe(options: { after: bigint | null; signal: AbortSignal }): AsyncGenerator<SubscriptionItem> {
        for await (const item of store.subscribe(options)) {
          read++;
          yield item;
        }
      },
    };
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    writer.beforeSend = () => gate;
    const relay = relayOver({ store: counting, writer, checkpoint });
    await until('2,000 events wait', () => relay.status().waiting >= 2_000);
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(relay.status().waiting <= 2_000);
    assert.ok(read < 3_500, `${read} read of ${store.log.all.length} while one send was under way`);
    assert.equal(checkpoint.position, null);
    release();
    await isSent(store, checkpoint);
    await relay.stop();
    keepsTheLaw(store.log.all, writer.log.records);
    assert.ok(Math.max(...writer.log.sends) === 500);
    assert.ok(writer.log.sends.length <= writer.log.records.length / 400, `${writer.log.sends}`);
  });

  t('the same batch is sent again until the log has it; the checkpoint moves only then', async () => {
    const { store, writer, checkpoint } = parts();
    await fill(store, 3, 2);
    const tried: (readonly LogRecord[])[] = [];
    let failures = 3;
    writer.beforeSend = (records) => {
      tried.push(records);
      assert.equal(checkpoint.position, null);
      if (failures-- > 0) throw new LogError('unavailable', 'away (asked for)');
    };
    const relay = relayOver({ store, writer, checkpoint });
    await until('a checkpoint is saved', () => checkpoint.position !== null);
    await relay.stop();
    assert.equal(tried.length, 4);
    for (const records of tried) assert.equal(records, tried[0]);
    keepsTheLaw(store.log.all, writer.log.records);
  });

  t('readiness and metrics name the dependency that it waits for, until it continues', async () => {
    const { store, writer, checkpoint } = parts();
    await fill(store, 1, 1);
    let isLogAway = true;
    let isStoreAway = true;
    writer.beforeSend = () => {
      if (isLogAway) throw new LogError('unavailable', 'no broker answers');
    };
    const failing = {
      head: store.head.bind(store),
      readAll: store.readAll.bind(store),
      subscribe: (options: { after: bigint | null; signal: AbortSignal }) => {
        if (isStoreAway) throw new EventStoreError('unavailable', 'no store answers');
        return store.subscribe(options);
      },
    };
    const relay = relayOver({ store: failing, writer, checkpoint });
    const [registry, readiness] = [createRegistry('test'), new Readiness()];
    watchRelay({ registry, readiness }, relay);
    const reported = async () => {
      const [check] = await readiness.ask();
      const states = (await registry.metrics()).matchAll(/^relay_state\{state="(\w+)",.*\} 1$/gm);
      return [check?.ok, check?.detail, [...states].map(([, state]) => state).join()];
    };
    await until('the relay says what fails', () => relay.status().trouble !== null);
    assert.match(String((await reported())[1]), /but blocked: no store answers/);
    isStoreAway = false;
    await until('the relay blames the broker', () => relay.status().trouble === 'no broker answers');
    assert.deepEqual(await reported(), [
      false,
      `active at the start, 0 waiting, but blocked: no broker answers`,
      'waiting',
    ]);
    isLogAway = false;
    await isSent(store, checkpoint);
    await until('nothing fails', () => relay.status().trouble === null);
    assert.deepEqual(await reported(), [true, `active at ${checkpoint.position}, 0 waiting`, 'active']);
    await relay.stop();
    keepsTheLaw(store.log.all, writer.log.records);
  });

  t('a subscription that ends at once each time is opened again only after a pause', async () => {
    const { store, writer, checkpoint } = parts();
    let asked = 0;
    const ending = {
      head: store.head.bind(store),
      readAll: store.readAll.bind(store),
      async *subscribe(): AsyncGenerator<SubscriptionItem> {
        asked += 1;
        yield* [];
      },
    };
    const relay = relayOver({ store: ending, writer, checkpoint });
    await until('the store is asked twice', () => asked >= 2);
    for (let turn = 0; turn < 2_000; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(asked < 10, `${asked} times`);
    assert.match(relay.status().trouble ?? '', /ended its subscription/);
    await relay.stop();
  });

  t('large events in flight stay within the limit of bytes', async () => {
    const { store, writer, checkpoint } = parts();
    const key = randomUUID();
    const large = Buffer.alloc(500_000, '7');
    for (let at = 0; at < 160; at += 1) {
      await store.append(`post-${key}`, at === 0 ? 'none' : BigInt(at - 1), [{ ...eventFor(key), data: large }]);
    }
    let read = 0;
    const counting = {
      head: store.head.bind(store),
      readAll: store.readAll.bind(store),
      async *subscribe(options: { after: bigint | null; signal: AbortSignal }): AsyncGenerator<SubscriptionItem> {
        for await (const item of store.subscribe(options)) {
          read++;
          yield item;
        }
      },
    };
    const gate = Promise.withResolvers<void>();
    writer.beforeSend = () => gate.promise;
    const relay = relayOver({ store: counting, writer, checkpoint });
    await until('67 events wait', () => relay.status().waiting >= 67);
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(read <= 140, `${read} of 160 read: one batch and one waiting`);
    gate.resolve();
    await isSent(store, checkpoint);
    await relay.stop();
    keepsTheLaw(store.log.all, writer.log.records);
  });

  t('stops at an event that cannot become a record, and leaves its checkpoint before it', async () => {
    const { store, writer, checkpoint } = parts();
    const good = randomUUID();
    const { position } = await store.append(`post-${good}`, 'none', [eventFor(good)]);
    const relay = relayOver({ store, writer, checkpoint });
    await until('the event is sent', () => checkpoint.position === position);
    await store.append(`post-${randomUUID()}`, 'none', [{ ...eventFor('x'), metadata: Buffer.from('{}') }]);
    await until('the relay stops', () => relay.status().role === 'stopped');
    assert.match(relay.status().reason ?? '', /names no partitionKey/);
    assert.equal(checkpoint.position, position);
    assert.equal(writer.log.records.length, 1);
    await relay.stop();
  });

  t('a lasting error stops it for a pause, longer each time, after which it continues', async () => {
    const { store, writer, checkpoint } = parts();
    await fill(store, 1, 1);
    let refusals = 0;
    writer.beforeSend = () => {
      if (refusals < 3) refusals += 1;
      else return;
      throw new LogError('partition_mismatch', 'asked for');
    };
    const rested: number[] = [];
    const logger = {
      info: () => undefined,
      warn: () => undefined,
      error: (fields: unknown) => void rested.push((fields as { restMs: number }).restMs),
    } as unknown as RelayOptions['logger'];
    const relay = relayOver({
      store,
      writer,
      checkpoint,
      restsMs: [5, 10],
      ...(logger === undefined ? {} : { logger }),
    });
    await isSent(store, checkpoint);
    assert.deepEqual(rested, [5, 10, 10]);
    assert.equal(relay.status().role, 'active');
    assert.equal(relay.status().reason, null);
    await relay.stop();
  });

  t('a host name that does not resolve for a while does not stop it', async () => {
    const { store, writer, checkpoint } = parts();
    await fill(store, 1, 1);
    let blips = 2;
    writer.beforeSend = () => {
      blips -= 1;
      if (blips >= 0) throw Object.assign(new Error('getaddrinfo ENOTFOUND broker'), { code: 'ENOTFOUND' });
    };
    const relay = relayOver({ store, writer, checkpoint, restsMs: [3_600_000] });
    await isSent(store, checkpoint);
    await relay.stop();
  });

  t('of two instances one sends; when it stops the other continues at once', async () => {
    const { store, checkpoint } = parts();
    const log = new RecordedLog();
    const relays = [0, 1].map(() =>
      relayOver({ store, writer: new RecordingLogWriter(log), checkpoint, leaseMs: 300 }),
    );
    await fill(store, 5, 3);
    await isSent(store, checkpoint);
    assert.deepEqual(relays.map((relay) => relay.status().role).sort(), ['active', 'standby']);
    const active = relays.find((relay) => relay.status().role === 'active');
    const other = relays.find((relay) => relay !== active);
    await active?.stop();
    await fill(store, 5, 3);
    await isSent(store, checkpoint);
    await other?.stop();
    keepsTheLaw(store.log.all, log.records);
    assert.equal(new Set(log.records.map((record) => record.id)).size, log.records.length);
    assert.equal(checkpoint.epoch, 2n);
  });

  t('a former holder repeats at most one batch, never moves the checkpoint, and stands by', async () => {
    const { store, checkpoint } = parts();
    const log = new RecordedLog();
    await fill(store, 20, 5);
    const asleep = new RecordingLogWriter(log);
    let wake = () => {};
    let sleeping = false;
    const sleep = new Promise<void>((resolve) => {
      wake = resolve;
    });
    asleep.beforeSend = async () => {
      sleeping = true;
      await sleep;
    };
    // Its renewals get lost too, as those of a process that is stopped.
    const deaf = {
      acquire: checkpoint.acquire.bind(checkpoint),
      save: checkpoint.save.bind(checkpoint),
      release: checkpoint.release.bind(checkpoint),
      renew: async (epoch: bigint) => epoch === checkpoint.epoch,
    };
    const zombie = relayOver({ store, writer: asleep, checkpoint: deaf, leaseMs: 200, maxBatch: 50 });
    await until('the zombie sleeps', () => sleeping);
    const heir = relayOver({ store, writer: new RecordingLogWriter(log), checkpoint, leaseMs: 200 });
    await until('the heir has sent all', () => checkpoint.epoch === 2n && isAtEnd(store, checkpoint));
    const at = checkpoint.position;
    wake();
    await until('the zombie stands by', () => zombie.status().role === 'standby');
    assert.equal(checkpoint.position, at);
    assert.equal(heir.status().role, 'active');
    await fill(store, 20, 1);
    await isSent(store, checkpoint);
    await Promise.all([zombie.stop(), heir.stop()]);
    keepsTheLaw(store.log.all, log.records);
    const repeats = log.records.length - new Set(log.records.map((record) => record.id)).size;
    assert.ok(repeats <= 50, `${repeats} records twice`);
  });

  t('when its lease cannot be renewed it stops sending by its own clock', async () => {
    const { store, writer, checkpoint } = parts();
    let given = 0;
    const away = {
      acquire: async (holder: string, ttlMs: number) => (given++ === 0 ? checkpoint.acquire(holder, ttlMs) : null),
      renew: async (): Promise<boolean> => {
        throw new Error('the database is away (asked for)');
      },
      save: async (): Promise<boolean> => {
        throw new Error('the database is away (asked for)');
      },
      release: async () => {},
    };
    const relay = relayOver({ store, writer, checkpoint: away, leaseMs: 150 });
    await until('the relay is active', () => relay.status().role === 'active');
    await until('the lease is asked for again', () => given > 1);
    assert.equal(relay.status().role, 'standby');
    await relay.stop();
  });

  t('killed at random it loses no event and keeps the order of every key', async () => {
    const random = seeded('relay kills');
    const { store, checkpoint } = parts();
    const log = new RecordedLog();
    for (let death = 0; death < 60; death++) {
      await fill(store, random.int(1, 8), random.int(1, 4));
      checkpoint.expire();
      const killed = new AbortController();
      let steps = random.int(1, 12);
      // Dead is dead: no call comes back, and none has an effect any more.
      const step = async (): Promise<void> => {
        if (--steps <= 0) killed.abort();
        if (killed.signal.aborted) await new Promise(() => {});
      };
      const writer = {
        lastRecords: async () => [],
        send: async (records: readonly LogRecord[]) => {
          await step();
          // Dies with nothing, a part or all of the batch in the log.
          const torn = --steps <= 0;
          log.records.push(...(torn ? records.slice(0, random.int(0, records.length)) : records));
          if (torn) killed.abort();
          await step();
        },
      };
      const mortal = {
        acquire: async (holder: string, ttlMs: number) => {
          await step();
          return checkpoint.acquire(holder, ttlMs);
        },
        renew: checkpoint.renew.bind(checkpoint),
        save: async (last: LastEvent, epoch: bigint) => {
          await step();
          const saved = await checkpoint.save(last, epoch);
          await step();
          return saved;
        },
        release: async () => step(),
      };
      const relay = startRelay({
        store,
        writer,
        checkpoint: mortal,
        holder: `life ${death}`,
        partitions: 12,
        signal: killed.signal,
        maxBatch: random.pick([1, 3, 10, 500]),
        lingerMs: random.pick([0, 1, 10]),
      });
      relay.done.catch((error: unknown) => assert.fail(String(error)));
      const head = store.log.all.at(-1)?.position;
      await until('it dies or has sent all', () => killed.signal.aborted || checkpoint.position === head);
      killed.abort();
    }
    checkpoint.expire();
    const last = relayOver({ store, writer: new RecordingLogWriter(log), checkpoint });
    await isSent(store, checkpoint);
    await last.stop();
    keepsTheLaw(store.log.all, log.records);
  });
});
