import assert from 'node:assert/strict';
import { webhook } from '#domain/webhook.ts';
import { disableDue } from '#services/webhooks/disabler.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { type Answering, ok, quick, receiver, SenderWorld, status } from './world.ts';

const days = 86_400_000;

suite('sender: breaker and disabling', { timeoutMs: 180_000 }, (t) => {
  let world: SenderWorld;
  t.before(async () => {
    world = await SenderWorld.open();
  });
  t.after(() => world.close());

  const disabledOf = async (id: string) => {
    const { state } = await world.webhooks.store.load(webhook, id);
    return state.status === 'none' ? null : state.disabled;
  };
  const factsOf = async (id: string) =>
    (await world.webhooks.store.readStream(`webhook-${id}`)).map(({ type, data }) => [type, data] as const);

  t(
    'opens after failures in a row; waiting deliveries use no attempt; one probe at a time; a success closes it',
    async () => {
      const answer = { current: status(500) };
      const server = await receiver(answer);
      const endpoint = await world.endpoint(server.url);
      const config = { webhookBreakerFailures: 5, webhookBreakerMs: 400, webhookPerEndpoint: 5 };
      const running = world.start({ ...config, webhookRetryDelaysMs: Array(30).fill(10) as number[] });
      const ids = await world.queue(endpoint, { count: 40 });
      await until('it to open', async () => (await world.health(endpoint))?.opened === 1);
      // What was under way when it opened, and no more; each of the others has all its attempts left.
      const before = server.got.length;
      assert.ok(before >= 5 && before <= 15, `${before} requests`);
      assert.match(await running.registry.metrics(), /webhook_breaker_open 1/);
      assert.equal(running.sender.reserve(endpoint, world.webhooks.workspaceId, 1), 0);
      await until('two probes', async () => ((await world.health(endpoint))?.opened ?? 0) >= 3);
      assert.equal(server.got.length, before + 2);
      const [one, two] = server.got.slice(before);
      assert.ok((two?.at ?? 0) - (one?.at ?? 0) >= 700, 'the second rest is twice as long');
      answer.current = ok;
      await world.allSettled(ids);
      const attempts = await Promise.all(ids.map(async (id) => (await world.delivery(id)).attempts.length));
      const all = attempts.reduce((sum, count) => sum + count, 0);
      assert.equal(all, server.got.length);
      const health = await world.health(endpoint);
      assert.deepEqual([health?.opened, health?.consecutive, health?.openIn], [0, 0, null]);
      await running.stop();
    },
  );

  t('applies to all senders, also after the one that opened it ended', async () => {
    const server = await receiver(status(503));
    const endpoint = await world.endpoint(server.url);
    const config = { webhookBreakerFailures: 2, webhookBreakerMs: 60_000, webhookPerEndpoint: 2 };
    const first = world.start(config);
    await world.queue(endpoint, { count: 2 });
    await until('it to open', async () => (await world.health(endpoint))?.opened === 1);
    await first.stop();
    const count = server.got.length;
    const second = world.start(config);
    const [id = ''] = await world.queue(endpoint);
    const other = await receiver();
    // When this one is through, the sender has looked, and passed over what waits for the first.
    await world.settled((await world.queue(await world.endpoint(other.url)))[0] ?? '');
    assert.equal(server.got.length, count);
    assert.deepEqual((await world.delivery(id)).attempts, []);
    assert.equal((await world.delivery(id)).queued?.attempt, 0);
    await second.stop();
  });

  t('the probe of a sender that died lapses, and another sender probes again', async () => {
    const server = await receiver();
    const endpoint = await world.endpoint(server.url);
    const [id = ''] = await world.queue(endpoint);
    // The rows of a sender that died during its probe: both leases end in half a second.
    await world.pool.query(
      `insert into ops.webhook_health (endpoint_id, seen_revision, failing_since, failed_at, consecutive, opened, open_until)
       values ($1, 0, now(), now(), 9, 1, now() + interval '500 milliseconds')`,
      [endpoint],
    );
    await world.pool.query(
      `update ops.webhook_queue set leased = true, attempt = 1, next_at = now() + interval '500 milliseconds'
       where delivery_id = $1`,
      [id],
    );
    const running = world.start();
    assert.equal((await world.settled(id)).attempts[0]?.number, 2);
    assert.equal((await world.health(endpoint))?.opened, 0);
    await running.stop();
  });

  t('410 turns the endpoint off at once with a reason; the delivery waits until a person turns it on', async () => {
    const answer = { current: status(410) };
    const server = await receiver(answer);
    const endpoint = await world.endpoint(server.url);
    const running = world.start();
    const [id = ''] = await world.queue(endpoint);
    await world.applied(endpoint, 'not active');
    assert.deepEqual(await disabledOf(endpoint), { by: 'service', reason: 'gone' });
    const { status: now, attempts, queued } = await world.delivery(id);
    assert.deepEqual([now, attempts.map((one) => one.status), queued?.leased], ['pending', [410], false]);
    assert.equal(server.got.length, 1);
    answer.current = ok;
    await world.webhooks.act(endpoint, { type: 'Update', changes: { active: true } });
    assert.equal((await world.settled(id)).status, 'delivered');
    await running.stop();
  });

  t(
    'a receiver can turn its endpoint off with a header; the delivery that it accepted counts as delivered',
    async () => {
      const server = await receiver(status(200, { 'webhook-delivery': 'disable' }));
      const endpoint = await world.endpoint(server.url);
      const running = world.start();
      const [id = ''] = await world.queue(endpoint);
      assert.equal((await world.settled(id)).status, 'delivered');
      await until('it to be off', async () => (await disabledOf(endpoint))?.reason === 'receiver');
      await running.stop();
    },
  );

  t('an endpoint is turned off once after days without a success, also beside two senders', async () => {
    const server = await receiver(status(404));
    const endpoint = await world.endpoint(server.url);
    const config = { webhookRetryDelaysMs: [0, 3_600_000] };
    const both = [world.start(config), world.start(config)];
    await world.reaches((await world.queue(endpoint))[0] ?? '', ({ attempts }) => attempts.length === 1);
    assert.equal(await disabledOf(endpoint), null);
    await world.pool.query(
      `update ops.webhook_health set failing_since = now() - interval '5 days' + interval '1 minute',
         failed_at = now() where endpoint_id = $1`,
      [endpoint],
    );
    await world.reaches((await world.queue(endpoint))[0] ?? '', ({ attempts }) => attempts.length === 1);
    const deps = { pool: world.pool, store: world.webhooks.store, logger: world.webhooks.world.logger };
    const after = (webhookDisableAfterMs: number) => disableDue({ ...deps, config: { webhookDisableAfterMs } });
    assert.deepEqual(await after(5 * days), []);
    await world.pool.query(
      "update ops.webhook_health set failing_since = now() - interval '5 days' where endpoint_id = $1",
      [endpoint],
    );
    await world.queue(endpoint);
    await world.applied(endpoint, 'not active');
    const facts = (await factsOf(endpoint)).filter(([type]) => type === 'WebhookDisabled');
    assert.deepEqual(facts, [['WebhookDisabled', { by: 'service', reason: 'failing' }]]);
    for (const one of both) await one.stop();
  });

  t('one failure followed by days without deliveries does not turn an endpoint off', async () => {
    const server = await receiver(status(500));
    const endpoint = await world.endpoint(server.url);
    const running = world.start();
    await world.reaches((await world.queue(endpoint))[0] ?? '', ({ attempts }) => attempts.length === 1);
    await running.stop();
    await world.pool.query(
      "update ops.webhook_health set failing_since = now() - interval '9 days', failed_at = now() - interval '9 days' where endpoint_id = $1",
      [endpoint],
    );
    const { pool, webhooks } = world;
    const deps = { pool, store: webhooks.store, logger: webhooks.world.logger };
    assert.deepEqual(await disableDue({ ...deps, config: { webhookDisableAfterMs: 5 * days } }), []);
  });

  t('a sweep turns off the endpoint for a sender that died before it could', async () => {
    const endpoint = await world.endpoint('http://127.0.0.1:9/');
    await world.pool.query(
      "insert into ops.webhook_health (endpoint_id, seen_revision, disable) values ($1, 0, 'gone')",
      [endpoint],
    );
    const running = world.start({ sweepIntervalMs: quick.sweepIntervalMs ?? 100 });
    await world.applied(endpoint, 'not active');
    // Followed, it says nothing any more: the row goes, and a sweep finds nothing to do.
    await until('the wish to be cleared', async () => (await world.health(endpoint)) === null);
    await running.stop();
  });

  t('an earlier failure does not turn off an endpoint that a person turned on since', async () => {
    const held: (() => void)[] = [];
    const gone: Answering = (response, got, count) => held.push(() => status(410)(response, got, count));
    const answer = { current: gone };
    const server = await receiver(answer);
    const endpoint = await world.endpoint(server.url);
    const running = world.start();
    const [id = ''] = await world.queue(endpoint);
    await until('the attempt', () => held.length === 1);
    answer.current = ok;
    await world.webhooks.act(endpoint, { type: 'Update', changes: { active: false } });
    await world.webhooks.act(endpoint, { type: 'Update', changes: { active: true } });
    await world.applied(endpoint, "(state ->> 'changedRevision')::int = 2");
    for (const release of held) release();
    assert.equal((await world.settled(id)).status, 'delivered');
    const { store } = world.webhooks;
    const deps = { pool: world.pool, store, logger: world.webhooks.world.logger };
    await disableDue({ ...deps, config: { webhookDisableAfterMs: 5 * days } });
    assert.equal(await disabledOf(endpoint), null);
    // Also when the sweep comes with what it saw before the row was made anew.
    const seen = { type: 'Disable', reason: 'gone', seenRevision: 0 } as const;
    assert.deepEqual((await world.webhooks.act(endpoint, seen)).appended, []);
    await running.stop();
  });
});
