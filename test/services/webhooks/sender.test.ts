import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { noteRotation } from '#projections/webhooks/rotations.ts';
import { decodeToken } from '#runtime/eventing/consistency.ts';
import { webhookSecret } from '#runtime/identity/webhook-secrets.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { type Answering, ok, receiver, SenderWorld, status } from './world.ts';

const first = (ids: readonly string[]): string => ids[0] ?? '';

suite('sender: deliveries', (t) => {
  let world: SenderWorld;
  t.before(async () => {
    world = await SenderWorld.open();
  });
  t.after(() => world.close());

  t('sends the exact bytes with their headers, once, and records the attempt', async () => {
    const server = await receiver(status(200, {}, 'thanks\0'));
    const endpoint = await world.endpoint(server.url);
    const before = Math.floor(Date.now() / 1_000);
    const [id = ''] = await world.queue(endpoint, { data: { name: 'Zoë 😀' } });
    const running = world.start();
    const { status: now, attempts, queued, deliveredAt } = await world.settled(id);
    assert.deepEqual([now, queued], ['delivered', null]);
    assert.ok(deliveredAt !== null);
    const [attempt] = attempts;
    assert.ok(attempt !== undefined && Date.parse(attempt.at) / 1_000 >= before);
    const { at: _at, durationMs: _took, ...rest } = attempt;
    const expected = { number: 1, trigger: 'scheduled', status: 200, error: null, responseBody: 'thanks\ufffd' };
    assert.deepEqual(rest, expected);
    assert.equal(server.got.length, 1);
    const [got] = server.got;
    assert.ok(got !== undefined);
    const sql = 'select body, id, position::text, lane from ops.webhook_messages where id = $1';
    const { rows } = await world.pool.query(sql, [got.id]);
    assert.deepEqual(got.body, rows[0].body);
    assert.deepEqual([got.headers['content-type'], got.attempt], ['application/json', 1]);
    assert.equal(got.headers['content-length'], String(got.body.length));
    const secret = webhookSecret(world.secrets, endpoint, { generation: 1, keyVersion: 'v1' });
    new Webhook(secret).verify(got.body.toString(), got.headers as Record<string, string>);
    const token = decodeToken(world.secrets, String(got.headers['x-consistency-token']));
    assert.deepEqual([...(token ?? [])], [[rows[0].lane, BigInt(rows[0].position)]]);
    await running.stop();
  });

  t('tries again by the schedule with the same id and bytes and a new signature, until the last try', async () => {
    const server = await receiver(status(500, {}, 'no'));
    const endpoint = await world.endpoint(server.url);
    // The second of two attempts is signed in another second than the first.
    let wall = Date.parse('2026-11-21T12:00:00Z');
    const [id = ''] = await world.queue(endpoint);
    const running = world.start(
      { webhookRetryDelaysMs: [0, 150, 300] },
      { now: () => (wall += 1_500), random: () => 0 },
    );
    const { status: now, attempts, queued } = await world.settled(id);
    assert.deepEqual([now, queued], ['failed', null]);
    assert.deepEqual(
      attempts.map((one) => [one.number, one.status, one.responseBody]),
      [1, 2, 3].map((number) => [number, 500, 'no']),
    );
    const [one, two, three] = server.got;
    assert.ok(one && two && three && server.got.length === 3);
    assert.deepEqual([one.attempt, two.attempt, three.attempt], [1, 2, 3]);
    assert.ok(one.id === two.id && one.body.equals(two.body));
    assert.notEqual(one.headers['webhook-timestamp'], two.headers['webhook-timestamp']);
    assert.notEqual(one.headers['webhook-signature'], two.headers['webhook-signature']);
    // Never early: the wait is counted from the record, which comes after the answer.
    assert.ok(two.at - one.at >= 150 && three.at - two.at >= 300, `${two.at - one.at}, ${three.at - two.at}`);
    await running.stop();
  });

  t('a success after failures counts as delivered', async () => {
    const server = await receiver((response, got, count) => (count < 3 ? status(503) : ok)(response, got, count));
    const endpoint = await world.endpoint(server.url);
    const [id = ''] = await world.queue(endpoint);
    const running = world.start();
    const { status: now, attempts } = await world.settled(id);
    assert.equal(now, 'delivered');
    assert.deepEqual(
      attempts.map((one) => one.status),
      [503, 503, 204],
    );
    const health = await world.health(endpoint);
    assert.deepEqual([health?.consecutive, health?.failingSince], [0, null]);
    await running.stop();
  });

  t('an endpoint that never failed has no row of health', async () => {
    const server = await receiver();
    const endpoint = await world.endpoint(server.url);
    const ids = await world.queue(endpoint, { count: 30 });
    const running = world.start();
    await world.allSettled(ids);
    assert.equal(await world.health(endpoint), null);
    await running.stop();
  });

  t('a test has one attempt, and reaches an endpoint that is off', async () => {
    const server = await receiver(status(500));
    const endpoint = await world.endpoint(server.url);
    await world.webhooks.act(endpoint, { type: 'Update', changes: { active: false } });
    await world.applied(endpoint, 'not active');
    const [waiting = ''] = await world.queue(endpoint, { trigger: 'replay' });
    const running = world.start();
    await world.webhooks.act(endpoint, { type: 'RequestTest', commandId: randomUUID(), eventType: 'client.created' });
    await until('the test', () => server.got.length === 1);
    await until('its failure', async () => {
      const rows = await world.webhooks.deliveries(endpoint);
      return rows.some((row) => row.status === 'failed' && row.queued === null);
    });
    assert.equal((await world.delivery(waiting)).attempts.length, 0);
    assert.equal(server.got.length, 1);
    await running.stop();
  });

  t('a resend goes to an endpoint that is off, and its attempts continue to count', async () => {
    const answer = { current: status(500) };
    const server = await receiver(answer);
    const endpoint = await world.endpoint(server.url);
    const [id = ''] = await world.queue(endpoint);
    const running = world.start({ webhookRetryDelaysMs: [0, 10] });
    assert.equal((await world.settled(id)).status, 'failed');
    await world.webhooks.act(endpoint, { type: 'Update', changes: { active: false } });
    await world.applied(endpoint, 'not active');
    answer.current = ok;
    const { rows } = await world.pool.query('select event_time from ops.webhook_deliveries where id = $1', [id]);
    const eventTime = rows[0].event_time.toISOString();
    const resend = { type: 'RequestResend', commandId: randomUUID(), deliveryId: id, eventTime } as const;
    await world.webhooks.act(endpoint, resend);
    const state = await world.reaches(id, ({ status: now }) => now === 'delivered');
    assert.deepEqual(
      state.attempts.map(({ number, trigger }) => [number, trigger]),
      [
        [1, 'scheduled'],
        [2, 'scheduled'],
        [3, 'resend'],
      ],
    );
    await running.stop();
  });

  t('a delivery that was resent while an attempt failed is due at once', async () => {
    let answerNow: (() => void) | null = null;
    const server = await receiver((response, got, count) => {
      if (count > 1) ok(response, got, count);
      else answerNow = () => status(500)(response, got, count);
    });
    const endpoint = await world.endpoint(server.url);
    const [id = ''] = await world.queue(endpoint);
    const running = world.start({ webhookRetryDelaysMs: [0, 3_600_000] });
    await until('the first attempt', () => answerNow !== null);
    const { rows } = await world.pool.query('select event_time from ops.webhook_deliveries where id = $1', [id]);
    const eventTime = rows[0].event_time.toISOString();
    await world.webhooks.act(endpoint, { type: 'RequestResend', commandId: randomUUID(), deliveryId: id, eventTime });
    await until('the wish', async () => {
      const found = await world.pool.query(
        "select 1 from ops.webhook_queue where delivery_id = $1 and trigger = 'resend'",
        [id],
      );
      return found.rowCount === 1;
    });
    (answerNow as (() => void) | null)?.();
    const state = await world.settled(id);
    assert.deepEqual([state.status, state.attempts.length], ['delivered', 2]);
    await running.stop();
  });

  t('during a rotation both secrets sign, and after it only the new one', async () => {
    const server = await receiver();
    const endpoint = await world.endpoint(server.url);
    let wall = Date.now();
    const running = world.start({}, { now: () => wall });
    const now = new Date(wall).toISOString();
    await world.webhooks.act(endpoint, { type: 'RotateSecret', commandId: randomUUID(), now, keyVersion: 'v1' });
    await world.applied(endpoint, "jsonb_array_length(state -> 'secrets') = 2");
    const secretOf = (generation: number) =>
      new Webhook(webhookSecret(world.secrets, endpoint, { generation, keyVersion: 'v1' }));
    await until('both to sign', async () => {
      await world.settled(first(await world.queue(endpoint)));
      return String(server.got.at(-1)?.headers['webhook-signature']).includes(' ');
    });
    const during = server.got.at(-1);
    for (const generation of [1, 2]) {
      secretOf(generation).verify(String(during?.body), during?.headers as Record<string, string>);
    }
    assert.match(String(during?.headers['x-service-signature']), /^t=\d+,v1=\w+,v1=\w+$/);
    wall += 24 * 3_600_000 + 1_000;
    await world.settled(first(await world.queue(endpoint)));
    const later = server.got.at(-1);
    assert.match(String(later?.headers['webhook-signature']), /^v1,\S+$/);
    assert.match(String(later?.headers['x-service-signature']), /^t=\d+,v1=\w+$/);
    await running.stop();
  });

  t(
    'what is claimed or handed over after a rotation was noted carries both secrets, however late its fold',
    async () => {
      const server = await receiver();
      const endpoint = await world.endpoint(server.url);
      const running = world.start();
      const { workspaceId } = world.webhooks;
      await until('the endpoint to be known', () => running.sender.reserve(endpoint, workspaceId, 2) === 2);
      const { rows } = await world.pool.query(
        "select state -> 'secrets' as secrets from ops.webhook_endpoints where id = $1",
        [endpoint],
      );
      const [former] = rows[0].secrets;
      const next = { ...former, generation: 2 };
      const note = (revision: number, secrets: readonly (typeof next)[]) =>
        noteRotation(world.pool, { endpointId: endpoint, revision, secrets });
      const countOf = async (ids: readonly string[]): Promise<number> => {
        for (const id of ids) await world.settled(id);
        return String(server.got.at(-1)?.headers['webhook-signature']).split(' ').length;
      };
      assert.equal(await countOf(await world.lease(endpoint, running.sender)), 1);
      await note(5, [next, former]);
      await note(4, [former]);
      assert.equal(await countOf(await world.lease(endpoint, running.sender)), 2, 'handed over');
      await note(6, [{ ...next, generation: 3 }, next, former]);
      assert.equal(await countOf(await world.queue(endpoint)), 3, 'claimed');
      // The dispatcher folds an older event.
      await world.webhooks.act(endpoint, { type: 'Update', changes: { description: 'changed' } });
      await world.applied(endpoint, "state ->> 'description' = 'changed'");
      assert.equal(await countOf(await world.queue(endpoint)), 3);
      await running.stop();
    },
  );

  t('sends deliveries that were handed over, up to its reservation, without a query of the queue', async () => {
    const server = await receiver();
    const endpoint = await world.endpoint(server.url);
    const running = world.start({ webhookPerEndpoint: 4 });
    const { workspaceId } = world.webhooks;
    await until('the endpoint to be known', () => running.sender.reserve(endpoint, workspaceId, 1) === 1);
    assert.equal(running.sender.reserve(endpoint, workspaceId, 9), 3);
    assert.equal(running.sender.reserve(endpoint, workspaceId, 9), 0);
    running.sender.giveBack(endpoint, workspaceId, 3);
    const [id = ''] = await world.lease(endpoint, running.sender);
    assert.equal((await world.settled(id)).attempts[0]?.number, 1);
    assert.equal(running.sender.reserve(randomUUID(), workspaceId, 1), 0);
    await world.webhooks.act(endpoint, { type: 'Update', changes: { active: false } });
    await until('it to be known as off', () => {
      const count = running.sender.reserve(endpoint, workspaceId, 1);
      running.sender.giveBack(endpoint, workspaceId, count);
      return count === 0;
    });
    await running.stop();
  });

  t('a drain records running deliveries and returns waiting ones with their attempt number', async () => {
    const held: (() => void)[] = [];
    const answer = { current: ((response, got, count) => held.push(() => ok(response, got, count))) as Answering };
    const server = await receiver(answer);
    const endpoint = await world.endpoint(server.url);
    const ids = await world.queue(endpoint, { count: 10 });
    const running = world.start({ webhookPerEndpoint: 2 });
    await until('two under way', () => held.length === 2);
    const stopped = running.stop();
    // It takes no more, and waits for what it has.
    assert.equal(running.sender.reserve(endpoint, world.webhooks.workspaceId, 1), 0);
    const late = await world.lease(endpoint, running.sender);
    for (const release of held) release();
    await stopped;
    const states = await Promise.all([...ids, ...late].map((id) => world.delivery(id)));
    assert.equal(states.filter(({ status: now }) => now === 'delivered').length, 2);
    for (const { status: now, queued } of states) {
      if (now === 'pending') assert.deepEqual([queued?.leased, queued?.attempt], [false, 0]);
    }
    answer.current = ok;
    const next = world.start();
    await world.allSettled([...ids, ...late]);
    assert.deepEqual(new Set(server.got.map(({ attempt }) => attempt)), new Set([1]));
    assert.equal(server.got.length, 11);
    await next.stop();
  });

  t('a delivery without a message is left alone and delays no other', async () => {
    const server = await receiver();
    const endpoint = await world.endpoint(server.url);
    const [broken = '', ...others] = await world.queue(endpoint, { count: 3 });
    await world.pool.query(
      `delete from ops.webhook_messages m using ops.webhook_deliveries d
       where d.id = $1 and m.event_time = d.event_time and m.id = d.message_id`,
      [broken],
    );
    const running = world.start();
    await world.allSettled(others);
    assert.equal((await world.delivery(broken)).status, 'pending');
    await running.stop();
  });

  t('reports its metrics', async () => {
    const server = await receiver((response, got, count) => (count === 1 ? status(500) : ok)(response, got, count));
    const endpoint = await world.endpoint(server.url);
    const ids = await world.queue(endpoint, { count: 2 });
    const running = world.start();
    await world.allSettled(ids);
    await until('the figures', async () => {
      const text = await running.registry.metrics();
      return (
        /webhook_deliveries_total\{outcome="delivered"\} 2/.test(text) &&
        /webhook_attempts_total\{result="2xx"\} 2/.test(text) &&
        /webhook_attempts_total\{result="5xx"\} 1/.test(text) &&
        /webhook_delivery_seconds_count 2/.test(text) &&
        /webhook_in_flight 0/.test(text) &&
        /webhook_breaker_open 0/.test(text)
      );
    });
    await running.stop();
  });
});
