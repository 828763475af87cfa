/**
 * No wait for Postgres is endless: a connection that falls silent, at whatever byte, is detected, closed and replaced.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { withTableLock } from '#contracts/base/migration.ts';
import { QueryTimeout } from '#contracts/ports/database.ts';
import { EventStoreError, type EventToAppend } from '#contracts/ports/event-store.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { TailSignal } from '#infra/postgres/event-tail.ts';
import { EventWriter } from '#infra/postgres/event-writer.ts';
import { openPool, setSession } from '#infra/postgres/pool.ts';
import { withRebuildLock } from '#projections/engine/rebuild.ts';
import { inTransaction, withConnection } from '#runtime/postgres/transactions.ts';
import { Listener } from '#services/webhooks/listener.ts';
import { runSql } from '#test/support/event-store/postgres.ts';
import { type ProxiedDatabase, proxiedDatabase } from '#test/support/silent-postgres.ts';
import { suite } from '#test/support/suite.ts';
import { afterBytes, atRequest, theNext } from '#test/support/tcp-proxy.ts';
import { until } from '#test/support/until.ts';

const bytes = new TextEncoder().encode('{}');

const event = (): EventToAppend => {
  const id = randomUUID();
  return { id, type: 'PostCreated', data: bytes, metadata: bytes, partitionKey: id };
};

/** What became of it, and after how many milliseconds. */
const outcomeOf = async (work: Promise<unknown>): Promise<{ readonly reported: string; readonly ms: number }> => {
  const began = performance.now();
  const reported = await Promise.race([
    work.then(
      () => 'ok',
      (error) =>
        error instanceof EventStoreError ? error.code : error instanceof QueryTimeout ? error.code : `${error}`,
    ),
    delay(20_000, 'no answer', { ref: false }),
  ]);
  return { reported, ms: performance.now() - began };
};

suite('deadlines on Postgres', { waits: true }, (t) => {
  let database: ProxiedDatabase;

  t.before(async () => {
    database = await proxiedDatabase();
    await (await PostgresEventStore.open({ url: database.direct })).close();
  });
  t.after(() => database?.close());

  const stored = async (stream: string): Promise<number> =>
    (await runSql(database.direct, 'select 1 from es.events where stream = $1', [stream])).length;

  t('a session has its settings, also where the server does not notice clients that leave', async () => {
    const settings = ['tcp_keepalives_count', 'idle_in_transaction_session_timeout', 'plan_cache_mode'];
    const isWatching = 'client_connection_check_interval';
    const of = async (client: pg.ClientBase, name: string): Promise<string> =>
      (await client.query(`show ${name}`)).rows[0][name];
    const pool = openPool({ url: database.direct, max: 1, byKey: true });
    await withConnection(pool, async (client) => {
      const found = [];
      for (const name of [...settings, isWatching]) found.push(await of(client, name));
      assert.deepEqual(found, ['3', '1min', 'force_generic_plan', '5s']);
    });
    await pool.end();
    const client = new pg.Client({ connectionString: database.direct });
    await client.connect();
    const query = client.query.bind(client) as (config: { text: string }) => Promise<unknown>;
    client.query = ((config: { text: string }) =>
      // As a server answers that can watch nobody: the value is refused.
      query({ ...config, text: config.text.replace(`${isWatching} = 5000`, `${isWatching} = -1`) })) as never;
    await setSession(client, 'set plan_cache_mode = force_generic_plan');
    client.query = query as never;
    const found = [];
    for (const name of settings) found.push(await of(client, name));
    assert.deepEqual(found, ['3', '1min', 'force_generic_plan']);
    await client.end();
  });

  t('an append answers within its deadline, at whichever byte its connection falls silent', async () => {
    const deadlineMs = 2_000;
    const open = (url: string) => new EventWriter({ url, schema: 'es', partitions: 12, deadlineMs });
    const append = (writer: EventWriter, stream: string, one: EventToAppend) =>
      writer.append(stream, 'none', [one], 200);
    // How much goes each way from the connection to the answer of the first append.
    const whole = { server: 0, client: 0 };
    const measured = await database.way();
    measured.proxy.silence((to, chunk) => {
      whole[to] += chunk.length;
      return null;
    });
    const writer = open(measured.url);
    await append(writer, `post-${randomUUID()}`, event());
    await writer.close();

    const points = (['server', 'client'] as const).flatMap((to) =>
      Array.from({ length: 8 }, (_, i) => ({ to, n: Math.floor((whole[to] * i) / 8) })),
    );
    const seen = await Promise.all(
      points.map(async ({ to, n }) => {
        const { url, proxy } = await database.way();
        proxy.silence(afterBytes(to, n));
        const mine = open(url);
        const stream = `post-${randomUUID()}`;
        const one = event();
        const { reported, ms } = await outcomeOf(append(mine, stream, one));
        proxy.speak();
        // A repeat of the same append learns the outcome, on its own connection.
        let again = reported;
        if (reported !== 'no answer') {
          await until('it is known', async () => {
            again = (await outcomeOf(append(mine, stream, one))).reported;
            return !/^(unavailable|outcome_unknown)$/.test(again);
          });
          await mine.close();
        }
        return { at: `byte ${n} to the ${to}`, reported, ms, again, stored: await stored(stream) };
      }),
    );
    for (const { at, reported, ms, again, stored: count } of seen) {
      assert.match(reported, /^(unavailable|outcome_unknown)$/, at);
      assert.ok(ms < deadlineMs + 1_000, `${at}: ${Math.round(ms)} ms`);
      assert.equal(again, 'ok', at);
      assert.equal(count, 1, at);
    }
    assert.deepEqual([...new Set(seen.map(({ reported }) => reported))].sort(), ['outcome_unknown', 'unavailable']);
  });

  t('appends that wait behind a silent connection are sent on the next one', async () => {
    const { url, proxy } = await database.way();
    const writer = new EventWriter({ url, schema: 'es', partitions: 12, deadlineMs: 2_000 });
    await writer.append(`post-${randomUUID()}`, 'none', [event()], 200);
    let fell = false;
    proxy.silence((...seen) => {
      const at = atRequest('append')(...seen);
      fell ||= at !== null;
      return at;
    });
    const first = outcomeOf(writer.append(`post-${randomUUID()}`, 'none', [event()], 200));
    await until('the first is on its way', () => fell);
    const behind = outcomeOf(writer.append(`post-${randomUUID()}`, 'none', [event()], 200));
    assert.equal((await Promise.race([first, behind])).reported, 'outcome_unknown');
    proxy.speak();
    assert.equal((await first).reported, 'outcome_unknown');
    assert.equal((await behind).reported, 'ok');
    await writer.close();
  });

  t('appends of one stream keep their order when the group of the first one times out', async () => {
    const store = await PostgresEventStore.open({ url: database.direct, deadlineMs: 4_000 });
    const holder = new pg.Client({ connectionString: database.direct });
    await holder.connect();
    const [stream, culprit] = [`post-${randomUUID()}`, `post-${randomUUID()}`];
    try {
      await holder.query('begin');
      await holder.query(
        `insert into es.event_rows (position, stream, revision, id, type, data, metadata, partition_key)
         values (9000000001, $1, 0, gen_random_uuid(), 'X', '', '', '')`,
        [culprit],
      );
      const hanging = outcomeOf(store.append(culprit, 'none', [event()]));
      const inOrder = [
        store.append(stream, 'none', [event()]),
        store.append(stream, 0n, [event()]),
        store.append(stream, 1n, [event()]),
      ];
      assert.deepEqual(
        (await Promise.all(inOrder.map(outcomeOf))).map(({ reported }) => reported),
        ['ok', 'ok', 'ok'],
      );
      assert.equal((await hanging).reported, 'unavailable');
    } finally {
      await holder.query('rollback');
      await holder.end();
    }
    await store.close();
  });

  t('an append on which the server hangs fails alone', async () => {
    const store = await PostgresEventStore.open({ url: database.direct, deadlineMs: 4_000 });
    const holder = new pg.Client({ connectionString: database.direct });
    await holder.connect();
    const streams = Array.from({ length: 24 }, () => `post-${randomUUID()}`);
    const culprit = streams[13] ?? '';
    try {
      await holder.query('begin');
      await holder.query(
        `insert into es.event_rows (position, stream, revision, id, type, data, metadata, partition_key)
         values (9000000000, $1, 0, gen_random_uuid(), 'X', '', '', '')`,
        [culprit],
      );
      const outcomes = await Promise.all(streams.map((stream) => outcomeOf(store.append(stream, 'none', [event()]))));
      for (const [i, { reported }] of outcomes.entries())
        assert.equal(reported, streams[i] === culprit ? 'unavailable' : 'ok');
      assert.ok(outcomes.every(({ ms }) => ms < 5_000));
      assert.equal(await stored(culprit), 0);
    } finally {
      await holder.query('rollback');
      await holder.end();
    }
    await store.append(culprit, 'none', [event()]);
    await store.close();
  });

  t('an append that silences its connection each time delays the other appends only for a while', async () => {
    const { url, proxy } = await database.way();
    const writer = new EventWriter({ url, schema: 'es', partitions: 12, deadlineMs: 1_000 });
    const streams = Array.from({ length: 8 }, () => `post-${randomUUID()}`);
    const culprit = streams[2] ?? '';
    proxy.silence(atRequest(culprit));
    const over = new AbortController();
    // As callers do: repeats an append with an unknown outcome, with the same ids, until the outcome is known.
    const known = async (stream: string): Promise<void> => {
      for (const one = event(); !over.signal.aborted; ) {
        if ((await outcomeOf(writer.append(stream, 'none', [one], 200))).reported === 'ok') return;
      }
    };
    const all = streams.map(known);
    const others = Promise.all(all.filter((_, i) => streams[i] !== culprit));
    assert.equal((await outcomeOf(others)).reported, 'ok');
    over.abort();
    proxy.speak();
    await Promise.all(all);
    await writer.close();
  });

  t('reads on silent connections time out and free their slots for other reads', async () => {
    const { url, proxy } = await database.way();
    const store = await PostgresEventStore.open({ url, readMs: 400 });
    const stream = `post-${randomUUID()}`;
    await store.append(stream, 'none', [event()]);
    proxy.silence(atRequest('read-whole'));
    const reads: Promise<{ reported: string; ms: number }>[] = [];
    for (let i = 0; i < 3; i += 1) {
      reads.push(outcomeOf(store.read(stream)));
      await delay(20);
    }
    for (const { reported, ms } of await Promise.all(reads)) {
      assert.equal(reported, 'unavailable');
      assert.ok(ms < 2_500, `${ms} ms`);
    }
    proxy.speak();
    assert.equal((await store.read(stream)).length, 1);
    await store.close();
  });

  t('a statement without an answer fails with QueryTimeout, and its connection is closed', async () => {
    const phases = ['begin;', 'update one', 'commit'];
    for (const phase of phases) {
      const { url, proxy } = await database.way();
      const pool = openPool({ url, max: 1, answerMs: 300 });
      await runSql(database.direct, 'create table if not exists one (n int); truncate one; insert into one values (0)');
      proxy.silence(atRequest(phase));
      const work = () =>
        inTransaction(pool, async (tx) => {
          await tx.query('update one set n = n + 1');
          return { commit: true, result: null };
        });
      const { reported, ms } = await outcomeOf(work());
      assert.equal(reported, 'query_timeout', phase);
      assert.ok(ms < 2_000, `${phase}: ${ms} ms`);
      assert.equal(pool.totalCount, 0, `${phase}: the connection was given back`);
      proxy.speak();
      // The lock of the row went with the session.
      await work();
      assert.deepEqual(await runSql(database.direct, 'select n from one'), [{ n: 1 }], phase);
      await pool.end();
    }
  });

  t('work on a connection that falls silent between two statements fails', async () => {
    const { url, proxy } = await database.way();
    const pool = openPool({ url, max: 1, answerMs: 300 });
    const { reported } = await outcomeOf(
      withConnection(pool, async (tx) => {
        await tx.query('select 1');
        proxy.silence(() => 0);
        await tx.query('select 2');
      }),
    );
    assert.equal(reported, 'query_timeout');
    proxy.speak();
    assert.equal((await pool.query('select 3 as n')).rows[0].n, 3);
    // A time of its own: longer than the pool's for one, shorter for another.
    assert.equal(
      (await outcomeOf(pool.query({ text: 'select pg_sleep(0.6)', query_timeout: 5_000 } as pg.QueryConfig))).reported,
      'ok',
    );
    assert.equal((await outcomeOf(pool.query('select pg_sleep(600)'))).reported, 'query_timeout');
    // What was given up ends on the server, too; so does, in a minute, a transaction whose client went silent.
    const idle = await pool.query('show idle_in_transaction_session_timeout');
    assert.deepEqual(idle.rows, [{ idle_in_transaction_session_timeout: '1min' }]);
    await until('the server lets go', async () => {
      const left = await runSql(database.direct, `select 1 from pg_stat_activity where query = 'select pg_sleep(600)'`);
      return left.length === 0;
    });
    // A goodbye without an answer keeps no process alive.
    const client = await pool.connect();
    let closed = false;
    client.on('end', () => {
      closed = true;
    });
    client.release();
    proxy.silence(() => 0);
    await pool.end();
    await until('its socket is closed', () => closed);
  });

  t('on a busy connection each statement has its own deadline', async () => {
    const pool = openPool({ url: database.direct, max: 1, answerMs: 600 });
    // Each statement is answered in time; a waiting one is sent as soon as the one before is answered.
    const crowd = await Promise.all(Array.from({ length: 12 }, () => outcomeOf(pool.query('select pg_sleep(0.1)'))));
    assert.deepEqual([...new Set(crowd.map(({ reported }) => reported))], ['ok']);
    // A short time is of the statement that named it, and a long one does not shield the next.
    const brief = (text: string, ms: number) => outcomeOf(pool.query({ text, query_timeout: ms } as pg.QueryConfig));
    const mixed = await Promise.all([
      brief('select pg_sleep(0.2)', 400),
      brief('select pg_sleep(0.5)', 5_000),
      brief('select pg_sleep(60)', 300),
    ]);
    assert.deepEqual(
      mixed.map(({ reported }) => reported),
      ['ok', 'ok', 'query_timeout'],
    );
    assert.ok((mixed[2]?.ms ?? 0) < 2_500, `${mixed[2]?.ms} ms`);
    await pool.end();
  });

  t('a rebuild ends when the session of its lock falls silent, and another rebuild can start', async () => {
    const { url, proxy } = await database.way();
    const pool = openPool({ url, max: 2 });
    const never = new AbortController().signal;
    let begun = false;
    const working = (signal: AbortSignal) =>
      new Promise<void>((_, reject) => {
        begun = true;
        signal.addEventListener('abort', () => reject(new Error('interrupted')));
      });
    const first = withRebuildLock(pool, 'posts', never, working, 200);
    await until('it works', () => begun);
    await assert.rejects(
      withRebuildLock(pool, 'posts', never, async () => 'both'),
      /another rebuild of posts is running/,
    );
    proxy.silence(atRequest('select 1'));
    assert.match(
      (await outcomeOf(first)).reported,
      /rebuild of posts: the session that held its lock was lost; start it again/,
    );
    await until('the lock is free', async () =>
      withRebuildLock(pool, 'posts', never, async () => true).catch(() => false),
    );
    await pool.end();
  });

  t('the lock of a rebuild is free as soon as the rebuild ends, whether it succeeds or fails', async () => {
    const pool = openPool({ url: database.direct, max: 2 });
    const never = new AbortController().signal;
    // An open session sees a lock that the server frees only some time after the goodbye of its session.
    const observer = await pool.connect();
    const locks = async () => {
      const { rows } = await observer.query(
        `select count(*)::int as held from pg_locks where locktype = 'advisory'
           and database = (select oid from pg_database where datname = current_database())`,
      );
      return rows[0].held;
    };
    for (let round = 0; round < 50; round += 1) {
      assert.equal(await withRebuildLock(pool, 'posts', never, locks), 1);
      assert.equal(await locks(), 0);
      await assert.rejects(
        withRebuildLock(pool, 'posts', never, () => Promise.reject(new Error('a fault of the work'))),
        /a fault of the work/,
      );
      assert.equal(await locks(), 0);
    }
    observer.release();
    await pool.end();
  });

  t('a listening connection that falls silent is replaced', async () => {
    const { url, proxy } = await database.way();
    // Only a notification can wake it in time.
    const signal = new TailSignal({ url, schema: 'es', pollMs: 60_000, beatMs: 200 });
    const never = new AbortController();
    await signal.changed(signal.version, never.signal);
    const listening = async () =>
      runSql(
        database.direct,
        `select pid from pg_stat_activity where application_name = 'events-listen' and datname = current_database()`,
      );
    const before = await listening();
    proxy.silence(theNext());
    let seen = signal.version;
    await until('another connection listens', async () => {
      const now = await listening();
      return now.length === 1 && now[0]?.pid !== before[0]?.pid && signal.version > seen;
    });
    seen = signal.version;
    await runSql(database.direct, 'notify es_events');
    assert.equal((await outcomeOf(signal.changed(seen, never.signal))).reported, 'ok');
    await signal.close();
  });

  t('the webhooks’ listener is replaced when it falls silent', async () => {
    const { url, proxy } = await database.way();
    let received = 0;
    const hear = (): void => {
      received += 1;
    };
    const listener = new Listener(url, hear, { beatMs: 200 });
    await listener.ensure();
    proxy.silence(theNext());
    // Its owner looks now and then; that it listens anew counts as heard.
    await until('it listens anew', async () => {
      await listener.ensure();
      return received === 2;
    });
    const before = received;
    await runSql(database.direct, 'notify webhook_queue');
    await until('it hears', () => received > before);
    listener.close();
  });

  t('a migration that waits for a lock says so, lets other statements pass, and at last names the holder', async () => {
    const pool = openPool({ url: database.direct, max: 3, answerMs: 300, name: 'second' });
    const holder = new pg.Client({ connectionString: database.direct, application_name: 'first' });
    await holder.connect();
    const reported: string[] = [];
    let ran = 0;
    const change = async (tx: pg.PoolClient): Promise<void> => {
      ran += 1;
      // Longer than a statement of the running system may take.
      await tx.query('select pg_sleep(0.5)');
    };
    const limits = { lockMs: 150, reportMs: 50, onWait: (text: string) => void reported.push(text) };
    try {
      await holder.query('begin; select pg_advisory_xact_lock(4711)');
      const failed = await withTableLock(pool, 4711, change, { ...limits, patienceMs: 2_000 }).catch(String);
      assert.match(String(failed), /lock is held by first \(backend \d+, idle in transaction, .*End that session/);
      assert.equal(ran, 0);
      assert.match(reported[0] ?? '', /waits for first \(backend \d+/);
      const waiting = withTableLock(pool, 4711, change, { ...limits, patienceMs: 20_000 });
      await until('it tells again', () => reported.length > 12);
      await holder.query('rollback');
      await waiting;
      assert.equal(ran, 1);
    } finally {
      await holder.end();
      await pool.end();
    }
  });

  t('a migration waits for a slow connection, and fails at once on a refused one', async () => {
    const { url, proxy } = await database.way();
    const pool = openPool({ url, connectTimeoutMs: 1_000 });
    const none = openPool({ url: Object.assign(new URL(database.direct), { pathname: '/nobody' }).href });
    let ran = 0;
    const change = async (): Promise<void> => {
      ran += 1;
    };
    try {
      proxy.cut();
      assert.match(String(await withTableLock(pool, 4712, change, { connectMs: 300 }).catch(String)), /Error/);
      const waiting = withTableLock(pool, 4712, change, { connectMs: 60_000 });
      // Nothing may run while there is no connection.
      await delay(500);
      assert.equal(ran, 0);
      proxy.heal();
      await waiting;
      assert.equal(ran, 1);
      const { ms, reported } = await outcomeOf(withTableLock(none, 4712, change, { connectMs: 60_000 }));
      assert.match(reported, /"nobody" does not exist/);
      assert.ok(ms < 15_000, `${ms}`);
      assert.equal(ran, 1);
    } finally {
      await Promise.all([pool.end(), none.end()]);
    }
  });

  t('a migration that deadlocks with a running transaction succeeds after it', async () => {
    const pool = openPool({ url: database.direct, max: 3 });
    const running = await pool.connect();
    let tries = 0;
    try {
      await pool.query('create table locked_one (n int); create table locked_other (n int)');
      // The server gives up the first of the two that has waited for its timeout: never this one.
      await running.query(`set deadlock_timeout = '60s'; begin; insert into locked_other values (1)`);
      const changing = withTableLock(pool, 4713, async (tx) => {
        tries += 1;
        await tx.query('create index if not exists locked_one_n on locked_one (n)');
        const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
        if (tries === 1) {
          void until('it waits', async () => {
            const sql = `select 1 from pg_locks where pid = $1 and not granted`;
            return (await pool.query(sql, [rows[0]?.pid])).rows.length === 1;
          }).then(() => running.query('insert into locked_one values (1); commit'));
        }
        await tx.query('create index if not exists locked_other_n on locked_other (n)');
      });
      await changing;
      assert.equal(tries, 2);
      assert.equal((await pool.query('select n from locked_one')).rows.length, 1);
    } finally {
      running.release();
      await pool.end();
    }
  });
});
