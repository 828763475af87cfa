import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Lane } from '#contracts/ports/log.ts';
import { deliveryIdOf, envelopeIdOf } from '#domain/ids.ts';
import type { WebhookCommand } from '#domain/webhook.ts';
import { DeliveryChecks } from '#services/admin/audit-deliveries.ts';
import type { Admin } from '#services/admin/context.ts';
import { keyVersionsInUse } from '#services/webhooks/endpoints.ts';
import { HandLog } from '#test/support/hand-log.ts';
import type { World } from '#test/support/http.ts';
import { startNumbering } from '#test/support/numbering.ts';
import { type Given, scheduledPost } from '#test/support/projecting.ts';
import { clientFields, planned } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { WebhookWorld } from '#test/support/webhook-world.ts';

const clientCreated = (id = randomUUID()): Given => ({
  stream: `client-${id}`,
  type: 'ClientCreated',
  data: clientFields,
  at: new Date().toISOString(),
});
const clientArchived = (stream: string): Given => ({
  stream,
  type: 'ClientArchived',
  data: {},
  at: new Date().toISOString(),
});
const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();

suite('dispatcher', { timeoutMs: 120_000 }, (t) => {
  let world: WebhookWorld;

  t.before(async () => {
    world = await WebhookWorld.open();
  });
  t.after(() => world.close());

  /** A workspace of its own for each test. */
  const tenant = () => randomUUID();
  const types = async (endpointId: string) => (await world.deliveries(endpointId)).map(({ type }) => type);

  t('an event becomes one envelope and a delivery for each subscribed endpoint', async () => {
    const workspaceId = tenant();
    const running = world.dispatch();
    const [a, b, c, other] = [
      await world.register(['client.created'], workspaceId),
      await world.register(['client.*', 'post.*'], workspaceId),
      await world.register(['target.*'], workspaceId),
      await world.register(['*'], tenant()),
    ];
    await world.settled();
    const [event] = await world.append([clientCreated()], workspaceId);
    assert.ok(event !== undefined);
    await world.settled();
    const found = [...(await world.deliveries(a)), ...(await world.deliveries(b))];
    assert.equal(found.length, 2);
    const messageId = envelopeIdOf(event.id, 'client.created');
    for (const [at, endpointId] of [a, b].entries()) {
      const one = found[at];
      assert.deepEqual(one?.id, deliveryIdOf(messageId, endpointId ?? ''));
      assert.equal(one?.messageId, messageId);
      assert.equal(one?.envelope.id, messageId);
      assert.equal(one?.envelope.type, 'client.created');
      assert.equal(one?.envelope.created, event.metadata.occurredAt);
      assert.equal(one?.envelope.data.clientId, event.stream.slice('client-'.length));
      assert.equal(one?.status, 'pending');
      const queued = { lane: 0, leased: false, attempt: 0, tries: 0, trigger: 'scheduled', forced: false };
      assert.deepEqual(one?.queued, queued);
    }
    assert.deepEqual(await types(c ?? ''), []);
    assert.deepEqual(await types(other ?? ''), []);
    await running.stop();
  });

  t('a payload has the state of its stream, also when the dispatcher has not seen the stream', async () => {
    const workspaceId = tenant();
    const [postId, targetId, accountId, clientId] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    const target = planned({ targetId, accountId, clientId });
    await world.append(scheduledPost(postId, clientId, [target]), workspaceId);
    // The dispatcher starts after the post was planned, so it has seen no event of the stream.
    const endpointId = await world.register(['target.published'], workspaceId);
    const running = world.dispatch();
    await world.settled();
    const claim = { attempt: 1, takeover: 0 };
    const at = new Date().toISOString();
    const published = { ...claim, externalId: '77', permalink: 'https://x.example/77', publishedAt: at };
    await world.append(
      [
        { stream: `target-${targetId}`, type: 'TargetPublishStarted', data: claim, at },
        { stream: `target-${targetId}`, type: 'TargetPublished', data: published, at },
      ],
      workspaceId,
    );
    await world.settled();
    const [only, ...more] = await world.deliveries(endpointId);
    assert.equal(more.length, 0);
    const data = only?.envelope.data ?? {};
    const said = { targetId, postId, accountId, clientId, platform: 'x', externalId: '77', publishedAt: at };
    for (const [name, value] of Object.entries(said)) assert.equal(data[name], value, name);
    await running.stop();
  });

  t('repeated records and a dispatcher that starts from the beginning mint no delivery twice', async () => {
    const workspaceId = tenant();
    const endpointId = await world.register(['*'], workspaceId);
    await world.append([clientCreated(), clientCreated()], workspaceId);
    const first = world.dispatch();
    await world.settled();
    const before = await world.deliveries(endpointId);
    assert.equal(before.length, 2);
    await first.stop();
    const hand = new HandLog();
    const second = world.dispatch({ log: hand });
    await hand.handlers.assigned(['again-0']);
    const records = await world.records();
    await hand.handlers.batch({ lane: 'again-0', records, nextOffset: 1n, position: records.at(-1)?.position ?? null });
    assert.deepEqual(await world.deliveries(endpointId), before);
    await second.stop();
  });

  t('events that a lane passed before it knew the endpoint are caught up, earlier events are not', async () => {
    const workspaceId = tenant();
    const [early] = await world.append([clientCreated()], workspaceId);
    const endpointId = await world.register(['client.created'], workspaceId);
    const [late] = await world.append([clientCreated()], workspaceId);
    const hand = new HandLog();
    const running = world.dispatch({ log: hand });
    const give = giver(hand, await world.records());
    // The client's lane is far ahead: both events pass while no endpoint subscribes to them.
    await give('workspace');
    assert.deepEqual(await world.deliveries(endpointId), []);
    await give('webhooks');
    await until('the catch-up', async () => (await world.deliveries(endpointId)).length > 0);
    const found = await world.deliveries(endpointId);
    assert.deepEqual(
      found.map(({ position }) => position),
      [late?.position],
    );
    assert.notEqual(early?.position, late?.position);
    await running.stop();
  });

  t('a registration applies to the later events of its own batch', async () => {
    const workspaceId = tenant();
    await world.append([clientCreated()], workspaceId);
    const endpointId = await world.register(['client.created'], workspaceId);
    const [received] = await world.append([clientCreated()], workspaceId);
    await world.act(endpointId, { type: 'Update', changes: { active: false } }, { workspaceId });
    await world.append([clientCreated()], workspaceId);
    const hand = new HandLog();
    const running = world.dispatch({ log: hand });
    const lane = `all-${randomUUID()}`;
    await hand.handlers.assigned([lane]);
    const records = await world.records();
    await hand.handlers.batch({ lane, records, nextOffset: 1n, position: records.at(-1)?.position ?? null });
    assert.deepEqual(
      (await world.deliveries(endpointId)).map(({ position, status }) => [position, status]),
      [[received?.position, 'pending']],
    );
    await running.stop();
  });

  t('events that another member passed without knowing the endpoint are caught up', async () => {
    const workspaceId = tenant();
    const [ahead, behind] = [new HandLog(), new HandLog()];
    const [one, other] = [world.dispatch({ log: ahead }), world.dispatch({ log: behind })];
    // The member reads the endpoints now, and not again for a second.
    await giver(ahead, await world.records())('media');
    const endpointId = await world.register(['client.created'], workspaceId);
    await giver(behind, await world.records())('webhooks');
    await until('the first catch-up', async () => {
      const { rows } = await world.world.pool.query(
        'select 1 from ops.webhook_jobs where endpoint_id = $1 and settle_at is not null',
        [endpointId],
      );
      return rows.length > 0;
    });
    const [event] = await world.append([clientCreated()], workspaceId);
    await giver(ahead, await world.records())('workspace');
    await until('the delivery', async () => (await world.deliveries(endpointId)).length > 0);
    assert.deepEqual(
      (await world.deliveries(endpointId)).map(({ position }) => position),
      [event?.position],
    );
    await one.stop();
    await other.stop();
  });

  t('a wider filter applies from its change on; a narrower one cancels what a late lane minted after it', async () => {
    const workspaceId = tenant();
    const endpointId = await world.register(['client.created'], workspaceId);
    const running = world.dispatch();
    await world.settled();
    const [created] = await world.append([clientCreated()], workspaceId);
    const stream = created?.stream ?? '';
    await world.act(endpointId, { type: 'Update', changes: { events: ['client.*'] } }, { workspaceId });
    await world.append([clientArchived(stream)], workspaceId);
    await world.settled();
    assert.deepEqual(await types(endpointId), ['client.created', 'client.archived']);
    await running.stop();
    // Narrowed while nobody looks; the lane of clients goes on by the old filter, then the change arrives.
    await world.act(endpointId, { type: 'Update', changes: { events: ['client.archived'] } }, { workspaceId });
    const known = (await world.store.readStream(`webhook-${endpointId}`)).at(-1);
    await world.append([clientCreated()], workspaceId);
    const hand = new HandLog();
    const other = world.dispatch({ log: hand });
    const give = giver(hand, await world.records());
    await give('workspace');
    const minted = await world.deliveries(endpointId);
    assert.equal(minted.at(-1)?.status, 'pending');
    assert.ok((minted.at(-1)?.position ?? 0n) > (known?.position ?? 0n));
    await give('webhooks');
    const after = await world.deliveries(endpointId);
    assert.deepEqual(
      after.map(({ type, status, queued }) => [type, status, queued !== null]),
      [
        ['client.created', 'pending', true],
        ['client.archived', 'pending', true],
        ['client.created', 'canceled', false],
      ],
    );
    await other.stop();
  });

  t('turned off by a person: events are neither minted meanwhile nor caught up afterwards', async () => {
    const workspaceId = tenant();
    const endpointId = await world.register(['client.created'], workspaceId);
    const running = world.dispatch();
    await world.append([clientCreated()], workspaceId);
    await world.settled();
    await world.act(endpointId, { type: 'Update', changes: { active: false } }, { workspaceId });
    await world.append([clientCreated()], workspaceId);
    await world.settled();
    assert.equal((await world.deliveries(endpointId)).length, 1);
    await world.act(endpointId, { type: 'Update', changes: { active: true } }, { workspaceId });
    await world.append([clientCreated()], workspaceId);
    await world.settled();
    const found = await world.deliveries(endpointId);
    assert.deepEqual(
      found.map(({ status }) => status),
      ['pending', 'pending'],
    );
    await running.stop();
  });

  t('turned off by the service: missed events are caught up, and other endpoints get the notice', async () => {
    const workspaceId = tenant();
    const endpointId = await world.register(['client.created', 'webhook.*'], workspaceId);
    const watcher = await world.register(['webhook.*'], workspaceId);
    const running = world.dispatch();
    await world.settled();
    await world.act(endpointId, { type: 'Disable', reason: 'failing', seenRevision: 0 }, { workspaceId });
    const [missed] = await world.append([clientCreated()], workspaceId);
    await world.settled();
    assert.deepEqual(await types(endpointId), []);
    assert.deepEqual(await types(watcher), ['webhook.disabled']);
    assert.equal((await world.deliveries(watcher))[0]?.envelope.data.webhookId, endpointId);
    await world.act(endpointId, { type: 'Update', changes: { active: true } }, { workspaceId });
    await world.settled();
    const found = await world.deliveries(endpointId);
    assert.equal(found.find(({ type }) => type === 'client.created')?.position, missed?.position);
    assert.deepEqual(await types(watcher), ['webhook.disabled', 'webhook.enabled']);
    await running.stop();
  });

  t('a catch-up covers at most 72 hours', async () => {
    const workspaceId = tenant();
    const day = 24 * 60;
    const endpointId = await world.register(['client.created'], workspaceId);
    const running = world.dispatch();
    await world.settled();
    const disable = { type: 'Disable', reason: 'gone', seenRevision: 0 } as const;
    await world.act(endpointId, disable, { workspaceId, now: minutesAgo(5 * day) });
    const old = { ...clientCreated(), at: minutesAgo(4 * day) };
    const [tooOld] = await world.append([old], workspaceId);
    await world.settled();
    // What the dispatcher writes down once a minute: where in the store that time lies.
    await world.world.pool.query(
      'insert into ops.webhook_marks (position, at) values ($1, $2) on conflict do nothing',
      [tooOld?.position, minutesAgo(4 * day)],
    );
    const [recent] = await world.append([{ ...clientCreated(), at: minutesAgo(2 * day) }], workspaceId);
    await world.act(endpointId, { type: 'Update', changes: { active: true } }, { workspaceId });
    await world.settled();
    assert.deepEqual(
      (await world.deliveries(endpointId)).map(({ position }) => position),
      [recent?.position],
    );
    await running.stop();
  });

  t('a mark has the time of its writing: an event may be appended long after its own', async () => {
    const { pool } = world.world;
    await pool.query('delete from ops.webhook_marks');
    const { rows: began } = await pool.query<{ now: Date }>('select now()');
    // A fan-out that a crash held up writes events with the time of their post.
    await world.append([{ ...clientCreated(), at: minutesAgo(4 * 24 * 60) }], tenant());
    const running = world.dispatch();
    await world.settled();
    // Written before the next batch.
    await world.append([clientCreated()], tenant());
    await world.settled();
    await running.stop();
    const { rows } = await pool.query<{ at: Date }>('select at from ops.webhook_marks');
    assert.ok(rows.length > 0, 'no mark was written');
    for (const { at } of rows) assert.ok(at >= (began[0]?.now ?? at), `${at.toISOString()} hides events before it`);
  });

  t('a Disabled that arrives late cancels deliveries minted after it and keeps earlier ones', async () => {
    const workspaceId = tenant();
    const endpointId = await world.register(['client.created'], workspaceId);
    const begun = world.dispatch();
    await world.settled();
    await begun.stop();
    await world.append([clientCreated()], workspaceId);
    await world.act(endpointId, { type: 'Update', changes: { active: false } }, { workspaceId });
    await world.append([clientCreated()], workspaceId);
    const hand = new HandLog();
    const running = world.dispatch({ log: hand });
    const give = giver(hand, await world.records());
    await give('workspace');
    await give('webhooks');
    assert.deepEqual(
      (await world.deliveries(endpointId)).map(({ status, queued }) => [status, queued !== null]),
      [
        ['pending', true],
        ['canceled', false],
      ],
    );
    await running.stop();
  });

  const ends: readonly (readonly [string, WebhookCommand])[] = [
    ['us', { type: 'Disable', reason: 'gone', seenRevision: 0 }],
    ['a person', { type: 'Update', changes: { active: false } }],
    ['a filter', { type: 'Update', changes: { events: ['post.created'] } }],
  ];
  for (const [who, off] of ends) {
    t(`a late end by ${who} with a later start: deliveries minted after both are sent`, async () => {
      const workspaceId = tenant();
      const endpointId = await world.register(['client.created'], workspaceId);
      const begun = world.dispatch();
      await world.settled();
      await begun.stop();
      await world.act(endpointId, off, { workspaceId });
      await world.append([clientCreated()], workspaceId);
      const changes = who === 'a filter' ? { events: ['client.created'] } : { active: true };
      await world.act(endpointId, { type: 'Update', changes }, { workspaceId });
      await world.append([clientCreated()], workspaceId);
      const hand = new HandLog();
      const running = world.dispatch({ log: hand });
      const give = giver(hand, await world.records());
      await give('workspace');
      await give('webhooks');
      const missed = who === 'us' ? ['pending', true] : ['canceled', false];
      assert.deepEqual(
        (await world.deliveries(endpointId)).map(({ status, queued }) => [status, queued !== null]),
        [missed, ['pending', true]],
      );
      await running.stop();
    });
  }

  t('a late lane mints events before the end of the interval and none after it', async () => {
    const workspaceId = tenant();
    const endpointId = await world.register(['client.created'], workspaceId);
    const begun = world.dispatch();
    await world.settled();
    await begun.stop();
    const [before] = await world.append([clientCreated()], workspaceId);
    await world.act(endpointId, { type: 'Update', changes: { active: false } }, { workspaceId });
    await world.append([clientCreated()], workspaceId);
    const hand = new HandLog();
    const running = world.dispatch({ log: hand });
    const give = giver(hand, await world.records());
    await give('webhooks');
    await give('workspace');
    assert.deepEqual(
      (await world.deliveries(endpointId)).map(({ position, status }) => [position, status]),
      [[before?.position, 'pending']],
    );
    await running.stop();
  });

  t('a test goes to one endpoint, whatever its filter and although it is off', async () => {
    const workspaceId = tenant();
    const endpointId = await world.register(['target.published'], workspaceId);
    const other = await world.register(['*'], workspaceId);
    await world.act(endpointId, { type: 'Update', changes: { active: false } }, { workspaceId });
    const command = { type: 'RequestTest', commandId: randomUUID(), eventType: 'webhook.test' } as const;
    const asked = await world.act(endpointId, command, { workspaceId });
    const sample = { type: 'RequestTest', commandId: randomUUID(), eventType: 'post.published' } as const;
    await world.act(endpointId, sample, { workspaceId });
    const running = world.dispatch();
    await world.settled();
    const [test, second] = await world.deliveries(endpointId);
    const eventId = asked.appended[0]?.id ?? '';
    assert.equal(test?.id, deliveryIdOf(envelopeIdOf(eventId, 'webhook.test'), endpointId));
    assert.equal(test?.type, 'webhook.test');
    assert.deepEqual([test?.queued?.trigger, test?.queued?.forced], ['test', true]);
    assert.equal(second?.envelope.type, 'post.published');
    assert.deepEqual(await types(other), ['webhook.disabled']);
    await running.stop();
  });

  t('a resend queues a settled delivery again, and its attempts continue to count', async () => {
    const workspaceId = tenant();
    const endpointId = await world.register(['client.created'], workspaceId);
    const running = world.dispatch();
    await world.append([clientCreated()], workspaceId);
    await world.settled();
    const [sent] = await world.deliveries(endpointId);
    assert.ok(sent !== undefined);
    // As a sender leaves it that needed three attempts.
    await world.world.pool.query('delete from ops.webhook_queue where delivery_id = $1', [sent.id]);
    await world.world.pool.query(
      `update ops.webhook_deliveries set status = 'delivered', attempts = '[{"number": 1}, {"number": 3}]' where id = $1`,
      [sent.id],
    );
    const { id: deliveryId, eventTime } = sent;
    const command = { type: 'RequestResend', commandId: randomUUID(), deliveryId, eventTime } as const;
    await world.act(endpointId, command, { workspaceId });
    await world.settled();
    const [again] = await world.deliveries(endpointId);
    assert.equal(again?.status, 'pending');
    const queued = { lane: 0, leased: false, attempt: 3, tries: 0, trigger: 'resend', forced: true };
    assert.deepEqual(again?.queued, queued);
    await running.stop();
  });

  t('a replay sends a range of events again, also from before the endpoint, under the same envelope ids', async () => {
    const workspaceId = tenant();
    const [one, two, three] = await world.append(
      [
        { ...clientCreated(), at: minutesAgo(300) },
        { ...clientCreated(), at: minutesAgo(200) },
        { ...clientCreated(), at: minutesAgo(100) },
      ],
      workspaceId,
    );
    await world.append(
      [clientArchived(two?.stream ?? '')].map((event) => ({ ...event, at: minutesAgo(150) })),
      workspaceId,
    );
    const endpointId = await world.register(['*'], workspaceId);
    const running = world.dispatch();
    await world.settled();
    const replayId = randomUUID();
    const stretch = { from: minutesAgo(250), to: minutesAgo(50), types: ['client.created'] };
    const command = { type: 'RequestReplay', commandId: randomUUID(), replayId, ...stretch } as const;
    await world.act(endpointId, command, { workspaceId });
    await world.settled();
    const found = await world.deliveries(endpointId);
    assert.deepEqual(
      found.map(({ messageId, id, queued }) => [messageId, id, queued?.lane, queued?.trigger]),
      [two, three].map((event) => {
        const messageId = envelopeIdOf(event?.id ?? '', 'client.created');
        return [messageId, deliveryIdOf(messageId, endpointId, replayId), 2, 'replay'];
      }),
    );
    assert.notEqual(one, undefined);
    const { rows } = await world.world.pool.query('select status, minted::int from ops.webhook_jobs where id = $1', [
      replayId,
    ]);
    assert.deepEqual(rows, [{ status: 'completed', minted: 2 }]);
    await world.act(endpointId, { type: 'CancelReplay', replayId }, { workspaceId });
    await world.settled();
    assert.deepEqual(
      (await world.deliveries(endpointId)).map(({ status, queued }) => [status, queued]),
      [
        ['canceled', null],
        ['canceled', null],
      ],
    );
    await running.stop();
  });

  t('a replay into a week whose partition retention has dropped creates the partition again', async () => {
    const workspaceId = tenant();
    const long = 400 * 24 * 60;
    await world.append([{ ...clientCreated(), at: minutesAgo(long) }], workspaceId);
    const endpointId = await world.register(['client.created'], workspaceId);
    const running = world.dispatch();
    const replay = async () => {
      const stretch = { from: minutesAgo(long + 60), to: minutesAgo(long - 60), types: null };
      const command = { type: 'RequestReplay', commandId: randomUUID(), replayId: randomUUID(), ...stretch } as const;
      await world.act(endpointId, command, { workspaceId });
      await world.settled();
      return (await world.deliveries(endpointId)).length;
    };
    assert.equal(await replay(), 1);
    const { pool } = world.world;
    const { rows } = await pool.query(
      'select distinct tableoid::regclass::text as name from ops.webhook_deliveries where endpoint_id = $1',
      [endpointId],
    );
    await pool.query('delete from ops.webhook_queue where endpoint_id = $1', [endpointId]);
    for (const { name } of rows) await pool.query(`drop table ${name}, ${name.replace('deliveries', 'messages')}`);
    assert.equal(await replay(), 1);
    await running.stop();
  });

  t('the tables alone show which key versions sign', async () => {
    const endpointId = await world.register(['*'], tenant());
    const running = world.dispatch();
    await world.settled();
    assert.ok((await keyVersionsInUse(world.world.pool)).includes('v1'));
    await world.world.pool.query(
      `update ops.webhook_endpoints set state = jsonb_set(state, '{secrets,0,keyVersion}', '"v7"')
      where id = $1`,
      [endpointId],
    );
    assert.ok((await keyVersionsInUse(world.world.pool)).includes('v7'));
    await running.stop();
  });

  t('a test requested before its endpoint was deleted is not sent', async () => {
    const workspaceId = tenant();
    const endpointId = await world.register(['*'], workspaceId);
    const command = { type: 'RequestTest', commandId: randomUUID(), eventType: 'webhook.test' } as const;
    await world.act(endpointId, command, { workspaceId });
    await world.act(endpointId, { type: 'Delete' }, { workspaceId });
    const running = world.dispatch();
    await world.settled();
    assert.deepEqual(await world.deliveries(endpointId), []);
    await running.stop();
  });

  t('a deleted endpoint loses its deliveries and gets no more', async () => {
    const workspaceId = tenant();
    const endpointId = await world.register(['client.created'], workspaceId);
    const running = world.dispatch();
    await world.append([clientCreated(), clientCreated()], workspaceId);
    await world.settled();
    assert.equal((await world.deliveries(endpointId)).length, 2);
    await world.act(endpointId, { type: 'Delete' }, { workspaceId });
    await world.append([clientCreated()], workspaceId);
    await world.settled();
    await until('the deletion', async () => (await world.deliveries(endpointId)).length === 0);
    await running.stop();
  });

  t('a verification finds a delivery that is missing, and one that no event asked for', async () => {
    const workspaceId = tenant();
    const running = world.dispatch();
    const endpoint = await world.register(['client.*'], workspaceId);
    await world.settled();
    const [made] = await world.append([clientCreated()], workspaceId);
    await world.append([clientArchived(made?.stream ?? '')], workspaceId);
    await world.settled();
    await running.stop();
    const { pool, log, store: eventStore } = world.world;
    // An endpoint whose catch-up goes on is left out: its deliveries are still to come.
    await pool.query("update ops.webhook_jobs set status = 'completed' where endpoint_id = $1", [endpoint]);
    const numbering = startNumbering({ eventStore, pool, head: async () => (await eventStore.head()) ?? 0n } as World);
    await numbering.numbered();
    await numbering.stop();
    const verified = async (): Promise<readonly string[]> => {
      const findings: string[] = [];
      const counted: Record<string, number> = {};
      const admin = { pool, log, store: world.store, operator: { clock: Date.now } } as unknown as Admin;
      const say = (finding: string) => void findings.push(finding);
      const checks = await DeliveryChecks.begin(admin, { workspaceId, size: 1_000, counted, say });
      await checks.add(await world.store.readStream(made?.stream ?? ''));
      await checks.flush();
      await checks.end();
      assert.equal(counted.deliveries, 2);
      return findings;
    };
    assert.deepEqual(await verified(), []);
    const [first] = await world.deliveries(endpoint);
    await pool.query('update ops.webhook_deliveries set id = gen_random_uuid() where id = $1', [first?.id]);
    assert.deepEqual(await verified(), [
      `the delivery ${first?.id} is missing: ${first?.type} at ${first?.position} to webhook ${endpoint}`,
    ]);
    await pool.query('update ops.webhook_deliveries set position = 0 where id = $1', [
      (await world.deliveries(endpoint)).find(({ id }) => id !== first?.id)?.id,
    ]);
    assert.match(
      (await verified()).at(-1) ?? '',
      new RegExp(`^no event asked for the delivery [\\w-]+: client.\\w+ to webhook ${endpoint}$`),
    );
  });
});

/** Hands a topic's records to a dispatcher in one batch, as the only lane of that topic. */
const giver = (hand: HandLog, records: Awaited<ReturnType<WebhookWorld['records']>>) => {
  const tag = randomUUID();
  return async (topic: string): Promise<void> => {
    const lane: Lane = `${topic}-${tag}`;
    await hand.handlers.assigned([lane]);
    const own = records.filter((one) => one.topic === topic);
    await hand.handlers.batch({ lane, records: own, nextOffset: 1n, position: own.at(-1)?.position ?? null });
  };
};
