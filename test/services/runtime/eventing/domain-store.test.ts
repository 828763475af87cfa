import { deepEqual, equal, match, notEqual, ok, rejects, throws } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventStoreError } from '#contracts/ports/event-store.ts';
import { client } from '#domain/client.ts';
import { causedIdOf } from '#domain/ids.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import {
  asFacts,
  DomainStore,
  type Positions,
  partitionKeyOf,
  Unavailable,
  uuidv7,
} from '#runtime/eventing/domain-store.ts';
import { uuidPattern } from '#schemas/common.ts';
import { defaultPartitions, partitionOf } from '#schemas/topics.ts';
import { commandContext, MemoryDataKeys, openDomain, RecordingEventStore } from '#test/support/domain.ts';
import type { MemoryFault } from '#test/support/event-store/memory.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const created = { type: 'ClientCreated', data: clientFields };
const archived = { type: 'ClientArchived', data: {} };
const conflict = { code: 'wrong_expected_revision' };

/** EventStoreDB does not always know the position of an append it recognises as a repeat. */
class ForgetfulEventStore extends RecordingEventStore {
  override async append(...asked: Parameters<RecordingEventStore['append']>) {
    const result = await super.append(...asked);
    return this.asked.length > 1 ? { ...result, position: null } : result;
  }
}

/** It takes appends and says nothing more, as a server behind a broken network. */
class SilentEventStore extends RecordingEventStore {
  override async append(...asked: Parameters<RecordingEventStore['append']>) {
    await super.append(...asked);
    return new Promise<never>(() => undefined);
  }
}

suite('domain store', (t) => {
  t('loads the folded state of a stream with its revision', async () => {
    const { store, events } = openDomain();
    const id = randomUUID();
    const stream = `client-${id}`;
    deepEqual(await store.load(client, id), { state: client.initial, revision: -1, events: [] });
    const appended = await store.append(stream, -1, [created, archived], commandContext(), stream);
    const loaded = await store.load(client, id);
    equal(loaded.revision, 1);
    equal(loaded.state.status, 'archived');
    deepEqual(
      loaded.events.map(({ position: _position, ...event }) => event),
      appended.map(({ position: _position, ...event }) => event),
    );
    equal(appended.at(-1)?.position, await events.head());
  });

  t('loads a stream as it was at a revision', async () => {
    const { store } = openDomain();
    const id = randomUUID();
    const stream = `client-${id}`;
    await store.append(stream, -1, [created, archived], commandContext(), stream);
    const then = await store.load(client, id, 0);
    equal(then.state.status, 'live');
    equal(then.revision, 0);
    equal((await store.load(client, id, 99)).revision, 1);
  });

  t('writes actor, cause and time into the metadata', async () => {
    const { store } = openDomain();
    const stream = `client-${randomUUID()}`;
    const context = commandContext({ keyHmac: 'k', fingerprint: 'f' });
    const [event] = await store.append(stream, -1, [created], context, stream);
    const { now: occurredAt, correlationId, causationId, ...rest } = context;
    deepEqual(event?.metadata, {
      ...rest,
      occurredAt,
      $correlationId: correlationId,
      $causationId: causationId,
      partitionKey: stream,
      schemaVersion: 1,
    });
    deepEqual((await store.readStream(stream))[0]?.metadata, event?.metadata);
  });

  t('keeps the real time of a decision, and how far the clock that it read was ahead; folds get the sum', async () => {
    const { events, codec } = openDomain();
    const store = new DomainStore(events, codec, defaultPartitions, { aheadOf: async () => 3_600_000 });
    const now = '2026-01-31T08:00:00.000Z';
    const stored = async (over: object) => {
      const stream = `client-${randomUUID()}`;
      const [event] = await store.append(stream, -1, [created], commandContext({ now, ...over }), stream);
      const [{ fact } = {}] = asFacts(event === undefined ? [] : [event]);
      return [event?.metadata.occurredAt, event?.metadata.aheadMs, fact?.occurredAt];
    };
    deepEqual(await stored({}), [now, 3_600_000, '2026-01-31T09:00:00.000Z'], 'a worker goes by real time');
    deepEqual(await stored({ aheadMs: 60_000 }), ['2026-01-31T07:59:00.000Z', 60_000, now]);
    deepEqual(await stored({ aheadMs: 0 }), [now, undefined, now]);
  });

  t('draws ids at random for a caller’s command and derives them from a cause', async () => {
    const { store } = openDomain();
    const append = async (over = {}) => {
      const stream = `client-${randomUUID()}`;
      const events = await store.append(stream, -1, [created, archived], commandContext(over), stream);
      return { stream, ids: events.map(({ id }) => id) };
    };
    const [one, two] = [await append(), await append()];
    equal(new Set([...one.ids, ...two.ids]).size, 4);
    const causeEventId = randomUUID();
    const { stream, ids } = await append({ causeEventId });
    deepEqual(ids, [causedIdOf(causeEventId, stream), causedIdOf(causeEventId, `${stream}#1`)]);
  });

  t('refuses any revision but the head’s, and writes nothing', async () => {
    const { store } = openDomain();
    const stream = `client-${randomUUID()}`;
    const append = (expected: number) => store.append(stream, expected, [archived], commandContext(), stream);
    await rejects(append(0), conflict);
    await append(-1);
    await rejects(append(-1), conflict);
    await rejects(append(1), conflict);
    await append(0);
    equal((await store.readStream(stream)).length, 2);
  });

  t('repeats an append whose answer was lost with the same ids and bytes', async () => {
    const { store, events } = openDomain();
    const stream = `client-${randomUUID()}`;
    const faults: MemoryFault[] = ['unavailable', 'reply_lost', 'unavailable', 'reply_lost'];
    for (const fault of faults) events.failNext(fault);
    const [appended] = await store.append(stream, -1, [created], commandContext(), stream);
    equal(events.asked.length, 5);
    for (const repeat of events.asked) deepEqual(repeat, events.asked[0]);
    const stored = await store.readStream(stream);
    deepEqual(
      stored.map(({ id }) => id),
      [appended?.id],
    );
  });

  t('fails as unavailable while the store does not answer', async () => {
    const { store, events } = openDomain();
    const stream = `client-${randomUUID()}`;
    for (let n = 0; n < 6; n += 1) events.failNext('unavailable');
    await rejects(store.append(stream, -1, [created], commandContext(), stream), (error) => {
      return error instanceof Unavailable && error.cause instanceof EventStoreError;
    });
    equal(events.asked.length, 6);
    await events.close();
    await rejects(store.readStream(stream), (error) => error instanceof Unavailable);
  });

  t('answers a waiting caller in time that the store is unavailable, and later finds the stored event', async () => {
    const events = new SilentEventStore();
    const store = new DomainStore(events, new EventCodec(new MemoryDataKeys()), defaultPartitions);
    const stream = `client-${randomUUID()}`;
    const begun = performance.now();
    // Passed already: what is begun nevertheless gets a moment.
    const context = commandContext({ giveUpAt: begun - 60_000 });
    await rejects(
      store.append(stream, -1, [created], context, stream),
      (error) => error instanceof Unavailable && (error.cause as EventStoreError).code === 'outcome_unknown',
    );
    ok(performance.now() - begun < 3_000);
    equal(events.asked.length, 1);
    equal((await store.readStream(stream)).length, 1);
  });

  t('repeats no append after the deadline of the caller', async () => {
    const { store, events } = openDomain();
    const stream = `client-${randomUUID()}`;
    for (let n = 0; n < 6; n += 1) events.failNext('unavailable');
    const context = commandContext({ giveUpAt: performance.now() });
    await rejects(store.append(stream, -1, [created], context, stream), (error) => error instanceof Unavailable);
    // At 0, 20, 120 and 620 ms; the next would be at 1,620 ms.
    ok(events.asked.length <= 4, String(events.asked.length));
  });

  t('refuses an invalid event before it calls the store', async () => {
    const { store, events } = openDomain();
    const wrong = { type: 'ClientCreated', data: { name: 'Acme' } };
    await rejects(
      store.append('client-1', -1, [created, wrong], commandContext(), 'client-1'),
      /InvalidEvent|ClientCreated/,
    );
    equal(events.asked.length, 0);
  });
});

suite('positions that a call stored', (t) => {
  t('are kept by lane, the highest of each', async () => {
    const { store, events } = openDomain();
    const positions: Positions = new Map();
    const [a, b] = [randomUUID(), randomUUID()];
    const post = (id: string, expected = -1) =>
      store.append(`client-${id}`, expected, [archived], commandContext(), `client-${id}`, positions);
    await post(a);
    await post(b);
    await post(a, 0);
    const lane = (id: string) => `workspace-${partitionOf(`client-${id}`, defaultPartitions)}`;
    equal(positions.get(lane(a)), await events.head());
    equal(positions.size, new Set([lane(a), lane(b)]).size);
  });

  t('do not include a stream without a topic', async () => {
    const { store } = openDomain();
    const positions: Positions = new Map();
    const accepted = { type: 'RequestAccepted', data: { operation: 'o', fingerprint: 'f', decided: null } };
    const stream = `request-${randomUUID()}`;
    await store.append(stream, -1, [accepted], commandContext(), stream, positions);
    equal(positions.size, 0);
  });

  t('are looked up where the store answers a repeat without a position', async () => {
    const events = new ForgetfulEventStore();
    const store = new DomainStore(events, new EventCodec(new MemoryDataKeys()), defaultPartitions);
    const positions: Positions = new Map();
    const stream = `client-${randomUUID()}`;
    events.failNext('reply_lost');
    const [appended] = await store.append(stream, -1, [created], commandContext(), stream, positions);
    const head = await events.head();
    deepEqual([...positions.values()], [head]);
    equal(appended?.position, head);
  });
});

suite('names', (t) => {
  t('the partition key of a target is its post’s, so the target alone does not give it', () => {
    equal(partitionKeyOf('post', 'p'), 'p');
    equal(partitionKeyOf('client', 'c'), 'client-c');
    throws(() => partitionKeyOf('target', 't'), /partitionKey/);
  });

  t('uuidv7 is a version 7 uuid that begins with the time', () => {
    const before = Date.now();
    const id = uuidv7();
    match(id, new RegExp(uuidPattern));
    match(id, /^.{14}7.{4}[89ab]/);
    const at = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
    equal(at >= before && at <= Date.now(), true);
    notEqual(uuidv7(), uuidv7());
  });
});
