import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { deliveryIdOf, envelopeIdOf } from '#domain/ids.ts';
import { type Answered, given, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';
import { type Dispatching, dispatching, settle } from '#test/support/webhooks.ts';

const url = 'https://hooks.agency.example/in';
const nowhere = '00000000-0000-4000-8000-000000000000';

const register = async (world: World, events: readonly string[] = ['post.*']): Promise<string> => {
  const made = await world.owner.post('/webhooks', { url, events });
  assert.equal(made.status, 200, made.text);
  return made.data.id;
};

const attempt = (number: number, over: object = {}) => ({
  number,
  at: new Date(Date.now() - 60_000).toISOString(),
  trigger: 'scheduled',
  status: 500,
  error: null,
  durationMs: 12,
  responseBody: 'sorry',
  ...over,
});

suite('webhook deliveries', (t) => {
  let world: World;
  let dispatcher: Dispatching;
  t.before(async () => {
    world = await startWorld();
    dispatcher = await dispatching(world);
  });
  t.after(async () => {
    await dispatcher?.stop();
    await world?.close();
  });

  const test = async (id: string, body?: object, key: string | null = randomUUID()): Promise<Answered> =>
    world.owner.post(`/webhooks/${id}/test`, body, { key });
  const queueOf = async (deliveryId: string) =>
    (
      await world.pool.query(
        'select trigger, forced, lane, tries, attempt from ops.webhook_queue where delivery_id = $1',
        [deliveryId],
      )
    ).rows[0];

  t('a test is queued whichever types the endpoint subscribes to, and can be read at once', async () => {
    const id = await register(world);
    const { data } = await given(world, [])
      .request('POST', `/webhooks/${id}/test`)
      .then(200, ['RequestAccepted', 'WebhookTestRequested', 'RequestCompleted']);
    const { rows } = await world.pool.query(
      "select id from es.events where stream = $1 and type = 'WebhookTestRequested'",
      [`webhook-${id}`],
    );
    const eventId = envelopeIdOf(rows[0].id, 'webhook.test');
    assert.deepEqual(data, {
      id: deliveryIdOf(eventId, id),
      object: 'webhook_delivery',
      webhookId: id,
      eventId,
      eventType: 'webhook.test',
      status: 'pending',
      attempts: [],
      nextAttemptAt: data.createdAt,
      deliveredAt: null,
      replayId: null,
      createdAt: data.createdAt,
      updatedAt: data.createdAt,
    });
    const read = await world.owner.get(`/webhooks/${id}/deliveries/${data.id}`);
    assert.equal(read.status, 200, read.text);
    const changing = ['nextAttemptAt', 'updatedAt'];
    const fixed = (one: object) => Object.fromEntries(Object.entries(one).filter(([name]) => !changing.includes(name)));
    assert.deepEqual(fixed(read.data), fixed(data));
    assert.deepEqual((await world.owner.get(`/webhooks/${id}/deliveries`)).rows, [read.data]);
    assert.equal((await queueOf(data.id)).trigger, 'test');
  });

  t('a test takes any known type and no other, also for an endpoint that is off', async () => {
    const id = await register(world);
    await world.owner.patch(`/webhooks/${id}`, { active: false });
    const { data } = await test(id, { eventType: 'media.ready' });
    assert.equal(data.eventType, 'media.ready');
    const read = await world.owner.get(`/webhooks/${id}/deliveries/${data.id}`);
    assert.equal(read.data.status, 'pending');
    assert.notEqual(read.data.nextAttemptAt, null, 'a person asked for it: it is sent all the same');
    for (const eventType of ['post.*', '*', 'post.vanished', 'POST.CREATED']) {
      const { body } = await given(world, [])
        .request('POST', `/webhooks/${id}/test`, { body: { eventType } })
        .then(422, []);
      assert.equal(body.code, 'unknown_event_type');
      assert.equal(body.errors?.[0]?.path, '/eventType');
    }
  });

  t('under one key one test, without a key one each', async () => {
    const id = await register(world);
    const key = randomUUID();
    const first = await test(id, {}, key);
    const again = await test(id, {}, key);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(again.data, first.data);
    const other = await test(id, { eventType: 'post.created' }, key);
    assert.equal(other.body.code, 'idempotency_key_reused');
    const each = [await test(id, {}, null), await test(id, {}, null)];
    assert.equal(new Set(each.map(({ data }) => data.id)).size, 2);
    assert.equal((await world.owner.get(`/webhooks/${id}/deliveries`)).rows.length, 3);
    const guarded = await world.owner.post(`/webhooks/${id}/test`, {}, { headers: { 'if-match': '"0"' } });
    assert.equal(guarded.body.code, 'revision_mismatch');
  });

  t('a filter by a type that does not exist is refused', async () => {
    const id = await register(world);
    for (const eventType of ['post.vanished', 'post.*', 'POST.CREATED']) {
      const { status, body } = await world.owner.get(`/webhooks/${id}/deliveries?eventType=${eventType}`);
      assert.equal(status, 400, eventType);
      assert.equal(body.code, 'invalid_parameter');
      assert.equal(body.errors?.[0]?.path, '/eventType');
    }
  });

  t('the list has the deliveries of the caller’s own writes', async () => {
    const id = await register(world, ['client.*']);
    for (let round = 0; round < 5; round += 1) {
      const client = await world.owner.post('/clients', { name: `Told ${round} ${id}`, type: 'brand' });
      const { rows } = await world.owner.get(`/webhooks/${id}/deliveries?eventType=client.created`);
      assert.equal(rows.length, round + 1);
      const { rows: bodies } = await world.pool.query(
        `select convert_from(m.body, 'utf8')::json as envelope from ops.webhook_messages m where m.id = $1`,
        [rows[0]?.eventId],
      );
      assert.equal(bodies[0].envelope.data.clientId, client.data.id);
    }
  });

  t('shows its attempts and the time of the next one; a settled delivery has no next attempt', async () => {
    const id = await register(world);
    const delivery = (await test(id)).data.id;
    const path = `/webhooks/${id}/deliveries/${delivery}`;
    await dispatcher.settled();
    const refused = attempt(1, { status: null, error: 'connection_failed', responseBody: null, durationMs: 500 });
    const taken = attempt(2, { status: 204, responseBody: null });
    await settle(world, delivery, 'delivered', [refused, taken]);
    const { data } = await world.owner.get(path);
    assert.equal(data.status, 'delivered');
    assert.deepEqual(data.attempts, [refused, taken]);
    assert.equal(data.nextAttemptAt, null);
    assert.ok(data.deliveredAt !== null);
    await settle(world, delivery, 'failed', [refused]);
    const failed = await world.owner.get(path);
    assert.deepEqual([failed.data.status, failed.data.deliveredAt, failed.data.nextAttemptAt], ['failed', null, null]);
  });

  t('a retry waits while the endpoint is off, and is under way while it is leased', async () => {
    const id = await register(world, ['client.*']);
    await world.owner.post('/clients', { name: `Waits ${id}`, type: 'brand' });
    const [row] = (await world.owner.get(`/webhooks/${id}/deliveries`)).rows;
    const path = `/webhooks/${id}/deliveries/${row?.id}`;
    const due = '2030-01-31T08:00:00.000Z';
    await world.pool.query('update ops.webhook_queue set next_at = $2 where delivery_id = $1', [row?.id, due]);
    assert.equal((await world.owner.get(path)).data.nextAttemptAt, due);
    await world.pool.query('update ops.webhook_queue set leased = true where delivery_id = $1', [row?.id]);
    assert.equal((await world.owner.get(path)).data.nextAttemptAt, null);
    await world.pool.query('update ops.webhook_queue set leased = false where delivery_id = $1', [row?.id]);
    await world.owner.patch(`/webhooks/${id}`, { active: false });
    const off = (await world.owner.get(path)).data;
    assert.equal(off.nextAttemptAt, null);
  });

  t('is listed by status, type and time, newest first, page by page', async () => {
    const id = await register(world);
    const other = await register(world);
    await test(other);
    const made: string[] = [];
    for (const eventType of ['post.created', 'post.created', 'post.failed', 'target.failed', 'webhook.test']) {
      made.push((await test(id, { eventType })).data.id);
    }
    await dispatcher.settled();
    const [first, second, third] = made as [string, string, string];
    await settle(world, first, 'delivered', []);
    await settle(world, second, 'failed', []);
    await settle(world, third, 'delivered', []);
    const ids = async (query: string) => {
      const answer = await world.owner.get(`/webhooks/${id}/deliveries?${query}`);
      assert.equal(answer.status, 200, answer.text);
      return answer.rows.map((row) => row.id);
    };
    const newest = [...made].reverse();
    assert.deepEqual(await ids(''), newest);
    assert.deepEqual(await ids('status=delivered'), [third, first]);
    assert.deepEqual(await ids('status=failed,delivered'), [third, second, first]);
    assert.deepEqual(await ids('eventType=post.created'), [second, first]);
    assert.deepEqual(await ids('eventType=post.created&status=failed'), [second]);
    const { rows } = await world.owner.get(`/webhooks/${id}/deliveries`);
    const at = String(rows[2]?.createdAt);
    assert.deepEqual(
      await ids(`to=${at}`),
      rows.filter(({ createdAt }) => String(createdAt) < at).map((row) => row.id),
    );
    assert.deepEqual(
      await ids(`from=${at}`),
      rows.filter(({ createdAt }) => String(createdAt) >= at).map((row) => row.id),
    );
    const seen: string[] = [];
    let page = await world.owner.get(`/webhooks/${id}/deliveries?limit=2`);
    for (;;) {
      seen.push(...page.rows.map((row) => row.id));
      const next = page.body.page?.nextCursor;
      if (next == null) break;
      const cursor = encodeURIComponent(next);
      const elsewhere = await world.owner.get(`/webhooks/${other}/deliveries?limit=2&cursor=${cursor}`);
      assert.equal(elsewhere.body.code, 'invalid_cursor', 'a cursor is of one endpoint');
      page = await world.owner.get(`/webhooks/${id}/deliveries?limit=2&cursor=${cursor}`);
    }
    assert.deepEqual(seen, newest);
    for (const query of ['status=done', 'status=', 'from=yesterday', 'limit=101', 'webhookId=x', 'state=failed']) {
      const answer = await world.owner.get(`/webhooks/${id}/deliveries?${query}`);
      assert.equal(answer.body.code, 'invalid_parameter', query);
    }
  });

  t('is sent again, whatever its outcome was: due now, with a new schedule of retries', async () => {
    const id = await register(world);
    const delivery = (await test(id)).data.id;
    const path = `/webhooks/${id}/deliveries/${delivery}`;
    await dispatcher.settled();
    for (const status of ['delivered', 'failed'] as const) {
      const former = [attempt(1), attempt(2)];
      await settle(world, delivery, status, former);
      const key = randomUUID();
      const { data } = await given(world, [])
        .request('POST', `${path}/resend`, { key })
        .then(200, ['RequestAccepted', 'WebhookResendRequested', 'RequestCompleted']);
      assert.deepEqual(
        [data.id, data.status, data.deliveredAt, (data.attempts as unknown[]).length, data.nextAttemptAt],
        [delivery, 'pending', null, 2, data.updatedAt],
      );
      const read = await world.owner.get(path);
      assert.deepEqual([read.data.status, read.data.deliveredAt], ['pending', null]);
      assert.deepEqual(await queueOf(delivery), { trigger: 'resend', forced: true, lane: 0, tries: 0, attempt: 2 });
      await settle(world, delivery, 'failed', [...former, attempt(3, { at: new Date().toISOString() })]);
      const again = await world.owner.post(`${path}/resend`, undefined, { key });
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      assert.deepEqual(again.data, data, 'a repeat answers what the first call did');
      assert.equal(await queueOf(delivery), undefined, 'and sends nothing');
    }
  });

  t('one that is pending is due now', async () => {
    const id = await register(world);
    const delivery = (await test(id)).data.id;
    await dispatcher.settled();
    const later =
      'update ops.webhook_queue set next_at = now() + interval $$1 day$$, tries = 4, attempt = 4 where delivery_id = $1';
    await world.pool.query(later, [delivery]);
    const { data } = await world.owner.post(`/webhooks/${id}/deliveries/${delivery}/resend`);
    assert.equal(data.status, 'pending');
    const read = await world.owner.get(`/webhooks/${id}/deliveries/${delivery}`);
    assert.ok(Date.parse(String(read.data.nextAttemptAt)) <= Date.now() + 1_000);
    assert.deepEqual(await queueOf(delivery), { trigger: 'resend', forced: true, lane: 0, tries: 0, attempt: 4 });
  });

  t('a delivery that is not the endpoint’s is unknown, and nothing is written', async () => {
    const id = await register(world);
    const other = await register(world);
    const delivery = (await test(other)).data.id;
    await dispatcher.settled();
    for (const [method, below] of [
      ['GET', `deliveries/${delivery}`],
      ['POST', `deliveries/${delivery}/resend`],
      ['GET', `deliveries/${nowhere}`],
      ['POST', `deliveries/${nowhere}/resend`],
      ['POST', 'deliveries/nonsense/resend'],
    ] as const) {
      const { body } = await given(world, []).request(method, `/webhooks/${id}/${below}`).then(404, []);
      assert.equal(body.code, 'not_found');
    }
  });

  t('a delivery past its retention is unknown, although the stream names it', async () => {
    const id = await register(world);
    const delivery = (await test(id)).data.id;
    await dispatcher.settled();
    await world.pool.query('delete from ops.webhook_deliveries where id = $1', [delivery]);
    const read = await world.owner.get(`/webhooks/${id}/deliveries/${delivery}`);
    assert.equal(read.status, 404);
  });
});

suite('webhook deliveries without a running dispatcher', (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world?.close());

  t('a requested delivery is never 404: 503 until it is minted', async () => {
    const id = await register(world);
    const { data } = await world.owner.post(`/webhooks/${id}/test`);
    const path = `/webhooks/${id}/deliveries/${data.id}`;
    const away = await world.owner.get(path);
    assert.equal(away.status, 503);
    assert.ok(away.headers.get('retry-after'));
    // Without the writer's credential, too.
    const other = await world.keyOf(world.workspaceId, world.memberId);
    assert.equal((await other.caller.get(path)).status, 503);
    const resend = await given(world, []).request('POST', `${path}/resend`).then(503, []);
    assert.equal(resend.body.code, 'unavailable');
    assert.equal((await other.caller.get(`/webhooks/${id}/deliveries/${nowhere}`)).status, 404);
    assert.equal((await other.caller.get(`/webhooks/${id}/deliveries`)).status, 200);
    // No other read waits for the dispatcher.
    assert.equal((await world.owner.get(`/webhooks/${id}`)).status, 200);
    assert.equal((await world.owner.get('/clients')).status, 200);
    const dispatcher = await dispatching(world);
    await dispatcher.settled();
    assert.equal((await world.owner.get(path)).status, 200);
    await dispatcher.stop();
  });
});
