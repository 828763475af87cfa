/** Where a workspace's events lie in a store without an index of its own: how much is read of it, and when it is believed. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { EventStore, EventToAppend, RecordedEvent } from '#contracts/ports/event-store.ts';
import { fillIndex, readPlacedWorkspace } from '#infra/eventstoredb/workspace-index.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { WorkspacePositions } from '#infra/postgres/workspace-positions.ts';
import { MemoryEventStore } from '#test/support/event-store/memory.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const eventOf = (workspaceId: string): EventToAppend => {
  const id = randomUUID();
  const metadata = Buffer.from(JSON.stringify({ workspaceId, partitionKey: id }));
  return { id, type: 'PostCreated', data: Buffer.from('{}'), metadata, partitionKey: id, workspaceId };
};
const eventsOf = (workspaceId: string, count: number) => Array.from({ length: count }, () => eventOf(workspaceId));
const ids = (events: readonly { readonly id: string }[]): string[] => events.map(({ id }) => id);

/** A store that counts what it is asked for, and what it gives. */
const counting = (store: EventStore) => {
  const counts = { reads: 0, events: 0 };
  const counted = async (page: Promise<readonly RecordedEvent[]>) => {
    const events = await page;
    counts.reads += 1;
    counts.events += events.length;
    return events;
  };
  const read: EventStore['read'] = (stream, options) => counted(store.read(stream, options));
  const readAll: EventStore['readAll'] = (options) => counted(store.readAll(options));
  return { counts, store: { read, readAll } };
};

suite('EventStoreDB index of workspaces', { timeoutMs: 120_000 }, (t) => {
  let pool: pg.Pool;
  let drop: () => Promise<void>;
  t.before(async () => {
    const database = await preparedDatabase();
    pool = openPool({ url: database.url });
    drop = database.drop;
  });
  t.after(async () => {
    await pool?.end();
    await drop?.();
  });

  /** Empty; those of the test before have stopped. */
  const openPlaces = async () => {
    const places = new WorkspacePositions(pool);
    await places.forget(new AbortController().signal);
    return places;
  };
  const lines: string[] = [];
  const reported = (_: object, message: string): void => void lines.push(message);
  const filling = (store: Pick<EventStore, 'read' | 'readAll'>, places: WorkspacePositions) => {
    const stop = new AbortController();
    const filled = fillIndex(store, places, { signal: stop.signal, logger: { info: reported, warn: reported } });
    return async (): Promise<void> => {
      stop.abort();
      await filled;
    };
  };
  const fillTo = async (store: EventStore, places: WorkspacePositions): Promise<void> => {
    const stop = filling(store, places);
    const head = await store.head();
    await until('the index is filled', async () => (await places.reached())?.position === head);
    await stop();
  };
  const whole = async (
    store: Pick<EventStore, 'read' | 'readAll'>,
    places: WorkspacePositions,
    workspaceId: string,
    limit = 500,
  ) => {
    const found: RecordedEvent[] = [];
    for (let after: bigint | null = null; ; ) {
      const page = await readPlacedWorkspace(store, places, workspaceId, { after, limit });
      found.push(...page.events);
      if (page.isEnd) return found;
      after = page.next;
    }
  };

  t('consecutive events of a stream are one read, and no events of other workspaces are read', async () => {
    const [places, memory] = [await openPlaces(), new MemoryEventStore()];
    const [mine, theirs] = [randomUUID(), randomUUID()];
    const streams = Array.from({ length: 3 }, () => `post-${randomUUID()}`);
    const wanted: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      for (const stream of streams) {
        const list = eventsOf(mine, 4);
        await memory.append(stream, round === 0 ? 'none' : BigInt(round * 4 - 1), list);
        wanted.push(...ids(list));
        await memory.append(`post-${randomUUID()}`, 'none', eventsOf(theirs, 200));
      }
    }
    await fillTo(memory, places);
    const { counts, store } = counting(memory);
    assert.deepEqual(ids(await whole(store, places, mine)), wanted);
    // The three runs, whether the history is the same one (once a call), and that nothing lies behind the index.
    assert.deepEqual(counts, { reads: 3 + 1 + 3, events: 120 + 1 });
    assert.deepEqual(ids(await whole(memory, places, mine, 7)), wanted);
  });

  t('events that a lagging index does not cover are found by scanning all events', async () => {
    const [places, memory] = [await openPlaces(), new MemoryEventStore()];
    const [mine, theirs] = [randomUUID(), randomUUID()];
    const list = eventsOf(mine, 3);
    await memory.append('post-1', 'none', list.slice(0, 1));
    await fillTo(memory, places);
    for (let i = 0; i < 5; i++) await memory.append(`post-${i + 2}`, 'none', eventsOf(theirs, 1_000));
    await memory.append('post-1', 0n, list.slice(1));
    for (const limit of [1, 2, 500]) assert.deepEqual(ids(await whole(memory, places, mine, limit)), ids(list));
    const head = (await memory.head()) ?? 0n;
    const { events, isEnd } = await readPlacedWorkspace(memory, places, mine, {
      after: null,
      limit: 9,
      until: head - 1n,
    });
    assert.deepEqual({ events: ids(events), isEnd }, { events: ids(list.slice(0, 1)), isEnd: false });
  });

  t('after a restore of the store the index is ignored and filled again', async () => {
    const [places, memory, older] = [await openPlaces(), new MemoryEventStore(), new MemoryEventStore()];
    const [mine, theirs] = [randomUUID(), randomUUID()];
    const shared = eventsOf(mine, 2);
    for (const store of [memory, older]) await store.append('post-1', 'none', shared);
    await memory.append('post-1', 1n, eventsOf(mine, 40));
    await fillTo(memory, places);
    // The same positions, other events; then more than there ever were.
    const later = eventsOf(mine, 1);
    await older.append('post-1', 1n, later);
    const wanted = ids([...shared, ...later]);
    assert.deepEqual(ids(await whole(older, places, mine)), wanted, 'the store ends before');
    await older.append('post-9', 'none', eventsOf(theirs, 60));
    assert.deepEqual(ids(await whole(older, places, mine)), wanted, 'the store has other events there');
    lines.length = 0;
    await fillTo(older, places);
    assert.ok(lines.some((line) => line.includes('another history')));
    const { counts, store } = counting(older);
    assert.deepEqual(ids(await whole(store, places, mine)), wanted);
    assert.ok(counts.events <= 5, `${counts.events} events for three`);
    const { rows } = await pool.query('select count(*)::int as n from ops.workspace_events');
    assert.equal(rows[0].n, 63, 'nothing is left of the other history');
  });

  t('a process that no longer fills the index neither adds to it nor moves its position', async () => {
    const places = await openPlaces();
    const [mine, to] = [randomUUID(), { position: 10n, eventId: randomUUID() }];
    const place = { workspaceId: mine, position: 10n, stream: 'post-1', revision: 0n, bytes: 2 };
    assert.equal(await places.add(null, [place], to), true);
    assert.equal(await places.add(null, [{ ...place, position: 7n }], { ...to, position: 7n }), false);
    assert.deepEqual(await places.reached(), to);
    const found = await places.find(mine, { after: -1n, until: null, limit: 9, bytes: 100 });
    assert.deepEqual(found, {
      reached: to,
      positions: [{ position: 10n, stream: 'post-1', revision: 0n }],
      isCut: false,
    });
  });

  t('an index entry whose event is missing or belongs to another workspace gives no event', async () => {
    const [places, memory] = [await openPlaces(), new MemoryEventStore()];
    const [mine, theirs] = [randomUUID(), randomUUID()];
    await memory.append('post-1', 'none', eventsOf(theirs, 2));
    await memory.append('post-2', 'none', eventsOf(mine, 1));
    const [first, second, third] = await memory.readAll({ after: null, limit: 3 });
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    const wrong = { workspaceId: mine, bytes: 9 };
    await places.add(
      null,
      [
        { ...wrong, position: first.position, stream: 'post-1', revision: 0n },
        { ...wrong, position: second.position, stream: 'post-gone', revision: 4n },
        { ...wrong, position: third.position, stream: 'post-2', revision: 0n },
      ],
      { position: third.position, eventId: third.id },
    );
    assert.deepEqual(ids(await whole(memory, places, mine)), [third.id]);
    assert.deepEqual(ids(await whole(memory, places, mine, 1)), [third.id]);
  });

  t('a read that the server cuts short is continued and leaves out no event', async () => {
    const [places, memory] = [await openPlaces(), new MemoryEventStore()];
    const mine = randomUUID();
    const list = eventsOf(mine, 6);
    await memory.append('post-1', 'none', list.slice(0, 4));
    await fillTo(memory, places);
    await memory.append('post-1', 3n, list.slice(4));
    // Each read gives half of what is there, then all of it, then nothing.
    const asked = new Map<string, number>();
    const cut = (key: string, events: readonly RecordedEvent[]): readonly RecordedEvent[] => {
      const before = asked.get(key) ?? 0;
      asked.set(key, before + 1);
      if (before % 3 === 1) return events;
      return events.slice(0, before % 3 === 0 ? events.length >> 1 : 0);
    };
    const store: Pick<EventStore, 'read' | 'readAll'> = {
      read: async (stream, options) => cut(stream, await memory.read(stream, options)),
      readAll: async (options) => cut(`${options.from} ${options.after}`, await memory.readAll(options)),
    };
    for (let round = 0; round < 3; round += 1) {
      for (const limit of [500, 4, 1]) {
        assert.deepEqual(ids(await whole(store, places, mine, limit)), ids(list), `${limit} a page`);
      }
    }
  });

  t('a page is limited by its bytes, and the next page continues', async () => {
    const [places, memory] = [await openPlaces(), new MemoryEventStore()];
    const mine = randomUUID();
    const list = eventsOf(mine, 20).map((event) => ({ ...event, data: Buffer.alloc(500_000, ' ') }));
    for (const [i, event] of list.entries()) await memory.append('post-1', i === 0 ? 'none' : BigInt(i - 1), [event]);
    await fillTo(memory, places);
    const page = await readPlacedWorkspace(memory, places, mine, { after: null, limit: 500 });
    assert.ok(page.events.length >= 16 && page.events.length < 20, `${page.events.length} events`);
    assert.deepEqual(ids(await whole(memory, places, mine)), ids(list));
  });
});
