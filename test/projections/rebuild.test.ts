import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventStoreError, type RecordedEvent } from '#contracts/ports/event-store.ts';
import { Projector } from '#projections/engine/apply.ts';
import { PositionWatch } from '#projections/engine/positions.ts';
import { rebuild, withRebuildLock } from '#projections/engine/rebuild.ts';
import { type Intake, type PageRead, readStore } from '#projections/engine/replay.ts';
import { type RunningProjections, runProjections } from '#projections/engine/run.ts';
import { projectionOf, projections } from '#projections/index.ts';
import { type RebuildProgress, rebuildAll } from '#projections/rebuild-all.ts';
import { view } from '#projections/shapes.ts';
import { listParked } from '#runtime/consuming/parked-reads.ts';
import { requestRetry } from '#runtime/consuming/parked-requests.ts';
import { TooManyParked } from '#runtime/consuming/parking.ts';
import type { DecodedEvent, EventCodec, StoredBytes } from '#runtime/eventing/codec.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { compareWithReplay } from '#test/support/compare-with-replay.ts';
import { type Given, history, scheduledPost } from '#test/support/projecting.ts';
import { type ProjectionWorld, projectionWorld } from '#test/support/projection-world.ts';
import { clientFields, planned } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** A post with three targets, one of which is published. */
const story = (): Given[] => {
  const post = randomUUID();
  const clientId = randomUUID();
  const targets = [1, 2, 3].map(() => planned({ targetId: randomUUID(), accountId: randomUUID(), clientId }));
  const [first] = targets;
  const claim = { attempt: 1, takeover: 0 };
  const publishedAt = '2026-03-02T08:00:00.000Z';
  const of = (type: string, data: object): Given => ({ stream: `target-${first?.targetId}`, type, data });
  return [
    ...scheduledPost(post, clientId, targets),
    of('TargetPublishStarted', claim),
    of('TargetPublished', { ...claim, externalId: 'e', permalink: null, publishedAt }),
  ];
};

suite('projections: run, wait, rebuild', { waits: true, timeoutMs: 120_000 }, (t) => {
  let world: ProjectionWorld;
  let running: RunningProjections;
  const stop = new AbortController();
  t.before(async () => {
    world = await projectionWorld();
    running = runProjections({ ...world, names: [], signal: stop.signal });
  });
  t.after(async () => {
    stop.abort();
    await running?.done;
    await world?.close();
  });

  const settled = async (position: bigint): Promise<void> => {
    const watch = new PositionWatch(world.pool, world.log);
    const wanted = new Map([
      ['posts-0', position],
      ['workspace-0', position],
    ]);
    assert.ok(await watch.waitFor(['posts'], wanted, { timeoutMs: 20_000 }), 'projections caught up');
  };

  t('many callers wait for their own write with one poller; a topic without a consumer counts as reached', async () => {
    const position = await world.append(story());
    const watch = new PositionWatch(world.pool, world.log);
    const wanted = new Map([['posts-3', position]]);
    const all = await Promise.all(
      Array.from({ length: 50 }, () => watch.waitFor(['posts'], wanted, { timeoutMs: 5_000 })),
    );
    assert.ok(all.every((one) => one));
    assert.equal(await watch.waitFor(['posts'], new Map([['media-1', 10n ** 15n]]), { timeoutMs: 50 }), true);
    assert.equal(await watch.waitFor(['posts'], new Map([['posts-1', 10n ** 15n]]), { timeoutMs: 50 }), false);
    const gone = AbortSignal.timeout(20);
    await assert.rejects(
      watch.waitFor(['posts'], new Map([['posts-1', 10n ** 15n]]), { timeoutMs: 5_000, signal: gone }),
    );
  });

  t('a rebuild beside a writer gives the same rows, and all readers follow it', async () => {
    const writing = new AbortController();
    let last = 0n;
    const writer = (async () => {
      while (!writing.signal.aborted) last = await world.append(story());
    })();
    try {
      await until('a few posts are there', async () => {
        const { rows } = await world.pool.query(`select count(*)::int as n from ${view('posts')}`);
        return rows[0].n > 20;
      });
      const result = await rebuild({ ...world, name: 'posts', signal: stop.signal });
      assert.equal(result.generation, 2);
      assert.ok(result.events > 100);
      assert.equal(result.dropped, true, 'the old tables went when the runner had moved on');
    } finally {
      writing.abort();
      await writer;
    }
    await until('the runner follows', () =>
      running.status().some((one) => one.name === 'posts' && one.generation === 2),
    );
    await settled(last);
    const { rows } = await world.pool.query(
      `select to_regclass('read.posts_v1') as old, to_regclass('read.posts_v2') as new`,
    );
    assert.equal(rows[0].old, null);
    assert.notEqual(rows[0].new, null);
    const { rows: indexes } = await world.pool.query<{ table: string; n: number; isValid: boolean }>(
      `select indrelid::regclass::text as table, count(*)::int as n, bool_and(indisvalid) as "isValid" from pg_index
       where indrelid::regclass::text like 'read.post%_v2' group by 1`,
    );
    assert.deepEqual(
      new Map(indexes.map(({ table, n, isValid }) => [table, isValid ? n : 0])),
      new Map(projectionOf('posts').models.map(({ name, indexes: all }) => [`read.${name}_v2`, all.length + 1])),
      'each table has its key and all its indexes',
    );
    const { rows: compared, differences } = await compareWithReplay(world);
    assert.deepEqual(differences, []);
    assert.ok(compared > 80);
    assert.equal(await running.check(), null);
  });

  t('a process keeps each projection that it reads announced', async () => {
    const announced = async (): Promise<ReadonlyMap<string, Date>> => {
      const { rows } = await world.pool.query<{ name: string; until: Date }>(
        'select name, until from ops.projection_readers',
      );
      return new Map(rows.map(({ name, until: at }) => [name, at]));
    };
    const before = await announced();
    assert.equal(before.size, running.status().length);
    await until('all are renewed', async () => {
      const now = await announced();
      return [...before].every(([name, at]) => Number(now.get(name)) > at.getTime());
    });
  });

  t('a comparison finds a changed row, a missing row and an extra row', async () => {
    const position = await world.append(story());
    await settled(position);
    const { rows } = await world.pool.query(`select id from ${view('post_targets')} limit 2`);
    const [changed, missing] = rows.map((row) => row.id);
    await world.pool.query(`update read.post_targets_v2 set attempts = attempts + 1 where id = $1`, [changed]);
    await world.pool.query(`delete from read.post_targets_v2 where id = $1`, [missing]);
    const { differences } = await compareWithReplay(world);
    assert.deepEqual(new Set(differences.map((one) => one.id)), new Set([changed, missing]));
  });

  t('a rebuild repairs the rows; a second rebuild at the same time is refused', async () => {
    const [one, two] = await Promise.allSettled([
      rebuild({ ...world, name: 'posts', signal: stop.signal }),
      rebuild({ ...world, name: 'posts', signal: stop.signal }),
    ]);
    assert.deepEqual([one.status, two.status].sort(), ['fulfilled', 'rejected']);
    assert.deepEqual((await compareWithReplay(world)).differences, []);
  });

  t(
    'in a rebuild a poison event parks its stream and the rebuild continues; earlier parked events are dropped',
    async () => {
      const [sick, well] = [randomUUID(), randomUUID()];
      const clientOf = (id: string, name: string): Given[] => [
        { stream: `client-${id}`, type: 'ClientCreated', data: { ...clientFields, name } },
        { stream: `client-${id}`, type: 'ClientUpdated', data: { name: `${name} two` } },
        { stream: `client-${id}`, type: 'ClientUpdated', data: { name: `${name} three` } },
      ];
      const named = async (id: string) => {
        const { rows } = await world.pool.query('select name, revision from read.clients where id = $1', [id]);
        return rows[0];
      };
      const { codec } = world;
      const choking: typeof codec = Object.assign(Object.create(codec), {
        decode: async (event: StoredBytes) => {
          if (event.stream === `client-${sick}` && event.revision === 1n) throw new TypeError('choked');
          return codec.decode(event);
        },
        decodeAll: async (events: readonly StoredBytes[]) => Promise.all(events.map((event) => choking.decode(event))),
      });
      await world.append(clientOf(sick, 'Sick'));
      await world.append(clientOf(well, 'Well'));
      await until('they are shown', async () => (await named(well))?.revision === 2);
      const { rows: live } = await world.pool.query(`select live from ops.projections where name = 'clients'`);
      await world.pool.query(
        `insert into ops.parked_events (consumer_group, stream, revision, event_id, type, position, reason)
       values ($1, 'client-x', 1, gen_random_uuid(), 'T', 1, 'of before')`,
        [`projection-clients-v${live[0].live}`],
      );
      const { generation } = await rebuild({ ...world, codec: choking, name: 'clients', signal: stop.signal });
      assert.deepEqual(await named(sick), { name: 'Sick', revision: 0 });
      assert.deepEqual(await named(well), { name: 'Well three', revision: 2 });
      const parked = await listParked(world.pool, null);
      assert.deepEqual(
        parked.map(({ group, stream, events, reason }) => ({ group, stream, events, reason })),
        [{ group: `projection-clients-v${generation}`, stream: `client-${sick}`, events: 2, reason: 'choked' }],
      );
      await until('the runner follows', () =>
        running.status().some((one) => one.name === 'clients' && one.generation === generation),
      );
      // Its code can read the event: asked to, it applies both.
      await inTransaction(world.pool, async (tx) => ({
        commit: true,
        result: await requestRetry(tx, `projection-clients-v${generation}`, null),
      }));
      await until('it is applied', async () => (await listParked(world.pool, null)).length === 0);
      assert.deepEqual(await named(sick), { name: 'Sick three', revision: 2 });
      assert.deepEqual((await compareWithReplay(world)).differences, []);
    },
  );

  t('streams that the live tables have parked or skipped do not count against a rebuild’s limit', async () => {
    const ids = Array.from({ length: 12 }, () => randomUUID());
    const isSick = new Set(ids.map((id) => `client-${id}`));
    const { codec } = world;
    const choking: typeof codec = Object.assign(Object.create(codec), {
      decode: async (event: StoredBytes) => {
        if (isSick.has(event.stream) && event.revision === 1n) throw new TypeError('choked');
        return codec.decode(event);
      },
      decodeAll: async (events: readonly StoredBytes[]) => Promise.all(events.map((event) => choking.decode(event))),
    });
    for (const stream of isSick) {
      await world.append([
        { stream, type: 'ClientCreated', data: clientFields },
        { stream, type: 'ClientUpdated', data: { name: 'Two' } },
      ]);
    }
    const remake = () => rebuild({ ...world, codec: choking, name: 'clients', signal: stop.signal });
    await assert.rejects(remake(), TooManyParked, 'twelve streams at once have a common fault');
    const { rows } = await world.pool.query(`select live from ops.projections where name = 'clients'`);
    const group = `projection-clients-v${rows[0].live}`;
    const [skipped, ...others] = [...isSick];
    await world.pool.query(
      `insert into ops.parked_events (consumer_group, stream, revision, event_id, type, position, reason, parked_at)
       select $1, stream, 1, gen_random_uuid(), 'T', 1, 'no', now() - interval '1 year' from unnest($2::text[]) as stream`,
      [group, others],
    );
    await world.pool.query(
      `insert into ops.skipped_events (consumer_group, stream, revision, event_id, type, reason)
       values ($1, $2, 1, gen_random_uuid(), 'T', 'no')`,
      [group, skipped],
    );
    const { generation } = await remake();
    assert.equal((await listParked(world.pool, `projection-clients-v${generation}`)).length, 12);
    const late = await world.pool.query(
      `select stream from ops.parked_events where parked_at > now() - interval '1 minute'`,
    );
    assert.deepEqual(late.rows, [], 'the next poison event is not one too many');
    // Code that can read them.
    await rebuild({ ...world, name: 'clients', signal: stop.signal });
    assert.deepEqual(await listParked(world.pool, null), []);
  });

  t('a gap parks its stream alone, which continues once the missing event was skipped', async () => {
    const [gappy, well] = [randomUUID(), randomUUID()];
    const events = await history(
      [
        { stream: `client-${gappy}`, type: 'ClientCreated', data: clientFields },
        { stream: `client-${gappy}`, type: 'ClientUpdated', data: { name: 'Two' } },
        { stream: `client-${gappy}`, type: 'ClientUpdated', data: { name: 'Three' } },
        { stream: `client-${well}`, type: 'ClientCreated', data: clientFields },
      ],
      { codec: world.codec, workspaceId: randomUUID() },
    );
    const { rows } = await world.pool.query(`select live from ops.projections where name = 'clients'`);
    const generation = rows[0].live;
    const projector = new Projector(projectionOf('clients'), generation);
    const [born, lost, late, other] = events;
    assert.ok(born !== undefined && lost !== undefined && late !== undefined && other !== undefined);
    const apply = (list: readonly DecodedEvent[]) =>
      inTransaction(world.pool, async (tx) => {
        const verdict = await projector.apply(tx, list);
        return { commit: verdict === null, result: verdict };
      });
    const refused = await apply([born, late, other]);
    assert.deepEqual([refused?.action, refused?.eventId], ['park', late.id]);
    assert.match(refused?.reason ?? '', /there is a gap/);
    assert.equal(await apply([born, other]), null);
    await world.pool.query(
      `insert into ops.skipped_events (consumer_group, stream, revision, event_id, type, reason) values ($1, $2, 1, $3, $4, 'no')`,
      [`projection-clients-v${generation}`, born.stream, lost.id, lost.type],
    );
    assert.equal(await apply([late]), null);
    const shown = await world.pool.query('select name, revision from read.clients where id = $1', [gappy]);
    assert.deepEqual(shown.rows, [{ name: 'Three', revision: 2 }]);
  });

  t(
    'one reading of the store gives each reader what it lacks, up to the end, and leaves out one that fails',
    async () => {
      const kinds = ['post', 'target', 'client'];
      const events = Array.from({ length: 2_500 }, (_, at) => ({
        ...{ id: randomUUID(), stream: `${kinds[at % 3]}-${at}`, position: BigInt(at + 1), created: new Date(at) },
      })) as unknown as readonly RecordedEvent[];
      const store = {
        readAll: async ({ after, limit }: { readonly after?: bigint | null; readonly limit: number }) =>
          events.filter(({ position }) => position > (after ?? 0n)).slice(0, limit),
      };
      const took = new Map<string, bigint[]>();
      const intake = (name: string, of: string, after: bigint | null, failsAt = Infinity): Intake => ({
        ...{ name, kinds: new Set([of]), after },
        prepare: async (records) => async () => {
          const own = took.get(name) ?? [];
          took.set(name, [...own, ...records.map(({ position }) => position)]);
          if (own.length > failsAt) throw new Error('it cannot');
        },
      });
      const pages: PageRead[] = [];
      const failed = await readStore({
        ...{ store: store as never, upTo: 2_300n },
        intakes: [intake('a', 'post', null), intake('b', 'target', 1_200n), intake('c', 'client', 500n, 1)],
        took: async (page) => void pages.push(page),
      });
      const expected = (of: string, after: bigint) =>
        events.flatMap(({ stream, position }) =>
          stream.startsWith(of) && position > after && position <= 2_300n ? [position] : [],
        );
      assert.deepEqual([took.get('a'), took.get('b')], [expected('post', 0n), expected('target', 1_200n)]);
      assert.deepEqual([...failed.keys()], ['c']);
      assert.deepEqual(
        pages.map(({ position, size, events: counts }) => [position, size, [...counts.keys()].sort()]),
        [
          [1_000n, 1_000, ['a', 'b', 'c']],
          [2_000n, 1_000, ['a', 'b']],
          [2_300n, 300, ['a', 'b']],
        ],
      );
    },
  );

  t('all are rebuilt at once beside a writer, and readers see the former rows until the switch', async () => {
    const writes = async (): Promise<bigint> => {
      let last = 0n;
      for (let n = 0; n < 20; n += 1) last = await world.append(story());
      return last;
    };
    const rowsOf = async (): Promise<number> =>
      (await world.pool.query<{ n: number }>(`select count(*)::int as n from ${view('post_targets')}`)).rows[0]?.n ?? 0;
    const before = await rowsOf();
    const shares: number[] = [];
    const counts: Promise<number>[] = [];
    const report = ({ share }: RebuildProgress): void => {
      shares.push(share);
      counts.push(rowsOf());
    };
    const [parts, last] = await Promise.all([
      rebuildAll({ ...world, client: null, signal: stop.signal, report }),
      writes(),
    ]);
    assert.ok(before > 80);
    assert.equal(shares.at(-1), 1);
    for (const count of counts) assert.ok((await count) >= before, 'the rows of before were there');
    assert.deepEqual(
      parts.map(({ name, dropped, failed }) => [name, dropped, failed]),
      projections.map(({ name }) => [name, true, null]),
    );
    assert.equal((await world.pool.query('select from ops.rebuilds')).rowCount, 0);
    await settled(last);
    assert.deepEqual((await compareWithReplay(world)).differences, []);
  });

  t('where one cannot be rebuilt the others are, and a repeat goes on with it alone', async () => {
    const { codec } = world;
    const isOfClient = ({ stream }: StoredBytes): boolean => stream.startsWith('client-');
    const decodeAll = async (records: readonly StoredBytes[]) => {
      if (records.some(isOfClient)) throw new EventStoreError('unavailable', 'no key today');
      return codec.decodeAll(records);
    };
    await world.append([
      { stream: `client-${randomUUID()}`, type: 'ClientCreated', data: { ...clientFields, name: 'C' } },
    ]);
    const broken = Object.assign(Object.create(codec) as EventCodec, { decodeAll });
    const first = await rebuildAll({ ...world, codec: broken, client: null, signal: stop.signal });
    assert.deepEqual(
      first.flatMap(({ name, failed }) => (failed === null ? [] : [[name, failed]])),
      [['clients', 'no key today']],
    );
    const second = await rebuildAll({ ...world, client: null, signal: stop.signal });
    assert.deepEqual(
      second.map(({ name, failed }) => [name, failed]),
      [['clients', null]],
    );
    assert.deepEqual((await compareWithReplay(world)).differences, []);
  });

  t('tables of another shape are not written: the runner makes its own, and says so meanwhile', async () => {
    const says = () =>
      running
        .status()
        .some(({ name, reason }) => name === 'clients' && /tables of shape 1 are being made/.test(reason ?? ''));
    // The making of so few rows may end between two questions: it waits for the lock until the question is answered.
    const former = await withRebuildLock(world.pool, 'clients', stop.signal, async () => {
      const { rows } = await world.pool.query<{ live: number }>(
        `update ops.projections set shape = 0 where name = 'clients' returning live`,
      );
      await until('the runner says so', says);
      return rows[0]?.live ?? 0;
    });
    const own = () => running.status().find(({ name }) => name === 'clients')?.generation ?? 0;
    // Between its former tables and its own it has none for a moment, and nothing to say.
    await until('it runs on its own', () => own() > former);
    await until('nothing is left to say', () => running.status().every((one) => one.reason === null));
    assert.deepEqual((await compareWithReplay(world)).differences, []);
  });
});
