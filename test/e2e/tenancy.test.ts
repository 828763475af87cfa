/**
 * Tenants do not see each other: two workspaces, each with its sandbox twin, all four with one of everything. What is
 * asked comes from the table of operations, so a new one is held to it without a word here.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { account } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { execute } from '#runtime/execute.ts';
import { contextOf } from '#runtime/provision.ts';
import type { Operation } from '#services/api/operation.ts';
import { operations } from '#services/api/operations.ts';
import { readyAsset } from '#test/support/assets.ts';
import { type Answered, type Caller, startWorld, type World } from '#test/support/http.ts';
import { compose, targetsOf } from '#test/support/main-job.ts';
import { suite } from '#test/support/suite.ts';
import { presignBody, uploaded } from '#test/support/uploads.ts';
import { type Dispatching, dispatching } from '#test/support/webhooks.ts';

interface Tenant {
  readonly name: string;
  readonly id: string;
  readonly http: Caller;
  /** One of everything, by what it is; of what is listed more, so that lists have a second page. */
  readonly ids: Readonly<Record<string, string>>;
}

const nowhere = '00000000-0000-4000-8000-000000000000';
const nextYear = (): string => new Date(Date.now() + 300 * 86_400_000).toISOString();
const pathOf = ({ path }: Operation, id: string): string => path.replace(/\{\w+\}/g, id);
const withId = operations.filter(({ path, scope }) => scope !== null && /\{\w+\}/.test(path));
const lists = operations.filter(({ list, scope }) => list === true && scope !== null);
/** A list that is below something is asked for below what the tenant has of it. */
const listPath = ({ path }: Operation, { ids }: Tenant): string => path.replace('{id}', ids.webhook ?? '');
/** Words of an answer without what differs between any two. */
const words = ({ status, body }: Answered, id: string): string =>
  `${status} ${JSON.stringify({ ...body, correlationId: '' }).replaceAll(id, '<id>')}`;

const furnish = async (world: World, name: string, id: string, http: Caller): Promise<Tenant> => {
  const made = await http.post('/clients', { name: `Client of ${name}`, type: 'brand' });
  await http.post('/clients', { name: `Second of ${name}`, type: 'brand' });
  const clientId = made.data.id;
  const invite = await http.post(`/clients/${clientId}/connect-invites`, { platforms: ['x', 'bluesky'] });
  const accountIds: string[] = [];
  // Not through the invite page: a live one offers no network yet.
  for (const platform of ['x', 'bluesky'] as const) {
    const accountId = accountIdOf(clientId, platform, name);
    const grant = { username: name, displayName: null, avatarUrl: null, scopes: [], expiresAt: null, timezone: null };
    const identity = { clientId, platform, externalId: name, network: 'sandbox', inviteId: null } as const;
    await execute(
      world.store,
      account,
      accountId,
      { type: 'Connect', ...identity, ...grant },
      contextOf(world.operator, id),
    );
    accountIds.push(accountId);
  }
  await world.settled();
  const scheduled = { type: 'at', scheduledAt: nextYear() };
  const post = await compose(http, clientId, scheduled);
  await compose(http, clientId, scheduled);
  const draft = await compose(http, clientId, scheduled, { saveDraft: true });
  const endpoint = { url: 'https://hooks.agency.example/in', events: ['*'] };
  const webhook = await http.post('/webhooks', endpoint);
  await http.post('/webhooks', endpoint);
  const tested = await http.post(`/webhooks/${webhook.data.id}/test`);
  await http.post(`/webhooks/${webhook.data.id}/test`);
  const replay = await http.post(`/webhooks/${webhook.data.id}/replays`, { from: '2026-01-31T08:00:00Z' });
  const asset = await readyAsset(world.store, id, 'image', { name, clientId });
  const imported = await http.post('/media/import-url', { url: 'https://cdn.agency.example/a.jpg', folder: name });
  const offer = await uploaded(http);
  await world.settled();
  await world.settled('dispatcher');
  const ids = {
    client: clientId,
    account: accountIds[0] ?? '',
    invite: String(invite.data.inviteId),
    post: post.data.id,
    target: targetsOf(post)[0]?.id ?? '',
    draft: draft.data.id,
    webhook: webhook.data.id,
    delivery: tested.data.id,
    replay: replay.data.id,
    asset: asset.id,
    imported: imported.data.id,
    upload: String(offer.data.assetId),
    workspace: id,
  };
  return { name, id, http, ids };
};

suite('tenancy', { timeoutMs: 180_000 }, (t) => {
  let world: World;
  let dispatcher: Dispatching;
  let tenants: readonly Tenant[] = [];

  /** Every tenant with every other one. */
  const pairs = () =>
    tenants.flatMap((asking) => tenants.filter((other) => other !== asking).map((other) => ({ asking, other })));
  const storedBy = async (): Promise<unknown> =>
    (
      await world.pool.query(
        `select convert_from(metadata, 'utf8')::json ->> 'workspaceId' as workspace, count(*)::int as n
         from es.events where stream not like 'request-%' group by 1 order by 1`,
      )
    ).rows;

  t.before(async () => {
    world = await startWorld();
    dispatcher = await dispatching(world);
    const [a, b] = [await world.agency('Alpha'), await world.agency('Beta')];
    const agencies = [
      ['alpha', a],
      ['beta', b],
    ] as const;
    const found: Tenant[] = [];
    for (const [name, agency] of agencies) {
      for (const [mode, http] of [
        ['live', agency.owner],
        ['test', agency.tester],
      ] as const) {
        const { data } = await http.get('/agency');
        found.push(await furnish(world, `${name} ${mode}`, data.id, http));
      }
    }
    tenants = found;
  });
  t.after(async () => {
    await dispatcher?.stop();
    await world?.close();
  });

  t('the table has what this is about', () => {
    assert.ok(withId.length >= 10 && lists.length >= 4);
    assert.equal(new Set(tenants.map(({ id }) => id)).size, 4);
  });

  t('every operation with an id answers a foreign id as an unknown one, word for word, and does nothing', async () => {
    const before = await storedBy();
    for (const operation of withId) {
      const ask = operation.example.body === undefined ? {} : { body: operation.example.body };
      const own = tenants[0];
      const unknown = await own?.http.request(operation.method, pathOf(operation, nowhere), ask);
      assert.equal(unknown?.status, 404, `${operation.id}: ${unknown?.text}`);
      for (const { asking, other } of pairs()) {
        for (const [what, id] of Object.entries(other.ids)) {
          const foreign = await asking.http.request(operation.method, pathOf(operation, id), ask);
          const where = `${operation.id}: ${asking.name} asks for the ${what} of ${other.name}`;
          assert.equal(words(foreign, id), words(unknown as Answered, nowhere), where);
        }
      }
    }
    assert.deepEqual(await storedBy(), before);
  });

  t('a foreign id below what is one’s own is as unknown, word for word, and does nothing', async () => {
    const below = operations.filter(({ path }) => (path.match(/\{/g) ?? []).length > 1);
    assert.ok(below.length >= 4);
    const before = await storedBy();
    for (const operation of below) {
      const own = (tenant: Tenant, id: string) => pathOf({ ...operation, path: listPath(operation, tenant) }, id);
      for (const { asking, other } of pairs()) {
        const unknown = await asking.http.request(operation.method, own(asking, nowhere));
        assert.equal(unknown.status, 404, `${operation.id}: ${unknown.text}`);
        for (const id of Object.values(other.ids)) {
          const foreign = await asking.http.request(operation.method, own(asking, id));
          assert.equal(words(foreign, id), words(unknown, nowhere), `${operation.id}: ${asking.name} of ${other.name}`);
        }
      }
    }
    assert.deepEqual(await storedBy(), before);
  });

  t('a list shows what is its tenant’s and nothing else', async () => {
    for (const operation of lists) {
      const seen = await Promise.all(
        tenants.map((tenant) => tenant.http.get(`${listPath(operation, tenant)}?limit=100`)),
      );
      const ids = seen.flatMap(({ rows }) => rows.map(({ id }) => id));
      assert.ok(
        seen.every(({ rows }) => rows.length > 0),
        operation.id,
      );
      assert.equal(new Set(ids).size, ids.length, `${operation.id}: a row shows in two tenants`);
    }
  });

  t('a foreign or unknown id in a filter is an empty list', async () => {
    let asked = 0;
    for (const operation of lists) {
      const filters = Object.entries(operation.query?.properties ?? {}).filter(([name]) => /Id$/.test(name));
      for (const [name] of filters) {
        for (const { asking, other } of pairs()) {
          for (const id of [...Object.values(other.ids), nowhere]) {
            const answer = await asking.http.get(`${listPath(operation, asking)}?${name}=${id}`);
            assert.equal(answer.status, 200, `${operation.id} ${name}: ${answer.text}`);
            assert.deepEqual(answer.rows, [], `${operation.id} ${name}: ${asking.name} sees ${other.name}`);
            asked += 1;
          }
        }
      }
    }
    assert.ok(asked > 100);
  });

  t('words of another tenant find nothing', async () => {
    for (const { asking, other } of pairs()) {
      const answer = await asking.http.get(`/clients?search=${encodeURIComponent(other.name)}`);
      assert.deepEqual(answer.rows, [], `${asking.name} finds ${other.name}`);
      for (const filter of ['search', 'folder']) {
        const assets = await asking.http.get(`/media?${filter}=${encodeURIComponent(other.name)}`);
        assert.deepEqual(assets.rows, [], `${asking.name} finds media of ${other.name}`);
        const own = await asking.http.get(`/media?${filter}=${encodeURIComponent(asking.name)}`);
        assert.equal(own.rows.length, 1, `${asking.name} finds its own`);
      }
    }
  });

  t('a cursor is good for its own tenant, operation and filters only', async () => {
    const cursors = new Map<string, string>();
    for (const operation of lists) {
      for (const tenant of tenants) {
        const page = await tenant.http.get(`${listPath(operation, tenant)}?limit=1`);
        assert.ok(page.body.page?.nextCursor, `${operation.id} of ${tenant.name} has a second page`);
        cursors.set(`${operation.id} ${tenant.name}`, page.body.page?.nextCursor ?? '');
      }
    }
    for (const operation of lists) {
      for (const tenant of tenants) {
        const { name, http } = tenant;
        for (const [of, cursor] of cursors) {
          const path = `${listPath(operation, tenant)}?limit=1&cursor=${encodeURIComponent(cursor)}`;
          const answer = await http.get(path);
          if (of === `${operation.id} ${name}`) assert.equal(answer.status, 200, of);
          else assert.equal(answer.body.code, 'invalid_cursor', `${operation.id} of ${name} took the cursor of ${of}`);
        }
      }
    }
  });

  t('a cursor of a list without filters is none of one with filters', async () => {
    const [own] = tenants;
    const page = await own?.http.get('/clients?limit=1');
    const cursor = encodeURIComponent(page?.body.page?.nextCursor ?? '');
    const filtered = await own?.http.get(`/clients?limit=1&search=second&cursor=${cursor}`);
    assert.equal(filtered?.body.code, 'invalid_cursor');
    assert.equal((await own?.http.get(`/clients?limit=2&cursor=${cursor}`))?.status, 200, 'the limit may change');
  });

  t('an id in a body that is foreign is refused in the words of an unknown one', async () => {
    const schedule = { type: 'at', scheduledAt: nextYear() };
    const bodies: readonly ((own: Tenant, other: (what: string) => string) => Readonly<Record<string, unknown>>)[] = [
      (_own, other) => ({ clientId: other('client'), targets: { mode: 'group', clientId: other('client') } }),
      (own, other) => ({
        clientId: own.ids.client,
        targets: { mode: 'selection', clientId: own.ids.client, accountIds: [other('account')] },
      }),
      (own, other) => ({
        clientId: own.ids.client,
        targets: { mode: 'accounts', accountIds: [own.ids.account, other('account')] },
      }),
      ...['asset', 'imported', 'upload'].flatMap((what) =>
        [{ saveDraft: false }, { saveDraft: true }].map((draft) => (own: Tenant, other: (of: string) => string) => ({
          ...draft,
          clientId: own.ids.client,
          targets: { mode: 'group', clientId: own.ids.client },
          mediaIds: [other(what)],
        })),
      ),
    ];
    const before = await storedBy();
    for (const { asking, other } of pairs()) {
      for (const [at, body] of bodies.entries()) {
        const send = (pick: (what: string) => string) =>
          asking.http.post('/posts', { content: 'Hello', schedule, ...body(asking, pick) });
        const foreign = await send((what) => other.ids[what] ?? '');
        const unknown = await send(() => nowhere);
        assert.equal(unknown.status, 422, unknown.text);
        const plain = (one: Answered) =>
          Object.values(other.ids).reduce((text, id) => text.replaceAll(id, '<id>'), words(one, nowhere));
        assert.equal(plain(foreign), plain(unknown), `body ${at}: ${asking.name} names what is ${other.name}’s`);
      }
      const register = (assetId: string) => asking.http.post('/media', { assetId });
      const imports = (clientId: string) =>
        asking.http.post('/media/import-url', { url: 'https://cdn.agency.example/a.jpg', clientId });
      const presign = (clientId: string) => asking.http.post('/media/presign', { ...presignBody(), clientId });
      for (const [send, id] of [
        ...[other.ids.asset, other.ids.upload].map((one) => [register, one ?? ''] as const),
        ...[imports, presign].map((one) => [one, other.ids.client ?? ''] as const),
      ]) {
        const [foreign, unknown] = [await send(id), await send(nowhere)];
        assert.equal(unknown.status, 422, unknown.text);
        assert.equal(words(foreign, id), words(unknown, nowhere), `${asking.name} names what is ${other.name}’s`);
      }
    }
    assert.deepEqual(await storedBy(), before);
  });

  t('the same Idempotency-Key under four tenants is four keys, for every operation that takes one', async () => {
    const schedule = { type: 'at', scheduledAt: nextYear() };
    const plans: Readonly<Record<string, (of: Tenant) => { path: string; body?: unknown }>> = {
      createClient: () => ({ path: '/clients', body: { name: 'Same', type: 'brand' } }),
      createConnectInvite: ({ ids }) => ({
        path: `/clients/${ids.client}/connect-invites`,
        body: { platforms: ['x'] },
      }),
      createPost: ({ ids }) => ({
        path: '/posts',
        body: { clientId: ids.client, content: 'Same', targets: { mode: 'group', clientId: ids.client }, schedule },
      }),
      publishPost: ({ ids }) => ({ path: `/posts/${ids.draft}/publish`, body: {} }),
      reschedulePostTarget: ({ ids }) => ({
        path: `/post-targets/${ids.target}/reschedule`,
        body: { shiftMinutes: 5 },
      }),
      cancelPostTarget: ({ ids }) => ({ path: `/post-targets/${ids.target}/cancel`, body: {} }),
      presignMedia: () => ({ path: '/media/presign', body: presignBody() }),
      registerMedia: ({ ids }) => ({ path: '/media', body: { assetId: ids.upload } }),
      importMedia: () => ({ path: '/media/import-url', body: { url: 'https://cdn.agency.example/a.jpg' } }),
      registerWebhook: () => ({ path: '/webhooks', body: { url: 'https://hooks.agency.example/in', events: ['*'] } }),
      testWebhook: ({ ids }) => ({ path: `/webhooks/${ids.webhook}/test`, body: {} }),
      rotateWebhookSecret: ({ ids }) => ({ path: `/webhooks/${ids.webhook}/rotate-secret`, body: {} }),
      resendWebhookDelivery: ({ ids }) => ({
        path: `/webhooks/${ids.webhook}/deliveries/${ids.delivery}/resend`,
        body: {},
      }),
      replayWebhook: ({ ids }) => ({
        path: `/webhooks/${ids.webhook}/replays`,
        body: { from: '2026-01-31T08:00:00Z', types: ['media.*'] },
      }),
    };
    const keyed = operations.filter(({ method, idempotent }) => method === 'POST' && idempotent !== 'none');
    // A retry wants a target that failed: nothing publishes here.
    const open = keyed.filter(({ id }) => plans[id] === undefined && id !== 'retryPostTarget').map(({ id }) => id);
    assert.deepEqual(open, [], 'operations that take a key and are not asked here');
    for (const { id } of keyed) {
      const plan = plans[id];
      if (plan === undefined) continue;
      const key = randomUUID();
      const answers: Answered[] = [];
      for (const tenant of tenants) {
        const { path, body } = plan(tenant);
        const answer = await tenant.http.post(path, body, { key });
        assert.equal(answer.status, 200, `${id} of ${tenant.name}: ${answer.text}`);
        assert.equal(answer.headers.get('idempotent-replayed'), null, `${id} of ${tenant.name} replays another’s`);
        answers.push(answer);
        const again = await tenant.http.post(path, body, { key });
        assert.equal(again.headers.get('idempotent-replayed'), 'true', `${id} of ${tenant.name}`);
      }
      const ids = answers.map(({ data }) => data.id ?? data.inviteId ?? data.assetId);
      assert.equal(new Set(ids).size, tenants.length, id);
    }
  });

  t('every stream belongs to one tenant', async () => {
    const { rows } = await world.pool.query(
      `select stream, count(distinct convert_from(metadata, 'utf8')::json ->> 'workspaceId')::int as n
       from es.events group by 1 having count(distinct convert_from(metadata, 'utf8')::json ->> 'workspaceId') > 1`,
    );
    assert.deepEqual(rows, []);
  });
});
