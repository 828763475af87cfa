import assert from 'node:assert/strict';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { view } from '#projections/shapes.ts';
import { CallQueue } from '#services/api/call/call-queue.ts';
import { Lists, openReadPool } from '#services/api/call/lists.ts';
import { toProblem } from '#services/api/call/problems.ts';
import { refused } from '#test/support/composing.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { proxiedDatabase } from '#test/support/silent-postgres.ts';
import { suite } from '#test/support/suite.ts';
import { afterBytes, atRequest, theNext } from '#test/support/tcp-proxy.ts';

suite('turns of lists', (t) => {
  const line = { noun: 'lists', waiting: 20 };
  /** Work that ends when it is told to. */
  const open = (queue: CallQueue, workspace: string, begun: string[]) => {
    let end = () => {};
    const asked = queue.run(workspace, () => {
      begun.push(workspace);
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    });
    asked.catch(() => undefined);
    return { asked, end: () => end() };
  };

  t(
    'two lists of a workspace run at once; the third begins when one ends, and other workspaces do not wait for it',
    async () => {
      const queue = new CallQueue({ ...line, each: 2, total: 10, waitMs: 10_000 });
      const begun: string[] = [];
      const [first] = ['a', 'a', 'a', 'b'].map((workspace) => open(queue, workspace, begun));
      assert.deepEqual(begun, ['a', 'a', 'b']);
      first?.end();
      await first?.asked;
      await turn();
      assert.deepEqual(begun, ['a', 'a', 'b', 'a']);
    },
  );

  t('when all slots are taken the workspaces take turns, however many lists one requests', async () => {
    const queue = new CallQueue({ ...line, each: 2, total: 2, waitMs: 10_000 });
    const begun: string[] = [];
    const works = ['a', 'a', 'a', 'a', 'a', 'b', 'c', 'b'].map((workspace) => open(queue, workspace, begun));
    for (const at of [0, 1]) works[at]?.end();
    await Promise.all([works[0]?.asked, works[1]?.asked]);
    await turn();
    assert.deepEqual(begun, ['a', 'a', 'a', 'b']);
    for (const at of [2, 5]) works[at]?.end();
    await Promise.all([works[2]?.asked, works[5]?.asked]);
    await turn();
    assert.deepEqual(begun, ['a', 'a', 'a', 'b', 'c', 'a']);
  });

  t('a caller that waits too long, or in too long a queue, is refused and takes no slot', async () => {
    const queue = new CallQueue({ ...line, each: 1, total: 1, waitMs: 20 });
    const begun: string[] = [];
    const first = open(queue, 'a', begun);
    const waiting = Array.from({ length: 21 }, () => open(queue, 'a', begun));
    const answers = await Promise.allSettled(waiting.map(({ asked }) => asked));
    for (const answer of answers) {
      assert.ok(answer.status === 'rejected');
      assert.equal(answer.reason.code, 'unavailable');
      assert.equal(answer.reason.headers['Retry-After'], '2');
    }
    assert.match(
      String(answers.at(-1)?.status === 'rejected' && (answers.at(-1) as PromiseRejectedResult).reason),
      /Too many/,
    );
    first.end();
    await first.asked;
    await turn();
    assert.deepEqual(begun, ['a']);
    const next = open(queue, 'a', begun);
    assert.deepEqual(begun, ['a', 'a']);
    next.end();
    await next.asked;
  });

  t('work that fails releases its slot', async () => {
    const queue = new CallQueue({ ...line, each: 1, total: 1, waitMs: 10_000 });
    await assert.rejects(
      queue.run('a', () => Promise.reject(new Error('no'))),
      /no/,
    );
    assert.equal(await queue.run('b', async () => 1), 1);
  });
});

suite('lists that take long', { waits: true }, (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world?.close());

  t('end at their deadline, two of a workspace at once; pages, commands and other workspaces are served', async () => {
    const victim = await world.agency('Victim');
    await victim.owner.post('/clients', { name: 'Acme', type: 'brand' });
    await world.settled();
    const lock = await world.pool.connect();
    try {
      await lock.query('begin');
      await lock.query('lock table read.posts_v1 in access exclusive mode');
      const began = performance.now();
      // A second key, or one of the test twin, is no second share.
      const keys = [world.owner, world.tester, (await world.keyOf(world.workspaceId, world.memberId)).caller];
      const searches = Array.from(
        { length: 10 },
        (_, n) => keys[n % 3]?.get('/posts?search=coffee') ?? Promise.reject(),
      );
      const held = async () =>
        (
          await world.pool.query(`select count(*)::int as n from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`)
        ).rows[0].n;
      let most = 0;
      for (const limit = performance.now() + 2_000; performance.now() < limit && most < 2; most = await held())
        await turn();
      // As often as there is time: a slow machine has less of it.
      let rounds = 0;
      for (; rounds < 20 && performance.now() - began < 2_300; rounds += 1) {
        most = Math.max(most, await held());
        for (const caller of [victim.owner, world.owner]) {
          assert.equal((await caller.get('/clients')).status, 200);
          assert.equal((await caller.get('/media')).status, 200);
        }
        assert.equal((await victim.owner.get('/clients?search=ACM')).rows.length, 1);
      }
      assert.ok(rounds >= 2 && performance.now() - began < 2_900, 'others waited for the searches');
      assert.equal(most, 2);
      for (const answer of await Promise.all(searches)) {
        refused(answer, 503, 'unavailable');
        assert.equal(answer.headers.get('retry-after'), '2');
        assert.match(answer.text, /narrow/i);
      }
      assert.ok(performance.now() - began < 8_000);
    } finally {
      await lock.query('rollback');
      lock.release();
    }
    assert.equal((await world.owner.get('/posts?search=coffee')).status, 200);
  });

  t('walks of many tenants leave connections for pages', async () => {
    const lists = new Lists({ url: world.db.url, connections: 4, logger: { debug: () => undefined } });
    const lock = await world.pool.connect();
    try {
      await lock.query('begin');
      await lock.query('lock table read.posts_v1 in access exclusive mode');
      const walks = ['a', 'b', 'c', 'd', 'e'].map((workspace) =>
        lists.run(workspace, { search: 'x' }, async (knex) => knex(`${view('posts')}`).count()),
      );
      const walked = Promise.allSettled(walks);
      assert.deepEqual(await lists.run('f', {}, async (knex) => (await knex.raw('select 1 as one')).rows), [
        { one: 1 },
      ]);
      await lock.query('rollback');
      for (const walk of await walked) assert.equal(walk.status, 'fulfilled');
    } finally {
      lock.release();
      await lists.close();
    }
  });
});

suite('reads of a server that falls silent', (t) => {
  t('end when the server does not even greet', async () => {
    const database = await proxiedDatabase();
    const { url, proxy } = await database.way();
    const lists = new Lists({ url, connections: 2, logger: { debug: () => undefined }, silenceMs: 500 });
    try {
      proxy.silence(afterBytes('client', 0));
      const began = performance.now();
      const asked = lists.run('a', {}, async (knex) => (await knex.raw('select 1 as one')).rows);
      await assert.rejects(asked, (error) => toProblem(error).code === 'unavailable');
      // Without our deadline the driver would wait longer than this.
      assert.ok(performance.now() - began < 10_000);
    } finally {
      await lists.close();
      await database.close();
    }
  });

  t('keep an idle connection, so that the next burst does not wait for a new one', async () => {
    const database = await proxiedDatabase();
    const { url, proxy } = await database.way();
    const knex = openReadPool({ url, connections: 1, logger: { debug: () => undefined }, silenceMs: 1_000 });
    const pid = async (): Promise<number> => (await knex.raw('select pg_backend_pid() as pid')).rows[0].pid;
    try {
      const first = await pid();
      // The connection rests for longer than it may be silent.
      await delay(1_500);
      assert.equal(await pid(), first);
      proxy.silence(theNext());
      await assert.rejects(knex.raw('select 1').then());
      assert.notEqual(await pid(), first, 'one that is asked and says nothing is replaced');
    } finally {
      await knex.destroy();
      await database.close();
    }
  });

  t('end at once for all calls that wait for a connection, not for one after the other', async () => {
    const database = await proxiedDatabase();
    const { url, proxy } = await database.way();
    const knex = openReadPool({ url, connections: 1, logger: { debug: () => undefined }, silenceMs: 400 });
    try {
      proxy.silence(afterBytes('client', 0));
      const began = performance.now();
      const asked = Array.from({ length: 15 }, () => assert.rejects(knex.raw('select 1').then()));
      await Promise.all(asked);
      // Each in its turn they take 6 s.
      assert.ok(performance.now() - began < 3_000);
    } finally {
      await knex.destroy();
      await database.close();
    }
  });

  t('end, and release their slot and their connection', async () => {
    const database = await proxiedDatabase();
    const { url, proxy } = await database.way();
    const lists = new Lists({ url, connections: 2, logger: { debug: () => undefined }, silenceMs: 500 });
    const one = () => lists.run('a', {}, async (knex) => (await knex.raw('select 1 as one')).rows);
    try {
      assert.deepEqual(await one(), [{ one: 1 }]);
      proxy.silence(atRequest('select 1'));
      for (let n = 0; n < 3; n += 1) await assert.rejects(one(), (error) => toProblem(error).code === 'unavailable');
      proxy.speak();
      assert.deepEqual(await one(), [{ one: 1 }]);
    } finally {
      await lists.close();
      await database.close();
    }
  });
});

suite('what a search counts for', (t) => {
  t('ten requests, on every list that has one', async () => {
    const world = await startWorld({ rate: { perMinute: 25, burst: 25 } });
    try {
      const left = async (path: string) =>
        Number(/r=(\d+)/.exec((await world.owner.get(path)).headers.get('ratelimit') ?? '')?.[1]);
      assert.equal(await left('/posts'), 24);
      assert.equal(await left('/posts?search=a'), 14);
      assert.equal(await left('/media?search=a'), 4);
      refused(await world.owner.get('/clients?search=a'), 429, 'rate_limited');
    } finally {
      await world.close();
    }
  });
});
