import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { claim, findDue } from '#services/webhooks/statements.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { type Answering, ok, receiver, SenderWorld, status } from './world.ts';

suite('sender: sharing', { waits: true, timeoutMs: 180_000 }, (t) => {
  let world: SenderWorld;
  t.before(async () => {
    world = await SenderWorld.open();
  });
  t.after(() => world.close());

  t('an endpoint that never answers delays neither other workspaces nor other endpoints of its own', async () => {
    const held: (() => void)[] = [];
    const slow = await receiver((response, got, count) => held.push(() => ok(response, got, count)));
    const fast = await receiver();
    const running = world.start({ webhookExchangeMs: 15_000, webhookLeaseMs: 31_000 });
    const stuck = await world.endpoint(slow.url);
    const sibling = await world.endpoint(fast.url);
    const workspaceId = randomUUID();
    const other = await world.endpoint(fast.url, workspaceId);
    const waiting = await world.queue(stuck, { count: 1_500 });
    await until('its places to be full', () => slow.got.length === 64);
    await world.allSettled(await world.queue(sibling, { count: 20 }));
    await world.allSettled(await world.queue(other, { count: 20, workspaceId }));
    // All while it had what it may have, and nothing of what waits for it was begun ahead of its turn.
    assert.equal(slow.got.length, 64);
    const { rows } = await world.pool.query(
      'select count(*)::int as begun from ops.webhook_queue where endpoint_id = $1 and attempt > 0',
      [stuck],
    );
    assert.equal(rows[0].begun, 64);
    const stopped = running.stop();
    for (const release of held) release();
    await stopped;
    // They were due in the same instant, so which 64 went first is nobody's to say.
    const states = await world.pool.query('select status from ops.webhook_deliveries where id = any($1)', [waiting]);
    assert.equal(states.rows.filter(({ status }) => status === 'pending').length, 1_500 - 64);
    await world.pool.query('delete from ops.webhook_queue where endpoint_id = $1', [stuck]);
  });

  t('retries and replays take at most half of the slots, so a first attempt starts at once', async () => {
    const held: (() => void)[] = [];
    const holding: Answering = (response, got, count) => void held.push(() => ok(response, got, count));
    const answer = { current: status(500) };
    const server = await receiver(answer);
    const endpoint = await world.endpoint(server.url);
    const running = world.start({ webhookPerEndpoint: 8, webhookRetryDelaysMs: [0, 10, 10, 10] });
    const old = await world.queue(endpoint, { count: 30 });
    await until('all to have failed once', async () => {
      const states = await Promise.all(old.map((id) => world.delivery(id)));
      return states.every(({ attempts }) => attempts.length >= 1);
    });
    answer.current = holding;
    await until('their half to be full', () => held.length >= 4);
    await world.queue(endpoint, { count: 10, trigger: 'replay' });
    const [fresh = ''] = await world.queue(endpoint);
    await until('the first try', () => held.length >= 5);
    assert.equal(held.length, 5);
    const { rows } = await world.pool.query('select message_id from ops.webhook_deliveries where id = $1', [fresh]);
    assert.equal(server.got.at(-1)?.id, rows[0].message_id);
    answer.current = ok;
    for (const release of held) release();
    await world.allSettled([...old, fresh]);
    await running.stop();
  });

  t('twenty endpoints on a host that refuses send no more than one; other workspaces continue', async () => {
    const refusing = { current: true };
    const host = await receiver((response, got, count) => {
      const { data } = JSON.parse(got.body.toString('utf8')) as { readonly data: { readonly welcome?: boolean } };
      (data.welcome === true || !refusing.current ? ok : status(404))(response, got, count);
    });
    const config = {
      webhookPerHost: 16,
      webhookHostFailures: 20,
      webhookRetryDelaysMs: [0, 10, 10, 10, 10, 10, 10, 10],
    };
    const endpoints = await Promise.all(Array.from({ length: 20 }, () => world.endpoint(host.url)));
    const workspaceId = randomUUID();
    const other = await world.endpoint(host.url, workspaceId);
    const elsewhere = await receiver();
    const sibling = await world.endpoint(elsewhere.url);
    const first = await world.queue(endpoints, { count: 10 });
    const replayed = await world.queue(endpoints, { count: 10, trigger: 'replay' });
    const begun = performance.now();
    const running = world.start(config);
    await world.allSettled(await world.queue(other, { count: 50, workspaceId, data: { welcome: true } }));
    await world.allSettled(await world.queue(sibling, { count: 20 }));
    const refused = () => host.got.filter(({ body }) => !body.includes('welcome'));
    await until('its credit to be used up and to come again', () => refused().length > 26);
    for (const [at, one] of refused().entries()) {
      const may = 16 + (20 * (one.at - begun)) / 1_000;
      assert.ok(at < may + 1, `request ${at + 1} after ${one.at - begun} ms`);
    }
    // A test that a person asks for is one of them, and waits for none of its endpoint.
    const [asked = ''] = await world.queue(endpoints[7] ?? '', { trigger: 'test' });
    await world.settled(asked);
    // Nothing is lost, and whoever takes what he is sent is held up no longer.
    refusing.current = false;
    await world.allSettled([...first, ...replayed]);
    const { rows } = await world.pool.query(
      'select status, count(*)::int from ops.webhook_deliveries where id = any($1) group by status',
      [[...first, ...replayed]],
    );
    assert.deepEqual(rows, [{ status: 'delivered', count: 400 }]);
    await running.stop();
  });

  t('two senders share a queue and send each delivery once', async () => {
    const server = await receiver();
    const endpoints = [await world.endpoint(server.url), await world.endpoint(server.url)];
    const ids = await world.queue(endpoints, { count: 400 });
    const both = [world.start(), world.start()];
    await world.allSettled(ids);
    assert.equal(server.got.length, 800);
    assert.deepEqual(new Set(server.got.map(({ attempt }) => attempt)), new Set([1]));
    const done = await Promise.all(
      both.map(async ({ registry }) => {
        const text = await registry.metrics();
        return Number(/webhook_deliveries_total\{outcome="delivered"\} (\d+)/.exec(text)?.[1] ?? 0);
      }),
    );
    assert.equal((done[0] ?? 0) + (done[1] ?? 0), 800);
    for (const one of both) await one.stop();
  });

  t('a sender that slept past its lease does not overwrite the record of its successor', async () => {
    const held: (() => void)[] = [];
    const server = await receiver((response, got, count) => {
      if (got.attempt === 1) held.push(() => status(500)(response, got, count));
      else ok(response, got, count);
    });
    const endpoint = await world.endpoint(server.url);
    const [id = ''] = await world.queue(endpoint);
    const sleeper = world.start({ webhookBreakerFailures: 1 });
    await until('the first attempt', () => held.length === 1);
    await world.pool.query('update ops.webhook_queue set next_at = now() where delivery_id = $1', [id]);
    const next = world.start();
    const { attempts } = await world.settled(id);
    assert.deepEqual(
      attempts.map((one) => [one.number, one.status]),
      [[2, 204]],
    );
    for (const release of held) release();
    await sleeper.stop();
    assert.deepEqual((await world.delivery(id)).attempts, attempts);
    // Nor does it say anything about the endpoint.
    assert.equal(await world.health(endpoint), null);
    await next.stop();
  });

  t('a sender returns deliveries that could end after their lease', async () => {
    const held: (() => void)[] = [];
    const holding: Answering = (response, got, count) => void held.push(() => ok(response, got, count));
    const answer = { current: holding };
    const server = await receiver(answer);
    const endpoint = await world.endpoint(server.url);
    const running = world.start({ webhookPerEndpoint: 1, webhookExchangeMs: 2_000, webhookLeaseMs: 4_100 });
    const [first = ''] = await world.queue(endpoint);
    await until('the first', () => held.length === 1);
    // Handed over with less of a lease left than an exchange may take.
    const [late = ''] = await world.lease(endpoint, running.sender, 1_900);
    answer.current = ok;
    for (const release of held) release();
    await world.allSettled([first, late]);
    assert.deepEqual(
      (await world.delivery(late)).attempts.map(({ number }) => number),
      [1],
    );
    assert.equal(server.got.length, 2);
    await running.stop();
  });

  t('the cost of a search depends on endpoints, not on the queue of one that is off', async () => {
    const off = await world.endpoint('http://127.0.0.1:9/off');
    const open = await world.endpoint('http://127.0.0.1:9/open');
    await world.webhooks.act(off, { type: 'Update', changes: { active: false } });
    await world.applied(off, 'not active');
    const resting = await world.endpoint('http://127.0.0.1:9/resting');
    await world.pool.query(
      `insert into ops.webhook_health (endpoint_id, seen_revision, consecutive, opened, open_until)
       values ($1, 0, 10, 1, now() + interval '1 hour')`,
      [resting],
    );
    // Without statistics, as after a burst; and without what the other tests have left.
    await world.pool.query('truncate ops.webhook_queue');
    await world.pool.query('alter table ops.webhook_queue set (autovacuum_enabled = false)');
    const many = `insert into ops.webhook_queue (delivery_id, event_time, message_id, endpoint_id, workspace_id, lane,
        next_at, leased, attempt, tries, trigger, forced)
      select gen_random_uuid(), now(), gen_random_uuid(), $1, $1, 0, now() - i * interval '1 second', false, 0, 0,
        'scheduled', false from generate_series(1, $2::int) i`;
    await world.pool.query(many, [off, 100_000]);
    await world.pool.query(many, [resting, 100_000]);
    const [due = ''] = await world.queue(open);
    const [asked = ''] = await world.queue(off, { trigger: 'test' });
    const session = await world.pool.connect();
    try {
      const pagesOf = async (sql: string, values: readonly unknown[] = []): Promise<number> => {
        const { rows } = await session.query(`explain (analyze, buffers, format json) ${sql}`, [...values]);
        const { Plan: plan } = rows[0]['QUERY PLAN'][0];
        return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
      };
      // As a session of long standing does it: by the plan it has.
      for (let round = 0; round < 8; round += 1) await pagesOf('select * from ops.webhook_due_1()');
      const looked = await pagesOf('select * from ops.webhook_due_1()');
      assert.ok(looked > 0 && looked < 100, `a look read ${looked} pages`);
      const found = await findDue(world.pool);
      assert.deepEqual(
        new Set(found.map(({ endpointId, first, asked: forced }) => `${endpointId} ${first} ${forced}`)),
        new Set([`${open} true false`, `${off} false true`]),
      );
      const claimRequests = [
        { endpointId: open, lane: 0, max: 10 },
        { endpointId: off, lane: 3, max: 10 },
      ];
      const { claimed } = await claim(world.pool, 60_000, claimRequests, []);
      assert.deepEqual(new Set(claimed.map(({ deliveryId }) => deliveryId)), new Set([due, asked]));
      for (let round = 0; round < 8; round += 1) {
        await pagesOf('select * from ops.webhook_claim_1(1000, $1, $2, $3, $4)', [[open], [0], [10], []]);
      }
      const taken = await pagesOf('select * from ops.webhook_claim_1(1000, $1, $2, $3, $4)', [[off], [3], [10], []]);
      assert.ok(taken < 100, `a claim read ${taken} pages`);
    } finally {
      session.release();
    }
    await world.pool.query('truncate ops.webhook_queue');
  });
});
