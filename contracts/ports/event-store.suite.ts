/**
 * The behaviour of every event store adapter. An adapter's test passes a harness: handles over the same data. The data
 * need not be empty and may be shared (a real server), so every case uses its own streams.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  type EventStore,
  EventStoreError,
  type EventStoreErrorCode,
  type EventToAppend,
  type ExpectedRevision,
  maxAppendBytes,
  type RecordedEvent,
  type SubscriptionItem,
} from './event-store.ts';

export interface Harness {
  /** Another handle on the same data, as another process would hold it. The harness closes the handles it opened. */
  open(): Promise<EventStore>;
  close(): Promise<void>;
  /** The next append commits and its reply is lost. */
  dropReplyAfterCommit?(): Promise<void>;
  /** Cuts every connection to the server; new ones work. */
  killConnections?(): Promise<void>;
  /** Stops the server, and starts it again on the same data and address. */
  restart?(): Promise<void>;
  /** Writes one event into a `$` stream, as the server itself does. */
  systemEvent?(): Promise<void>;
  /**
   * Resolves when the adapter's index of workspaces holds every appended event. The index need not follow by itself.
   */
  index?(): Promise<void>;
  /** Events that subscriptions hold and their consumers have not taken yet, over all handles. */
  buffered?(): number;
}

/** Optional abilities of a harness; a case that needs a missing one is not registered. */
export type Offer = 'dropReplyAfterCommit' | 'killConnections' | 'restart' | 'systemEvent' | 'index' | 'buffered';

/** The methods of the runner's `t` that the suite uses. */
export interface Cases {
  (name: string, run: () => Promise<void>): void;
  before(run: () => Promise<void>): void;
  after(run: () => Promise<void>): void;
}

const deadlineMs = 30_000;
const text = new TextEncoder();

const event = (over: Partial<EventToAppend> = {}): EventToAppend => ({
  id: randomUUID(),
  type: 'PostCreated',
  data: text.encode('{"text":"hello"}'),
  metadata: text.encode('{"workspaceId":"w"}'),
  partitionKey: 'key',
  ...over,
});

const events = (count: number, over: Partial<EventToAppend> = {}): EventToAppend[] =>
  Array.from({ length: count }, () => event(over));

const newStream = (): string => `post-${randomUUID()}`;

const refused = async (work: Promise<unknown>, code: EventStoreErrorCode): Promise<EventStoreError> => {
  const error = await work.then(
    () => assert.fail(`expected ${code}, and it succeeded`),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof EventStoreError, `expected EventStoreError ${code}, got ${error}`);
  assert.equal(error.code, code, error.message);
  return error;
};

const conflicts = async (work: Promise<unknown>, actual: bigint | 'none'): Promise<void> => {
  const error = await refused(work, 'wrong_expected_revision');
  assert.equal(error.actual, actual);
};

const ids = (list: readonly { readonly id: string }[]): string[] => list.map((e) => e.id);

const isAscending = (positions: readonly bigint[]): boolean =>
  positions.every((position, i) => i === 0 || position > (positions[i - 1] ?? 0n));

/** Events of the given streams after a position, read page by page. */
const readAllOf = async (store: EventStore, streams: ReadonlySet<string>, after: bigint | null, page = 500) => {
  const found: RecordedEvent[] = [];
  for (let from = after; ; ) {
    const some = await store.readAll({ after: from, limit: page });
    assert.ok(some.length <= page);
    assert.ok(isAscending(some.map((e) => e.position)));
    const last = some.at(-1);
    if (last === undefined) return found;
    assert.ok(from === null || (some[0]?.position ?? 0n) > from, 'readAll is exclusive');
    found.push(...some.filter((e) => streams.has(e.stream)));
    from = last.position;
  }
};

/** Events of one workspace, page by page. The next page begins where the last one says, and every page advances. */
const workspaceEvents = async (
  store: EventStore,
  workspaceId: string,
  options: { after: bigint | null; limit?: number; until?: bigint },
) => {
  const { limit = 500 } = options;
  const found: RecordedEvent[] = [];
  let pages = 0;
  for (let after = options.after; ; ) {
    const { events, next, isEnd } = await store.readWorkspace(workspaceId, { ...options, limit, after });
    pages += 1;
    assert.ok(events.length <= limit);
    found.push(...events);
    if (isEnd) break;
    assert.ok(next !== null && (after === null || next > after), 'a page that is not the last moves on');
    assert.ok(events.every(({ position }) => position <= next));
    after = next;
  }
  assert.ok(isAscending([options.after ?? -1n, ...found.map((e) => e.position)]));
  return { found, pages };
};

const ofWorkspace = (workspaceId: string): Partial<EventToAppend> => ({
  workspaceId,
  metadata: text.encode(JSON.stringify({ workspaceId, partitionKey: 'key' })),
});

interface Tail {
  readonly items: readonly SubscriptionItem[];
  readonly seen: readonly RecordedEvent[];
  /** Waits until the condition holds; fails after the deadline. */
  until(condition: () => boolean): Promise<void>;
  stop(): Promise<void>;
}

/** Reads a subscription in the background; keeps events of the given streams (of all by default). */
const tail = (
  store: EventStore,
  options: {
    after: bigint | null;
    streams?: { has(stream: string): boolean };
    each?: (item: SubscriptionItem) => Promise<void>;
  },
): Tail => {
  const stopped = new AbortController();
  const items: SubscriptionItem[] = [];
  const seen: RecordedEvent[] = [];
  let failure: unknown;
  let wake = () => {};
  const done = (async () => {
    for await (const item of store.subscribe({ after: options.after, signal: stopped.signal })) {
      if (options.each !== undefined) await options.each(item);
      items.push(item);
      if (item.kind === 'event' && (options.streams?.has(item.event.stream) ?? true)) seen.push(item.event);
      wake();
    }
  })().catch((error: unknown) => {
    failure = error;
    wake();
  });
  return {
    items,
    seen,
    async until(condition) {
      const timer = setTimeout(() => {
        failure ??= new Error(`not reached in ${deadlineMs} ms; saw ${seen.length} events, ${items.length} items`);
        wake();
      }, deadlineMs);
      try {
        while (!condition()) {
          if (failure !== undefined) throw failure;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      } finally {
        clearTimeout(timer);
      }
    },
    async stop() {
      stopped.abort();
      await done;
      if (failure !== undefined) throw failure;
    },
  };
};

/**
 * Repeats an append with an unknown outcome, or without a connection, with the same ids, until the outcome is known.
 */
const appendUntilKnown = async (
  store: EventStore,
  stream: string,
  expected: ExpectedRevision,
  list: readonly EventToAppend[],
) => {
  const until = Date.now() + deadlineMs;
  for (;;) {
    try {
      return await store.append(stream, expected, list);
    } catch (error) {
      const again = error instanceof EventStoreError && ['unavailable', 'outcome_unknown'].includes(error.code);
      if (!again || Date.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
};

/** A tail saw exactly the stored events of these streams, in the same order. */
const sawEverything = async (
  store: EventStore,
  from: bigint | null,
  streams: ReadonlySet<string>,
  seen: readonly RecordedEvent[],
) => {
  const stored = await readAllOf(store, streams, from);
  assert.deepEqual(ids(seen), ids(stored));
  assert.deepEqual(
    seen.map((e) => e.position),
    stored.map((e) => e.position),
  );
};

export const eventStoreSuite = (t: Cases, make: () => Promise<Harness>, offers: readonly Offer[] = []): void => {
  let harness: Harness;
  let store: EventStore;
  let other: EventStore;
  const offered = (offer: Offer): boolean => offers.includes(offer);
  const hook = async (name: Exclude<Offer, 'buffered'>) => {
    const call = harness[name];
    assert.ok(call !== undefined, `the harness offers ${name} and has none`);
    await call.call(harness);
  };

  t.before(async () => {
    harness = await make();
    store = await harness.open();
    other = await harness.open();
  });
  t.after(async () => harness?.close());

  t('answers a ping', async () => store.ping());

  t('appends to a new stream and reads it back', async () => {
    const stream = newStream();
    const before = Date.now();
    const list = events(3);
    const result = await store.append(stream, 'none', list);
    assert.equal(result.revision, 2n);
    const read = await other.read(stream);
    assert.deepEqual(ids(read), ids(list));
    assert.deepEqual(
      read.map((e) => e.revision),
      [0n, 1n, 2n],
    );
    assert.ok(isAscending(read.map((e) => e.position)));
    assert.equal(result.position, read[2]?.position);
    for (const e of read) {
      assert.equal(e.stream, stream);
      assert.equal(e.type, 'PostCreated');
      assert.ok(Math.abs(e.created.getTime() - before) < 60_000);
    }
  });

  t('appends at the exact revision, one after another', async () => {
    const stream = newStream();
    assert.equal((await store.append(stream, 'none', [event()])).revision, 0n);
    assert.equal((await other.append(stream, 0n, events(2))).revision, 2n);
    assert.equal((await store.append(stream, 2n, [event()])).revision, 3n);
    assert.equal((await store.read(stream)).length, 4);
  });

  t('refuses every wrong expectation, returns the head, and writes nothing', async () => {
    const stream = newStream();
    await conflicts(store.append(stream, 0n, [event()]), 'none');
    await conflicts(store.append(stream, 7n, [event()]), 'none');
    assert.deepEqual(await store.read(stream), []);
    const list = events(3);
    await store.append(stream, 'none', list);
    await conflicts(store.append(stream, 'none', [event()]), 2n);
    await conflicts(store.append(stream, 0n, [event()]), 2n);
    await conflicts(store.append(stream, 1n, events(2)), 2n);
    await conflicts(store.append(stream, 3n, [event()]), 2n);
    await conflicts(store.append(stream, 9_007_199_254_740_993n, [event()]), 2n);
    assert.deepEqual(ids(await store.read(stream)), ids(list));
  });

  t('a refused append leaves none of its events anywhere', async () => {
    const from = await store.head();
    const stream = newStream();
    await store.append(stream, 'none', [event()]);
    await conflicts(store.append(stream, 'none', events(20)), 0n);
    assert.equal((await store.read(stream)).length, 1);
    assert.equal((await readAllOf(store, new Set([stream]), from)).length, 1);
  });

  t('a repeat with the same ids and expectation succeeds and changes nothing', async () => {
    const stream = newStream();
    const first = events(2);
    const second = events(3);
    const one = await store.append(stream, 'none', first);
    const two = await store.append(stream, 1n, second);
    // The answer has the append's own revision, never the head's.
    for (const handle of [store, other]) {
      const again = await handle.append(stream, 'none', first);
      assert.equal(again.revision, 1n);
      assert.ok(again.position === null || again.position === one.position);
      const later = await handle.append(stream, 1n, second);
      assert.equal(later.revision, 4n);
      assert.ok(later.position === null || later.position === two.position);
    }
    assert.deepEqual(ids(await store.read(stream)), ids([...first, ...second]));
  });

  t('compares a repeat by id and ignores its bytes', async () => {
    const stream = newStream();
    const first = event();
    await store.append(stream, 'none', [first]);
    const again = await store.append(stream, 'none', [{ ...first, data: text.encode('{"other":1}') }]);
    assert.equal(again.revision, 0n);
    assert.deepEqual((await store.read(stream))[0]?.data.length, first.data.length);
  });

  t('a repeat that is partial, longer, shuffled or elsewhere is a conflict', async () => {
    const stream = newStream();
    const [a, b, c] = events(3) as [EventToAppend, EventToAppend, EventToAppend];
    await store.append(stream, 'none', [a, b]);
    await conflicts(store.append(stream, 'none', [a, b, c]), 1n);
    await conflicts(store.append(stream, 'none', [a, c]), 1n);
    await conflicts(store.append(stream, 'none', [c, b]), 1n);
    await conflicts(store.append(stream, 'none', [b, a]), 1n);
    await conflicts(store.append(stream, 0n, [a]), 1n);
    await conflicts(store.append(stream, 0n, [b, c]), 1n);
    // A repeat of only the first events of an append succeeds too.
    assert.equal((await store.append(stream, 'none', [a])).revision, 0n);
    assert.equal((await store.append(stream, 0n, [b])).revision, 1n);
    // The same id in another stream is another event.
    assert.equal((await store.append(newStream(), 'none', [a])).revision, 0n);
    assert.equal((await store.read(stream)).length, 2);
  });

  t('two writers race for one revision: exactly one wins, the other learns the head', async () => {
    const stream = newStream();
    const rounds = 60;
    const winners: string[] = [];
    for (let round = 0; round < rounds; round++) {
      const expected = round === 0 ? 'none' : BigInt(round - 1);
      const mine = event();
      const theirs = event();
      const outcomes = await Promise.allSettled([
        store.append(stream, expected, [mine]),
        other.append(stream, expected, [theirs]),
      ]);
      const won = outcomes.filter((o) => o.status === 'fulfilled');
      assert.equal(won.length, 1, `round ${round}: ${outcomes.map((o) => o.status)}`);
      const lost = outcomes.find((o) => o.status === 'rejected');
      assert.ok(lost?.reason instanceof EventStoreError);
      assert.equal(lost.reason.code, 'wrong_expected_revision');
      assert.equal(lost.reason.actual, BigInt(round));
      winners.push(outcomes[0].status === 'fulfilled' ? mine.id : theirs.id);
    }
    assert.deepEqual(ids(await store.read(stream)), winners);
  });

  t('many callers race to create one stream, on two handles', async () => {
    const stream = newStream();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? store : other).append(stream, 'none', events(3))),
    );
    assert.equal(outcomes.filter((o) => o.status === 'fulfilled').length, 1);
    assert.equal((await store.read(stream)).length, 3);
  });

  t('the same append sent twice at once is written once, and both succeed', async () => {
    for (let round = 0; round < 10; round++) {
      const stream = newStream();
      const list = events(2);
      const results = await Promise.all([
        store.append(stream, 'none', list),
        store.append(stream, 'none', list),
        other.append(stream, 'none', list),
      ]);
      assert.deepEqual(
        results.map((r) => r.revision),
        [1n, 1n, 1n],
      );
      assert.equal((await store.read(stream)).length, 2);
    }
  });

  t('64 appends at once to different streams', async () => {
    const streams = Array.from({ length: 64 }, newStream);
    const results = await Promise.all(streams.map((s, i) => store.append(s, 'none', events(1 + (i % 3)))));
    assert.deepEqual(
      results.map((r) => r.revision),
      streams.map((_, i) => BigInt(i % 3)),
    );
    assert.equal(new Set(results.map((r) => r.position)).size, 64);
  });

  t('appends of one stream sent at once without waiting are taken in order', async () => {
    const stream = newStream();
    const list = events(30);
    const results = await Promise.allSettled(
      list.map((e, i) => store.append(stream, i === 0 ? 'none' : BigInt(i - 1), [e])),
    );
    // A store may refuse a successor that overtook its predecessor, but never accept one out of place.
    const accepted = list.filter((_, i) => results[i]?.status === 'fulfilled');
    assert.ok(accepted.length >= 1);
    assert.deepEqual(ids(await store.read(stream)), ids(accepted));
    assert.deepEqual(ids(accepted), ids(list.slice(0, accepted.length)));
  });

  t('refuses an empty append, a bad id, type, stream or key, and writes nothing', async () => {
    const stream = newStream();
    await refused(store.append(stream, 'none', []), 'empty_append');
    const bad: Partial<EventToAppend>[] = [
      { id: '' },
      { id: 'not-a-uuid' },
      { id: '00000000-0000-0000-0000-000000000000' },
      { id: randomUUID().toUpperCase().replace(/[0-9]/g, 'A') },
      { type: '' },
      { type: '$metadata' },
      { type: 'a\0b' },
      { type: 'a\ud800b' },
      { partitionKey: '' },
      { partitionKey: 'a\0b' },
    ];
    for (const over of bad) await refused(store.append(stream, 'none', [event(), event(over)]), 'invalid_event');
    const twice = event();
    await refused(store.append(stream, 'none', [twice, twice]), 'invalid_event');
    for (const name of ['', '$all', '$$post-1', 'post-\0', 'post-\udc00', `post-${'x'.repeat(600)}`]) {
      await refused(store.append(name, 'none', [event()]), 'invalid_event');
    }
    await refused(store.append(stream, -1n, [event()]), 'invalid_event');
    assert.deepEqual(await store.read(stream), []);
    assert.equal((await store.append(stream, 'none', [event()])).revision, 0n);
  });

  t('refuses more than 512 KiB and accepts exactly 512 KiB', async () => {
    const stream = newStream();
    const [a, b] = events(2) as [EventToAppend, EventToAppend];
    const rest = maxAppendBytes - a.metadata.length - a.type.length - b.data.length - b.metadata.length - b.type.length;
    const whole = { ...a, data: new Uint8Array(rest).fill(120) };
    await refused(store.append(stream, 'none', [{ ...whole, data: new Uint8Array(rest + 1) }, b]), 'too_large');
    const longType = 'Ü'.repeat(8);
    await refused(store.append(stream, 'none', [{ ...whole, type: longType }, b]), 'too_large');
    assert.deepEqual(await store.read(stream), []);
    await store.append(stream, 'none', [whole, b]);
    assert.equal((await store.read(stream))[0]?.data.length, rest);
  });

  t('returns stored bytes unchanged', async () => {
    const stream = newStream();
    const every = Uint8Array.from({ length: 256 }, (_, i) => i);
    const list = [
      event({ data: every, metadata: every }),
      event({ data: new Uint8Array(0), metadata: new Uint8Array(0) }),
      event({ data: text.encode('{"n":12345678901234567890.10,"nul":"\\u0000","lone":"\\ud800","a":1,"a":2}') }),
      event({ data: text.encode(' {"b":1e400 , "a":-0}\n'), type: 'Ünïcode 👋', partitionKey: 'schlüssel 👋' }),
      event({ data: Buffer.from('a view into a larger buffer').subarray(2, 6) }),
      event({ data: new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d]), metadata: text.encode('\0') }),
      event({ data: new Uint8Array([0xed, 0xa0, 0x80]) }),
    ];
    const sent = list.map((e) => ({ data: Buffer.from(e.data), metadata: Buffer.from(e.metadata), type: e.type }));
    const before = await store.head();
    await store.append(stream, 'none', list);
    const subscribed = tail(store, { after: before, streams: new Set([stream]) });
    await subscribed.until(() => subscribed.seen.length === list.length);
    await subscribed.stop();
    for (const read of [await other.read(stream), await readAllOf(store, new Set([stream]), before), subscribed.seen]) {
      const got = read.map((e) => ({ data: Buffer.from(e.data), metadata: Buffer.from(e.metadata), type: e.type }));
      assert.deepEqual(got, sent);
    }
    // Each in its own answer: the special handling of one must not depend on another.
    for (const [at, one] of list.entries()) {
      const alone = newStream();
      const from = await store.head();
      await store.append(alone, 'none', [{ ...one, id: randomUUID() }]);
      const [read] = await readAllOf(store, new Set([alone]), from);
      assert.deepEqual(Buffer.from(read?.data ?? []), sent[at]?.data);
      assert.deepEqual(Buffer.from(read?.metadata ?? []), sent[at]?.metadata);
    }
  });

  t('reads from a revision, with a limit, and past the end', async () => {
    const stream = newStream();
    const list = events(120);
    await store.append(stream, 'none', list);
    assert.deepEqual(ids(await store.read(stream)), ids(list));
    assert.deepEqual(ids(await store.read(stream, { from: 5n })), ids(list.slice(5)));
    assert.deepEqual(ids(await store.read(stream, { limit: 7 })), ids(list.slice(0, 7)));
    assert.deepEqual(ids(await store.read(stream, { from: 50n, limit: 40 })), ids(list.slice(50, 90)));
    assert.deepEqual(ids(await store.read(stream, { from: 119n, limit: 40 })), ids(list.slice(119)));
    assert.deepEqual(await store.read(stream, { from: 120n }), []);
    assert.deepEqual(await store.read(stream, { from: 9_007_199_254_740_993n }), []);
  });

  t('a stream without events reads as empty', async () => {
    assert.deepEqual(await store.read(newStream()), []);
    assert.deepEqual(await store.read(newStream(), { from: 3n, limit: 2 }), []);
  });

  t('positions and revisions are BigInt everywhere', async () => {
    const stream = newStream();
    const result = await store.append(stream, 'none', [event()]);
    const [read] = await store.read(stream);
    for (const value of [result.revision, result.position, read?.revision, read?.position, await store.head()]) {
      assert.equal(typeof value, 'bigint');
    }
  });

  t('head is at or after the newest event, and nothing follows it', async () => {
    const stream = newStream();
    const { position } = await store.append(stream, 'none', events(2));
    const head = await other.head();
    assert.ok(head !== null && position !== null && head >= position);
    assert.deepEqual(await readAllOf(store, new Set([stream]), head), []);
  });

  t('readAll pages through the total order: any page size gives the same events', async () => {
    const from = await store.head();
    const streams = new Set(Array.from({ length: 5 }, newStream));
    for (const stream of streams) await store.append(stream, 'none', events(4));
    for (const stream of streams) await store.append(stream, 3n, events(3));
    const whole = await readAllOf(store, streams, from, 1_000);
    assert.equal(whole.length, 35);
    for (const page of [1, 2, 7]) assert.deepEqual(ids(await readAllOf(other, streams, from, page)), ids(whole));
    // Events of one append stand together, and each stream's events in its order.
    assert.deepEqual(
      whole.slice(0, 4).map((e) => e.revision),
      [0n, 1n, 2n, 3n],
    );
    assert.deepEqual(
      whole.map((e) => e.stream),
      [...[...streams].flatMap((s) => [s, s, s, s]), ...[...streams].flatMap((s) => [s, s, s])],
    );
    assert.deepEqual(await store.readAll({ after: from, limit: 0 }), []);
  });

  t('reads from a position, inclusive, and the next pages continue after it', async () => {
    const stream = newStream();
    await store.append(stream, 'none', events(7));
    const stored = await store.read(stream);
    const second = stored[1]?.position ?? 0n;
    const readFrom = (from: bigint, limit: number) => other.readAll({ from, limit });
    assert.deepEqual(ids(await readFrom(second, 1)), [stored[1]?.id]);
    assert.deepEqual(ids(await readFrom(second, 3)), ids(stored.slice(1, 4)));
    assert.deepEqual(await readFrom(second, 0), []);
    assert.deepEqual(ids((await readFrom(second, 500)).filter((e) => e.stream === stream)), ids(stored.slice(1)));
    assert.deepEqual(await readFrom(((await store.head()) ?? 0n) + 1_000_000n, 5), []);
  });

  t('refuses a position at which no event starts, every time', async () => {
    const stream = newStream();
    const { position } = await store.append(stream, 'none', [event()]);
    assert.ok(position !== null);
    // Where positions are counted, that of a refused append is skipped; where they are bytes, most numbers are no
    // position.
    await conflicts(store.append(stream, 'none', [event()]), 0n);
    const next = await store.append(newStream(), 'none', [event()]);
    assert.ok(next.position !== null && next.position > position + 1n, 'no position is left out');
    for (let again = 0; again < 2; again++) {
      await refused(store.readAll({ from: position + 1n, limit: 1 }), 'invalid_position');
    }
    assert.equal((await store.readAll({ from: position, limit: 1 })).length, 1);
  });

  t('reads a workspace: its own events in order, with pages of any size, at any state of the index', async () => {
    const from = await store.head();
    const mine = randomUUID();
    const streams = Array.from({ length: 4 }, newStream);
    const round = async (expected: ExpectedRevision) => {
      for (const stream of streams) {
        await store.append(stream, expected, events(3, ofWorkspace(mine)));
        await store.append(newStream(), 'none', events(2, ofWorkspace(randomUUID())));
      }
      await store.append(newStream(), 'none', events(2));
    };
    const isWhole = async () => {
      const all = await readAllOf(store, new Set(streams), from);
      for (const limit of [1, 7, 500]) {
        for (const after of [from, all.at(-5)?.position ?? null]) {
          const { found } = await workspaceEvents(other, mine, { after, limit });
          const wanted = all.filter(({ position }) => after === null || position > after);
          assert.deepEqual(found, wanted, `pages of ${limit}`);
        }
      }
    };
    await round('none');
    await isWhole();
    if (offered('index')) await hook('index');
    await isWhole();
    await round(2n);
    await isWhole();
    if (offered('index')) await hook('index');
    await isWhole();
  });

  t('reads a workspace from a position up to a position, both inclusive', async () => {
    const mine = randomUUID();
    const stream = newStream();
    await store.append(stream, 'none', events(6, ofWorkspace(mine)));
    const foreign = await store.append(newStream(), 'none', events(2, ofWorkspace(randomUUID())));
    await store.append(stream, 5n, events(3, ofWorkspace(mine)));
    const stored = await store.read(stream);
    const at = (revision: number): bigint => stored[revision]?.position ?? 0n;
    const bounds = async () => {
      const inclusive = await other.readWorkspace(mine, { from: at(2), limit: 500 });
      const { found: behind } = await workspaceEvents(other, mine, { after: inclusive.next });
      assert.deepEqual(ids([...inclusive.events, ...(inclusive.isEnd ? [] : behind)]), ids(stored.slice(2)));
      const upTo = async (until: bigint, limit = 500) =>
        ids((await workspaceEvents(other, mine, { after: at(1), until, limit })).found);
      assert.deepEqual(await upTo(at(4)), ids(stored.slice(2, 5)));
      assert.deepEqual(await upTo(at(4), 1), ids(stored.slice(2, 5)));
      assert.deepEqual(await upTo(foreign.position ?? 0n), ids(stored.slice(2, 6)));
      assert.deepEqual(await upTo(at(0)), []);
      assert.deepEqual(await upTo(at(8) + 1_000_000n), ids(stored.slice(2)));
      const beyond = await other.readWorkspace(mine, { after: at(8), limit: 500 });
      assert.deepEqual({ events: beyond.events, isEnd: beyond.isEnd }, { events: [], isEnd: true });
    };
    await bounds();
    if (offered('index')) await hook('index');
    await bounds();
  });

  t(
    'reads a workspace: passes other workspaces’ events in bounded pages, and with an index reads none of them',
    async () => {
      const from = await store.head();
      const mine = randomUUID();
      const list = events(3, ofWorkspace(mine));
      const theirs = ofWorkspace(randomUUID());
      for (let i = 0; i < 5; i++) await store.append(newStream(), 'none', events(450, theirs));
      await store.append(newStream(), 'none', list);
      assert.deepEqual(ids((await workspaceEvents(store, mine, { after: from })).found), ids(list));
      assert.deepEqual((await workspaceEvents(store, randomUUID(), { after: from })).found, []);
      if (!offered('index')) return;
      await hook('index');
      const { found, pages } = await workspaceEvents(store, mine, { after: from });
      assert.deepEqual(ids(found), ids(list));
      assert.ok(pages <= 2, `${pages} pages for three events`);
    },
  );

  t('reads a workspace by its metadata, and refuses an event whose metadata name another one', async () => {
    const from = await store.head();
    const [mine, theirs] = [randomUUID(), randomUUID()];
    for (const metadata of ['{}', `{"workspaceId":"${theirs}"}`, `{"workspaceId": "${mine}"}`]) {
      const wrong = event({ workspaceId: mine, metadata: text.encode(metadata) });
      await refused(store.append(newStream(), 'none', [wrong]), 'invalid_event');
    }
    const named = [
      text.encode(`{"workspaceId":"${mine}"}`),
      text.encode(`{"partitionKey":"k","workspaceId":"${mine}","schemaVersion":1}`),
    ];
    const unnamed = [
      new Uint8Array(0),
      new Uint8Array([0, 255, 0, 128]),
      text.encode('{"workspaceId":"'),
      text.encode(`{"workspaceId":"${mine.slice(1)}"}`),
      text.encode(`{"workspaceId":"${mine.toUpperCase().replace(/^./, 'A')}"}`),
      text.encode(`{"workspaceId":"${mine}x"}`),
      text.encode(`{"note":"\\"workspaceId\\":\\"${mine}"}`),
    ];
    const stream = newStream();
    const list = [...named, ...unnamed].map((metadata) => event({ metadata }));
    await store.append(stream, 'none', list);
    for (const state of ['before', 'behind'] as const) {
      if (state === 'behind' && offered('index')) await hook('index');
      const { found } = await workspaceEvents(store, mine, { after: from });
      assert.deepEqual(ids(found), ids(list.slice(0, named.length)), `${state} the index`);
    }
  });

  t('a subscription loses no event, whether they fill whole pages of the server or parts', async () => {
    for (const backlog of [32, 33, 64]) {
      const from = await store.head();
      const stream = newStream();
      await store.append(stream, 'none', events(backlog));
      const subscribed = tail(other, { after: from, streams: new Set([stream]) });
      await subscribed.until(() => subscribed.items.some((item) => item.kind === 'caughtUp'));
      for (let i = 0; i < 3; i++) await store.append(stream, BigInt(backlog - 1 + i), [event()]);
      await store.append(stream, BigInt(backlog + 2), [event({ type: 'PostDeleted' })]);
      await subscribed.until(() => subscribed.seen.some((e) => e.type === 'PostDeleted'));
      await subscribed.stop();
      assert.deepEqual(ids(subscribed.seen), ids(await store.read(stream)), `${backlog} found`);
    }
  });

  t(
    'a subscription after a position beyond the end is caught up, and leaves out events up to that position',
    async () => {
      const after = ((await store.head()) ?? 0n) + 300n;
      const stream = newStream();
      const subscribed = tail(other, { after, streams: new Set([stream]) });
      await subscribed.until(() => subscribed.items.some((item) => item.kind === 'caughtUp'));
      await store.append(stream, 'none', events(310));
      const stored = await store.read(stream);
      await subscribed.until(() => subscribed.seen.at(-1)?.id === stored.at(-1)?.id);
      await subscribed.stop();
      assert.deepEqual(ids(subscribed.seen), ids(stored.filter((e) => e.position > after)));
      assert.ok(subscribed.seen.length < stored.length);
    },
  );

  t('the total order is the order of commits: an append after an answer comes later', async () => {
    for (let round = 0; round < 20; round++) {
      const one = await (round % 2 ? store : other).append(newStream(), 'none', [event()]);
      const two = await (round % 3 ? store : other).append(newStream(), 'none', [event()]);
      assert.ok(one.position !== null && two.position !== null && two.position > one.position);
    }
  });

  t('a subscription starts after its position, catches up, and goes on', async () => {
    const stream = newStream();
    await store.append(stream, 'none', events(5));
    const stored = await store.read(stream);
    const after = stored[1]?.position ?? null;
    const subscribed = tail(other, { after, streams: new Set([stream]) });
    await subscribed.until(() => subscribed.items.some((item) => item.kind === 'caughtUp'));
    assert.deepEqual(ids(subscribed.seen), ids(stored.slice(2)));
    await store.append(stream, 4n, events(2));
    await subscribed.until(() => subscribed.seen.length === 5);
    await subscribed.stop();
    assert.deepEqual(ids(subscribed.seen), ids((await store.read(stream)).slice(2)));
  });

  t('a subscription from null sees everything from the start', async () => {
    const stream = newStream();
    await store.append(stream, 'none', events(3));
    const [first] = await store.readAll({ after: null, limit: 1 });
    const subscribed = tail(store, { after: null });
    await subscribed.until(() => subscribed.items.some((item) => item.kind === 'caughtUp'));
    await subscribed.stop();
    assert.equal(subscribed.seen[0]?.id, first?.id);
    assert.equal(subscribed.seen.filter((e) => e.stream === stream).length, 3);
    assert.ok(isAscending(subscribed.seen.map((e) => e.position)));
  });

  t('a subscription at the head is caught up at once', async () => {
    const subscribed = tail(store, { after: await store.head() });
    await subscribed.until(() => subscribed.items.some((item) => item.kind === 'caughtUp'));
    await subscribed.stop();
    assert.equal(subscribed.seen.length, 0);
  });

  t('positions of a subscription ascend, also between events of the store itself', async () => {
    const from = await store.head();
    const subscribed = tail(store, { after: from });
    for (let i = 0; i < 40; i++) {
      await other.append(newStream(), 'none', events(3));
      if (offered('systemEvent')) await hook('systemEvent');
    }
    await subscribed.until(() => subscribed.seen.length >= 120);
    await subscribed.stop();
    assert.ok(isAscending([from ?? -1n, ...subscribed.seen.map((e) => e.position)]));
  });

  // Only where the server keeps its own streams; elsewhere no `$` stream can exist.
  if (offered('systemEvent')) {
    t('leaves out streams of the store itself', async () => {
      const stream = newStream();
      const from = await store.head();
      const subscribed = tail(store, { after: from });
      await hook('systemEvent');
      await store.append(stream, 'none', [event()]);
      await hook('systemEvent');
      await store.append(stream, 0n, [event()]);
      await subscribed.until(() => subscribed.seen.filter((e) => e.stream === stream).length === 2);
      await subscribed.stop();
      const read = await store.readAll({ after: from, limit: 100 });
      for (const e of [...subscribed.seen, ...read]) assert.ok(!e.stream.startsWith('$'), e.stream);
      assert.equal(read.filter((e) => e.stream === stream).length, 2);
    });
  }

  t('a tail beside several writers skips nothing and keeps the order', async () => {
    const from = await store.head();
    const third = await harness.open();
    const streams = new Set<string>();
    const tails = [tail(store, { after: from, streams }), tail(other, { after: from, streams })];
    const write = async (handle: EventStore, count: number) => {
      for (let i = 0; i < count; i++) {
        const stream = newStream();
        streams.add(stream);
        await handle.append(stream, 'none', events(1 + (i % 4)));
        await handle.append(stream, BigInt(i % 4), [event()]);
      }
    };
    const writers = [store, other, third].flatMap((handle) => Array.from({ length: 8 }, () => write(handle, 12)));
    await Promise.all(writers);
    const stored = await readAllOf(store, streams, from);
    for (const subscribed of tails) {
      await subscribed.until(() => subscribed.seen.length >= stored.length);
      await subscribed.stop();
      await sawEverything(store, from, streams, subscribed.seen);
      assert.ok(isAscending(subscribed.seen.map((e) => e.position)));
    }
    const heads = new Map<string, bigint>();
    for (const e of stored) {
      assert.equal(e.revision, (heads.get(e.stream) ?? -1n) + 1n, 'revisions of a stream come in order');
      heads.set(e.stream, e.revision);
    }
  });

  t('a slow subscriber pushes back and misses nothing of 20,000 events', async () => {
    const from = await store.head();
    const streams = new Set<string>();
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const subscribed = tail(other, { after: from, streams, each: () => gate });
    for (let i = 0; i < 10; i++) {
      const batch = Array.from({ length: 20 }, newStream);
      for (const stream of batch) streams.add(stream);
      await Promise.all(batch.map((stream) => store.append(stream, 'none', events(100))));
      if (offered('buffered')) {
        const held = harness.buffered?.() ?? Number.NaN;
        assert.ok(held <= 5_000, `${held} events wait in memory`);
      }
    }
    release();
    await subscribed.until(() => subscribed.seen.length >= 20_000);
    await subscribed.stop();
    await sawEverything(store, from, streams, subscribed.seen);
  });

  t('an abort ends the subscription cleanly: before, while waiting, and between items', async () => {
    const stream = newStream();
    const from = await store.head();
    await store.append(stream, 'none', events(10));
    const already: SubscriptionItem[] = [];
    for await (const item of store.subscribe({ after: from, signal: AbortSignal.abort() })) already.push(item);
    assert.deepEqual(already, []);

    const waiting = tail(store, { after: from });
    await waiting.until(() => waiting.items.some((item) => item.kind === 'caughtUp'));
    await waiting.stop();

    const between = new AbortController();
    let taken = 0;
    for await (const item of store.subscribe({ after: from, signal: between.signal })) {
      if (item.kind === 'event' && ++taken === 3) between.abort();
    }
    assert.equal(taken, 3, 'nothing is handed over after the abort');

    for await (const item of store.subscribe({ after: from, signal: new AbortController().signal })) {
      if (item.kind === 'event') break;
    }
  });

  // Only where the reply is separate from the commit.
  if (offered('dropReplyAfterCommit')) {
    t('an append whose reply was lost is repeated with the same ids and stored once', async () => {
      for (let round = 0; round < 3; round++) {
        const stream = newStream();
        const list = events(2);
        await hook('dropReplyAfterCommit');
        // An adapter may repeat by itself; if it rejects, the error must be `outcome_unknown`.
        await store.append(stream, 'none', list).catch((error: unknown) => {
          assert.ok(error instanceof EventStoreError);
          assert.equal(error.code, 'outcome_unknown', error.message);
        });
        const again = await appendUntilKnown(store, stream, 'none', list);
        assert.equal(again.revision, 1n);
        assert.deepEqual(ids(await store.read(stream)), ids(list));
      }
    });
  }

  // Only where there are connections to lose.
  if (offered('killConnections')) {
    t('lost connections lose no event, and a subscriber skips and reorders none', async () => {
      const from = await store.head();
      const streams = new Set<string>();
      const subscribed = tail(other, { after: from, streams });
      const accepted: string[] = [];
      const write = async (handle: EventStore, count: number) => {
        for (let i = 0; i < count; i++) {
          const stream = newStream();
          streams.add(stream);
          const list = events(2);
          await appendUntilKnown(handle, stream, 'none', list);
          accepted.push(...ids(list));
        }
      };
      const writing = Promise.all([write(store, 60), write(store, 60), write(other, 60), write(other, 60)]);
      for (const share of [0.2, 0.5, 0.8]) {
        await subscribed.until(() => subscribed.seen.length >= 480 * share);
        await hook('killConnections');
      }
      await writing;
      await subscribed.until(() => subscribed.seen.length >= 480);
      await subscribed.stop();
      assert.deepEqual(ids(subscribed.seen).sort(), accepted.sort());
      await sawEverything(store, from, streams, subscribed.seen);
    });
  }

  // Only where there is a server to stop.
  if (offered('restart')) {
    t(
      'a server that restarts keeps what it acknowledged; appends and subscriptions recover by themselves',
      async () => {
        const from = await store.head();
        const streams = new Set([newStream(), newStream()]);
        const [before, during] = [...streams] as [string, string];
        const subscribed = tail(other, { after: from, streams });
        await store.append(before, 'none', events(3));
        await subscribed.until(() => subscribed.seen.length === 3);
        const list = events(2);
        await Promise.all([hook('restart'), appendUntilKnown(store, during, 'none', list)]);
        await appendUntilKnown(store, before, 2n, [event()]);
        await subscribed.until(() => subscribed.seen.length >= 6);
        await subscribed.stop();
        await store.ping();
        assert.equal(subscribed.seen.length, 6);
        await sawEverything(store, from, streams, subscribed.seen);
      },
    );
  }

  t('a closed handle refuses; the others go on', async () => {
    const closing = await harness.open();
    const subscribed = tail(closing, { after: await store.head() });
    await subscribed.until(() => subscribed.items.some((item) => item.kind === 'caughtUp'));
    await subscribed.stop();
    await closing.close();
    await closing.close();
    await refused(closing.append(newStream(), 'none', [event()]), 'unavailable');
    await refused(closing.ping(), 'unavailable');
    await refused(closing.readWorkspace(randomUUID(), { after: null, limit: 1 }), 'unavailable');
    await store.append(newStream(), 'none', [event()]);
  });
};
