import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { accountIdOf } from '#domain/ids.ts';
import { mintSession } from '#runtime/identity/sessions.ts';
import { type Caller, given, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const path = '/analytics/refresh';

suite('a refresh over HTTP', (t) => {
  let world: World;
  let console: Caller;
  let clientId: string;
  const session = async (workspaceId: string, memberId: string, mode: 'live' | 'test' = 'live'): Promise<Caller> => {
    const deps = { store: world.store, secrets: world.secrets, clock: world.deps.clock };
    return world.callerWith((await mintSession(deps, { workspaceId, memberId, mode })).token);
  };
  const connected = (of: string) => {
    const externalId = randomUUID();
    const profile = { username: 'name', displayName: 'name', avatarUrl: null };
    const grant = { scopes: [], expiresAt: null, timezone: null, inviteId: null };
    return {
      id: accountIdOf(of, 'x', externalId),
      event: {
        type: 'AccountConnected',
        data: { clientId: of, platform: 'x', externalId, network: 'sandbox', ...profile, ...grant },
      },
    };
  };
  const history = (...accounts: readonly ReturnType<typeof connected>[]) =>
    accounts.map(({ id, event }) => ({ stream: `account-${id}`, events: [event] }));

  t.before(async () => {
    world = await startWorld();
    console = await session(world.workspaceId, world.memberId);
    clientId = (await world.owner.post('/clients', { name: 'Acme', type: 'brand' })).data.id as string;
  });
  t.after(() => world.close());

  t('is for the console: a key is refused, whatever its scopes are', async () => {
    const answer = await given(world, []).request('POST', path, { body: {} }).then(403, []);
    assert.equal(answer.body.code, 'first_party_only');
    assert.equal((await world.anonymous.post(path, {})).status, 401);
  });

  t('null for the accounts means that none are named', async () => {
    const made = await console.post(path, { accountIds: null });
    assert.equal(made.status, 200, made.text);
    assert.equal(made.data.requested, 0);
    assert.equal((await console.post(path, { accountIds: [] })).body.code, 'validation_failed');
  });

  t('requests named accounts, each once, and answers how many', async () => {
    const [one, two] = [connected(clientId), connected(clientId)];
    await given(world, history(one, two), console).request('GET', '/agency').then(200, []);
    const position = await world.head();
    const body = { accountIds: [one.id, two.id, one.id] };
    const made = await console.post(path, body);
    assert.equal(made.status, 200, made.text);
    assert.equal(made.data.requested, 2);
    const [last, ...more] = await world.store.readStream(`refresh-${made.data.refreshId}`);
    assert.equal(last?.type, 'AnalyticsRefreshRequested');
    assert.deepEqual(last?.data, { accountIds: [one.id, two.id] });
    assert.equal(last?.metadata.workspaceId, world.workspaceId);
    assert.equal(more.length, 0);
    assert.ok((last?.position ?? 0n) > position);
  });

  t('without named accounts it takes all connected accounts', async () => {
    const other = connected(clientId);
    await given(world, history(other), console).request('GET', '/agency').then(200, []);
    await world.settled();
    const made = await console.post(path, {});
    assert.equal(made.status, 200, made.text);
    const events = await world.store.readStream(`refresh-${made.data.refreshId}`);
    const { accountIds = [] } = (events.at(-1)?.data ?? {}) as { accountIds?: readonly string[] };
    assert.equal(made.data.requested, accountIds.length);
    assert.ok(accountIds.includes(other.id));
  });

  t('leaves the stream of the workspace as it is', async () => {
    const before = await world.store.readStream(`workspace-${world.workspaceId}`);
    await console.post(path, {});
    assert.equal((await world.store.readStream(`workspace-${world.workspaceId}`)).length, before.length);
  });

  t('is complete at once for a workspace without accounts', async () => {
    const own = await world.agency('Empty');
    const caller = await session(own.workspaceId, own.memberId);
    const made = await caller.post(path, {});
    assert.equal(made.data.requested, 0);
    const types = (await world.store.readStream(`refresh-${made.data.refreshId}`)).map(({ type }) => type);
    assert.deepEqual(types, ['AnalyticsRefreshRequested', 'AnalyticsRefreshed']);
  });

  t('a repeat under its key answers the same and requests nothing', async () => {
    const key = randomUUID();
    const first = await console.post(path, {}, { key });
    const position = await world.head();
    const again = await console.post(path, {}, { key });
    assert.deepEqual(again.data, first.data);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(await world.eventsAfter(position), []);
    const other = await console.post(path, { accountIds: [connected(clientId).id] }, { key });
    assert.equal(other.body.code, 'idempotency_key_reused');
  });

  t('unknown ids and ids of another workspace get the same message, each with its place', async () => {
    const mine = connected(clientId);
    await given(world, history(mine), console).request('GET', '/agency').then(200, []);
    const position = await world.head();
    const answer = await console.post(path, { accountIds: [mine.id, randomUUID(), mine.id, randomUUID()] });
    assert.equal(answer.status, 422);
    assert.equal(answer.body.code, 'validation_failed');
    assert.deepEqual(answer.body.errors, [
      { path: '/accountIds/1', code: 'unknown_id', message: 'is not known' },
      { path: '/accountIds/3', code: 'unknown_id', message: 'is not known' },
    ]);
    assert.deepEqual(await world.eventsAfter(position), []);
    const own = await world.agency('Others');
    const theirs = await (await session(own.workspaceId, own.memberId)).post(path, { accountIds: [mine.id] });
    assert.deepEqual(theirs.body.errors, [{ path: '/accountIds/0', code: 'unknown_id', message: 'is not known' }]);
    const twin = await session(world.workspaceId, world.memberId, 'test');
    const foreign = await twin.post(path, { accountIds: [mine.id] });
    assert.equal(foreign.status, 422, 'test and live data do not see each other');
  });

  t('lists that are empty, malformed or too long change nothing', async () => {
    const position = await world.head();
    for (const accountIds of [[], ['x'], 'x', [null], Array.from({ length: 10_001 }, () => randomUUID())]) {
      const answer = await console.post(path, { accountIds });
      assert.equal(answer.status, 422, JSON.stringify(accountIds).slice(0, 50));
    }
    assert.deepEqual(await world.eventsAfter(position), []);
  });
});
