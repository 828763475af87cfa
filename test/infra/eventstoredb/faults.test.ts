/** What the adapter makes of a server, and of a client library, that misbehave. Each case in both append modes. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import db from '@eventstore/db-client';
import { status } from '@grpc/grpc-js';
import {
  EventStoreError,
  type EventToAppend,
  type RecordedEvent,
  type SubscriptionItem,
} from '#contracts/ports/event-store.ts';
import { disposeClient, guardedClient } from '#infra/eventstoredb/client.ts';
import { EventStoreDbStore } from '#infra/eventstoredb/event-store.ts';
import { EventStoreDouble } from '#test/support/eventstoredb/double.ts';
import type { AppendFault, ReadFault } from '#test/support/eventstoredb/faults.ts';
import { type DoubleProcess, doubleProcess } from '#test/support/eventstoredb/server-handle.ts';
import { patience } from '#test/support/patience.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const event = (data = '{"text":"hello"}'): EventToAppend => ({
  id: randomUUID(),
  type: 'PostCreated',
  data: Buffer.from(data),
  metadata: Buffer.from('{"workspaceId":"w"}'),
  partitionKey: 'key',
});

const newStream = (): string => `post-${randomUUID()}`;

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'succeeded',
    (error: unknown) => (error instanceof EventStoreError ? error.code : String(error)),
  );

/** The uncaught errors of the work. Without the listeners of this function each of them ends the process. */
const uncaughtIn = async (work: () => Promise<void>): Promise<unknown[]> => {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  process.on('uncaughtException', note);
  process.on('unhandledRejection', note);
  try {
    await work();
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('uncaughtException', note);
    process.off('unhandledRejection', note);
  }
  return uncaught;
};

/** Appends until the outcome is known, as the write side does; a closed store would refuse for ever, without a pause. */
const settle = async (store: EventStoreDbStore, stream: string, list: readonly EventToAppend[]): Promise<bigint> => {
  const deadline = performance.now() + 60_000 * patience;
  for (;;) {
    try {
      return (await store.append(stream, 'none', list)).revision;
    } catch (error) {
      if (!(error instanceof EventStoreError) || !['outcome_unknown', 'unavailable'].includes(error.code)) throw error;
      if (performance.now() > deadline) throw error;
    }
  }
};

for (const mode of ['batch', 'unary'] as const) {
  suite(`EventStoreDB adapter, faults, ${mode}`, (t) => {
    let double: EventStoreDouble;
    let store: EventStoreDbStore;
    const others: EventStoreDbStore[] = [];
    const another = (options: { attemptMs?: number; appendMs?: number } = {}, url = double.url) => {
      const opened = new EventStoreDbStore({ url, ...options });
      others.push(opened);
      return opened;
    };

    t.before(async () => {
      double = await EventStoreDouble.start({ batch: mode === 'batch' });
      store = new EventStoreDbStore({ url: double.url, attemptMs: 300 });
    });
    t.after(async () => {
      await Promise.all([store, ...others].map((opened) => opened.close()));
      await double.stop();
    });

    const faults: readonly AppendFault[] = [
      'drop_reply',
      'cut_after_commit',
      'end_silently',
      'hang',
      'unavailable',
      'aborted',
      'cancelled',
      'internal',
      'unavailable_after_commit',
      'busy',
      'answer_twice',
    ];
    for (const fault of faults) {
      t(`an append that meets ${fault} is repeated by the adapter and stored once`, async () => {
        const stream = newStream();
        const list = [event(), event()];
        const uncaught = await uncaughtIn(async () => {
          double.faults.appends.push(fault);
          assert.equal((await store.append(stream, 'none', list)).revision, 1n);
          assert.equal((await store.append(stream, 1n, [event()])).revision, 2n);
        });
        assert.deepEqual(uncaught, []);
        assert.equal(double.faults.appends.length, 0);
        assert.equal((await store.read(stream)).length, 3);
      });
    }

    t('after the deadline the outcome is unknown, and a repeat with the same ids learns it', async () => {
      const hasty = another({ attemptMs: 50, appendMs: 100 });
      const stream = newStream();
      const list = [event()];
      await hasty.ping();
      double.faults.appends.push('drop_reply', 'hang', 'hang', 'hang', 'hang', 'hang');
      assert.equal(await codeOf(hasty.append(stream, 'none', list)), 'outcome_unknown');
      double.faults.appends.length = 0;
      assert.equal((await store.append(stream, 'none', list)).revision, 0n);
      assert.equal((await store.read(stream)).length, 1);
    });

    t('an append on a closed connection fails at once with an error that the caller can catch', async () => {
      const appending = (client: db.EventStoreDBClient) =>
        client.appendToStream(newStream(), [db.jsonEvent({ type: 'PostCreated', data: {} })], {
          expectedRevision: db.NO_STREAM as 'no_stream',
        });
      const uncaught = await uncaughtIn(async () => {
        const client = guardedClient(double.url);
        await appending(client);
        await disposeClient(client);
        await assert.rejects(appending(client), /shut down/);
      });
      assert.deepEqual(uncaught, []);
    });

    t('a conflict is reported as a conflict after a failed first try', async () => {
      const stream = newStream();
      await store.append(stream, 'none', [event()]);
      double.faults.appends.push('unavailable');
      assert.equal(await codeOf(store.append(stream, 'none', [event()])), 'wrong_expected_revision');
    });

    t('replies that arrive after the deadline of a try are ignored, and each event is stored once', async () => {
      const hasty = another({ attemptMs: 500, appendMs: 30_000 });
      const list = Array.from({ length: 40 }, newStream);
      const uncaught = await uncaughtIn(async () => {
        double.faults.appendDelayMs = 800;
        const working = list.map((stream) => hasty.append(stream, 'none', [event()]));
        await until('the append is under way', () => double.log.stream(list[0] ?? '').length > 0);
        double.faults.appendDelayMs = 0;
        await Promise.all(working);
      });
      assert.deepEqual(uncaught, []);
      for (const stream of list) assert.equal(double.log.stream(stream).length, 1);
    });

    t('without a server calls fail as unavailable and write nothing; they succeed once it is back', async () => {
      const patient = another({ appendMs: 200 });
      const stream = newStream();
      await double.disconnect();
      const list = [event()];
      assert.equal(await codeOf(patient.append(stream, 'none', list)), 'unavailable');
      assert.equal(await codeOf(patient.read(stream)), 'unavailable');
      assert.equal(await codeOf(patient.ping()), 'unavailable');
      await double.listen();
      assert.equal((await patient.append(stream, 'none', list)).revision, 0n);
      assert.equal((await patient.read(stream)).length, 1);
    });

    t('a first call that fails is repeated', async () => {
      for (const code of [status.UNAVAILABLE, status.INTERNAL, status.DEADLINE_EXCEEDED]) {
        const fresh = another();
        double.faults.features.push(code);
        assert.equal((await fresh.append(newStream(), 'none', [event()])).revision, 0n);
      }
    });

    t('appends in flight over dying connections are stored once each, without an uncaught error', async () => {
      const writer = another({ attemptMs: 2_000 });
      const streams = Array.from({ length: 1_200 }, newStream);
      const uncaught = await uncaughtIn(async () => {
        const queue = [...streams];
        let done = 0;
        const work = async () => {
          for (let stream = queue.pop(); stream !== undefined; stream = queue.pop()) {
            await settle(writer, stream, [event(), event('x'.repeat(2_000))]);
            done++;
          }
        };
        const working = Promise.all(Array.from({ length: 400 }, work));
        for (const share of [0.1, 0.3, 0.5, 0.7, 0.9]) {
          await until('a share is stored', () => done >= streams.length * share);
          double.killConnections();
        }
        await working;
      });
      assert.deepEqual(uncaught, []);
      for (const stream of streams) assert.equal(double.log.stream(stream).length, 2, stream);
    });

    t('when one server fails, appends to another server of the same process succeed', async () => {
      const second = await EventStoreDouble.start({ batch: mode === 'batch' });
      try {
        const there = another({ appendMs: 500 }, second.url);
        const streams = Array.from({ length: 200 }, newStream);
        const uncaught = await uncaughtIn(async () => {
          const here = streams.map((stream) => settle(store, stream, [event()]));
          const away = streams.map((stream) => codeOf(there.append(stream, 'none', [event()])));
          second.killConnections();
          await second.disconnect();
          await Promise.all([...here, ...away]);
        });
        assert.deepEqual(uncaught, []);
        for (const stream of streams) assert.equal(double.log.stream(stream).length, 1);
      } finally {
        await second.stop();
      }
    });

    t('an append that is too large is refused as too large, and the next append succeeds', async () => {
      const small = await EventStoreDouble.start({ batch: mode === 'batch', maxAppendBytes: 1_000 });
      try {
        const there = another({}, small.url);
        assert.equal(await codeOf(there.append(newStream(), 'none', [event('x'.repeat(2_000))])), 'too_large');
        assert.equal((await there.append(newStream(), 'none', [event()])).revision, 0n);
      } finally {
        await small.stop();
      }
    });

    t('close ends pending appends and reads', async () => {
      const closing = another({ attemptMs: 500 });
      await closing.append(newStream(), 'none', [event()]);
      double.faults.appends.push('hang');
      const received = double.received;
      const appending = codeOf(closing.append(newStream(), 'none', [event()]));
      await until('the append is received', () => double.received > received);
      double.faults.reads.push('hang');
      const reading = codeOf(closing.read(newStream()));
      await until('the fault is used up', () => double.faults.reads.length === 0);
      await closing.close();
      assert.equal(await appending, 'outcome_unknown');
      assert.equal(await reading, 'unavailable');
    });
  });
}

suite('EventStoreDB adapter, reading', { waits: true }, (t) => {
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

  t('events with JSON data are marked as JSON for other clients of the store', async () => {
    const stream = newStream();
    await store.append(stream, 'none', [event('{"a":1}'), event('plain')]);
    const bare = db.EventStoreDBClient.connectionString(double.url);
    const seen: unknown[] = [];
    for await (const { event: read } of bare.readStream(stream)) seen.push(read?.isJson ? read.data : 'bytes');
    await bare.dispose();
    assert.deepEqual(seen, [{ a: 1 }, 'bytes']);
  });

  t('a read is repeated after a short failure and fails after a lasting one', async () => {
    const stream = newStream();
    await store.append(stream, 'none', [event()]);
    for (const fault of ['unavailable', 'aborted', 'cancelled'] as const) {
      double.faults.reads.push(fault);
      assert.equal((await store.read(stream)).length, 1);
    }
    double.faults.reads.push('unavailable', 'unavailable', 'unavailable', 'unavailable');
    assert.equal(await codeOf(store.read(stream)), 'unavailable');
    double.faults.reads.push('access_denied');
    assert.equal(await codeOf(store.read(stream)), 'access_denied');
  });

  t('a subscription continues after every kind of failure, and neither skips nor repeats an event', async () => {
    const from = await store.head();
    const stopped = new AbortController();
    const seen: string[] = [];
    const stream = newStream();
    const sent: string[] = [];
    const reading = (async () => {
      for await (const item of store.subscribe({ after: from, signal: stopped.signal })) {
        if (item.kind === 'event') seen.push(item.event.id);
      }
    })();
    const append = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const next = event();
        await store.append(stream, sent.length === 0 ? 'none' : BigInt(sent.length - 1), [next]);
        sent.push(next.id);
      }
    };
    await append(5);
    const endings: (() => void)[] = [
      () => double.endSubscriptions(),
      () => double.endSubscriptions('unavailable'),
      () => double.endSubscriptions('aborted'),
      () => double.endSubscriptions('cancelled'),
      () => double.killConnections(),
      () => {
        const faults: ReadFault[] = ['unavailable', 'end_silently', 'aborted', 'cancelled'];
        double.faults.reads.push(...faults);
        double.killConnections();
      },
      () => {
        double.faults.deliverTwice = true;
        double.endSubscriptions();
      },
    ];
    for (const end of endings) {
      await until('all sent so far is seen', () => seen.length === sent.length);
      end();
      await append(20);
      await until('all sent is seen', () => seen.length >= sent.length);
    }
    stopped.abort();
    await reading;
    double.faults.deliverTwice = false;
    assert.deepEqual(seen, sent);
  });

  t('a subscription that is not allowed ends with that error', async () => {
    double.faults.reads.push('access_denied');
    const items: SubscriptionItem[] = [];
    const reading = (async () => {
      const signal = new AbortController().signal;
      for await (const item of store.subscribe({ after: null, signal })) items.push(item);
    })();
    assert.equal(await codeOf(reading), 'access_denied');
    assert.deepEqual(items, []);
  });

  for (const release of ['23.10', '24.10'] as const) {
    t(`a position that starts no record ends reads and subscriptions as that, ${release}`, async () => {
      const server = await EventStoreDouble.start({ release });
      const there = new EventStoreDbStore({ url: server.url });
      try {
        const { position } = await there.append(newStream(), 'none', [event()]);
        assert.ok(position !== null);
        const follow = async (after: bigint, count: number): Promise<string[]> => {
          const seen: string[] = [];
          for await (const item of there.subscribe({ after, signal: AbortSignal.timeout(20_000) })) {
            if (item.kind === 'event') seen.push(item.event.id);
            if (seen.length === count) break;
          }
          return seen;
        };
        assert.equal(await codeOf(follow(position + 1n, 1)), 'invalid_position');
        assert.equal(await codeOf(there.readAll({ after: position + 1n, limit: 1 })), 'invalid_position');
        // The same words for another reason: the position is asked for, and found to be one.
        const next = event();
        await there.append(newStream(), 'none', [next]);
        server.faults.reads.push('handler', 'handler');
        assert.deepEqual(await follow(position, 1), [next.id]);
        assert.equal(server.faults.reads.length, 0);
      } finally {
        await there.close();
        await server.stop();
      }
    });
  }

  t('reads go to the leader, also where the URL names a follower', async () => {
    const follower = await EventStoreDouble.start({ leader: double.port });
    const there = new EventStoreDbStore({ url: follower.url });
    try {
      const stream = newStream();
      const list = [event(), event()];
      const { position } = await store.append(stream, 'none', list);
      assert.ok(position !== null);
      assert.equal((await there.read(stream)).length, 2);
      assert.equal(await there.head(), position);
      assert.equal((await there.readAll({ from: position, limit: 1 }))[0]?.id, list[1]?.id);
    } finally {
      await there.close();
      await follower.stop();
    }
  });

  t('an ended subscription ends at the server too', async () => {
    for await (const item of store.subscribe({ after: null, signal: new AbortController().signal })) {
      if (item.kind === 'caughtUp') break;
    }
    await until('no subscription is open', () => double.subscriptions === 0);
  });
});

suite('EventStoreDB double as a process', (t) => {
  let folder: string;
  let server: DoubleProcess;
  let store: EventStoreDbStore;
  t.before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'events-'));
    server = await doubleProcess({ data: join(folder, 'journal') });
    store = new EventStoreDbStore({ url: server.url });
  });
  t.after(async () => {
    await store.close();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  t('after a kill under load the double has every acknowledged event once and in order', async () => {
    const acknowledged = new Map<string, string[]>();
    let count = 0;
    let writing = true;
    const write = async () => {
      while (writing) {
        const stream = newStream();
        const list = [event(), event()];
        await settle(store, stream, list);
        acknowledged.set(
          stream,
          list.map((e) => e.id),
        );
        count++;
      }
    };
    const working = Promise.all(Array.from({ length: 16 }, write));
    let before: readonly RecordedEvent[];
    try {
      before = await store.readAll({ after: null, limit: 10 });
      for (const goal of [200, 400]) {
        await until(`${goal} events are seen`, () => count >= goal);
        await server.kill9();
        await server.start();
      }
      await until('600 events are seen', () => count >= 600);
    } finally {
      writing = false;
      await working;
    }
    for (const [stream, ids] of acknowledged) {
      assert.deepEqual(
        (await store.read(stream)).map((e) => e.id),
        ids,
      );
    }
    const after = await store.readAll({ after: null, limit: 10 });
    assert.deepEqual(after.slice(0, before.length), before);
  });
});
