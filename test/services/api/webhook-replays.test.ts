import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Answered, given, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { dispatching } from '#test/support/webhooks.ts';

const nowhere = '00000000-0000-4000-8000-000000000000';
const hourMs = 3_600_000;
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();

const register = async (world: World, events: readonly string[] = ['client.*']): Promise<string> => {
  const made = await world.owner.post('/webhooks', { url: 'https://hooks.agency.example/in', events });
  assert.equal(made.status, 200, made.text);
  return made.data.id;
};

suite('webhook replays without a running dispatcher', (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world?.close());

  const replay = (id: string, body: object = { from: ago(hourMs) }, key = randomUUID()): Promise<Answered> =>
    world.owner.post(`/webhooks/${id}/replays`, body, { key });

  t('is asked for in the stream, counts as ten requests, and a repeat answers the same', async () => {
    const id = await register(world);
    const [from, to] = [ago(2 * hourMs), ago(hourMs)];
    const key = randomUUID();
    const body = { from, to, types: ['client.created', 'post.*', 'client.created'] };
    const { data, headers } = await given(world, [])
      .request('POST', `/webhooks/${id}/replays`, { body, key })
      .then(200, ['RequestAccepted', 'WebhookReplayRequested', 'RequestCompleted']);
    assert.deepEqual(data, {
      id: data.id,
      object: 'webhook_replay',
      webhookId: id,
      from,
      to,
      types: ['client.created', 'post.*'],
      status: 'running',
      progress: 0,
      minted: 0,
      readTo: null,
      createdAt: data.createdAt,
      updatedAt: data.createdAt,
      completedAt: null,
    });
    const left = (answer: Pick<Answered, 'headers'>) =>
      Number(/r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1]);
    const again = await replay(id, body, key);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(again.data, data);
    assert.equal(left({ headers }) - left(again), 10);
    const other = await replay(id, { ...body, types: ['*'] }, key);
    assert.equal(other.body.code, 'idempotency_key_reused');
  });

  t('reads up to now when the end is absent or in the future; offsets are read as UTC', async () => {
    const id = await register(world);
    const before = Date.now();
    const first = await replay(id, { from: '2026-01-31T08:00:00+02:00' });
    assert.equal(first.data.from, '2026-01-31T06:00:00.000Z');
    const far = await replay(id, { from: '2026-01-31T08:00:00Z', to: '2999-01-01T00:00:00Z', types: null });
    assert.equal(far.data.types, null);
    for (const { data } of [first, far]) {
      const to = Date.parse(String(data.to));
      assert.ok(to >= before && to <= Date.now());
    }
  });

  t('refuses an empty time range, and unknown types', async () => {
    const id = await register(world);
    const bodies: readonly (readonly [object, string, string])[] = [
      [{}, 'validation_failed', '/from'],
      [{ from: 'yesterday' }, 'validation_failed', '/from'],
      [{ from: ago(0), to: ago(hourMs) }, 'validation_failed', '/to'],
      [{ from: '2026-01-31T08:00:00Z', to: '2026-01-31T08:00:00Z' }, 'validation_failed', '/to'],
      [{ from: '2999-01-01T00:00:00Z' }, 'validation_failed', '/from'],
      [{ from: ago(hourMs), types: [] }, 'validation_failed', '/types'],
      [{ from: ago(hourMs), types: ['client.*', 'none.such'] }, 'unknown_event_type', '/types/1'],
    ];
    for (const [body, code, path] of bodies) {
      const refused = await given(world, []).request('POST', `/webhooks/${id}/replays`, { body }).then(422, []);
      assert.equal(refused.body.code, code, JSON.stringify(body));
      assert.equal(refused.body.errors?.[0]?.path, path, JSON.stringify(body));
    }
  });

  t('three run at once and no fourth, also of six at the same moment', async () => {
    const id = await register(world);
    const asked = await Promise.all(Array.from({ length: 6 }, () => replay(id)));
    const refused = asked.filter(({ status }) => status !== 200);
    assert.equal(refused.length, 3);
    for (const { status, body } of refused) assert.deepEqual([status, body.code], [409, 'too_many_replays']);
    const other = await register(world);
    assert.equal((await replay(other)).status, 200, 'it is of each endpoint');
    // A cancel makes room, and a key that was refused is free.
    const [running] = asked.filter(({ status }) => status === 200);
    const key = randomUUID();
    assert.equal((await replay(id, undefined, key)).status, 409);
    await world.owner.delete(`/webhooks/${id}/replays/${running?.data.id}`);
    assert.equal((await replay(id, undefined, key)).status, 200);
    assert.equal((await replay(id)).status, 409);
  });

  t('a requested replay is never 404: 503 until the dispatcher knows it; it can be canceled at once', async () => {
    const id = await register(world);
    const { data } = await replay(id);
    const path = `/webhooks/${id}/replays/${data.id}`;
    assert.equal((await world.owner.get(path)).status, 503);
    const canceled = await given(world, []).request('DELETE', path).then(200, ['WebhookReplayCanceled']);
    assert.deepEqual(canceled.data, { ...data, status: 'canceled', updatedAt: canceled.data.updatedAt });
    assert.deepEqual((await given(world, []).request('DELETE', path).then(200, [])).data, canceled.data);
    const foreign = await register(world);
    for (const method of ['GET', 'DELETE']) {
      const elsewhere = await world.owner.request(method, `/webhooks/${foreign}/replays/${data.id}`);
      assert.equal(elsewhere.status, 404, 'it is of another endpoint');
    }
    const other = (await world.keyOf(world.workspaceId, world.memberId)).caller;
    assert.equal((await other.get(`/webhooks/${id}/replays/${nowhere}`)).status, 404);
    assert.equal((await other.delete(`/webhooks/${id}/replays/${nowhere}`)).status, 404);
  });
});

suite('webhook replays', (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
    const dispatcher = await dispatching(world);
    const close = world.close;
    world = {
      ...world,
      close: async () => {
        await dispatcher.stop();
        await close();
      },
    };
  });
  t.after(() => world?.close());

  t('shows its progress until it is complete; events from before the endpoint existed are delivered', async () => {
    const names = [1, 2, 3].map((n) => `Before ${n}`);
    for (const name of names) await world.owner.post('/clients', { name, type: 'brand' });
    const id = await register(world);
    const path = `/webhooks/${id}/replays`;
    const { data } = await world.owner.post(path, { from: ago(hourMs) });
    await until('the replay is complete', async () => {
      const read = await world.owner.get(`${path}/${data.id}`);
      assert.equal(read.status, 200, read.text);
      return read.data.status === 'completed';
    });
    const done = (await world.owner.get(`${path}/${data.id}`)).data;
    assert.deepEqual([done.progress, done.minted], [1, 3]);
    for (const name of ['from', 'to', 'types', 'createdAt']) assert.deepEqual(done[name], data[name]);
    assert.ok(done.completedAt !== null && done.readTo !== null);
    const { rows } = await world.owner.get(`/webhooks/${id}/deliveries`);
    assert.deepEqual(
      rows.map(({ eventType, replayId }) => [eventType, replayId]),
      names.map(() => ['client.created', data.id]),
    );
    // It has ended: a cancel changes nothing, and there is room for three more.
    const late = await given(world, []).request('DELETE', `${path}/${data.id}`).then(200, []);
    assert.deepEqual(late.data, done);
    for (let n = 0; n < 4; n += 1) {
      const next = await world.owner.post(path, { from: ago(hourMs), types: ['media.*'] });
      assert.equal(next.status, 200, next.text);
      await until('it is complete', async () => {
        const read = await world.owner.get(`${path}/${next.data.id}`);
        return read.data.status === 'completed';
      });
    }
  });

  t('computes its progress from the time up to which it has read', async () => {
    const id = await register(world);
    const row = async (status: string, readTo: string | null): Promise<Answered['data']> => {
      const replayId = randomUUID();
      await world.pool.query(
        `insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id, from_time, to_time, read_to, minted, status,
           not_before)
         values ($1, 'replay', $2, $3, '2026-01-01T00:00Z', '2026-01-02T00:00Z', $4, 7, $5, now() + interval '1 hour')`,
        [replayId, id, world.workspaceId, readTo, status],
      );
      const read = await world.owner.get(`/webhooks/${id}/replays/${replayId}`);
      assert.equal(read.status, 200, read.text);
      return read.data;
    };
    assert.equal((await row('running', null)).progress, 0);
    assert.equal((await row('running', '2026-01-01T06:00:00Z')).progress, 0.25);
    assert.equal((await row('running', '2026-01-02T00:00:00.500Z')).progress, 1);
    assert.equal((await row('completed', '2026-01-01T06:00:00Z')).progress, 1);
    const failed = await row('failed', '2026-01-01T12:00:00Z');
    assert.deepEqual([failed.status, failed.progress, failed.minted], ['failed', 0.5, 7]);
  });
});
