import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { DatabaseError, type PoolClient } from 'pg';
import { MissingKey } from '#contracts/ports/data-keys.ts';
import { type EventStore, EventStoreError, type RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Lane, LaneBatch, LogRecord } from '#contracts/ports/log.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import { stoppedLanes, watchConsumers } from '#runtime/consuming/lane-health.ts';
import type { ConsumeOptions, FailureAction } from '#runtime/consuming/options.ts';
import { countParked, listParked } from '#runtime/consuming/parked-reads.ts';
import { requestRetry, requestSkip } from '#runtime/consuming/parked-requests.ts';
import { Fenced, NotMoved } from '#runtime/consuming/positions.ts';
import { InvalidEvent } from '#runtime/eventing/codec.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { createRegistry, Readiness } from '#runtime/process/telemetry.ts';
import { topicOf } from '#schemas/events.ts';
import { partitionOf } from '#schemas/topics.ts';
import { createEffects, effects, effectsOf } from '#test/support/effects.ts';
import { HandLog } from '#test/support/hand-log.ts';
import type { Given } from '#test/support/projecting.ts';
import { type ProjectionWorld, projectionWorld } from '#test/support/projection-world.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const recordOf = (event: RecordedEvent): LogRecord => {
  const topic = topicOf(event.stream) ?? '';
  const { stream, id, type, revision, position, data, metadata } = event;
  const partition = partitionOf(stream, 4);
  const time = event.created.toISOString();
  return { topic, partition, key: stream, stream, id, type, revision, position, time, value: data, metadata };
};

suite('consume', { timeoutMs: 120_000 }, (t) => {
  let world: ProjectionWorld;
  const stops: AbortController[] = [];
  const consumers: Consumer[] = [];
  const holders: (() => Promise<void>)[] = [];
  t.before(async () => {
    world = await projectionWorld();
    await createEffects(world.pool);
    await world.pool.query('create table keyed (key text primary key)');
  });
  t.after(async () => {
    for (const stop of stops) stop.abort();
    await Promise.all(holders.map((release) => release()));
    await Promise.allSettled(consumers.map((one) => one.done));
    await world?.close();
  });

  /** The events of one client: created, then renamed `changes` times. */
  const client = (changes: number, id = randomUUID()): Given[] => [
    { stream: `client-${id}`, type: 'ClientCreated', data: clientFields },
    ...Array.from({ length: changes }, (_, i) => ({
      stream: `client-${id}`,
      type: 'ClientUpdated',
      data: { name: `Name ${i}` },
    })),
  ];

  /** Appends the events and returns the records of their streams as a log carries them. */
  const records = async (...lives: readonly Given[][]): Promise<LogRecord[]> => {
    await world.append(lives.flat());
    const streams = [...new Set(lives.flat().map((one) => one.stream))];
    const read = await Promise.all(streams.map((stream) => world.store.read(stream)));
    return read
      .flat()
      .sort((a, b) => Number(a.position - b.position))
      .map(recordOf);
  };

  const start = (over: Partial<ConsumeOptions> = {}) => {
    const log = new HandLog();
    const group = over.group ?? `g-${randomUUID()}`;
    const stop = new AbortController();
    stops.push(stop);
    const consumer = consume({
      log,
      pool: world.pool,
      group,
      topics: ['workspace'],
      codec: world.codec,
      apply: effectsOf(group),
      signal: stop.signal,
      logger: world.logger,
      ...over,
    });
    consumers.push(consumer);
    let next = 0n;
    return {
      log,
      group,
      consumer,
      stop,
      assigned: (lanes: readonly Lane[] = ['w-0']) => log.handlers.assigned(lanes),
      give: (list: readonly LogRecord[], batch: Partial<LaneBatch> = {}) => {
        next = batch.nextOffset ?? next + BigInt(list.length);
        const position = list.at(-1)?.position ?? null;
        return log.handlers.batch({ lane: 'w-0', records: list, position, ...batch, nextOffset: next });
      },
    };
  };

  const stored = async (group: string, lane = 'w-0') => {
    const { rows } = await world.pool.query(
      `select next_offset::int as next, position::text as position from ops.consumer_positions
       where consumer_group = $1 and lane = $2`,
      [group, lane],
    );
    return rows[0];
  };
  const parked = async (
    group: string,
  ): Promise<{ stream: string; revision: number; reason: string; workspace: string | null }[]> => {
    const { rows } = await world.pool.query(
      `select stream, revision::int, reason, workspace_id::text as workspace from ops.parked_events
       where consumer_group = $1 order by position`,
      [group],
    );
    return rows;
  };
  const seen = async (group: string) => (await effects(world.pool, group)).map((one) => one.revision);

  /** Throws, without naming the event, if one of these events is in the batch. */
  const choking = (group: string, bad: ReadonlySet<string>, error: () => Error = () => new TypeError('choked')) => {
    const sizes: number[] = [];
    const apply: ConsumeOptions['apply'] = async (tx, events) => {
      sizes.push(events.length);
      if (events.some(({ id }) => bad.has(id))) throw error();
      return effectsOf(group)(tx, events);
    };
    return { apply, sizes };
  };
  const idAt = (list: readonly LogRecord[], at: number): string => list[at]?.id ?? '';

  /** The world's store after a restore: at the same positions it has other events, or it ends before them. */
  const otherStore = (change: { ids?: boolean; head?: bigint }): EventStore => {
    const { store } = world;
    return {
      append: store.append.bind(store),
      read: store.read.bind(store),
      subscribe: store.subscribe.bind(store),
      readWorkspace: store.readWorkspace.bind(store),
      ping: store.ping.bind(store),
      close: async () => undefined,
      head: async () => change.head ?? (await store.head()),
      readAll: async (options) => {
        if (change.head !== undefined) return [];
        const page = await store.readAll(options);
        return change.ids === true ? page.map((one) => ({ ...one, id: randomUUID() })) : page;
      },
    };
  };

  t(
    'the last event is stored beside the position; lanes stop before a store with another history and name both',
    async () => {
      const list = await records(client(4));
      const one = start({ store: world.store });
      await one.assigned(['w-0', 'w-1']);
      await one.give(list.slice(0, 2));
      const kept = async () => {
        const { rows } = await world.pool.query(
          `select event_id, event_position = position as known from ops.consumer_positions
         where consumer_group = $1 and lane = 'w-0'`,
          [one.group],
        );
        return rows[0];
      };
      assert.deepEqual(await kept(), { event_id: list[1]?.id, known: true });
      one.stop.abort();
      for (const { store, says } of [
        { store: otherStore({ ids: true }), says: /has event [0-9a-f-]{36} there/ },
        { store: otherStore({ head: 0n }), says: /the store ends at position 0/ },
      ]) {
        const other = start({ group: one.group, store, restsMs: [600_000] });
        await other.assigned(['w-0', 'w-1']);
        await other.give(list.slice(2));
        assert.equal((await stored(one.group))?.position, String(list[1]?.position));
        const [lane, empty] = [...other.consumer.status().values()];
        assert.deepEqual([lane?.state, empty?.state], ['stopped', 'stopped']);
        assert.match(lane?.reason ?? '', says);
        for (const reported of [String(list[1]?.position), list[1]?.id ?? '', one.group])
          assert.ok(lane?.reason?.includes(reported));
        other.stop.abort();
      }
      // With the right store the group continues. A batch that lacks the event at its end moves the position without it, so
      // the consumer has nothing to compare.
      await world.pool.query(
        `select ops.consume_move($1, 'w-0', (select epoch from ops.consumer_positions where consumer_group = $1 and lane = 'w-0'),
         3, $2::int8, null)`,
        [one.group, list[2]?.position],
      );
      assert.deepEqual(await kept(), { event_id: list[1]?.id, known: false });
      const last = start({ group: one.group, store: world.store });
      await last.assigned(['w-0', 'w-1']);
      await last.give(list.slice(3), { nextOffset: BigInt(list.length) });
      assert.deepEqual(await kept(), { event_id: list.at(-1)?.id, known: true });
      assert.deepEqual(
        await seen(one.group),
        list.map((_, revision) => revision).filter((revision) => revision !== 2),
      );
    },
  );

  t(
    'a lane stops before a record that the store lacks: topics that a restore left hold events that are no more',
    async () => {
      const list = await records(client(4));
      const newest = list.at(-1)?.position ?? 0n;
      const head = list[1]?.position ?? 0n;
      const heads: number[] = [];
      const restored: EventStore = Object.assign(otherStore({}), {
        head: async () => {
          heads.push(performance.now());
          return head;
        },
      });
      const one = start({ store: restored, restsMs: [600_000] });
      one.log.endOf.set('w-0', BigInt(list.length));
      await one.assigned();
      await one.give(list.slice(0, 2));
      assert.deepEqual(await seen(one.group), [0, 1]);
      await one.give(list.slice(2));
      assert.deepEqual(await seen(one.group), [0, 1], 'nothing of the lost events is applied');
      const [lane] = [...one.consumer.status().values()];
      assert.equal(lane?.state, 'stopped');
      for (const said of ["the log's w-0", `position ${newest}`, `ends at position ${head}`, 'log reset'])
        assert.ok(lane?.reason?.includes(said), `${lane?.reason} says ${said}`);
      assert.equal((await stored(one.group))?.position, String(head));
      // Of what the log held at the start each batch is compared; later ones once a minute.
      const two = start({ store: restored, restsMs: [600_000] });
      two.log.endOf.set('w-0', 1n);
      await two.assigned();
      await two.give(list.slice(0, 1));
      const asked = heads.length;
      await two.give(list.slice(1, 3));
      await two.give(list.slice(3));
      assert.equal(heads.length, asked);
      assert.deepEqual(await seen(two.group), [0, 1, 2, 3, 4]);
      const three = start({ store: restored, restsMs: [600_000], headLookMs: 0 });
      await three.assigned();
      await three.give(list);
      assert.deepEqual(await seen(three.group), [], 'the look of the minute stops the lane as well');
    },
  );

  t('readiness names the lanes whose assignment waits for an unavailable event store, and the reason', async () => {
    const list = await records(client(1));
    const one = start({ store: world.store });
    await one.assigned(['w-0', 'w-1']);
    await one.give(list.slice(0, 1));
    let isAway = true;
    const store: EventStore = Object.assign(otherStore({}), {
      readAll: async (options: Parameters<EventStore['readAll']>[0]) => {
        if (isAway) throw new EventStoreError('unavailable', 'no answer of the store');
        return world.store.readAll(options);
      },
    });
    const two = start({ group: one.group, store });
    const assigning = two.assigned(['w-0', 'w-1']);
    assigning.catch(() => undefined);
    await until('both lanes are named', () => stoppedLanes([two.consumer]).length === 2);
    assert.deepEqual(
      stoppedLanes([two.consumer]),
      ['w-0', 'w-1'].map((lane) => `${one.group} ${lane}: no answer of the store`),
    );
    isAway = false;
    await assigning;
    assert.deepEqual(stoppedLanes([two.consumer]), []);
    await two.give(list.slice(1), { nextOffset: 2n });
    assert.deepEqual(await seen(one.group), [0, 1]);
    // A consumer that ends while it waits leaves no lane in the report.
    isAway = true;
    const three = start({ group: one.group, store });
    const given = three.assigned(['w-0']);
    given.catch(() => undefined);
    await until('the lane is named', () => stoppedLanes([three.consumer]).length === 1);
    three.stop.abort();
    await assert.rejects(given);
    assert.deepEqual(stoppedLanes([three.consumer]), []);
  });

  t('position and effect are stored together, and a new member continues from that position', async () => {
    const list = await records(client(4));
    const one = start();
    assert.deepEqual(await one.assigned(), [{ lane: 'w-0', nextOffset: null, position: null }]);
    await one.give(list.slice(0, 2));
    assert.deepEqual(await stored(one.group), { next: 2, position: String(list[1]?.position) });
    const two = start({ group: one.group });
    assert.deepEqual(await two.assigned(), [{ lane: 'w-0', nextOffset: 2n, position: list[1]?.position }]);
    await two.give(list.slice(2), { nextOffset: 5n });
    assert.deepEqual(await seen(one.group), [0, 1, 2, 3, 4]);
  });

  t('a former owner is fenced and writes nothing', async () => {
    const list = await records(client(3));
    const old = start();
    await old.assigned();
    await old.give(list.slice(0, 1));
    const now = start({ group: old.group });
    await now.assigned();
    await assert.rejects(old.give(list.slice(1)), Fenced);
    assert.deepEqual(await stored(old.group), { next: 1, position: String(list[0]?.position) });
    assert.deepEqual(await seen(old.group), [0]);
    await now.give(list.slice(1), { nextOffset: 4n });
    assert.deepEqual(await seen(old.group), [0, 1, 2, 3]);
  });

  t('a new owner waits until the former owner has committed its running batch', async () => {
    const list = await records(client(1));
    const gate = Promise.withResolvers<void>();
    const inside = Promise.withResolvers<void>();
    const group = `g-${randomUUID()}`;
    const old = start({
      group,
      apply: async (tx, events) => {
        inside.resolve();
        await gate.promise;
        return effectsOf(group)(tx, events);
      },
    });
    await old.assigned();
    const giving = old.give(list);
    await inside.promise;
    const assigning = start({ group }).assigned();
    gate.resolve();
    await giving;
    assert.equal((await assigning)[0]?.nextOffset, 2n, 'the new owner starts behind that batch');
    assert.deepEqual(await seen(group), [0, 1]);
  });

  t('a batch that the log hands over again after its commit is not applied twice', async () => {
    const list = await records(client(2));
    const one = start();
    await one.assigned();
    await one.give(list);
    await one.give(list, { nextOffset: 3n });
    assert.deepEqual(await seen(one.group), [0, 1, 2]);
  });

  /** Each inserted row of the group delays its commit by so many seconds; the pool waits 300 ms for an answer. */
  const slowCommits = async (group: string, table: string, column: string, seconds: number) => {
    const name = `slow_${randomUUID().replaceAll('-', '')}`;
    await world.pool.query(`
      create function ${name}() returns trigger language plpgsql as $$
        begin perform pg_sleep(${seconds}); return null; end $$;
      create constraint trigger ${name} after insert on ${table} deferrable initially deferred
        for each row when (new.${column} = '${group}') execute function ${name}()`);
    return {
      pool: openPool({ url: world.url, answerMs: 300 }),
      cure: () => world.pool.query(`drop trigger ${name} on ${table}`),
    };
  };

  t('a batch whose commit outlasts two answer deadlines is applied once, neither whole nor halved again', async () => {
    const group = `g-${randomUUID()}`;
    const list = await records(client(0), client(0), client(0), client(0));
    // Each of the four rows delays the commit: together longer than two tries. Then the batch is committed.
    const { pool, cure } = await slowCommits(group, 'effects', 'grp', 0.4);
    const one = start({ group, pool, replay: 'never' });
    await one.assigned();
    const given = one.give(list);
    await until('the batch is committed', async () => (await seen(group)).length > 0);
    await cure();
    await given;
    assert.deepEqual(await seen(group), [0, 0, 0, 0], 'each once');
    assert.deepEqual(await stored(group), { next: 4, position: String(list.at(-1)?.position) });
    assert.equal(one.consumer.status().get('w-0')?.state, 'running');
    await one.give(await records(client(0)));
    assert.equal((await seen(group)).length, 5);
    one.stop.abort();
    await pool.end();
  });

  t('an event parked by a commit whose answer was lost still parks the later events of its stream', async () => {
    const group = `g-${randomUUID()}`;
    const list = await records(client(1));
    const { pool, cure } = await slowCommits(group, 'ops.parked_events', 'consumer_group', 0.45);
    const bad = new Set([list[0]?.id ?? '']);
    const one = start({ group, pool, requestLookMs: 20, apply: choking(group, bad).apply });
    await one.assigned();
    await one.give(list.slice(0, 1));
    await cure();
    await one.give(list.slice(1));
    assert.deepEqual(
      (await parked(group)).map(({ revision }) => revision),
      [0, 1],
    );
    assert.deepEqual(await seen(group), []);
    one.stop.abort();
    await pool.end();
  });

  t('two neighbouring events that both time out are both parked', async () => {
    const slow = () =>
      Object.assign(new DatabaseError('canceling statement due to statement timeout', 9, 'error'), { code: '57014' });
    const list = await records(client(0), client(0), client(0), client(0));
    const group = `g-${randomUUID()}`;
    const heavy = choking(group, new Set([idAt(list, 1), idAt(list, 2)]), slow);
    const one = start({
      group,
      apply: async (tx, events) => {
        if (heavy.sizes.length > 60) one.stop.abort();
        return heavy.apply(tx, events);
      },
    });
    await one.assigned();
    await one.give(list);
    assert.deepEqual(
      (await parked(group)).map(({ stream }) => stream),
      list.slice(1, 3).map(({ stream }) => stream),
    );
    assert.deepEqual(await seen(group), [0, 0]);
  });

  t("repeated older records never move the position back; with replay 'never' they are not applied", async () => {
    const list = await records(client(3));
    const one = start({ replay: 'never' });
    await one.assigned();
    await one.give(list);
    await one.give(list.slice(0, 2), { nextOffset: 6n });
    assert.deepEqual(await stored(one.group), { next: 6, position: String(list[3]?.position) });
    assert.deepEqual(await seen(one.group), [0, 1, 2, 3]);
    const again = start({ group: one.group, replay: 'never' });
    await again.assigned();
    await again.give(list.slice(0, 2), { nextOffset: 8n });
    assert.deepEqual(await seen(one.group), [0, 1, 2, 3]);
  });

  t('records that the log repeats within a batch, as after a crash of its relay, are applied once', async () => {
    const list = await records(client(3));
    const handed: number[] = [];
    const group = `g-${randomUUID()}`;
    const one = start({
      group,
      replay: 'never',
      apply: async (tx, events) => {
        handed.push(...events.map(({ revision }) => revision));
        return effectsOf(group)(tx, events);
      },
    });
    await one.assigned();
    await one.give([...list.slice(0, 3), ...list.slice(1)], { nextOffset: 6n });
    assert.deepEqual(handed, [0, 1, 2, 3]);
  });

  t('events of other kinds are skipped without decoding them', async () => {
    const [first] = await records(client(0));
    assert.ok(first !== undefined);
    const bad = { ...first, stream: `quota-${randomUUID()}`, type: 'Unheard', id: randomUUID() };
    const one = start({ kinds: ['client'] });
    await one.assigned();
    await one.give([bad, first]);
    assert.deepEqual(await seen(one.group), [0]);
  });

  /** Answers the given action for the client's second event, `times` times. */
  const refusing = (action: FailureAction['action'], group: string, times = Infinity): ConsumeOptions['apply'] => {
    let left = times;
    return async (tx, events) => {
      const bad = events.find((one) => one.revision === 1);
      if (bad !== undefined && left > 0) {
        left -= 1;
        return { action, eventId: bad.id, reason: 'second' };
      }
      return effectsOf(group)(tx, events);
    };
  };

  t('the position behind skipped events is stored later, and never over a newer position', async () => {
    const one = start({ types: ['ClientCreated'] });
    await one.assigned();
    const [[first, ...rest], [second]] = [await records(client(2)), await records(client(0))];
    assert.ok(first !== undefined && second !== undefined);
    await one.give([first]);
    await one.give(rest.slice(0, 1));
    await one.give(rest.slice(1));
    assert.equal((await stored(one.group)).next, 1, 'not yet');
    assert.equal(one.consumer.status().get('w-0')?.position, rest.at(-1)?.position, 'but the lane has read that far');
    await until('the position is stored', async () => (await stored(one.group)).next === 3);
    assert.equal((await stored(one.group)).position, String(rest.at(-1)?.position));
    await one.give(rest);
    await one.give([second]);
    assert.deepEqual(await stored(one.group), { next: 6, position: String(second.position) });
    await one.give(rest);
    await until('the next position is stored, and no earlier one before it', async () => {
      const { next } = await stored(one.group);
      assert.ok(next >= 6);
      return next === 8;
    });
  });

  t('a relaxed consumer stores the position behind skipped events at once, because readers wait for it', async () => {
    const one = start({ types: ['ClientCreated'], relaxed: true });
    await one.assigned();
    const [first, ...rest] = await records(client(2));
    assert.ok(first !== undefined);
    await one.give([first]);
    await one.give(rest);
    assert.deepEqual(await stored(one.group), { next: 3, position: String(rest.at(-1)?.position) });
  });

  t('stop: the lane pauses, names its reason and keeps its position; other lanes continue', async () => {
    const list = await records(client(2));
    const group = `g-${randomUUID()}`;
    const bad: string[] = [];
    const one = start({
      group,
      apply: refusing('stop', group),
      metrics: { applied: () => undefined, bad: (_g, lane, action) => bad.push(`${lane} ${action}`) },
    });
    await one.assigned(['w-0', 'w-1']);
    await one.give(list.slice(0, 1));
    await one.give(list.slice(1));
    await one.give(await records(client(0)));
    assert.deepEqual(await seen(group), [0]);
    assert.equal((await stored(group)).next, 1);
    assert.equal(one.consumer.status().get('w-0')?.state, 'stopped');
    assert.equal(one.consumer.status().get('w-0')?.reason, 'second');
    assert.deepEqual(bad, ['w-0 stop']);
    const [other] = await records(client(0));
    assert.ok(other !== undefined);
    await one.log.handlers.batch({ lane: 'w-1', records: [other], nextOffset: 1n, position: other.position });
    assert.deepEqual(await seen(group), [0, 0]);
    await one.assigned(['w-0', 'w-1']);
    assert.equal(one.consumer.status().get('w-0')?.state, 'stopped', 'a new assignment does not end the pause');
    const fixed = start({ group });
    await fixed.assigned();
    await fixed.give(list.slice(1), { nextOffset: 3n });
    assert.deepEqual(await seen(group), [0, 0, 1, 2]);
  });

  t('skip: the consumer leaves out that event alone', async () => {
    const group = `g-${randomUUID()}`;
    const one = start({ group, apply: refusing('skip', group) });
    await one.assigned();
    await one.give(await records(client(2)));
    assert.deepEqual(await seen(group), [0, 2]);
    assert.equal(one.consumer.status().get('w-0')?.state, 'running');
  });

  t('park: the event and all later events of its stream are set aside; other streams continue', async () => {
    const group = `g-${randomUUID()}`;
    const list = await records(client(3), client(0));
    const one = start({ group, apply: refusing('park', group) });
    await one.assigned();
    const sick = list[0]?.stream;
    const mine = list.filter((record) => record.stream === sick);
    const others = list.filter((record) => record.stream !== sick);
    await one.give([...mine.slice(0, 3), ...others]);
    const next = start({ group, apply: refusing('park', group) });
    await next.assigned();
    await next.give(mine.slice(3), { nextOffset: 5n });
    assert.deepEqual(await seen(group), [0, 0]);
    const { rows } = await world.pool.query(
      'select revision::int, reason from ops.parked_events where consumer_group = $1 order by revision',
      [group],
    );
    assert.deepEqual(rows, [
      { revision: 1, reason: 'second' },
      { revision: 2, reason: 'an earlier event of its stream is parked' },
      { revision: 3, reason: 'an earlier event of its stream is parked' },
    ]);
  });

  t('retry: the batch is tried until it succeeds', async () => {
    const group = `g-${randomUUID()}`;
    const one = start({ group, apply: refusing('retry', group, 3) });
    await one.assigned();
    await one.give(await records(client(2)));
    assert.deepEqual(await seen(group), [0, 1, 2]);
  });

  t('an event that does not decode is parked, unless the consumer chooses another action', async () => {
    const list = await records(client(2));
    const broken = list.map((one, i) => (i === 1 ? { ...one, value: new TextEncoder().encode('{"name": 7}') } : one));
    const one = start();
    await one.assigned();
    await one.give(broken);
    assert.deepEqual(await seen(one.group), [0]);
    assert.match((await parked(one.group))[0]?.reason ?? '', /ClientUpdated.*\/name/);
    assert.equal(one.consumer.status().get('w-0')?.state, 'running');
    const two = start({ invalid: () => 'skip' });
    await two.assigned();
    await two.give(broken);
    assert.deepEqual(await seen(two.group), [0, 2]);
  });

  t(
    'the next batch is decoded while the current one is applied; its invalid event is parked in its own turn',
    async () => {
      const [good, other] = [await records(client(1)), await records(client(1))];
      const [, last] = other;
      assert.ok(last !== undefined);
      const bad = [{ ...last, id: randomUUID(), value: Buffer.from('{"name":7}') }];
      const group = `g-${randomUUID()}`;
      const decoded: string[] = [];
      const codec = Object.assign(Object.create(world.codec), {
        decode: (event: { readonly id: string }) => {
          decoded.push(event.id);
          return world.codec.decode(event as never);
        },
      });
      let ahead: readonly string[] = [];
      const one = start({
        group,
        codec,
        apply: async (tx, events) => {
          // The bad event is the last of the next batch: once the consumer tried it, it has tried all events before it.
          if (ahead.length === 0) await until('the bad event is tried', () => decoded.includes(bad[0]?.id ?? ''));
          ahead = [...decoded];
          return effectsOf(group)(tx, events);
        },
      });
      await one.assigned();
      await one.give(good, { next: [...other, ...bad] });
      assert.deepEqual(
        ahead,
        [...good, ...other, ...bad].map((event) => event.id),
      );
      assert.equal(one.consumer.status().get('w-0')?.state, 'running');
      await one.give(other, { next: bad });
      assert.deepEqual(
        decoded.filter((id) => other.some((event) => event.id === id)),
        other.map((event) => event.id),
        'decoded once',
      );
      await one.give(bad);
      assert.equal((await parked(group)).length, 1);
      assert.deepEqual(
        await effects(world.pool, group),
        [...good, ...other].map(({ stream, revision }) => ({ stream, revision: Number(revision) })),
      );
    },
  );

  t('an error in every stream of a batch stops the lane with that error, and parks nothing', async () => {
    const one = start({
      apply: async () => {
        throw new TypeError('undefined is not a function');
      },
    });
    await one.assigned();
    await one.give(await records(client(1), client(0)));
    assert.equal(one.consumer.status().get('w-0')?.reason, 'undefined is not a function');
    assert.equal((await stored(one.group)).next, null);
    assert.deepEqual(await parked(one.group), []);
  });

  t('poison: the batch is halved down to the event that fails; its stream is parked, all others continue', async () => {
    const lives = Array.from({ length: 50 }, () => client(1));
    const list = await records(...lives);
    const [sick, worse] = [list[30], list[73]];
    assert.ok(sick !== undefined && worse !== undefined);
    const group = `g-${randomUUID()}`;
    const { apply, sizes } = choking(group, new Set([sick.id, worse.id]));
    const one = start({ group, apply });
    await one.assigned();
    await one.give(list);
    const good = list.filter(
      (event) =>
        !(event.stream === sick.stream && event.revision >= sick.revision) &&
        !(event.stream === worse.stream && event.revision >= worse.revision),
    );
    assert.deepEqual(
      (await effects(world.pool, group)).map(({ stream, revision }) => `${stream} ${revision}`),
      good.map(({ stream, revision }) => `${stream} ${revision}`),
      'each once, in order',
    );
    assert.deepEqual(await stored(group), { next: 100, position: String(list.at(-1)?.position) });
    assert.ok(sizes.length < 60, `${sizes.length} tries: the batch is halved`);
    const rows = await parked(group);
    assert.deepEqual(
      rows.map(({ stream }) => stream).sort(),
      list
        .filter((event) => !good.includes(event))
        .map(({ stream }) => stream)
        .sort(),
    );
    assert.ok(rows.every(({ workspace }) => workspace !== null));
    assert.equal(one.consumer.status().get('w-0')?.state, 'running');
  });

  t('a poison event that is alone in its batch is parked too', async () => {
    const list = await records(client(0));
    const group = `g-${randomUUID()}`;
    const { apply, sizes } = choking(group, new Set([idAt(list, 0)]));
    const one = start({ group, apply });
    await one.assigned();
    await one.give(list);
    assert.deepEqual(
      (await parked(group)).map(({ reason }) => reason),
      ['choked'],
    );
    assert.deepEqual(sizes, [1, 1], 'tried once more before it is parked');
    assert.equal((await stored(group)).next, 1);
  });

  /** The effect of the slower of two processes: both find no row of a key, and the other inserts it first. */
  const racing = (group: string) => {
    let isFirst = true;
    const apply: ConsumeOptions['apply'] = async (tx, events) => {
      const key = `${group} ${events[0]?.revision}`;
      const { rowCount } = await tx.query('select from keyed where key = $1', [key]);
      if (rowCount === 0) {
        if (isFirst) await world.pool.query('insert into keyed values ($1)', [key]);
        isFirst = false;
        await tx.query('insert into keyed values ($1)', [key]);
      }
      return effectsOf(group)(tx, events);
    };
    return { apply, lost: () => !isFirst };
  };

  t('an event alone in its batch that loses a race to another process once is not parked', async () => {
    const group = `g-${randomUUID()}`;
    const { apply, lost } = racing(group);
    const one = start({ group, apply });
    await one.assigned();
    await one.give(await records(client(0)));
    assert.ok(lost());
    assert.deepEqual(await parked(group), []);
    assert.deepEqual(await seen(group), [0]);
    assert.equal(one.consumer.status().get('w-0')?.state, 'running');
  });

  t('an event that Postgres refuses each time is parked, whatever the class of the SQLSTATE', async () => {
    for (const [statement, says] of [
      [`insert into keyed values ('a'), ('a') on conflict (key) do update set key = excluded.key`, /a second time/],
      [
        `insert into keyed select string_agg(md5(random()::text), '') from generate_series(1, 500)`,
        /index row requires \d+ bytes/,
      ],
      [`do $$ begin raise 'not by this function'; end $$`, /not by this function/],
    ] as const) {
      const group = `g-${randomUUID()}`;
      const list = await records(client(0), client(0), client(0));
      const one = start({
        group,
        apply: async (tx, events) => {
          if (events.some(({ id }) => id === idAt(list, 1))) await tx.query(statement);
          return effectsOf(group)(tx, events);
        },
      });
      await one.assigned();
      const given = one.give(list);
      await until('the event is parked', async () => (await parked(group)).length > 0, { withinMs: 5_000 });
      await given;
      assert.deepEqual(
        (await parked(group)).map(({ stream }) => stream),
        [list[1]?.stream],
      );
      assert.match((await parked(group))[0]?.reason ?? '', says);
      assert.deepEqual(await seen(group), [0, 0], statement);
    }
  });

  t('while one stream is parked, batches without it are still applied in one statement', async () => {
    const [sick, well] = [await records(client(2)), await records(client(1))];
    const group = `g-${randomUUID()}`;
    const reported: string[] = [];
    const bad = new Set([idAt(sick, 0)]);
    const short = atOnce(reported);
    const one = start({
      group,
      apply: choking(group, bad).apply,
      applyInOneStatement: async (events, move) => {
        if (events.some(({ id }) => bad.has(id))) throw new TypeError('choked');
        return short(events, move);
      },
    });
    await one.assigned();
    await one.give(sick.slice(0, 1));
    await one.give(well);
    assert.deepEqual(reported, ['committed 2']);
    await one.give(sick.slice(1));
    assert.deepEqual(reported, ['committed 2'], 'events behind the parked one are not');
    assert.equal((await parked(group)).length, 3);
  });

  t(
    'an event of an unknown type or with a missing key is not parked: the lane stops until a consumer can read it',
    async () => {
      const [list, other] = [await records(client(1)), await records(client(0))];
      const unknown = list.map((event, at) => (at === 1 ? { ...event, type: 'ClientPainted' } : event));
      const one = start();
      await one.assigned();
      await one.give([...unknown, ...other]);
      assert.equal(one.consumer.status().get('w-0')?.state, 'stopped');
      assert.match(one.consumer.status().get('w-0')?.reason ?? '', /ClientPainted.*catalogue/);
      assert.deepEqual(await parked(one.group), []);
      const group = `g-${randomUUID()}`;
      const two = start({
        group,
        apply: choking(group, new Set([idAt(list, 1)]), () => new MissingKey('no key of its client')).apply,
      });
      await two.assigned();
      await two.give([...list, ...other]);
      assert.equal(two.consumer.status().get('w-0')?.state, 'stopped');
      assert.deepEqual(await parked(group), []);
      const updated = start({ group: one.group });
      await updated.assigned();
      await updated.give([...list, ...other]);
      assert.deepEqual(await seen(one.group), [0, 1, 0], 'a consumer that knows the type applies every event');
    },
  );

  t('the eleventh poison stream within a minute stops all lanes of the group and is not parked', async () => {
    const lives = Array.from({ length: 12 }, () => client(0));
    const list = await records(...lives);
    const group = `g-${randomUUID()}`;
    const bad = new Set(list.map(({ id }) => id));
    bad.delete(idAt(list, 11));
    const one = start({ group, apply: choking(group, bad).apply });
    await one.assigned(['w-0', 'w-1']);
    await one.give(list);
    for (const lane of ['w-0', 'w-1']) {
      assert.match(one.consumer.status().get(lane)?.reason ?? '', /more than 10 streams/, lane);
    }
    assert.deepEqual(await parked(group), []);
    // Ten streams are parked; the eleventh, a batch later, stops the lane.
    const next = start({ group, apply: choking(group, bad).apply });
    await next.assigned();
    await next.give([...list.slice(0, 10), ...list.slice(11)]);
    assert.equal((await parked(group)).length, 10);
    assert.deepEqual(await seen(group), [0]);
    await next.give(list.slice(10, 11), { nextOffset: 12n });
    assert.equal(next.consumer.status().get('w-0')?.state, 'stopped');
    assert.equal((await parked(group)).length, 10);
    await world.pool.query(
      `update ops.parked_events set parked_at = now() - interval '61 seconds' where consumer_group = $1`,
      [group],
    );
    await next.assigned();
    const later = start({ group, apply: choking(group, bad).apply });
    await later.assigned();
    await later.give(list.slice(10, 11), { nextOffset: 12n });
    assert.equal((await parked(group)).length, 11);
  });

  t('a group that exceeds the limit of parked streams again pauses longer, even after a success', async () => {
    const group = `g-${randomUUID()}`;
    const sick = () => records(...Array.from({ length: 11 }, () => client(0)));
    const [some, good, others, last] = [
      await sick(),
      await records(client(0), client(0)),
      await sick(),
      await records(client(0)),
    ];
    const bad = new Set([...some, ...others].map(({ id }) => id));
    const one = start({ group, apply: choking(group, bad).apply, restsMs: [300, 60_000] });
    await one.assigned();
    const rests = () => one.consumer.status().get('w-0')?.restsMs ?? -1;
    await one.give([...some, ...good.slice(0, 1)], { nextOffset: 12n });
    assert.match(one.consumer.status().get('w-0')?.reason ?? '', /more than 10 streams/);
    assert.ok(rests() >= 0 && rests() <= 300, `${rests()}`);
    await until('the pause is over', () => one.log.again.length > 0);
    await one.assigned();
    await one.give(good.slice(1), { nextOffset: 13n });
    assert.deepEqual(await seen(group), [0]);
    await one.give([...others, ...last], { nextOffset: 25n });
    assert.match(one.consumer.status().get('w-0')?.reason ?? '', /more than 10 streams/);
    assert.ok(rests() > 300, `${rests()}`);
    assert.deepEqual(await parked(group), []);
  });

  t(
    'a batch that times out twice is halved; one event is parked, unless another infrastructure fault follows',
    async () => {
      const slow = () =>
        Object.assign(new DatabaseError('canceling statement due to statement timeout', 9, 'error'), { code: '57014' });
      const list = await records(client(0), client(0), client(0), client(0));
      const group = `g-${randomUUID()}`;
      const heavy = choking(group, new Set([idAt(list, 2)]), slow);
      const one = start({ group, apply: heavy.apply });
      await one.assigned();
      await one.give(list);
      assert.deepEqual(
        (await parked(group)).map(({ stream }) => stream),
        [list[2]?.stream],
      );
      assert.deepEqual(await seen(group), [0, 0, 0]);
      assert.deepEqual(heavy.sizes.slice(0, 2), [4, 4], 'the whole batch twice');
      // A network fault right after the second time-out: the event is no poison candidate.
      const sick = `g-${randomUUID()}`;
      let left = 3;
      const two = start({
        group: sick,
        apply: async (tx, events) => {
          left -= 1;
          if (left >= 0) throw left > 0 ? slow() : new Error('of the network');
          return effectsOf(sick)(tx, events);
        },
      });
      await two.assigned();
      await two.give(list.slice(0, 2));
      assert.deepEqual(await parked(sick), []);
      assert.deepEqual(await seen(sick), [0, 0]);
    },
  );

  t('of two parked events that time out, each is tried once before either is tried again', async () => {
    const group = `g-${randomUUID()}`;
    const list = await records(client(0), client(0), client(0));
    const slow = () =>
      Object.assign(new DatabaseError('canceling statement due to statement timeout', 9, 'error'), { code: '57014' });
    const bad = new Set([idAt(list, 0), idAt(list, 1)]);
    const tried: string[] = [];
    let isParked = false;
    const one = start({
      ...{ group, store: world.store, requestLookMs: 50, doubtMs: 100 },
      apply: async (tx, events) => {
        const [first] = events;
        if (isParked && first !== undefined && bad.has(first.id)) {
          tried.push(first.id);
          await new Promise((resolve) => setTimeout(resolve, 300));
        }
        if (events.some(({ id }) => bad.has(id))) throw slow();
        return effectsOf(group)(tx, events);
      },
    });
    const lanes = [...new Set(list.map(({ partition }) => `workspace-${partition}`))];
    await one.assigned(lanes);
    await one.give(list, { lane: lanes[0] ?? '' });
    assert.equal((await parked(group)).length, 2);
    isParked = true;
    await until('the first event was tried', () => tried.length === 1, { withinMs: 5_000 });
    await until('both events were tried', () => tried.length >= 2, { withinMs: 5_000 });
    assert.deepEqual(new Set(tried.slice(0, 2)), bad, 'each once before either is tried again');
  });

  /** Another connection locks a row; the effect of revision 1 needs it and times out after 10 ms. */
  const heldRow = async (group: string) => {
    await world.pool.query('insert into keyed values ($1)', [group]);
    const holder = await world.pool.connect();
    await holder.query('begin');
    await holder.query('select 1 from keyed where key = $1 for update', [group]);
    const tries: number[] = [];
    const apply: ConsumeOptions['apply'] = async (tx, events) => {
      if (events.some(({ revision }) => revision === 1)) {
        tries.push(performance.now());
        await tx.query(`set local statement_timeout = '10ms'`);
        await tx.query('select 1 from keyed where key = $1 for update', [group]);
      }
      return effectsOf(group)(tx, events);
    };
    let isHeld = true;
    const release = async () => {
      if (isHeld) await holder.query('rollback').finally(() => holder.release());
      isHeld = false;
    };
    holders.push(release);
    return { apply, tries, release };
  };
  const nextTry = async (group: string) => {
    const { rows } = await world.pool.query(
      `select revision::int, extract(epoch from retry_at - parked_at)::float8 * 1000 as after
       from ops.parked_events where consumer_group = $1 and retry_at is not null`,
      [group],
    );
    return rows;
  };

  t('an event parked after a lock time-out is retried by the worker, and the rest of its stream follows', async () => {
    const group = `g-${randomUUID()}`;
    const list = await records(client(3));
    const { apply, tries, release } = await heldRow(group);
    const one = start({ group, store: world.store, requestLookMs: 20, doubtMs: 400, apply });
    const lane = `workspace-${list[0]?.partition}`;
    await one.assigned([lane]);
    await one.give(list.slice(0, 3), { lane });
    assert.deepEqual(await parked(group).then((rows) => rows.map(({ revision }) => revision)), [1, 2]);
    assert.deepEqual(
      await nextTry(group),
      [{ revision: 1, after: 400 }],
      'only the first event of the stream is due, after the delay',
    );
    const first = tries.length;
    await release();
    await one.give(list.slice(3), { lane });
    await until('all events are applied', async () => (await parked(group)).length === 0);
    assert.deepEqual(await seen(group), [0, 1, 2, 3]);
    assert.equal(tries.length, first + 1, 'tried once, when it was due');
  });

  t(
    'an event that times out each time is retried after ever longer delays, and then waits for an operator',
    async () => {
      const group = `g-${randomUUID()}`;
      const list = await records(client(2));
      const { apply, tries, release } = await heldRow(group);
      const one = start({ group, store: world.store, requestLookMs: 20, doubtMs: 200, apply });
      const lane = `workspace-${list[0]?.partition}`;
      await one.assigned([lane]);
      await one.give(list, { lane });
      const before = tries.length;
      const afters = new Set<number>();
      await until(
        'the event waits for an operator',
        async () => {
          const [row] = await nextTry(group);
          if (row !== undefined) afters.add(row.after);
          return row === undefined;
        },
        { withinMs: 15_000 },
      );
      const [first, ...later] = afters;
      assert.equal(first, 200);
      assert.ok(later.length === 1 || later.length === 2, [...afters].join());
      for (const [at, after] of later.entries()) assert.ok(after >= 4 * ([...afters][at] ?? 0), [...afters].join());
      assert.equal(tries.length - before, 2 * afters.size, 'each time the whole stream, then the event alone');
      await release();
      assert.equal((await parked(group)).length, 2);
    },
  );

  t('the lane retries after an unresolved name, two refused addresses and a read-only server', async () => {
    const group = `g-${randomUUID()}`;
    const refused = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const blips: (() => unknown)[] = [
      () => Object.assign(new Error('getaddrinfo ENOTFOUND db'), { code: 'ENOTFOUND' }),
      () => new AggregateError([refused(), refused()]),
    ];
    let readOnly = true;
    const one = start({
      group,
      apply: async (tx, events) => {
        const blip = blips.shift();
        if (blip !== undefined) throw blip();
        if (!readOnly) return effectsOf(group)(tx, events);
        readOnly = false;
        await tx.query('set transaction_read_only = on');
        return effectsOf(group)(tx, events);
      },
    });
    await one.assigned();
    await one.give(await records(client(2)));
    assert.deepEqual(await seen(group), [0, 1, 2]);
    assert.equal(readOnly, false);
    assert.equal(one.consumer.status().get('w-0')?.state, 'running');
  });

  t(
    'a stopped lane is read again after its pause, each pause longer, and continues once its batch succeeds',
    async () => {
      const group = `g-${randomUUID()}`;
      const [list, other] = [await records(client(2)), await records(client(0))];
      let broken = true;
      const rests = [20, 60, 100];
      const one = start({
        group,
        restsMs: rests,
        apply: async (tx, events) => {
          if (broken) throw new MissingKey('not yet');
          return effectsOf(group)(tx, events);
        },
      });
      await one.assigned();
      const status = () => one.consumer.status().get('w-0');
      for (let times = 1; times <= 4; times += 1) {
        await one.give(list, { nextOffset: 3n });
        assert.equal(status()?.state, 'stopped');
        const left = status()?.restsMs ?? -1;
        const rest = rests[Math.min(times, rests.length) - 1] ?? 0;
        assert.ok(left > 0 && left <= rest, `${left} of ${rest}`);
        await one.give(other, { nextOffset: 4n });
        await until('the consumer asks the log for the lane', () => one.log.again.length === times);
        const [from] = await one.assigned();
        assert.equal(from?.nextOffset, null, 'from the stored position');
        assert.equal(status()?.state, 'running');
      }
      broken = false;
      await one.give([...list, ...other], { nextOffset: 4n });
      assert.deepEqual(await seen(group), [0, 1, 2, 0]);
      broken = true;
      await one.give(await records(client(0)), { nextOffset: 5n });
      assert.ok((status()?.restsMs ?? 99) <= 20, 'a success in between starts at the first pause again');
    },
  );

  t(
    'a stopped lane of the embedded log continues without a new event; metrics and readiness show the stop',
    async () => {
      const group = `g-${randomUUID()}`;
      const stop = new AbortController();
      let broken = true;
      const { nextOffset } = (await world.log.ends(['workspace']))[0] ?? {};
      const [placed] = await records(client(1));
      assert.ok(placed !== undefined);
      await world.pool.query(
        'insert into ops.consumer_positions (consumer_group, lane, next_offset) values ($1, $2, $3::int8)',
        [group, '*', String(nextOffset)],
      );
      const consumer = consume({
        log: world.log,
        pool: world.pool,
        group,
        topics: ['workspace'],
        codec: world.codec,
        restsMs: [900],
        apply: async (tx, events) => {
          if (broken) throw new MissingKey('no key yet');
          return effectsOf(group)(tx, events);
        },
        signal: stop.signal,
        logger: world.logger,
      });
      await until('the lane stops', () => stoppedLanes([consumer]).length > 0);
      const [registry, readiness] = [createRegistry('test'), new Readiness()];
      watchConsumers({ registry, readiness, pool: world.pool }, 'consumers', () => [consumer]);
      const counted = async (): Promise<string> =>
        (await registry.metrics()).match(/^consumer_lanes.*$/gm)?.join(' ') ?? '';
      assert.match(await counted(), /state="stopped",thread="test"\} 1/);
      const check = (await readiness.ask()).find(({ name }) => name === 'consumers');
      assert.equal(check?.ok, false);
      assert.match(check?.detail ?? '', /no key yet \(stopped; tries again in 1 s\)/);
      broken = false;
      await until('the lane continues', async () => (await seen(group)).length === 2);
      assert.deepEqual(stoppedLanes([consumer]), []);
      assert.match(await counted(), /state="stopped",thread="test"\} 0/);
      stop.abort();
      await consumer.done;
    },
  );

  t('a lane that stopped in one process and runs in another is no longer reported as stopped', async () => {
    const group = `g-${randomUUID()}`;
    const { nextOffset } = (await world.log.ends(['workspace']))[0] ?? {};
    await records(client(1));
    await world.pool.query(
      'insert into ops.consumer_positions (consumer_group, lane, next_offset) values ($1, $2, $3::int8)',
      [group, '*', String(nextOffset)],
    );
    const member = (apply: ConsumeOptions['apply']) => {
      const stop = new AbortController();
      stops.push(stop);
      const consumer = consume({
        ...{ log: world.log, pool: world.pool, group, topics: ['workspace'], codec: world.codec, apply },
        ...{ restsMs: [100], signal: stop.signal, logger: world.logger },
      });
      consumers.push(consumer);
      return consumer;
    };
    const old = member(async () => {
      throw new MissingKey('not in this build');
    });
    await until('the lane stops', () => stoppedLanes([old]).length > 0);
    const newer = member(effectsOf(group));
    await until('the other process continues the lane', async () => (await seen(group)).length === 2);
    await until('the first process reports no stopped lane', () => stoppedLanes([old]).length === 0);
    assert.equal(newer.status().get('*')?.state, 'running');
  });

  t('the consumer repeats its request to read a lane again until the log assigns the lane', async () => {
    const one = start({
      restsMs: [20],
      apply: async () => {
        throw new MissingKey('not yet');
      },
    });
    await one.assigned();
    await one.give(await records(client(0)));
    // A log ignores the request while it is about to assign the lane.
    await until('the log is asked twice', () => one.log.again.length === 2);
    await one.assigned();
    assert.equal(one.consumer.status().get('w-0')?.state, 'running');
  });

  t('a lasting error in prepare stops the lane and does not end the consumer', async () => {
    const one = start({
      prepare: async () => {
        throw new TypeError('no');
      },
    });
    await one.assigned();
    await one.give(await records(client(0)));
    assert.equal(one.consumer.status().get('w-0')?.state, 'stopped');
    assert.equal((await stored(one.group)).next, null);
  });

  t('a batch whose database connection dies is applied again', async () => {
    let killed = false;
    const group = `g-${randomUUID()}`;
    const one = start({
      group,
      apply: async (tx, events) => {
        if (!killed) {
          killed = true;
          const { rows } = await tx.query('select pg_backend_pid() as pid');
          await world.pool.query('select pg_terminate_backend($1)', [rows[0].pid]);
        }
        return effectsOf(group)(tx, events);
      },
    });
    await one.assigned();
    await one.give(await records(client(2)));
    assert.deepEqual(await seen(group), [0, 1, 2]);
    assert.equal(one.consumer.status().get('w-0')?.state, 'running');
  });

  t('wants: events that it rejects, with the data that prepare loaded, are skipped without decoding them', async () => {
    const [wanted, other] = [await records(client(0)), await records(client(0))];
    const [first] = wanted;
    assert.ok(first !== undefined);
    const bad = { ...first, stream: `client-${randomUUID()}`, id: randomUUID(), value: Buffer.from('{') };
    let known: string | null = null;
    const one = start({
      prepare: async () => {
        known = first.stream;
      },
      wants: ({ stream }) => stream === known,
    });
    await one.assigned();
    await one.give([bad, ...other, first]);
    assert.deepEqual(
      (await effects(world.pool, one.group)).map(({ stream }) => stream),
      [first.stream],
    );
  });

  t('prepare is retried while its dependency is unavailable', async () => {
    let failures = 2;
    const one = start({
      prepare: async () => {
        failures -= 1;
        if (failures >= 0) throw Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' });
      },
    });
    await one.assigned();
    await one.give(await records(client(0)));
    assert.deepEqual(await seen(one.group), [0]);
    assert.equal(one.consumer.status().get('w-0')?.state, 'running');
  });

  t('each try calls exactly one of committed and rolledBack', async () => {
    const group = `g-${randomUUID()}`;
    const reported: string[] = [];
    let lost = true;
    const one = start({
      group,
      apply: async (tx, events) => {
        await effectsOf(group)(tx, events);
        const count = events.length;
        if (lost) {
          lost = false;
          const { rows } = await tx.query('select pg_backend_pid() as pid');
          await world.pool.query('select pg_terminate_backend($1)', [rows[0].pid]);
        }
        return {
          committed: () => void reported.push(`committed ${count}`),
          rolledBack: () => void reported.push(`rolled back ${count}`),
        };
      },
    });
    await one.assigned();
    await one.give(await records(client(1)));
    assert.deepEqual(reported, ['rolled back 2', 'committed 2']);
    assert.deepEqual(await seen(group), [0, 1]);
  });

  /** Moves the position with one statement and notes how many events it committed. */
  const atOnce =
    (reported: string[]): NonNullable<ConsumeOptions['applyInOneStatement']> =>
    async (events, { group, lane, epoch, nextOffset, position }) => {
      if (events.some(({ revision }) => revision === 9)) return null;
      if (events.every(({ revision }) => revision > 1)) return 'nothing';
      const { rows } = await world.pool.query(
        'select ops.consume_move($1, $2, $3::int8, $4::int8, $5::int8, null) as moved',
        [group, lane, epoch, nextOffset, position],
      );
      if (rows[0].moved !== true) throw new NotMoved();
      return { committed: () => void reported.push(`committed ${events.length}`), rolledBack: () => undefined };
    };

  t('one statement stores effect and position; where it cannot, a transaction does', async () => {
    const list = await records(client(9));
    const reported: string[] = [];
    const one = start({ applyInOneStatement: atOnce(reported) });
    await one.assigned();
    await one.give(list.slice(0, 2));
    assert.deepEqual(reported, ['committed 2']);
    assert.deepEqual(await stored(one.group), { next: 2, position: String(list[1]?.position) });
    assert.deepEqual(await seen(one.group), [], 'no transaction was used');
    await one.give(list.slice(2, 9));
    assert.equal((await stored(one.group)).next, 2, 'without an effect the position is stored later');
    assert.equal(one.consumer.status().get('w-0')?.position, list[8]?.position);
    await one.give(list.slice(9));
    assert.deepEqual(await stored(one.group), { next: 10, position: String(list[9]?.position) });
    assert.deepEqual(await seen(one.group), [9]);
  });

  t('in one statement: a repeated batch is not applied twice, and a former owner is fenced', async () => {
    const list = await records(client(1));
    const reported: string[] = [];
    const old = start({ applyInOneStatement: atOnce(reported) });
    await old.assigned();
    await old.give(list);
    await old.give(list, { nextOffset: 2n });
    assert.deepEqual(reported, ['committed 2']);
    const now = start({ group: old.group, applyInOneStatement: atOnce(reported) });
    await now.assigned();
    await assert.rejects(old.give(list, { nextOffset: 4n }), Fenced);
    assert.deepEqual(reported, ['committed 2']);
  });

  /** A group that has parked a poison stream, which its store holds; `cure` makes the stream applicable. */
  const poisoned = async (changes: number, over: Partial<ConsumeOptions> = {}) => {
    const list = await records(client(changes));
    const lane = `workspace-${list[0]?.partition}`;
    const group = over.group ?? `g-${randomUUID()}`;
    const bad = new Set([idAt(list, 1)]);
    const make = () =>
      start({
        group,
        store: world.store,
        requestLookMs: 20,
        replay: 'never',
        apply: choking(group, bad).apply,
        ...over,
      });
    const one = make();
    await one.assigned([lane]);
    await one.give(list.slice(0, changes), { lane });
    const ask = (work: (tx: PoolClient) => Promise<unknown>) =>
      inTransaction(world.pool, async (tx) => ({ commit: true, result: await work(tx) }));
    return { list, lane, group, one, make, ask, cure: () => bad.clear() };
  };

  t(
    'retry: parked events are applied in the order of revisions while their lane runs, and the stream continues',
    async () => {
      const { list, lane, group, one, ask, cure } = await poisoned(250);
      assert.equal((await parked(group)).length, 249);
      assert.equal(await ask((tx) => requestRetry(tx, group, list[0]?.stream ?? null)), 1);
      await until('the stream was tried and stays parked', async () => {
        const [row] = await listParked(world.pool, group);
        return row?.retryAt === null;
      });
      assert.deepEqual(await seen(group), [0]);
      cure();
      await ask((tx) => requestRetry(tx, group, null));
      // A record arrives while the parked events are applied: it is applied behind them in either order.
      await one.give(list.slice(250), { lane, nextOffset: 251n });
      await until('all are applied', async () => (await parked(group)).length === 0);
      assert.deepEqual(await seen(group), [...list.keys()]);
      assert.deepEqual(await countParked(world.pool, [group]), new Map());
      await one.give(await records(client(0)), { lane, nextOffset: 252n });
      assert.deepEqual((await seen(group)).at(-1), 0);
    },
  );

  t('retry: a former owner applies nothing, and the next owner applies all parked events', async () => {
    const { lane, group, one, make, ask, cure } = await poisoned(3, { requestLookMs: 3_600_000 });
    cure();
    const now = make();
    await now.assigned([lane]);
    await ask((tx) => requestRetry(tx, group, null));
    await assert.rejects(one.give(await records(client(0)), { lane, nextOffset: 9n }), Fenced);
    assert.deepEqual(await seen(group), [0], 'no member has looked for the request yet');
    const heir = start({ group, store: world.store, requestLookMs: 20, replay: 'never' });
    await heir.assigned([lane]);
    await until('all are applied', async () => (await parked(group)).length === 0);
    assert.deepEqual(await seen(group), [0, 1, 2]);
  });

  t(
    'retry: a stream that fails before its events are applied does not delay other parked streams of the group',
    async () => {
      const group = `g-${randomUUID()}`;
      const named = (digit: string) => `${digit.repeat(8)}-0000-4000-8000-000000000000` as const;
      const [first] = await records(client(0, named('0')));
      assert.ok(first !== undefined);
      const metadata = new TextEncoder().encode('{"a');
      const junk = first.stream;
      const broken = otherStore({});
      const store: EventStore = {
        ...broken,
        read: async (stream, options) => {
          const events = await broken.read(stream, options);
          return stream === junk ? events.map((event) => ({ ...event, metadata })) : events;
        },
      };
      const [odd, well] = [await records(client(0, named('1'))), await records(client(0, named('2')))];
      const lanes = ['workspace-0', 'workspace-1', 'workspace-2', 'workspace-3'];
      const bad = new Set([idAt(odd, 0), idAt(well, 0)]);
      let error = (): Error => new TypeError('choked');
      const one = start({
        group,
        store,
        requestLookMs: 20,
        apply: choking(group, bad, () => error()).apply,
      });
      await one.assigned(lanes);
      const good = await records(client(0));
      await one.give([{ ...first, metadata }, ...odd, ...well, ...good], { lane: 'workspace-0' });
      assert.equal((await parked(group)).length, 3);
      error = () => new Error('something else, each time');
      bad.delete(idAt(well, 0));
      await inTransaction(world.pool, async (tx) => ({ commit: true, result: await requestRetry(tx, group, null) }));
      await until('the third stream is applied', async () => (await seen(group)).length === 2);
      await until('the first stream shows its reason', async () => {
        const row = (await listParked(world.pool, group)).find(({ stream }) => stream === junk);
        return row?.retryAt === null && /JSON/.test(row.reason);
      });
    },
  );

  t('retry: after a consumer ends half way, the request remains on the rest of the stream', async () => {
    const { list, lane, group, one, ask, cure } = await poisoned(160, { requestLookMs: 3_600_000 });
    const worse = idAt(list, 130);
    cure();
    await ask((tx) => requestRetry(tx, group, null));
    await one.give(list.slice(160), { lane, nextOffset: 161n });
    const wanted = async () =>
      (await listParked(world.pool, group)).map((row) => [Number(row.revision), row.retryAt !== null]);
    assert.deepEqual(await wanted(), [[1, true]]);
    one.stop.abort();
    // The consumer reaches the 130th event, waits there for a dependency, and ends.
    const heavy = choking(group, new Set([worse]), () => new Error('a part is away'));
    const dying = start({ group, store: world.store, requestLookMs: 20, apply: heavy.apply });
    await dying.assigned([lane]);
    await until('the consumer tried', () => heavy.sizes.length >= 2);
    dying.stop.abort();
    assert.deepEqual(await wanted(), [[101, true]]);
    const last = start({ group, store: world.store, requestLookMs: 20 });
    await last.assigned([lane]);
    await until('all are applied', async () => (await parked(group)).length === 0);
    assert.deepEqual(await seen(group), [...list.keys()]);
  });

  t('retry: an event that loses a race to another process once does not stay parked', async () => {
    const racer = { apply: undefined as ConsumeOptions['apply'] | undefined };
    const group = `g-${randomUUID()}`;
    const { ask } = await poisoned(2, {
      group,
      apply: async (tx, events) => {
        if (racer.apply !== undefined) return racer.apply(tx, events);
        if (events.some(({ revision }) => revision === 1)) throw new TypeError('choked');
        return effectsOf(group)(tx, events);
      },
    });
    assert.equal((await parked(group)).length, 1);
    racer.apply = racing(group).apply;
    await ask((tx) => requestRetry(tx, group, null));
    await until('it is applied', async () => (await parked(group)).length === 0);
    assert.deepEqual(await seen(group), [0, 1]);
  });

  t('retry: an event that times out again stays parked with that reason', async () => {
    const slow = () =>
      Object.assign(new DatabaseError('canceling statement due to statement timeout', 9, 'error'), { code: '57014' });
    const group = `g-${randomUUID()}`;
    const { list, lane, one, ask } = await poisoned(1, {
      group,
      doubtMs: 0,
      apply: async (tx, events) => {
        if (events.some(({ revision }) => revision === 1)) throw slow();
        return effectsOf(group)(tx, events);
      },
    });
    await one.give(list.slice(1), { lane, nextOffset: 2n });
    await until('the event was tried', async () => (await listParked(world.pool, group))[0]?.retryAt === null, {
      withinMs: 5_000,
    });
    assert.equal((await parked(group)).length, 1);
    await ask((tx) => requestRetry(tx, group, null));
    await until(
      'the retry request is answered',
      async () => (await listParked(world.pool, group))[0]?.retryAt === null,
      { withinMs: 5_000 },
    );
    assert.match((await parked(group))[0]?.reason ?? '', /statement timeout/);
  });

  t('retry: while a table is missing the request stays pending and names it, then it is carried out', async () => {
    const group = `g-${randomUUID()}`;
    let fails: (() => Error) | null = () => new TypeError('choked');
    const { ask } = await poisoned(2, {
      group,
      apply: async (tx, events) => {
        if (fails !== null && events.some(({ revision }) => revision === 1)) throw fails();
        return effectsOf(group)(tx, events);
      },
    });
    fails = () => Object.assign(new DatabaseError('relation "new" does not exist', 9, 'error'), { code: '42P01' });
    await ask((tx) => requestRetry(tx, group, null));
    await until('it is told', async () => {
      const [row] = await listParked(world.pool, group);
      return row !== undefined && row.retryAt !== null && /relation "new"/.test(row.reason);
    });
    fails = null;
    await until('it is applied', async () => (await parked(group)).length === 0);
    assert.deepEqual((await seen(group)).slice(0, 2), [0, 1]);
  });

  t('retry: while the store does not answer, the lane continues and the parked stream shows the reason', async () => {
    const silence = Promise.withResolvers<never>();
    silence.promise.catch(() => undefined);
    let isSilent = false;
    let asked = 0;
    const { lane, group, one, ask, cure } = await poisoned(2, {
      store: Object.assign(otherStore({}), {
        read: async (stream: string, options?: Parameters<EventStore['read']>[1]) => {
          if (!isSilent || options?.limit === 1) return world.store.read(stream, options);
          asked += 1;
          return silence.promise;
        },
      }),
    });
    cure();
    isSilent = true;
    await ask((tx) => requestRetry(tx, group, null));
    await until('the store is asked', () => asked > 0);
    await Promise.race([
      one.give(await records(client(0)), { lane, nextOffset: 3n }),
      new Promise((_, fail) => setTimeout(fail, 5_000, new Error('the lane does not continue'))),
    ]);
    assert.deepEqual(await seen(group), [0, 0]);
    silence.reject(new EventStoreError('unavailable', 'no answer of the store'));
    await until('it is told', async () => {
      const [row] = await listParked(world.pool, group);
      return row !== undefined && row.retryAt !== null && row.reason === 'no answer of the store';
    });
    isSilent = false;
    await until('it is applied', async () => (await parked(group)).length === 0);
    assert.deepEqual(await seen(group), [0, 0, 1]);
  });

  t('retry: a former owner that cannot apply an event leaves the request to the new owner', async () => {
    let broken = 0;
    const codec: typeof world.codec = Object.assign(Object.create(world.codec), {
      decode: async (event: { readonly stream: string; readonly revision: bigint }) => {
        if (event.revision !== 1n) return world.codec.decode(event as never);
        broken += 1;
        throw new InvalidEvent(event.stream, 'ClientUpdated', 'is not known here');
      },
    });
    const { lane, group, one, ask } = await poisoned(2, { codec });
    const heir = start({ group, store: world.store, requestLookMs: 3_600_000 });
    await heir.assigned([lane]);
    const before = broken;
    await ask((tx) => requestRetry(tx, group, null));
    await until('the former owner tried twice', () => broken > before + 1);
    assert.deepEqual(
      (await listParked(world.pool, group)).map(({ retryAt }) => retryAt !== null),
      [true],
    );
    one.stop.abort();
    const last = start({ group, store: world.store, requestLookMs: 20 });
    await last.assigned([lane]);
    await until('all are applied', async () => (await parked(group)).length === 0);
    assert.deepEqual(await seen(group), [0, 1]);
  });

  t('retry and skip of one stream at the same time: the skipped event is not applied', async () => {
    const { list, lane, group, ask, cure } = await poisoned(4);
    cure();
    await ask(async (tx) => {
      await tx.query(`select from ops.consumer_positions where consumer_group = $1 for update`, [group]);
      // Another operator requested a retry a moment earlier.
      await world.pool.query(
        `update ops.parked_events set retry_at = now() where consumer_group = $1 and revision = 1`,
        [group],
      );
      await until('the consumer has read the retry request and waits for the lock on its lane', async () => {
        const { rowCount } = await world.pool.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%consumer_positions%for update%'`,
        );
        return rowCount === 1;
      });
      assert.deepEqual(await requestSkip(tx, group, idAt(list, 1)), { stream: list[1]?.stream });
    });
    await until('the events behind the skipped one are applied', async () => (await parked(group)).length === 0);
    assert.deepEqual(await seen(group), [0, 2, 3]);
    assert.equal((await stored(group, lane)).next, 4);
  });

  t('retry: streams of lanes without an owner do not delay the streams of a running lane', async () => {
    const { list, lane, group, one, ask, cure } = await poisoned(2, {
      store: Object.assign(otherStore({}), {
        read: async (stream: string, options?: Parameters<EventStore['read']>[1]) => {
          if (!stream.startsWith('client-0elsewhere')) return world.store.read(stream, options);
          const [event] = await world.store.read(list[0]?.stream ?? '', { limit: 1 });
          assert.ok(event !== undefined);
          return [
            { ...event, stream, metadata: new TextEncoder().encode(JSON.stringify({ partitionKey: elsewhere })) },
          ];
        },
      }),
    });
    let elsewhere = '';
    while (elsewhere === '' || partitionOf(elsewhere, 4) === list[0]?.partition) elsewhere = randomUUID();
    await world.pool.query(
      `insert into ops.parked_events (consumer_group, stream, revision, event_id, type, position, reason, retry_at)
       select $1, 'client-0elsewhere' || n, 1, gen_random_uuid(), 'T', 1, 'no', now() from generate_series(1, 130) as n`,
      [group],
    );
    cure();
    assert.equal(await ask((tx) => requestRetry(tx, group, list[0]?.stream ?? '')), 1);
    await until('it is applied', async () => (await seen(group)).length === 2);
    assert.equal((await stored(group, lane)).next, 2);
    one.stop.abort();
  });

  t('skip: only the first parked event of a stream can be skipped; the events behind it are applied', async () => {
    const { list, lane, group, one, ask } = await poisoned(3);
    assert.equal(
      await ask((tx) => requestSkip(tx, group, idAt(list, 2))),
      null,
      'an earlier event of the stream is parked',
    );
    assert.equal(await ask((tx) => requestSkip(tx, group, randomUUID())), null);
    assert.deepEqual(await ask((tx) => requestSkip(tx, group, idAt(list, 1))), { stream: list[1]?.stream });
    await until('the events behind the skipped one are applied', async () => (await parked(group)).length === 0);
    assert.deepEqual(await seen(group), [0, 2]);
    // The log repeats the skipped event: it is still not applied.
    const again = start({ group, apply: choking(group, new Set([idAt(list, 1)])).apply });
    await again.assigned([lane]);
    await again.give(list.slice(1, 2), { lane, nextOffset: 5n });
    assert.deepEqual(await parked(group), []);
    assert.deepEqual(await seen(group), [0, 2]);
    await assert.rejects(one.give(list.slice(3), { lane, nextOffset: 6n }), Fenced);
  });

  t('out of range: the events that the log lost are read from the store, those of this lane alone', async () => {
    const lives = Array.from({ length: 12 }, () => client(1));
    const list = await records(...lives);
    const lane = `workspace-${list[0]?.partition}`;
    const mine = list.filter((one) => `workspace-${one.partition}` === lane);
    const one = start({ store: world.store });
    await one.assigned([lane]);
    const [first] = mine;
    assert.ok(first !== undefined);
    await one.log.handlers.batch({ lane, records: [first], nextOffset: 1n, position: first.position });
    const from = { lane, nextOffset: 1n, position: first.position };
    const kept = new AbortController();
    const moved = await one.log.handlers.outOfRange?.([{ from, firstOffset: 40n }], kept.signal);
    assert.equal(moved?.[0]?.nextOffset, 40n);
    assert.deepEqual(
      (await effects(world.pool, one.group)).map(({ stream, revision }) => `${stream} ${revision}`),
      mine.map(({ stream, revision }) => `${stream} ${revision}`),
    );
    assert.deepEqual(await stored(one.group, lane), { next: 40, position: String(mine.at(-1)?.position) });
  });

  t(
    'out of range: one scan of the store serves all lanes; after a failure half way each event is applied once',
    async () => {
      const lanes = Array.from({ length: 4 }, (_, at) => `workspace-${at}`);
      const lives = Array.from({ length: 24 }, () => client(0));
      await records(...lives);
      for (let more = 0; more < 4; more += 1) await records(client(300));
      const all = (await world.store.readAll({ after: null, limit: 10_000 })).filter(
        ({ stream }) => topicOf(stream) === 'workspace',
      );
      let pages = 0;
      let dies = false;
      const store: EventStore = Object.assign(otherStore({}), {
        readAll: async (options: Parameters<EventStore['readAll']>[0]) => {
          if (options.limit > 1) pages += 1;
          if (dies && pages > 2) throw new EventStoreError('access_denied', 'dead (asked for)');
          return world.store.readAll(options);
        },
      });
      const member = async (group: string) => {
        const one = start({ store, group });
        const positions = await one.assigned(lanes);
        const overrun = positions.map((from) => ({ from, firstOffset: 40n }));
        return one.log.handlers.outOfRange?.(overrun, new AbortController().signal);
      };
      const dead = `g-${randomUUID()}`;
      dies = true;
      await assert.rejects(member(dead), /dead/);
      dies = false;
      pages = 0;
      const moved = await member(dead);
      assert.ok(pages <= Math.ceil(all.length / 500) + 2, `${pages} pages for ${all.length} events and four lanes`);
      assert.deepEqual(
        moved?.map(({ lane, nextOffset }) => [lane, nextOffset]),
        lanes.map((lane) => [lane, 40n]),
      );
      const applied = (await effects(world.pool, dead)).map(({ stream, revision }) => `${stream} ${revision}`);
      assert.deepEqual(applied.toSorted(), all.map(({ stream, revision }) => `${stream} ${revision}`).toSorted());
      for (const lane of lanes) {
        const mine = all.filter(({ stream }) => `workspace-${partitionOf(stream, 4)}` === lane);
        assert.deepEqual(await stored(dead, lane), { next: 40, position: String(mine.at(-1)?.position) });
      }
    },
  );

  /** A consumer in a process of its own, killed at the fault point `fault`. */
  const child = (group: string, fault?: string) =>
    spawn(process.execPath, [fileURLToPath(import.meta.resolve('#test/support/consumer-child.ts')), world.url, group], {
      env: { ...process.env, ...(fault === undefined ? {} : { POSTLINE_FAULT: fault }) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });

  for (const point of ['consume:before-commit', 'consume:after-commit']) {
    t(`killed at ${point}: the next process applies every event once`, async () => {
      const group = `g-${randomUUID()}`;
      const head = await world.append(client(5));
      const [, signal] = await once(child(group, point), 'exit');
      assert.equal(signal, 'SIGKILL');
      const before = (await effects(world.pool, group)).length;
      assert.equal(before === 0, point === 'consume:before-commit' && (await stored(group, '*'))?.next == null);
      const next = child(group);
      try {
        await until('all events are applied', async () => BigInt((await stored(group, '*'))?.position ?? -1) >= head);
      } finally {
        next.kill('SIGTERM');
        await once(next, 'exit');
      }
      const got = await effects(world.pool, group);
      const { rows } = await world.pool.query(`select count(*)::int as n from es.events where topic = 'workspace'`);
      assert.equal(got.length, rows[0].n, 'every event, none twice');
      assert.equal(new Set(got.map((one) => `${one.stream} ${one.revision}`)).size, got.length);
    });
  }

  t(
    'killed while a parked event is retried: it stays parked, and the next process applies each event once',
    async () => {
      const list = await records(client(3));
      const stream = list[0]?.stream ?? '';
      const group = `g-${randomUUID()}`;
      const { apply } = choking(group, new Set([idAt(list, 1)]));
      const one = start({ group, log: world.log, store: world.store, apply });
      await until('the bad event and all behind it are parked', async () => (await parked(group)).length === 3);
      one.stop.abort();
      await one.consumer.done;
      const wanted = async () => {
        const { rows } = await world.pool.query(
          `select revision::int from ops.parked_events
         where consumer_group = $1 and retry_at is not null order by revision`,
          [group],
        );
        return rows.map(({ revision }) => revision);
      };
      const applied = async () =>
        (await effects(world.pool, group)).filter((one) => one.stream === stream).map(({ revision }) => revision);
      await inTransaction(world.pool, async (tx) => ({
        commit: true,
        result: await requestRetry(tx, group, stream),
      }));
      const [, signal] = await once(child(group, 'consume:before-unpark'), 'exit');
      assert.equal(signal, 'SIGKILL');
      assert.deepEqual(await applied(), [0], 'no effect of an event that is still parked');
      assert.deepEqual(
        (await parked(group)).map(({ revision }) => revision),
        [1, 2, 3],
        'all three stay parked',
      );
      assert.deepEqual(await wanted(), [1], 'the retry request still stands');
      const next = child(group);
      try {
        await until('nothing is parked', async () => (await parked(group)).length === 0);
      } finally {
        next.kill('SIGTERM');
        await once(next, 'exit');
      }
      assert.deepEqual(await applied(), [0, 1, 2, 3], 'each once, in order');
    },
  );

  // The last test: the child processes of other tests would stop at its event, because only this process has the key.
  t('retry: an event whose key was destroyed while it was parked is applied without its personal member', async () => {
    const [clientId, id] = [randomUUID(), randomUUID()];
    const created = { clientId, platforms: ['x'], expiresAt: '2027-01-01T00:00:00.000Z', keyVersion: '1' };
    const list = await records([
      {
        stream: `invite-${id}`,
        type: 'ConnectInviteCreated',
        data: { ...created, recipientEmail: 'someone@example.com' },
      },
    ]);
    const group = `g-${randomUUID()}`;
    const reported: unknown[] = [];
    let isBroken = true;
    const one = start({
      group,
      store: world.store,
      requestLookMs: 20,
      apply: async (tx, events) => {
        if (isBroken) throw new TypeError('choked');
        reported.push(...events.map(({ data }) => data.recipientEmail));
        return effectsOf(group)(tx, events);
      },
    });
    const lane = `workspace-${list[0]?.partition}`;
    await one.assigned([lane]);
    await one.give(list, { lane });
    assert.equal((await parked(group)).length, 1);
    world.keys.destroy(clientId);
    isBroken = false;
    await inTransaction(world.pool, async (tx) => ({ commit: true, result: await requestRetry(tx, group, null) }));
    await until('it is applied', async () => (await parked(group)).length === 0);
    assert.deepEqual(reported, [null]);
  });
});
