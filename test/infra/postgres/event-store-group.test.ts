/** What only the Postgres store promises: its groups, its deadline, its columns, its tail. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { EventStoreError, type EventToAppend } from '#contracts/ports/event-store.ts';
import { LogError } from '#contracts/ports/log.ts';
import { PostgresEventStore, StreamReader } from '#infra/postgres/event-store.ts';
import { EventTail, readTail } from '#infra/postgres/event-tail.ts';
import type { EventRow } from '#infra/postgres/stored-event.ts';
import { partitionOf } from '#schemas/topics.ts';
import { type PostgresHarness, postgresHarness, runSql } from '#test/support/event-store/postgres.ts';
import { suite } from '#test/support/suite.ts';

const bytes = new TextEncoder().encode('{}');

const event = (over: Partial<EventToAppend> = {}): EventToAppend => {
  const id = randomUUID();
  return { id, type: 'PostCreated', data: bytes, metadata: bytes, partitionKey: id, ...over };
};

const codeOf = (outcome: PromiseSettledResult<unknown>): string =>
  outcome.status === 'fulfilled'
    ? 'ok'
    : outcome.reason instanceof EventStoreError
      ? outcome.reason.code
      : `${outcome.reason}`;

const failsWith = async (work: Promise<unknown>): Promise<string> =>
  codeOf(...((await Promise.allSettled([work])) as [PromiseSettledResult<unknown>]));

suite('postgres event store: groups and tail', (t) => {
  let harness: PostgresHarness;
  let store: PostgresEventStore;

  t.before(async () => {
    harness = await postgresHarness();
    store = await harness.open();
  });
  t.after(() => harness?.close());

  t('a group of appends that fails is halved until only the bad appends are refused', async () => {
    await runSql(
      harness.url,
      `create function refuse() returns trigger language plpgsql as
         $$ begin raise check_violation using message = 'poison'; end $$;
       create trigger refuse before insert on es.event_rows for each row when (new.type = 'Poison') execute function refuse()`,
    );
    const from = await store.head();
    const poisoned = new Set([7, 31, 32]);
    const streams = Array.from({ length: 50 }, () => `post-${randomUUID()}`);
    const outcomes = await Promise.allSettled(
      streams.map((stream, i) => store.append(stream, 'none', [event(poisoned.has(i) ? { type: 'Poison' } : {})])),
    );
    assert.deepEqual(
      outcomes.map(codeOf),
      streams.map((_, i) => (poisoned.has(i) ? 'invalid_event' : 'ok')),
    );
    const stored = await store.readAll({ after: from, limit: 100 });
    assert.deepEqual(
      stored.map((e) => e.stream),
      streams.filter((_, i) => !poisoned.has(i)),
    );
    await runSql(harness.url, 'drop trigger refuse on es.event_rows');
  });

  t('an append that waits too long for the lock times out, and its repeat is stored once', async () => {
    const impatient = await harness.open({ deadlineMs: 400 });
    const holder = new pg.Client({ connectionString: harness.url });
    await holder.connect();
    const stream = `post-${randomUUID()}`;
    const list = [event()];
    try {
      await holder.query(`begin; select pg_advisory_xact_lock(hashtextextended('event store es', 0))`);
      const started = performance.now();
      // The server gave it up: nothing of it can arrive later.
      assert.equal(await failsWith(impatient.append(stream, 'none', list)), 'unavailable');
      assert.ok(performance.now() - started < 5_000);
    } finally {
      await holder.end();
    }
    assert.equal((await store.append(stream, 'none', list)).revision, 0n);
    assert.equal((await impatient.append(stream, 'none', list)).revision, 0n);
    assert.equal((await store.read(stream)).length, 1);
  });

  t('without a connection to the server every call is unavailable; calls succeed once it is back', async () => {
    harness.cut();
    try {
      // The first append may find its session cut under it.
      await failsWith(store.append(`post-${randomUUID()}`, 'none', [event()]));
      assert.equal(await failsWith(store.append(`post-${randomUUID()}`, 'none', [event()])), 'unavailable');
      assert.equal(await failsWith(store.read('post-1')), 'unavailable');
      assert.equal(await failsWith(store.ping()), 'unavailable');
    } finally {
      harness.heal();
    }
    await store.ping();
    await store.append(`post-${randomUUID()}`, 'none', [event()]);
  });

  t('a wrong password is access denied', async () => {
    const wrong = new URL(harness.url);
    wrong.password = 'wrong';
    const pool = new pg.Pool({ connectionString: wrong.href });
    const trusts = await pool.query('select 1').then(
      () => true,
      () => false,
    );
    await pool.end();
    // A server that trusts loopback has no password to be wrong.
    if (!trusts) await assert.rejects(PostgresEventStore.open({ url: wrong.href }));
    wrong.username = 'nobody_by_this_name';
    await assert.rejects(PostgresEventStore.open({ url: wrong.href }));
  });

  t('several processes create the tables once, and another partition count is refused', async () => {
    const schema = 'es_many';
    await Promise.all(Array.from({ length: 5 }, () => harness.open({ schema, partitions: 6 })));
    await assert.rejects(
      PostgresEventStore.open({ url: harness.url, schema, partitions: 12 }),
      (error) => error instanceof LogError && error.code === 'partition_mismatch' && /6 .* 12/.test(error.message),
    );
    await assert.rejects(PostgresEventStore.open({ url: harness.url, schema: 'es; drop' }), /schema name/);
  });

  t('an append stores topic, partition and key; request streams have no topic', async () => {
    const from = await store.head();
    const key = randomUUID();
    await store.append(`target-${randomUUID()}`, 'none', [event({ partitionKey: key })]);
    await store.append(`request-${randomUUID()}`, 'none', [event()]);
    await store.append(`media-${randomUUID()}`, 'none', [event()]);
    const rows = await readTail(store.pool, 'es', { after: from, limit: 10 });
    assert.deepEqual(
      rows.map((row) => row.topic),
      ['posts', null, 'media'],
    );
    assert.equal(rows[0]?.partitionKey, key);
    assert.equal(rows[0]?.partition, partitionOf(key, 12));
    assert.equal(rows[1]?.partition, null);
    const posts = await readTail(store.pool, 'es', { after: from, limit: 10, topics: ['posts'] });
    assert.deepEqual(posts, [rows[0]]);
  });

  t('a page of large events is bounded in bytes', async () => {
    const from = await store.head();
    const large = new Uint8Array(500 * 1024);
    const stream = `post-${randomUUID()}`;
    for (let i = 0; i < 24; i++) await store.append(stream, i === 0 ? 'none' : BigInt(i - 1), [event({ data: large })]);
    let after = from;
    let count = 0;
    for (;;) {
      const page = await readTail(store.pool, 'es', { after, limit: 500 });
      if (page.length === 0) break;
      assert.ok(page.reduce((sum, e) => sum + e.data.length, 0) <= 8 * 1024 * 1024);
      count += page.length;
      after = page.at(-1)?.position ?? null;
    }
    assert.equal(count, 24);
  });

  t('many long streams read at once are complete, with a bounded number of bytes in memory', async () => {
    const append = async (count: number, size: number) => {
      const stream = `post-${randomUUID()}`;
      const events = Array.from({ length: count }, () => event({ data: new Uint8Array(size) }));
      for (const [at, one] of events.entries()) await store.append(stream, at === 0 ? 'none' : BigInt(at - 1), [one]);
      return { stream, ids: events.map(({ id }) => id) };
    };
    const long = await Promise.all(Array.from({ length: 8 }, () => append(8, 450 * 1_024)));
    const short = await Promise.all(Array.from({ length: 30 }, () => append(3, 100)));
    let out = 0;
    const most = { shared: 0, longOut: 0 };
    const pool = Object.assign(Object.create(store.pool), {
      query: async (asked: { values: [string, bigint] }) => {
        const alone = asked.values[1] > 2n ** 60n;
        if (alone) most.longOut = Math.max(most.longOut, ++out);
        const { rows } = await store.pool.query<EventRow>(asked as never as pg.QueryConfig);
        if (alone) out -= 1;
        else
          most.shared = Math.max(
            most.shared,
            rows.reduce((sum: number, row: EventRow) => sum + Buffer.byteLength(row[5], 'base64'), 0),
          );
        return { rows };
      },
    });
    const reader = new StreamReader(pool, 'es', 60_000);
    const asked = [...long, ...short, ...long].map(async ({ stream, ids }) => {
      const events = await reader.read(stream);
      assert.deepEqual(
        events.map((one) => one.id),
        ids,
      );
      assert.deepEqual(
        events.map(({ revision }) => Number(revision)),
        ids.map((_, at) => at),
      );
    });
    assert.deepEqual(await reader.read(`post-${randomUUID()}`), []);
    await Promise.all(asked);
    assert.ok(most.shared < 2.6 * 1_024 * 1_024, `${most.shared} bytes in one statement`);
    assert.equal(most.longOut, 1);
  });

  t('each reader of one tail reads at its own pace, near the end and far behind', async () => {
    const tail = new EventTail({ pool: store.pool, url: harness.url, schema: 'es' });
    const from = await store.head();
    const never = new AbortController();
    const total = 3_000;
    const leave = tail.join(null);
    const reader = async (limit: number) => {
      const seen: string[] = [];
      for (let after = from; seen.length < total; ) {
        const version = tail.version;
        const { events } = await tail.read(after, limit);
        if (events.length === 0) await tail.changed(version, never.signal);
        seen.push(...events.map((e) => e.id));
        after = events.at(-1)?.position ?? after;
      }
      return seen;
    };
    const reading = Promise.all([7, 100, 500].map(reader));
    for (let i = 0; i < total / 50; i++) {
      await Promise.all(
        Array.from({ length: 10 }, () =>
          store.append(
            `post-${randomUUID()}`,
            'none',
            Array.from({ length: 5 }, () => event()),
          ),
        ),
      );
    }
    const stored: string[] = [];
    for (let after = from; stored.length < total; ) {
      const page = await store.readAll({ after, limit: 1_000 });
      stored.push(...page.map((e) => e.id));
      after = page.at(-1)?.position ?? after;
    }
    for (const seen of await reading) assert.deepEqual(seen, stored);
    assert.deepEqual((await reader(500)).slice(0, 10), stored.slice(0, 10));
    assert.ok(tail.cachedEvents <= 2_000);
    leave();
    await tail.close();
  });

  t('readers of some types get each of theirs in order, and the table sends little else', async () => {
    const tail = new EventTail({ pool: store.pool, url: harness.url, schema: 'es' });
    const from = (await store.head()) ?? 0n;
    const types = ['A', 'B', 'C', 'D'];
    const total = 2_400;
    const never = new AbortController();
    let returned = 0;
    const reader = async (wanted: readonly string[], limit: number, after = from) => {
      const leave = tail.join(new Set(wanted));
      const seen: string[] = [];
      for (let reached = after; reached < from + BigInt(total); ) {
        const version = tail.version;
        const { events } = await tail.read(reached, limit);
        if (events.length === 0) await tail.changed(version, never.signal);
        returned += events.length;
        seen.push(...events.filter(({ type }) => wanted.includes(type)).map(({ id }) => id));
        reached = events.at(-1)?.position ?? reached;
      }
      leave();
      return seen;
    };
    const append = (kind: string, count: number) =>
      store.append(
        `${kind}-${randomUUID()}`,
        'none',
        Array.from({ length: count }, (_, at) => event({ type: types[at % types.length] ?? '' })),
      );
    const asked = [['A'], ['B', 'C'], ['C']].map((wanted, at) => ({
      wanted,
      seen: reader(wanted, [3, 100, 500][at] ?? 1),
    }));
    for (let i = 0; i < total / 48; i += 1) await Promise.all([append('post', 36), append('media', 12)]);
    const stored = await store.readAll({ after: from, limit: total });
    const late = { wanted: ['D'], seen: reader(['D'], 500) };
    for (const { wanted, seen } of [...asked, late]) {
      const expected = stored.filter(({ type }) => wanted.includes(type)).map(({ id }) => id);
      assert.deepEqual(await seen, expected, wanted.join());
    }
    returned = 0;
    await reader(['E'], 500);
    assert.ok(returned <= 2 * Math.ceil(total / 500), `${returned} events for a reader that wants none`);
    await tail.close();
  });

  t('a reader that comes while a page is read misses nothing of its own', async () => {
    const tail = new EventTail({ pool: store.pool, url: harness.url, schema: 'es' });
    const from = await store.head();
    await store.append(`post-${randomUUID()}`, 'none', [
      event({ type: 'A' }),
      event({ type: 'B' }),
      event({ type: 'A' }),
    ]);
    const leave = [tail.join(new Set(['A']))];
    const page = tail.read(from, 500);
    leave.push(tail.join(new Set(['B'])));
    await page;
    const refreshed = (await tail.read(from, 500)).events.map(({ type }) => type);
    assert.deepEqual(refreshed, ['A', 'B', 'A']);
    for (const one of leave) one();
    await tail.close();
  });

  t('tables of an earlier build get the append function of this one', async () => {
    await runSql(
      harness.url,
      `drop function es.append_group; delete from es.schema_versions where name = '002-append'`,
    );
    const newer = await PostgresEventStore.open({ url: harness.url });
    try {
      const stream = `post-${randomUUID()}`;
      await newer.append(stream, 'none', [event()]);
      assert.equal((await newer.read(stream)).length, 1);
    } finally {
      await newer.close();
    }
  });

  t('each of several appends with the same metadata reads it back whole', async () => {
    const shared = new TextEncoder().encode(JSON.stringify({ of: 'both' }));
    const other = new TextEncoder().encode('');
    const given = [shared, shared, other, shared].map((metadata) => ({ ...event(), metadata }));
    const streams = given.map(() => `post-${randomUUID()}`);
    await Promise.all(given.map((one, i) => store.append(String(streams[i]), 'none', [one])));
    for (const [i, one] of given.entries()) {
      const [stored] = await store.read(String(streams[i]));
      assert.deepEqual(Buffer.from(stored?.metadata ?? []), Buffer.from(one.metadata));
      assert.deepEqual(Buffer.from(stored?.data ?? []), Buffer.from(one.data));
    }
  });

  // Why positions come from a sequence: a counter row would keep a dead version of itself for every group here.
  t('the table of positions does not grow while a snapshot is open', async () => {
    const size = async () => (await runSql(harness.url, `select pg_table_size('es.positions') as size`))[0]?.size;
    const before = await size();
    const holder = new pg.Client({ connectionString: harness.url });
    await holder.connect();
    try {
      await holder.query('begin isolation level repeatable read; select count(*) from es.events');
      for (let i = 0; i < 300; i++) await store.append(`post-${randomUUID()}`, 'none', [event()]);
      assert.equal(await size(), before);
    } finally {
      await holder.end();
    }
  });

  t("the store does not change pg's global type parsers", () => {
    assert.equal(pg.types.getTypeParser(20)('1'), '1');
  });
});
