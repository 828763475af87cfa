import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { webhook } from '#domain/webhook.ts';
import { rotationsOf } from '#projections/webhooks/rotations.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { fingerprintOf, withIdempotencyRecord } from '#runtime/eventing/idempotency.ts';
import { webhookSecret } from '#runtime/identity/webhook-secrets.ts';
import { requireRoom } from '#services/api/webhooks/room.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type Answered, type Ask, type Caller, given, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const hourMs = 3_600_000;
const url = 'https://hooks.agency.example/in';

/** Whose key outlives what is looked at days later. */
const ownerOf = async (world: World): Promise<Caller> =>
  (await world.keyOf(world.workspaceId, world.memberId, { expiresInMs: 40 * 24 * hourMs })).caller;

suite('webhook endpoints', (t) => {
  let world: World;
  let owner: Caller;
  /** What every public name resolves to. */
  const addresses = { now: async (): Promise<readonly string[]> => ['93.184.215.14'] };
  t.before(async () => {
    const guard = new EgressGuard({
      privateTargets: [],
      ownHosts: () => ['api.postline.example'],
      resolve: () => addresses.now(),
    });
    world = await startWorld({ deps: { egress: guard } });
    owner = await ownerOf(world);
  });
  t.after(() => world?.close());

  const register = async (over: object = {}, ask: Ask = {}): Promise<Answered> => {
    const made = await owner.post('/webhooks', { url, events: ['post.*', 'target.failed'], ...over }, ask);
    assert.equal(made.status, 200, made.text);
    return made;
  };
  const without = ({ secret: _secret, ...rest }: Answered['data']) => rest;
  const later = async <T>(ms: number, ask: () => Promise<T>): Promise<T> => {
    world.clock.shiftMs = ms;
    try {
      return await ask();
    } finally {
      world.clock.shiftMs = 0;
    }
  };

  t('is registered: shown with its secret once, without it ever after, and stored without it', async () => {
    const body = { url, events: ['post.*', '*', 'post.*'], description: 'ours', stranger: 1 };
    const { data, headers } = await given(world, [], owner)
      .request('POST', '/webhooks', { body })
      .then(200, ['WebhookRegistered']);
    const secret = String(data.secret);
    assert.equal(secret, webhookSecret(world.secrets, data.id, { generation: 1, keyVersion: 'v1' }));
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    const createdAt = String(data.createdAt);
    assert.deepEqual(without(data), {
      id: data.id,
      object: 'webhook',
      url,
      events: ['post.*', '*'],
      active: true,
      description: 'ours',
      clientIds: null,
      disabledReason: null,
      secretHint: secret.slice(-4),
      secrets: [{ createdAt, expiresAt: null }],
      createdAt,
      updatedAt: createdAt,
      revision: 0,
    });
    assert.equal(headers.get('etag'), '"0"');
    const read = await owner.get(`/webhooks/${data.id}`);
    assert.deepEqual(read.data, without(data));
    assert.equal(read.headers.get('etag'), '"0"');
    assert.deepEqual((await owner.get('/webhooks?limit=1')).rows, [without(data)]);
    const { rows } = await world.pool.query(
      `select string_agg(convert_from(data, 'utf8'), '') || (select string_agg(w::text, '') from read.webhooks w) as text
       from es.events where stream = $1`,
      [`webhook-${data.id}`],
    );
    assert.match(rows[0].text, /hooks\.agency/);
    assert.ok(!rows[0].text.includes(secret.slice(6)), 'the secret is stored');
    assert.ok(!world.lines.join('').includes(secret.slice(6)), 'the secret is logged');
  });

  t('is limited to clients of its workspace, and free of the limit again', async () => {
    const made = await owner.post('/clients', { name: `Limit ${randomUUID()}`, type: 'brand' });
    const other = (await world.agency('Foreign')).owner;
    const foreign = (await other.post('/clients', { name: 'Foreign', type: 'brand' })).data.id;
    const { id } = made.data;
    const one = await register({ clientIds: [id, id] });
    assert.deepEqual(one.data.clientIds, [id]);
    const path = `/webhooks/${one.data.id}`;
    assert.deepEqual((await owner.get(path)).data.clientIds, [id]);
    for (const strange of [foreign, randomUUID()]) {
      const refused = [
        await owner.post('/webhooks', { url, events: ['*'], clientIds: [id, strange] }),
        await owner.patch(path, { clientIds: [id, strange] }),
      ];
      for (const { status, body } of refused) {
        assert.equal(status, 422);
        assert.deepEqual(
          body.errors?.map(({ path, code }) => [path, code]),
          [['/clientIds/1', 'unknown_id']],
        );
      }
    }
    const wrong = { url: 'https://localhost/', events: ['post.*', 'no.such'], clientIds: [foreign] };
    for (const { status, body } of [await owner.post('/webhooks', wrong), await owner.patch(path, wrong)]) {
      assert.deepEqual([status, body.code], [422, 'unknown_event_type']);
      const reported = body.errors?.map((error) => `${error.path} ${error.code}`);
      assert.deepEqual(reported, ['/events/1 unknown_event_type', '/url url_not_allowed', '/clientIds/0 unknown_id']);
    }
    for (const clientIds of [[], 'all', Array(101).fill(id)])
      assert.equal((await owner.patch(path, { clientIds })).status, 422);
    assert.deepEqual((await owner.patch(path, { description: 'still' })).data.clientIds, [id]);
    assert.equal((await owner.patch(path, { clientIds: null })).data.clientIds, null);
  });

  t('a repeat shows the same secret for a day; then, and of a deleted endpoint, none', async () => {
    const key = randomUUID();
    const first = await register({}, { key });
    const again = () => register({}, { key });
    const repeated = await again();
    assert.equal(repeated.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(repeated.data, first.data);
    // The former secret of a rotation signs on: it may be shown.
    await owner.post(`/webhooks/${first.data.id}/rotate-secret`, {});
    assert.deepEqual((await later(24 * hourMs - 10_000, again)).data, first.data);
    const late = await later(24 * hourMs, again);
    assert.deepEqual(late.data, { ...first.data, secret: null });
    const other = await owner.post('/webhooks', { url, events: ['*'] }, { key });
    assert.equal(other.body.code, 'idempotency_key_reused');
    await owner.delete(`/webhooks/${first.data.id}`);
    assert.equal((await again()).data.secret, null);
  });

  /** Registered as before there was a limit: nothing but their events. */
  const registered = async (workspaceId: string, count: number): Promise<readonly string[]> => {
    const command = {
      type: 'Register' as const,
      url,
      events: ['*'],
      description: null,
      clientIds: null,
      keyVersion: 'v1',
    };
    const ids = Array.from({ length: count }, () => randomUUID());
    await Promise.all(
      ids.map((id) => execute(world.store, webhook, id, command, contextOf(world.operator, workspaceId))),
    );
    await world.settled();
    return ids;
  };

  t('a workspace has 50 at most, however many register at once; a deleted one leaves its place', async () => {
    const { owner: caller, tester, workspaceId } = await world.agency();
    await registered(workspaceId, 47);
    const body = { url, events: ['*'] };
    const keys = Array.from({ length: 8 }, () => randomUUID());
    const raced = await Promise.all(keys.map((key) => caller.post('/webhooks', body, { key })));
    assert.deepEqual(raced.map(({ status, body: { code } }) => (status === 200 ? '' : `${status} ${code}`)).sort(), [
      '',
      '',
      '',
      ...Array.from({ length: 5 }, () => '409 too_many_webhooks'),
    ]);
    const made = raced.findIndex(({ status }) => status === 200);
    const refused = raced.findIndex(({ status }) => status === 409);
    const again = (at: number) => caller.post('/webhooks', body, { key: keys[at] ?? '' });
    assert.equal((await again(made)).data.id, raced[made]?.data.id);
    assert.equal((await again(refused)).status, 409);
    assert.equal((await tester.post('/webhooks', body)).status, 200);
    await caller.delete(`/webhooks/${raced[made]?.data.id}`);
    assert.equal((await again(refused)).status, 200);
    assert.equal((await caller.post('/webhooks', body)).status, 409);
  });

  t('a workspace that had more before keeps them, changes them, and registers again below the limit', async () => {
    const { owner: caller, workspaceId } = await world.agency();
    const ids = await registered(workspaceId, 52);
    const body = { url, events: ['*'] };
    assert.equal((await caller.patch(`/webhooks/${ids[0]}`, { active: false })).status, 200);
    assert.equal((await caller.patch(`/webhooks/${ids[0]}`, { active: true })).status, 200);
    for (const id of ids.slice(0, 2)) {
      assert.equal((await caller.post('/webhooks', body)).body.code, 'too_many_webhooks');
      assert.equal((await caller.delete(`/webhooks/${id}`)).status, 200);
    }
    assert.equal((await caller.post('/webhooks', body)).status, 409);
    assert.equal((await caller.delete(`/webhooks/${ids[2]}`)).status, 200);
    assert.equal((await caller.post('/webhooks', body)).status, 200);
  });

  t(
    'places are counted across processes; a place whose caller died before the append lapses after a minute',
    async () => {
      const { workspaceId } = await world.agency();
      const [alive = ''] = await registered(workspaceId, 1);
      const ask = (webhookId: string = randomUUID()) =>
        requireRoom(
          // As another process has it: nothing in common but the database.
          {
            deps: { ...world.deps, pool: Object.create(world.pool), webhooksPerWorkspace: 4 },
            workspaceId,
            behind: async () => false,
          },
          webhookId,
        ).then(
          () => 'taken',
          ({ code }: { readonly code: string }) => code,
        );
      const asked = await Promise.all(Array.from({ length: 7 }, () => ask()));
      assert.deepEqual(asked.sort(), [
        'taken',
        'taken',
        'taken',
        ...Array.from({ length: 4 }, () => 'too_many_webhooks'),
      ]);
      const { rows } = await world.pool.query(
        'select webhook_id as id from ops.webhook_places where workspace_id = $1',
        [workspaceId],
      );
      assert.deepEqual([await ask(rows[0].id), await ask(alive), await ask()], ['taken', 'taken', 'too_many_webhooks']);
      // Two died before their append; a third was born, and the read model does not show it for as long.
      await world.pool.query('delete from read.webhooks where id = $1', [alive]);
      await world.pool.query('insert into ops.webhook_places (webhook_id, workspace_id) values ($1, $2)', [
        alive,
        workspaceId,
      ]);
      await world.pool.query(
        "update ops.webhook_places set taken_at = now() - interval '61 seconds' where webhook_id = any($1)",
        [[alive, ...rows.slice(0, 2).map(({ id }) => id)]],
      );
      assert.deepEqual([await ask(), await ask(), await ask()], ['taken', 'taken', 'too_many_webhooks']);
    },
  );

  t('refuses an invalid endpoint and names the member', async () => {
    const tooMany = Array.from({ length: 101 }, () => '*');
    const bodies: readonly (readonly [object, string])[] = [
      [{ events: ['*'] }, '/url'],
      [{ url, events: [] }, '/events'],
      [{ url }, '/events'],
      [{ url, events: tooMany }, '/events'],
      [{ url, events: ['*'], description: 'x'.repeat(501) }, '/description'],
      [{ url: `https://a.example/${'x'.repeat(2048)}`, events: ['*'] }, '/url'],
      [{ url: 1, events: ['*'] }, '/url'],
      [{ url, events: [''] }, '/events/0'],
    ];
    for (const [body, path] of bodies) {
      const { status, body: problem } = await owner.post('/webhooks', body);
      assert.equal(status, 422, JSON.stringify(body));
      assert.equal(problem.code, 'validation_failed');
      assert.equal(problem.errors?.[0]?.path, path);
    }
    const keyless = await owner.post('/webhooks', { url, events: ['*'] }, { key: null });
    assert.equal(keyless.body.code, 'idempotency_key_required');
  });

  t('refuses unknown types, each by its place, and writes nothing', async () => {
    const events = ['post.*', '*', 'post.vanished', 'target.published', 'posts.*', 'POST.*', 'post', 'post*', '**'];
    const { body } = await given(world, [], owner)
      .request('POST', '/webhooks', { body: { url, events } })
      .then(422, []);
    assert.equal(body.code, 'unknown_event_type');
    assert.deepEqual(
      body.errors?.map(({ path }) => path),
      ['/events/2', '/events/4', '/events/5', '/events/6', '/events/7', '/events/8'],
    );
    for (const known of ['media.variant.*', 'media.variant.ready', 'webhook.*', 'post.created']) {
      await register({ events: [known] });
    }
  });

  t('refuses every url that leads into the private network, with a message that reveals nothing about it', async () => {
    const stray = `stray-${randomUUID()}`;
    const urls = [
      'http://hooks.agency.example/',
      'ftp://hooks.agency.example/',
      'https://127.0.0.1/',
      'https://2130706433/',
      'https://[::1]/',
      'https://[::ffff:10.0.0.1]/',
      'https://169.254.169.254/latest/meta-data',
      'https://localhost/',
      'https://printer/',
      `https://user:${stray}@hooks.agency.example/`,
      'https://hooks.agency.example:8443/',
      'https://api.postline.example/v1/webhooks',
      'https://API.postline.example./',
      'nonsense',
    ];
    for (const one of urls) {
      const { body } = await given(world, [], owner)
        .request('POST', '/webhooks', { body: { url: one, events: ['*'] } })
        .then(422, []);
      assert.equal(body.code, 'url_not_allowed', one);
      assert.equal(body.errors?.[0]?.path, '/url');
    }
    assert.ok(!world.lines.join('').includes(stray));
  });

  t('a name is resolved: one private address refuses it, no address does not', async () => {
    const key = randomUUID();
    const body = { url: 'https://mixed.example/', events: ['*'] };
    addresses.now = async () => ['93.184.215.14', '10.1.2.3'];
    const refused = await owner.post('/webhooks', body, { key });
    assert.equal(refused.body.code, 'url_not_allowed');
    assert.doesNotMatch(refused.text, /10\.1|93\.184/);
    addresses.now = async () => {
      throw new Error('no such name');
    };
    const made = await owner.post('/webhooks', body, { key });
    assert.equal(made.status, 200, 'a refusal frees the key, and a name that does not resolve yet is taken');
    addresses.now = async () => ['10.1.2.3'];
    const again = await owner.post('/webhooks', body, { key });
    assert.equal(again.status, 200, 'a repeat is not judged anew');
    assert.deepEqual(again.data, made.data);
    const moved = await owner.patch(`/webhooks/${made.data.id}`, { url: 'https://moved.example/' });
    assert.equal(moved.body.code, 'url_not_allowed');
    addresses.now = async () => ['93.184.215.14'];
    assert.equal((await owner.patch(`/webhooks/${made.data.id}`, { url: 'https://moved.example/' })).status, 200);
  });

  t('is changed member by member; unchanged members are not written', async () => {
    const { data } = await register({ description: 'first' });
    const path = `/webhooks/${data.id}`;
    const patch = (body: object, types: readonly string[], ask: Ask = {}) =>
      given(world, [], owner)
        .request('PATCH', path, { body, ...ask })
        .then(200, types);
    const described = await patch({ description: 'second', url, stranger: true }, ['WebhookUpdated']);
    assert.deepEqual(described.data, {
      ...without(data),
      description: 'second',
      revision: 1,
      updatedAt: described.data.updatedAt,
    });
    assert.deepEqual((await owner.get(path)).data, described.data);
    assert.deepEqual((await patch({ description: 'second', events: data.events }, [])).data, described.data);
    assert.deepEqual((await patch({}, [])).data, described.data);
    const cleared = await patch({ description: null, url: null, events: null, active: null }, ['WebhookUpdated']);
    assert.deepEqual([cleared.data.description, cleared.data.url, cleared.data.active], [null, url, true]);
    const off = await patch({ active: false }, ['WebhookDisabled']);
    assert.deepEqual([off.data.active, off.data.disabledReason], [false, 'requested']);
    const both = await patch({ active: true, events: ['*'] }, ['WebhookUpdated', 'WebhookEnabled']);
    assert.deepEqual([both.data.active, both.data.disabledReason, both.data.events], [true, null, ['*']]);
    for (const [body, code] of [
      [{ events: ['*', 'nothing'] }, 'unknown_event_type'],
      [{ url: 'https://10.0.0.1/' }, 'url_not_allowed'],
      [{ events: [] }, 'validation_failed'],
      [{ active: 'yes' }, 'validation_failed'],
    ] as const) {
      const refused = await given(world, [], owner).request('PATCH', path, { body }).then(422, []);
      assert.equal(refused.body.code, code);
    }
    const stale = await owner.patch(path, { active: false }, { headers: { 'if-match': '"0"' } });
    assert.equal(stale.body.code, 'revision_mismatch');
    const { revision } = both.data;
    await patch({ active: false }, ['WebhookDisabled'], { headers: { 'if-match': `"${revision}"` } });
  });

  t('an endpoint that the service disabled shows why, until it is turned on again', async () => {
    const { data } = await register();
    const context = contextOf(world.operator, world.workspaceId);
    await execute(world.store, webhook, data.id, { type: 'Disable', reason: 'gone', seenRevision: 0 }, context);
    await world.settled();
    const read = await owner.get(`/webhooks/${data.id}`);
    assert.deepEqual([read.data.active, read.data.disabledReason], [false, 'gone']);
    const on = await owner.patch(`/webhooks/${data.id}`, { active: true });
    assert.deepEqual([on.data.active, on.data.disabledReason], [true, null]);
  });

  t('is deleted: unknown to everything else, and the same when it is deleted again', async () => {
    const { data } = await register();
    const path = `/webhooks/${data.id}`;
    const stale = await owner.delete(path, { headers: { 'if-match': '"7"' } });
    assert.equal(stale.body.code, 'revision_mismatch');
    const gone = await given(world, [], owner)
      .request('DELETE', path, { headers: { 'if-match': '"0"' } })
      .then(200, ['WebhookDeleted']);
    assert.deepEqual([gone.data.active, gone.data.secretHint, gone.data.secrets], [false, null, []]);
    assert.deepEqual((await given(world, [], owner).request('DELETE', path).then(200, [])).data, gone.data);
    const again = await owner.delete(path, { headers: { 'if-match': '"0"' } });
    assert.equal(again.status, 200, 'its answer may have been lost');
    const nowhere = '00000000-0000-4000-8000-000000000000';
    const from = '2026-01-01T00:00:00Z';
    for (const [method, below, body] of [
      ['GET', '', undefined],
      ['PATCH', '', { active: true }],
      ['POST', '/test', {}],
      ['POST', '/rotate-secret', {}],
      ['GET', '/deliveries', undefined],
      ['GET', `/deliveries/${nowhere}`, undefined],
      ['POST', `/deliveries/${nowhere}/resend`, {}],
      ['POST', '/replays', { from }],
      ['GET', `/replays/${nowhere}`, undefined],
      ['DELETE', `/replays/${nowhere}`, undefined],
    ] as const) {
      const answer = await owner.request(method, `${path}${below}`, body === undefined ? {} : { body });
      assert.equal(answer.status, 404, `${method} ${below}: ${answer.text}`);
      assert.equal(answer.body.detail, 'There is no such webhook.');
    }
    const ids = (await owner.get('/webhooks?limit=100')).rows.map(({ id }) => id);
    assert.ok(!ids.includes(data.id));
  });

  t('lists the newest first, page by page', async () => {
    const mine = (await world.agency('Lists')).owner;
    const made: string[] = [];
    for (let n = 0; n < 5; n += 1) made.push((await mine.post('/webhooks', { url, events: ['*'] })).data.id);
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const page = await mine.get(`/webhooks?limit=2${cursor}`);
      seen.push(...page.rows.map(({ id }) => id));
      if (page.body.page?.nextCursor == null) break;
      cursor = `&cursor=${encodeURIComponent(page.body.page.nextCursor)}`;
    }
    assert.deepEqual(seen, made.reverse());
  });

  t('a viewer may look and a creator too, neither may manage', async () => {
    const { data } = await register();
    for (const role of ['creator', 'viewer'] as const) {
      const { caller } = await world.keyOf(world.workspaceId, await world.memberOf(world.workspaceId, role));
      assert.equal((await caller.get(`/webhooks/${data.id}`)).status, 200);
      assert.equal((await caller.post(`/webhooks/${data.id}/rotate-secret`, {})).body.code, 'role_required');
    }
    const manager = await world.keyOf(world.workspaceId, await world.memberOf(world.workspaceId, 'manager'));
    assert.equal((await manager.caller.delete(`/webhooks/${data.id}`)).status, 200);
  });
});

suite('rotation of webhook secrets', (t) => {
  let world: World;
  let owner: Caller;
  t.before(async () => {
    world = await startWorld();
    owner = await ownerOf(world);
  });
  t.after(() => world?.close());

  const endpoint = async (): Promise<Answered['data']> => (await owner.post('/webhooks', { url, events: ['*'] })).data;
  const at = async <T>(hours: number, ask: () => Promise<T>): Promise<T> => {
    world.clock.shiftMs = hours * hourMs;
    try {
      return await ask();
    } finally {
      world.clock.shiftMs = 0;
    }
  };

  t('the new secret is shown, the former signs for a day', async () => {
    const first = await endpoint();
    const { data } = await given(world, [], owner)
      .request('POST', `/webhooks/${first.id}/rotate-secret`, { body: {} })
      .then(200, ['RequestAccepted', 'WebhookSecretRotated', 'RequestCompleted']);
    assert.notEqual(data.secret, first.secret);
    assert.equal(data.secret, webhookSecret(world.secrets, first.id, { generation: 2, keyVersion: 'v1' }));
    assert.equal(data.secretHint, String(data.secret).slice(-4));
    // No dispatcher runs here: the senders read the row of the rotation, which is there before the answer.
    const [rotation] = await rotationsOf(world.pool, [first.id]);
    assert.deepEqual([rotation?.revision, rotation?.secrets.map(({ generation }) => generation)], [1, [2, 1]]);
    const rotatedAt = String(data.updatedAt);
    const expiresAt = new Date(Date.parse(rotatedAt) + 24 * hourMs).toISOString();
    const secrets = [
      { createdAt: rotatedAt, expiresAt: null },
      { createdAt: first.createdAt, expiresAt },
    ];
    assert.deepEqual(data.secrets, secrets);
    const read = await owner.get(`/webhooks/${first.id}`);
    assert.deepEqual({ ...read.data, secret: data.secret }, data);
    const late = await at(24, () => owner.get(`/webhooks/${first.id}`));
    assert.deepEqual(late.data.secrets, secrets.slice(0, 1));
  });

  t('a repeat answers the same, rotates nothing, and shows the secret for a day while it signs', async () => {
    const { id } = await endpoint();
    const key = randomUUID();
    const rotate = () => owner.post(`/webhooks/${id}/rotate-secret`, undefined, { key });
    const first = await rotate();
    assert.equal(first.status, 200, first.text);
    const again = await rotate();
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(again.data, first.data);
    // A further rotation: the secret of the first signs on beside it.
    await at(1, () => owner.post(`/webhooks/${id}/rotate-secret`, {}));
    assert.deepEqual((await at(23.9, rotate)).data, first.data);
    assert.deepEqual((await at(24.1, rotate)).data, { ...first.data, secret: null });
    const { secrets } = (await owner.get(`/webhooks/${id}`)).data;
    assert.equal((secrets as unknown[]).length, 3);
    await owner.delete(`/webhooks/${id}`);
    assert.deepEqual((await rotate()).data, { ...first.data, secret: null });
  });

  t('five sign at once and no sixth; the key of a refused call stays free', async () => {
    const { id } = await endpoint();
    const path = `/webhooks/${id}/rotate-secret`;
    for (let n = 1; n < 5; n += 1) await at(n, () => owner.post(path, {}));
    const key = randomUUID();
    const refused = await at(5, () => owner.post(path, {}, { key }));
    assert.equal(refused.status, 409);
    assert.equal(refused.body.code, 'too_many_secrets');
    const allowed = await at(25, () => owner.post(path, {}, { key }));
    assert.equal(allowed.status, 200, allowed.text);
    assert.equal(allowed.headers.get('idempotent-replayed'), null);
  });

  t('of two calls at once under one key one rotates; If-Match accepts only the first', async () => {
    const { id } = await endpoint();
    const path = `/webhooks/${id}/rotate-secret`;
    const key = randomUUID();
    const both = await Promise.all([1, 2, 3].map(() => owner.post(path, {}, { key })));
    assert.deepEqual(
      both.map(({ status }) => status),
      [200, 200, 200],
    );
    assert.equal(new Set(both.map(({ data }) => data.secret)).size, 1);
    assert.equal((await owner.get(`/webhooks/${id}`)).data.revision, 1);
    const guarded = await Promise.all([1, 2].map(() => owner.post(path, {}, { headers: { 'if-match': '"1"' } })));
    assert.deepEqual(guarded.map(({ status }) => status).sort(), [200, 412]);
  });

  /** A call that dies after acceptance: before its append, or after it. */
  const dies = async (id: string, key: string, appends: boolean): Promise<void> => {
    const { store, workspaceId, secrets } = world;
    const operation = 'rotateWebhookSecret';
    const context = contextOf(world.operator, workspaceId);
    const fingerprint = fingerprintOf(secrets, workspaceId, { operation, params: { id }, query: {}, body: {} });
    const died = withIdempotencyRecord({
      store,
      operation,
      key,
      fingerprint,
      context,
      accept: async () => ({}),
      effects: async (_decided, { commandId }) => {
        const command = { type: 'RotateSecret', commandId, now: context.now, keyVersion: 'v1' } as const;
        if (appends) await execute(store, webhook, id, command, { ...context, commandId });
        throw new Error('died');
      },
    });
    await assert.rejects(died, /died/);
  };

  t(
    'if we died between acceptance and append, the repeat rotates once, and the former secret has its whole day',
    async () => {
      const { id } = await endpoint();
      const key = randomUUID();
      await dies(id, key, false);
      const path = `/webhooks/${id}/rotate-secret`;
      const repeated = await at(30, () => owner.post(path, {}, { key }));
      assert.equal(repeated.status, 200, repeated.text);
      assert.equal(repeated.data.revision, 1);
      const [, former] = repeated.data.secrets as { expiresAt: string }[];
      assert.ok(Date.parse(former?.expiresAt ?? '') - Date.now() > 53 * hourMs);
      assert.deepEqual((await at(31, () => owner.post(path, {}, { key }))).data, repeated.data);
    },
  );

  t('if we died after the append, the repeat finds it done and answers it', async () => {
    const { id } = await endpoint();
    const key = randomUUID();
    await dies(id, key, true);
    const repeated = await given(world, [], owner)
      .request('POST', `/webhooks/${id}/rotate-secret`, { body: {}, key, headers: { 'if-match': '"0"' } })
      .then(200, ['RequestCompleted']);
    assert.equal(repeated.data.revision, 1);
    assert.equal(repeated.data.secret, webhookSecret(world.secrets, id, { generation: 2, keyVersion: 'v1' }));
  });
});
