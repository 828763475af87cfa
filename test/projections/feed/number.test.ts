import { deepEqual, equal, match, notDeepEqual, ok, rejects } from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import type { EventStore, EventToAppend, RecordedEvent } from '#contracts/ports/event-store.ts';
import { consistencyProof, inclusionProof, isConsistent, isIncluded, leafOf, rootOf } from '#domain/tree.ts';
import { EventStoreDbStore } from '#infra/eventstoredb/event-store.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { signBegunEpoch, signEndedDays } from '#projections/feed/daily.ts';
import { frontierAt } from '#projections/feed/epochs.ts';
import { numberEvents } from '#projections/feed/number.ts';
import { checkpointAt, checkpointsOf } from '#projections/feed/sign.ts';
import { frontierOf, subtreesOf } from '#projections/feed/tree.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { restored } from '#runtime/work/restores.ts';
import { MemoryEventStore } from '#test/support/event-store/memory.ts';
import { EventStoreDouble } from '#test/support/eventstoredb/double.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { random, seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const quiet = { info: () => undefined, warn: () => undefined };

const eventOf = (workspaceId: string | null, type: string, data: object = {}): EventToAppend => ({
  ...{ id: randomUUID(), type, partitionKey: 'any', data: Buffer.from(JSON.stringify(data)) },
  metadata: Buffer.from(JSON.stringify(workspaceId === null ? {} : { workspaceId })),
  ...(workspaceId === null ? {} : { workspaceId }),
});

/** All events of a workspace that its feed has, as the port answers them. */
const ofWorkspace = async (store: EventStore, workspaceId: string): Promise<readonly RecordedEvent[]> => {
  const all: RecordedEvent[] = [];
  for (let after: bigint | null = null; ; ) {
    const page = await store.readWorkspace(workspaceId, { after, limit: 100 });
    all.push(...page.events.filter(({ stream }) => !stream.startsWith('request-')));
    if (page.isEnd) return all;
    after = page.next;
  }
};

const workspaces = [randomUUID(), randomUUID(), randomUUID()] as const;

/** Streams that grow in turns, some of no workspace. */
const fill = async (store: EventStore, count: number, seed: number): Promise<void> => {
  const choice = random(seed);
  for (let made = 0; made < count; made += 1) {
    const workspaceId = choice.pick([...workspaces, null]);
    const stream = `${choice.pick(['post', 'client', 'request', 'media'])}-${randomUUID()}`;
    const length = choice.int(1, 4);
    const events = Array.from({ length }, (_, at) => eventOf(workspaceId, `Type${at}`, { made, at }));
    await store.append(stream, 'none', events);
  }
};

interface Row {
  readonly sequence: string;
  readonly event_id: string;
  readonly stream: string;
  readonly revision: string;
  readonly position: string;
  readonly client_id: string | null;
  readonly at: Date;
  readonly hash: Buffer;
}

suite('the feed', { timeoutMs: 120_000 }, (t) => {
  let pool: pg.Pool;
  let url = '';
  t.before(async () => {
    ({ url } = await preparedDatabase());
    pool = new pg.Pool({ connectionString: url, max: 6 });
  });
  t.after(() => pool.end());
  t.before.each(() => wipe());

  const secrets = new Secrets(`v1:${randomBytes(32).toString('base64')}`);
  const wipe = () =>
    pool.query(`truncate ops.feed_events, ops.feed_heads, ops.feed_subtrees, ops.feed_kept, ops.feed_epochs, ops.restores,
        ops.feed_checkpoints, ops.feed_keys;
      insert into ops.feed_epochs (epoch) values (1); update ops.feed_position set position = null, event_id = null`);

  const rowsOf = async (workspaceId: string): Promise<readonly Row[]> =>
    (await pool.query<Row>('select * from ops.feed_events where workspace_id = $1 order by sequence', [workspaceId]))
      .rows;
  const headOf = async (workspaceId: string) => {
    const { rows } = await pool.query<{ size: string; frontier: Buffer }>(
      'select size, frontier from ops.feed_heads where workspace_id = $1',
      [workspaceId],
    );
    return frontierOf(Number(rows[0]?.size ?? 0), rows[0]?.frontier ?? Buffer.alloc(0));
  };
  const reached = async (): Promise<bigint | null> => {
    const { rows } = await pool.query<{ position: string | null }>('select position from ops.feed_position');
    const text = rows[0]?.position ?? null;
    return text === null ? null : BigInt(text);
  };

  /** Numbers until everything that the store has is numbered. */
  const numbered = async (store: EventStore, writers = 1): Promise<void> => {
    const stopped = new AbortController();
    const work = async () => {
      while (!stopped.signal.aborted) await numberEvents({ store, pool, signal: stopped.signal, logger: quiet });
    };
    const working = Array.from({ length: writers }, work);
    await until('all is numbered', async () => (await reached()) === (await store.head()));
    stopped.abort();
    await Promise.all(working);
  };

  /** Each feed has the store's events in the store's order, and its tree is theirs. */
  const agrees = async (store: EventStore): Promise<void> => {
    for (const workspaceId of workspaces) {
      const events = await ofWorkspace(store, workspaceId);
      const rows = await rowsOf(workspaceId);
      const numbers = rows.map(({ sequence, event_id, stream, revision }) => [
        Number(sequence),
        event_id,
        stream,
        BigInt(revision),
      ]);
      deepEqual(
        numbers,
        events.map(({ id, stream, revision }, at) => [at + 1, id, stream, revision]),
      );
      deepEqual(
        rows.map(({ hash }) => hash),
        events.map(leafOf),
      );
      ok(rows.every(({ at }, index) => index === 0 || at >= (rows[index - 1] as Row).at));
      const head = await headOf(workspaceId);
      equal(head.size, events.length);
      deepEqual(rootOf(head), rootOf(await frontierAt(pool, workspaceId, events.length)));
    }
  };

  t('numbers what every workspace did in the order of the store, and leaves requests out', async () => {
    const store = new MemoryEventStore();
    await fill(store, 300, seeded('streams').seed);
    await numbered(store);
    await agrees(store);
    await fill(store, 40, 7);
    await numbered(store);
    await agrees(store);
    const { rows } = await pool.query("select 1 from ops.feed_events where stream like 'request-%'");
    equal(rows.length, 0);
  });

  t('one history has the same numbers, leaves and signed root in both event stores', async () => {
    const choice = random(seeded('stores').seed);
    const texts = ['{"a": 1}', '{"b":"ü – 🙂"}', JSON.stringify({ long: 'x'.repeat(20_000) })];
    const history = Array.from({ length: 90 }, (_, made) => {
      const workspaceId = choice.pick([...workspaces, null]);
      const events = Array.from({ length: choice.int(1, 5) }, (_, at): EventToAppend => {
        const one = eventOf(workspaceId, `Type${at}`, { clientId: randomUUID(), body: { content: 'Text.' }, made });
        // What no codec wrote: other spaces, other characters, bytes that are no text.
        const other = choice.pick([null, null, ...texts.map((text) => Buffer.from(text)), Buffer.from([0, 255, 254])]);
        return other === null ? one : { ...one, data: other };
      });
      return { stream: `${choice.pick(['post', 'client', 'request', 'target'])}-${randomUUID()}`, events };
    });
    const double = await EventStoreDouble.start({});
    const stores = [
      await PostgresEventStore.open({ url, schema: 'es_compared' }),
      new EventStoreDbStore({ url: double.url }),
    ];
    try {
      const found: { readonly positions: readonly unknown[]; readonly feeds: readonly unknown[] }[] = [];
      for (const store of stores) {
        for (const { stream, events } of history) await store.append(stream, 'none', events);
        await wipe();
        await numbered(store);
        await agrees(store);
        const rows = (await Promise.all(workspaces.map(rowsOf))).flat();
        const places = rows.map(({ sequence, event_id, stream, revision, client_id, hash }) => {
          return [sequence, event_id, stream, revision, client_id, hash.toString('hex')];
        });
        const roots = await Promise.all(
          workspaces.map(async (workspaceId) => {
            const size = (await headOf(workspaceId)).size;
            return (await checkpointAt(pool, secrets, { workspaceId, epoch: 1, size, now: 0 })).root;
          }),
        );
        found.push({ positions: rows.map(({ position }) => position), feeds: [...places, ...roots] });
      }
      const [ours, other] = found;
      ok((ours?.feeds.length ?? 0) > 80);
      deepEqual(ours?.feeds, other?.feeds);
      notDeepEqual(ours?.positions, other?.positions, 'the stores have places of their own');
    } finally {
      for (const store of stores) await store.close();
      await double.stop();
    }
  });

  t('gives the same numbers and hashes again when all of it is lost', async () => {
    const store = new MemoryEventStore();
    await fill(store, 120, 3);
    await numbered(store);
    const before = await Promise.all(workspaces.map(rowsOf));
    await wipe();
    await numbered(store);
    deepEqual(await Promise.all(workspaces.map(rowsOf)), before);
  });

  t('two processes that number at once give each event one number', async () => {
    const store = new MemoryEventStore();
    const filling = fill(store, 400, 11);
    await numbered(store, 3);
    await filling;
    await numbered(store, 3);
    await agrees(store);
  });

  t('numbers few events that are many bytes', async () => {
    const store = new MemoryEventStore();
    const [workspaceId] = workspaces;
    for (let made = 0; made < 60; made += 1) {
      await store.append(`post-${made}`, 'none', [eventOf(workspaceId, 'Any', { text: 'x'.repeat(400_000) })]);
    }
    await numbered(store);
    equal((await rowsOf(workspaceId)).length, 60);
  });

  t('knows the client of an event from the stream', async () => {
    const store = new MemoryEventStore();
    const [workspaceId] = workspaces;
    const [clientId, other] = [randomUUID(), randomUUID()];
    await store.append(`client-${clientId}`, 'none', [eventOf(workspaceId, 'ClientCreated')]);
    await store.append('post-1', 'none', [
      eventOf(workspaceId, 'PostDrafted', { clientId }),
      eventOf(workspaceId, 'PostEdited'),
    ]);
    await store.append('media-1', 'none', [eventOf(workspaceId, 'MediaRegistered', { clientId: null })]);
    await store.append('grant-1', 'none', [eventOf(workspaceId, 'GrantGiven', { clientId: other })]);
    await store.append('post-2', 'none', [
      eventOf(workspaceId, 'PostDrafted', { text: 'it says "clientId": nothing' }),
    ]);
    // Of an object inside the event it is another's.
    await store.append('post-3', 'none', [
      eventOf(workspaceId, 'PostDrafted', { app: { clientId: other } }),
      eventOf(workspaceId, 'PostEdited', { app: { clientId: other }, clientId }),
    ]);
    await store.append('post-4', 'none', [eventOf(workspaceId, 'PostDrafted', { app: { clientId: other } })]);
    await store.append('post-5', 'none', [eventOf(workspaceId, 'PostDrafted', { clientId: { clientId } })]);
    await numbered(store);
    // Another process knows no stream yet.
    await store.append('post-1', 1n, [eventOf(workspaceId, 'PostEdited')]);
    await numbered(store);
    const numbers = (await rowsOf(workspaceId)).map(({ stream, client_id: id }) => [stream, id]);
    deepEqual(numbers, [
      [`client-${clientId}`, clientId],
      ...[
        ['post-1', clientId],
        ['post-1', clientId],
        ['media-1', null],
        ['grant-1', null],
        ['post-2', null],
        ['post-3', clientId],
        ['post-3', clientId],
        ['post-4', null],
        ['post-5', null],
      ],
      ['post-1', clientId],
    ]);
  });

  t('proves its events and its growth from what Postgres keeps', async () => {
    const store = new MemoryEventStore();
    const [workspaceId] = workspaces;
    for (let at = 0; at < 7; at += 1) {
      await store.append(
        `post-${at}`,
        'none',
        Array.from({ length: 100 }, () => eventOf(workspaceId, 'Any')),
      );
    }
    await numbered(store);
    const rows = await rowsOf(workspaceId);
    equal(rows.length, 700);
    const kept = async () =>
      (await pool.query('select level, index, hash from ops.feed_subtrees order by level, index')).rows;
    const ours = await kept();
    deepEqual(
      ours.map(({ level, index }) => `${level}/${index}`),
      [...Array.from({ length: 43 }, (_, index) => `4/${index}`), '8/0', '8/1'],
    );
    // A database in which only each eighth level was kept.
    await pool.query('delete from ops.feed_subtrees where level % 8 = 4');
    await pool.query(readFileSync(new URL('../../../infra/postgres/schema/021-subtrees.sql', import.meta.url), 'utf8'));
    deepEqual(await kept(), ours);
    for (const size of [1, 255, 256, 257, 511, 512, 513, 700]) {
      const root = rootOf(await frontierAt(pool, workspaceId, size));
      for (const index of new Set([0, 1, 127, 254, 255, 256, 400, 511, 512, size - 1].filter((one) => one < size))) {
        const proof = await inclusionProof(subtreesOf(pool, workspaceId), index, size);
        ok(isIncluded(proof, { leaf: (rows[index] as Row).hash, index, size, root }), `${index} of ${size}`);
      }
      const longer = { size: 700, root: rootOf(await headOf(workspaceId)) };
      const proof = await consistencyProof(subtreesOf(pool, workspaceId), size, 700);
      ok(isConsistent(proof, { size, root }, longer), `${size} of 700`);
    }
  });

  t('a store that lost its newest events begins an epoch that names what each workspace keeps', async () => {
    const [older, newer] = [new MemoryEventStore(), new MemoryEventStore()];
    const choice = random(5);
    for (let made = 0; made < 700; made += 1) {
      const events = [eventOf(choice.pick([...workspaces]), 'Any', { made })];
      await newer.append(`post-${made}`, 'none', events);
      if (made < 450) await older.append(`post-${made}`, 'none', events);
    }
    await numbered(newer);
    await older.append('post-after', 'none', [eventOf(workspaces[0], 'After')]);
    const keeps = await Promise.all(workspaces.map(async (id) => (await ofWorkspace(older, id)).length));
    await numbered(older);
    await agrees(older);
    const { rows } = await pool.query<{ id: string; sequence: string }>(
      'select workspace_id as id, sequence from ops.feed_kept where epoch = 2',
    );
    const kept = new Map(rows.map(({ id, sequence }) => [id, Number(sequence)]));
    deepEqual(
      workspaces.map((id) => kept.get(id)),
      [(keeps[0] as number) - 1, keeps[1], keeps[2]],
    );
  });

  t('a restore that was declared begins an epoch, though all events are there', async () => {
    const store = new MemoryEventStore();
    await fill(store, 50, 9);
    await numbered(store);
    await restored(pool, new Date().toISOString(), 'ada');
    await fill(store, 10, 10);
    await numbered(store);
    await agrees(store);
    const { rows } = await pool.query('select epoch from ops.feed_epochs order by epoch');
    deepEqual(rows, [{ epoch: 1 }, { epoch: 2 }]);
    await numbered(store);
    equal((await pool.query('select 1 from ops.feed_epochs')).rowCount, 2);
  });

  const going = new AbortController().signal;
  const day = 86_400_000;
  /** Makes the first of them events of days before today: so many of each, the oldest day first. */
  const spreadOverDays = async (workspaceId: string, days: readonly number[]): Promise<void> => {
    let from = 0;
    for (const [index, events] of days.entries()) {
      await pool.query(
        `update ops.feed_events set at = now() - make_interval(days => $4)
         where workspace_id = $1 and sequence > $2 and sequence <= $3`,
        [workspaceId, from, from + events, days.length - index],
      );
      from += events;
    }
  };
  const signedSizes = async (workspaceId: string) =>
    (await checkpointsOf(pool, workspaceId, { before: null, limit: 100 })).map(({ epoch, size }) => [epoch, size]);

  t(
    'each day on which the feed grew is signed once, by one of two processes, and one that dies is followed',
    async () => {
      const store = new MemoryEventStore();
      const [first, second] = workspaces;
      for (let at = 0; at < 12; at += 1) {
        for (const id of [first, second]) await store.append(`post-${id}-${at}`, 'none', [eventOf(id, 'Any')]);
      }
      await numbered(store);
      await spreadOverDays(first, [3, 0, 4]);
      await spreadOverDays(second, [5]);
      // The process dies behind the key, and then behind the first checkpoint.
      const dying = (behind: RegExp) => ({
        query: async (...args: Parameters<pg.Pool['query']>) => {
          const answer = await pool.query(...args);
          if (behind.test(String(args[0]))) throw new Error('died');
          return answer;
        },
      });
      for (const behind of [/insert into ops.feed_keys/, /insert into ops.feed_checkpoints/]) {
        await rejects(
          signEndedDays({ pool: dying(behind) as unknown as pg.Pool, secrets, signal: going }, Date.now()),
          /died/,
        );
      }
      equal((await pool.query('select 1 from ops.feed_checkpoints')).rowCount, 1);
      await Promise.all([1, 2].map(() => signEndedDays({ pool, secrets, signal: going }, Date.now())));
      deepEqual(await signedSizes(first), [
        [1, 7],
        [1, 3],
      ]);
      deepEqual(await signedSizes(second), [[1, 5]]);
      equal((await pool.query('select 1 from ops.feed_keys')).rowCount, 1);
      // Nothing grew since: nothing is signed.
      equal(await signEndedDays({ pool, secrets, signal: going }, Date.now()), 0);
      equal(await signEndedDays({ pool, secrets, signal: going }, Date.now() + day), 2);
      deepEqual((await signedSizes(second))[0], [1, 12]);
    },
  );

  t('what a former epoch left is not signed day by day again', async () => {
    const store = new MemoryEventStore();
    const [workspaceId] = workspaces;
    for (let at = 0; at < 5; at += 1) await store.append(`post-${at}`, 'none', [eventOf(workspaceId, 'Any')]);
    await numbered(store);
    await restored(pool, new Date().toISOString(), 'ada');
    await store.append('post-after', 'none', [eventOf(workspaceId, 'After')]);
    await numbered(store);
    await spreadOverDays(workspaceId, [2, 4]);
    equal(await signEndedDays({ pool, secrets, signal: going }, Date.now()), 1);
    deepEqual(await signedSizes(workspaceId), [[2, 6]]);
    // What it left is signed once, as the epoch begins.
    const begun = () => signBegunEpoch({ pool, secrets, signal: going }, 2, Date.now());
    deepEqual([await begun(), await begun()], [1, 0]);
    deepEqual(await signedSizes(workspaceId), [
      [2, 6],
      [2, 5],
    ]);
    const [, left] = await checkpointsOf(pool, workspaceId, { before: null, limit: 2 });
    match(left?.note ?? '', /\nepoch 2\nkept 5\n/);
    equal(await signBegunEpoch({ pool, secrets, signal: going }, 1, Date.now()), 0, 'the first epoch was left nothing');
  });
});
