/**
 * Tenants do not see each other: two workspaces, each with its sandbox twin, all four with one of everything. What is
 * asked comes from the table of operations, so a new one is held to it without a word here.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { account } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { invite } from '#domain/invite.ts';
import { type ReportCommand, report } from '#domain/report.ts';
import { dayOf } from '#domain/report-windows.ts';
import { runAnalytics } from '#projections/analytics/run.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { mintSession } from '#runtime/identity/sessions.ts';
import type { Operation } from '#services/api/call/operation.ts';
import { operations } from '#services/api/operations.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { rowsOfRun } from '#test/support/drawing.ts';
import { type Answered, type Caller, startWorld, type World } from '#test/support/http.ts';
import { compose, targetsOf } from '#test/support/main-job.ts';
import { type Numbering, startNumbering } from '#test/support/numbering.ts';
import { observed } from '#test/support/observations.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { presignBody, uploaded } from '#test/support/uploads.ts';
import { type Dispatching, dispatching } from '#test/support/webhooks.ts';

interface Tenant {
  readonly name: string;
  readonly id: string;
  readonly mode: 'live' | 'test';
  readonly http: Caller;
  /** Its Owner in a session, for what keys may not do. */
  readonly console: Caller;
  /** Likes of each of its two posts that went out: no other tenant's sum is made of it. */
  readonly likes: number;
  /** One of everything, by what it is; of what is listed more, so that lists have a second page. */
  readonly ids: Readonly<Record<string, string>>;
}

const nowhere = '00000000-0000-4000-8000-000000000000';
const nextYear = (): string => new Date(Date.now() + 300 * 86_400_000).toISOString();
const pathOf = ({ path }: Operation, id: string): string => path.replace(/\{\w+\}/g, id);
const withId = operations.filter(({ path, scope }) => scope !== null && /\{\w+\}/.test(path));
/** Not the slots of a week, which are all there for everybody. */
/** Of one thing, whose foreign id is as an unknown one; pages and cursors are tried by tests of their own. */
const isHistory = ({ path }: Pick<Operation, 'path'>): boolean => /\/(history|timeline)$/.test(path);
const lists = operations.filter(
  (one) => one.list && one.scope !== null && one.query?.properties.cursor && !isHistory(one),
);
/** What is below something is asked for below what the tenant has of it. */
const listPath = ({ path }: Operation, { ids }: Tenant): string =>
  path.replace(
    '{id}',
    ids[
      { clients: 'client', reports: 'report', approvals: 'approval', accounts: 'boards' }[path.split('/')[1] ?? ''] ??
        'webhook'
    ] ?? '',
  );
/** The same as it is asked for, where its rows depend on a word behind the id. */
const rowsPath = (operation: Operation, tenant: Tenant): string =>
  listPath(operation, tenant).replace('{key}', 'boardId');
/** Words of an answer without what differs between any two. */
const words = ({ status, body }: Answered, id: string): string =>
  `${status} ${JSON.stringify({ ...body, correlationId: '' }).replaceAll(id, '<id>')}`;

/** Two posts on a network that was asked for their figures. Answers the id of one. */
const publish = async (world: World, id: string, clientId: string, accountId: string, likes: number) => {
  const context = contextOf(world.operator, id);
  const publishedAt = new Date(Date.now() - 7_200_000).toISOString();
  const observedAt = new Date(Date.now() - 3_600_000).toISOString();
  const where = { clientId, accountId, platform: 'x' } as const;
  let postId = '';
  for (const _ of [1, 2]) {
    postId = randomUUID();
    const targetId = randomUUID();
    const target = planned({ targetId, ...where, dueAt: publishedAt });
    const plan = { number: 1, targets: [target] };
    const data = { clientId, createdBy: { type: 'member', id: 'm' }, body: postBody(), plan };
    const settled = { targetId, targetRevision: 1, outcome: 'published', publishedAt };
    const published = { attempt: 1, takeover: 0, externalId: targetId, permalink: null, publishedAt };
    // The day of an observation is that of its workspace's zone: in UTC the test failed between 0:00 and 1:00.
    const day = dayOf(observedAt, 'Europe/Berlin');
    const seen = observed({ workspaceId: id, postId, targetId, ...where, day, observedAt, figures: { likes } });
    const streams = {
      [`post-${postId}`]: [
        { type: 'PostScheduled', data },
        { type: 'PostTargetSettled', data: settled },
      ],
      [`target-${targetId}`]: [
        { type: 'TargetScheduled', data: { ...target, postId, postRevision: 0 } },
        { type: 'TargetPublished', data: published },
      ],
      [seen.stream]: [{ ...seen, data: { ...(seen.data as object), publishedAt } }],
    };
    for (const [stream, events] of Object.entries(streams)) {
      await world.store.append(stream, -1, events, context, postId);
    }
  }
  return postId;
};

/** Two of them, one with a run. */
const saveReports = async (world: World, id: string, name: string) => {
  const ids = { report: randomUUID(), run: randomUUID(), other: randomUUID() };
  const filters = { clientId: null, socialAccountId: null, platform: null };
  const definition = {
    name,
    kind: 'workspace',
    filters,
    window: 'last_30_days',
    formats: ['pdf'],
    schedule: null,
  } as const;
  const request = { at: new Date().toISOString(), timezone: 'UTC', by: 'request', formats: null } as const;
  const commands: readonly (readonly [string, ReportCommand])[] = [
    [ids.report, { type: 'Define', definition: { ...definition, formats: ['pdf'] } }],
    [ids.other, { type: 'Define', definition: { ...definition, formats: ['pdf'] } }],
    [ids.report, { type: 'RequestRun', runId: ids.run, ...request }],
  ];
  for (const [reportId, command] of commands) {
    await execute(world.store, report, reportId, command, contextOf(world.operator, id));
  }
  return ids;
};

interface Agency {
  readonly workspaceId: string;
  readonly memberId: string;
}

const furnish = async (
  world: World,
  name: string,
  id: string,
  http: Caller,
  agency: Agency,
  mode: 'live' | 'test',
  likes: number,
): Promise<Tenant> => {
  const made = await http.post('/clients', { name: `Client of ${name}`, type: 'brand' });
  const second = await http.post('/clients', { name: `Second of ${name}`, type: 'brand' });
  const clientId = made.data.id;
  const inviteId = randomUUID();
  const offered = {
    ...({ type: 'Create', clientId, platforms: ['x', 'bluesky'], keyVersion: 'v1' } as const),
    expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
    ...{ recipientEmail: null, maxAccounts: 50 },
  };
  for (const one of [inviteId, randomUUID()]) {
    await execute(world.store, invite, one, offered, contextOf(world.operator, id));
  }
  const accountIds: string[] = [];
  // Not through the invite page: no live link is minted yet.
  for (const [platform, owner] of [
    ['x', clientId],
    ['bluesky', clientId],
    ['pinterest', second.data.id],
  ] as const) {
    const accountId = accountIdOf(owner, platform, name);
    const grant = { username: name, displayName: null, avatarUrl: null, scopes: [], expiresAt: null, timezone: null };
    const identity = { clientId: owner, platform, externalId: name, network: 'sandbox', inviteId: null } as const;
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
  await http.patch(`/clients/${clientId}`, { approvalRequired: true });
  const approvals: string[] = [];
  // One for each decision, and one for links.
  for (const _ of [1, 2, 3, 4]) approvals.push(String((await compose(http, clientId, scheduled)).data.approvalId));
  await http.patch(`/clients/${clientId}`, { approvalRequired: false });
  const [approval = '', approvable = '', rejectable = '', returnable = ''] = approvals;
  const link = await http.post(`/approvals/${approval}/links`, {});
  const campaign = await http.post('/campaigns', { name: `Campaign of ${name}`, clientId });
  await http.post('/campaigns', { name: `Second of ${name}` });
  const endpoint = { url: 'https://hooks.agency.example/in', events: ['*'] };
  const webhook = await http.post('/webhooks', endpoint);
  await http.post('/webhooks', endpoint);
  const tested = await http.post(`/webhooks/${webhook.data.id}/test`);
  await http.post(`/webhooks/${webhook.data.id}/test`);
  const replay = await http.post(`/webhooks/${webhook.data.id}/replays`, { from: '2026-01-31T08:00:00Z' });
  const asset = await readyAsset(world.store, id, 'image', { name, clientId });
  const imported = await http.post('/media/import-url', { url: 'https://cdn.agency.example/a.jpg', folder: name });
  const offer = await uploaded(http);
  const published = await publish(world, id, clientId, accountIds[0] ?? '', likes);
  const { report: reportId, run } = await saveReports(world, id, `Report of ${name}`);
  const sessions = { store: world.store, secrets: world.secrets, clock: world.deps.clock };
  const console = world.callerWith((await mintSession(sessions, { ...agency, mode })).token);
  await world.settled();
  await world.settled('dispatcher');
  const ids = {
    client: clientId,
    account: accountIds[0] ?? '',
    leaving: accountIds[1] ?? '',
    boards: accountIds[2] ?? '',
    invite: inviteId,
    post: post.data.id,
    target: targetsOf(post)[0]?.id ?? '',
    draft: draft.data.id,
    ...{ approval, approvable, rejectable, returnable },
    link: String(link.data.linkId),
    campaign: campaign.data.id,
    webhook: webhook.data.id,
    delivery: tested.data.id,
    replay: replay.data.id,
    asset: asset.id,
    imported: imported.data.id,
    upload: String(offer.data.assetId),
    published,
    report: reportId,
    run,
    workspace: id,
  };
  return { name, id, mode, http, console, likes, ids };
};

suite('tenancy', { timeoutMs: 180_000 }, (t) => {
  let world: World;
  let dispatcher: Dispatching;
  let numbering: Numbering;
  let tenants: readonly Tenant[] = [];

  /**
   * The first with its sandbox twin and with both of the other workspace, each way round: any two are like two of these. A
   * run draws two, one at least of two workspaces.
   */
  const ways = [1, 2, 3].flatMap((n) => [
    { asks: 0, has: n },
    { asks: n, has: 0 },
  ]);
  const taken = rowsOfRun('pairs of tenants', ways, ({ asks, has }) => `${asks} asks for what is of ${has}`);
  const pairs = () =>
    taken.map(({ asks, has }) => ({ asking: tenants[asks] as Tenant, other: tenants[has] as Tenant }));
  const storedBy = async (): Promise<unknown> =>
    (
      await world.pool.query(
        `select convert_from(metadata, 'utf8')::json ->> 'workspaceId' as workspace, count(*)::int as n
         from es.events where stream not like 'request-%' group by 1 order by 1`,
      )
    ).rows;

  const counting = new AbortController();
  let counted: Promise<void> | undefined;
  t.before(async () => {
    const { client } = await testClickHouse();
    world = await startWorld({ deps: { analytics: client } });
    const { log, eventStore, pool, codec, logger } = world;
    counted = runAnalytics({ log, store: eventStore, pool, codec, logger, client, signal: counting.signal }).done;
    dispatcher = await dispatching(world);
    numbering = startNumbering(world);
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
        const likes = 10 ** found.length;
        found.push(await furnish(world, `${name} ${mode}`, data.id, http, agency, mode, likes));
      }
    }
    tenants = found;
    // Two checkpoints of each: of what there is, and of one event more.
    for (const after of ['Before', 'After']) {
      await numbering.numbered();
      for (const { http } of tenants) {
        assert.equal((await http.get('/events/checkpoints')).status, 200);
        if (after === 'Before') await http.post('/campaigns', { name: after });
      }
    }
  });
  t.after(async () => {
    counting.abort();
    await counted;
    await numbering?.stop();
    await dispatcher?.stop();
    await world?.close();
  });

  t('the tables of this test are not empty', () => {
    assert.ok(withId.length >= 10 && lists.length >= 4);
    assert.equal(new Set(tenants.map(({ id }) => id)).size, 4);
  });

  t('every operation answers a foreign id exactly as an unknown one, and stores nothing', async () => {
    const before = await storedBy();
    for (const operation of withId) {
      const ask = operation.example.body === undefined ? {} : { body: operation.example.body };
      const own = tenants[0];
      const by = (tenant: Tenant | undefined) => (operation.firstParty === true ? tenant?.console : tenant?.http);
      const unknown = await by(own)?.request(operation.method, pathOf(operation, nowhere), ask);
      assert.equal(unknown?.status, 404, `${operation.id}: ${unknown?.text}`);
      for (const { asking, other } of pairs()) {
        for (const [what, id] of Object.entries(other.ids)) {
          const foreign = (await by(asking)?.request(operation.method, pathOf(operation, id), ask)) as Answered;
          const where = `${operation.id}: ${asking.name} asks for the ${what} of ${other.name}`;
          assert.equal(words(foreign, id), words(unknown as Answered, nowhere), where);
        }
      }
    }
    assert.deepEqual(await storedBy(), before);
  });

  t('a foreign id below an own resource is answered exactly as an unknown one, and nothing is stored', async () => {
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

  t('a list shows the resources of its own tenant alone', async () => {
    for (const operation of lists) {
      const seen = await Promise.all(
        tenants.map((tenant) => tenant.http.get(`${rowsPath(operation, tenant)}?limit=100`)),
      );
      // A best time has no id: two tenants may have the same one.
      const ids = seen.flatMap(({ rows }) => rows.flatMap(({ id, postId }) => id ?? postId ?? []));
      assert.ok(
        seen.every(({ rows }) => rows.length > 0),
        operation.id,
      );
      assert.equal(new Set(ids).size, ids.length, `${operation.id}: a row shows in two tenants`);
    }
  });

  t('a foreign or unknown id in a filter gives an empty list', async () => {
    let asked = 0;
    for (const operation of lists) {
      const filters = Object.entries(operation.query?.properties ?? {}).filter(([name]) => /Id$/.test(name));
      for (const [name] of filters) {
        for (const { asking, other } of pairs()) {
          for (const id of [...Object.values(other.ids), nowhere]) {
            const answer = await asking.http.get(`${rowsPath(operation, asking)}?${name}=${id}`);
            assert.equal(answer.status, 200, `${operation.id} ${name}: ${answer.text}`);
            assert.deepEqual(answer.rows, [], `${operation.id} ${name}: ${asking.name} sees ${other.name}`);
            asked += 1;
          }
        }
      }
    }
    assert.ok(asked > 100);
  });

  t('figures cover their own tenant alone; a foreign id in their filter is as an unknown one', async () => {
    const figures = operations.filter(({ list, query }) => !list && query?.properties.socialAccountId);
    assert.ok(figures.length >= 4);
    const pathFor = (operation: Operation, { ids }: Tenant): string => {
      const noun = operation.noun ?? '';
      return pathOf(operation, (noun === 'post' ? ids.published : ids[noun]) ?? '');
    };
    for (const tenant of tenants) {
      for (const operation of figures) {
        const posts = operation.noun === 'post' ? 1 : 2;
        await until(`${operation.id} shows what ${tenant.name} has`, async () => {
          const { status, data, text } = await tenant.http.get(pathFor(operation, tenant));
          assert.equal(status, 200, text);
          const { likes } = (data.totals ?? data.metrics) as { likes?: number | null };
          return likes === posts * tenant.likes;
        });
      }
    }
    for (const { asking, other } of pairs()) {
      for (const operation of figures) {
        for (const filter of ['clientId', 'socialAccountId']) {
          const ask = (id: string) => asking.http.get(`${pathFor(operation, asking)}?${filter}=${id}`);
          const unknown = await ask(nowhere);
          assert.equal(unknown.status, 200, unknown.text);
          for (const id of [other.ids.client, other.ids.account, other.ids.published, other.ids.workspace]) {
            const foreign = await ask(id ?? '');
            const where = `${operation.id} ${filter}: ${asking.name} of ${other.name}`;
            assert.equal(foreign.status, 200, where);
            assert.deepEqual(foreign.data, unknown.data, where);
          }
        }
      }
      const slots = (id: string) => asking.http.get(`/best-times?clientId=${id}`);
      assert.deepEqual((await slots(other.ids.client ?? '')).rows, (await slots(nowhere)).rows, asking.name);
    }
  });

  t('a search for names of another tenant finds nothing', async () => {
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

  t('a cursor is valid for its own tenant, operation and filters alone', async () => {
    const cursors = new Map<string, string>();
    for (const operation of lists) {
      for (const tenant of tenants) {
        const page = await tenant.http.get(`${rowsPath(operation, tenant)}?limit=1`);
        assert.ok(page.body.page?.nextCursor, `${operation.id} of ${tenant.name} has a second page`);
        cursors.set(`${operation.id} ${tenant.name}`, page.body.page?.nextCursor ?? '');
      }
    }
    const asking = rowsOfRun('tenants with a cursor', tenants, ({ name }) => name);
    for (const operation of lists) {
      for (const tenant of asking) {
        const { name, http } = tenant;
        for (const [of, cursor] of cursors) {
          const path = `${rowsPath(operation, tenant)}?limit=1&cursor=${encodeURIComponent(cursor)}`;
          const answer = await http.get(path);
          if (of === `${operation.id} ${name}`) assert.equal(answer.status, 200, of);
          else assert.equal(answer.body.code, 'invalid_cursor', `${operation.id} of ${name} took the cursor of ${of}`);
        }
      }
    }
  });

  t('a cursor of a list without filters is invalid for one with filters', async () => {
    const [own] = tenants;
    const page = await own?.http.get('/clients?limit=1');
    const cursor = encodeURIComponent(page?.body.page?.nextCursor ?? '');
    const filtered = await own?.http.get(`/clients?limit=1&search=second&cursor=${cursor}`);
    assert.equal(filtered?.body.code, 'invalid_cursor');
    assert.equal((await own?.http.get(`/clients?limit=2&cursor=${cursor}`))?.status, 200, 'the limit may change');
  });

  t('a foreign id in a body is refused exactly as an unknown one', async () => {
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
      const refresh = (of: Caller, id: string) =>
        of.post('/analytics/refresh', { accountIds: [asking.ids.account, id] });
      const unknown = await refresh(asking.console, nowhere);
      assert.equal(unknown.status, 422, unknown.text);
      for (const id of Object.values(other.ids)) {
        const foreign = await refresh(asking.console, id);
        assert.equal(words(foreign, id), words(unknown, nowhere), `${asking.name} refreshes what is ${other.name}’s`);
      }
      // A key learns nothing of any id.
      const [own, theirs] = [asking.ids.account ?? '', other.ids.account ?? ''];
      const refused = [await refresh(asking.http, own), await refresh(asking.http, theirs)];
      assert.deepEqual(new Set(refused.map(({ body }) => body.code)), new Set(['first_party_only']));
    }
    assert.deepEqual(await storedBy(), before);
  });

  t('the same Idempotency-Key under four tenants is four keys, for every operation with a key', async () => {
    const schedule = { type: 'at', scheduledAt: nextYear() };
    const plans: Readonly<Record<string, (of: Tenant) => { path: string; body?: unknown; by?: Caller }>> = {
      createClient: () => ({ path: '/clients', body: { name: 'Same', type: 'brand' } }),
      createConnectInvite: ({ ids }) => ({
        path: `/clients/${ids.client}/connect-invites`,
        body: { platforms: ['x'] },
      }),
      approveApproval: ({ ids }) => ({ path: `/approvals/${ids.approvable}/approve`, body: {} }),
      rejectApproval: ({ ids }) => ({ path: `/approvals/${ids.rejectable}/reject`, body: { comment: 'No.' } }),
      requestApprovalChanges: ({ ids }) => ({
        path: `/approvals/${ids.returnable}/request-changes`,
        body: { comment: 'No.' },
      }),
      createApprovalLink: ({ ids }) => ({ path: `/approvals/${ids.approval}/links`, body: {} }),
      createCampaign: () => ({ path: '/campaigns', body: { name: 'Same' } }),
      assignCampaignPosts: ({ ids }) => ({ path: `/campaigns/${ids.campaign}/assign`, body: { postIds: [ids.post] } }),
      unassignCampaignPosts: ({ ids }) => ({
        path: `/campaigns/${ids.campaign}/unassign`,
        body: { postIds: [ids.post] },
      }),
      shiftCampaign: ({ ids }) => ({ path: `/campaigns/${ids.campaign}/shift`, body: { days: 1 } }),
      disconnectAccount: ({ ids }) => ({ path: `/accounts/${ids.leaving}/disconnect` }),
      runReport: ({ ids }) => ({ path: `/reports/${ids.report}/runs`, body: {} }),
      createPost: ({ ids }) => ({
        path: '/posts',
        body: { clientId: ids.client, content: 'Same', targets: { mode: 'group', clientId: ids.client }, schedule },
      }),
      revisePost: ({ ids }) => ({ path: `/posts/${ids.post}/revise`, body: { content: 'Same again' } }),
      bulkCreatePosts: ({ ids }) => ({
        path: '/posts/bulk',
        body: {
          posts: [
            { clientId: ids.client, content: 'Same', targets: { mode: 'group', clientId: ids.client }, schedule },
          ],
        },
      }),
      bulkPostTargets: ({ ids }) => ({
        path: '/post-targets/bulk',
        body: { action: 'reschedule', targetIds: [ids.target], shiftMinutes: 5 },
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
      refreshAnalytics: ({ ids, console }) => ({
        path: '/analytics/refresh',
        body: { accountIds: [ids.account] },
        by: console,
      }),
      moveSandboxClock: () => ({
        path: '/sandbox/clock',
        body: { to: new Date(Date.now() + 600_000).toISOString() },
      }),
    };
    const keyed = operations.filter(({ method, idempotent }) => method === 'POST' && idempotent !== 'none');
    // A retry wants a target that failed: nothing publishes here.
    const open = keyed.filter(({ id }) => plans[id] === undefined && id !== 'retryPostTarget').map(({ id }) => id);
    assert.deepEqual(open, [], 'operations that take a key and are not asked here');
    const known = new Set(keyed.map(({ id }) => id));
    // In the order of the plans: no other call of a target finds it after its cancel.
    for (const [id, plan] of Object.entries(plans)) {
      assert.ok(known.has(id), `${id} takes no key`);
      const key = randomUUID();
      const answers: Answered[] = [];
      // No live link is minted yet, and no live clock is moved.
      const asked = tenants.filter(
        ({ mode }) => mode === 'test' || !['createConnectInvite', 'moveSandboxClock'].includes(id),
      );
      for (const tenant of asked) {
        const { path, body, by = tenant.http } = plan(tenant);
        const answer = await by.post(path, body, { key });
        assert.equal(answer.status, 200, `${id} of ${tenant.name}: ${answer.text}`);
        assert.equal(answer.headers.get('idempotent-replayed'), null, `${id} of ${tenant.name} replays another’s`);
        answers.push(answer);
        const again = await by.post(path, body, { key });
        assert.equal(again.headers.get('idempotent-replayed'), 'true', `${id} of ${tenant.name}`);
      }
      const ids = answers.map(
        ({ data }) =>
          data.id ??
          data.inviteId ??
          data.assetId ??
          data.refreshId ??
          data.linkId ??
          data.campaignId ??
          data.runId ??
          data.now ??
          JSON.stringify(data.results),
      );
      assert.equal(new Set(ids).size, asked.length, id);
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
