import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { operations } from '#services/api/operations.ts';
import { type Caller, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const nowhere = '00000000-0000-4000-8000-000000000000';
const pathWith = (path: string, id: string): string => path.replace(/\{\w+\}/g, id);

suite('tenants and modes over HTTP', (t) => {
  let world: World;
  let other: Caller;
  t.before(async () => {
    world = await startWorld();
    other = (await world.agency('Southern Cross')).owner;
  });
  t.after(() => world.close());

  t('every operation answers another workspace’s id exactly as an unknown one', async () => {
    const mine = (await world.owner.post('/clients', { name: 'Mine', type: 'brand' })).data.id;
    await world.settled();
    const theirs: readonly Caller[] = [other, world.tester];
    for (const { method, path, id, example, firstParty } of operations) {
      // test/services/api/console.test.ts asks those that take a session.
      if (!path.includes('{id}') || firstParty === true) continue;
      for (const caller of theirs) {
        const ask = example.body === undefined ? {} : { body: example.body };
        const foreign = await caller.request(method, pathWith(path, mine), ask);
        const unknown = await caller.request(method, pathWith(path, nowhere), ask);
        assert.equal(foreign.status, 404, `${id}: ${foreign.text}`);
        const words = ({ body }: typeof foreign) => ({ ...body, correlationId: '' });
        assert.deepEqual(words(foreign), words(unknown), id);
      }
    }
    assert.equal((await world.owner.get(`/clients/${mine}`)).data.archivedAt, null);
  });

  t('the same Idempotency-Key in two workspaces is two keys', async () => {
    const key = randomUUID();
    const body = { name: 'Same key', type: 'brand' };
    const answers = [
      await world.owner.post('/clients', body, { key }),
      await other.post('/clients', body, { key }),
      await world.tester.post('/clients', { ...body, type: 'influencer' }, { key }),
    ];
    for (const { status, headers } of answers) {
      assert.equal(status, 200);
      assert.equal(headers.get('idempotent-replayed'), null);
    }
    assert.equal(new Set(answers.map(({ data }) => data.id)).size, 3);
  });

  t('names are taken per workspace and mode; lists never mix', async () => {
    await world.settled();
    const names = async (caller: Caller) =>
      (await caller.get('/clients?search=same%20key')).rows.map(({ type }) => type);
    assert.deepEqual(await names(world.owner), ['brand']);
    assert.deepEqual(await names(world.tester), ['influencer']);
    assert.deepEqual(await names(other), ['brand']);
  });

  t('a test key sees the sandbox twin; members are the live workspace’s', async () => {
    const live = await world.owner.get('/agency');
    assert.equal(live.headers.get('etag'), `"${live.data.revision}"`);
    const test = await world.tester.get('/agency');
    assert.equal(live.data.mode, 'live');
    assert.equal(test.data.mode, 'test');
    assert.notEqual(live.data.id, test.data.id);
    assert.equal(test.data.members, live.data.members);
    assert.equal(live.data.id, world.workspaceId);
  });

  t('a consistency token of another tenant, or a forged one, does no harm', async () => {
    const made = await world.owner.post('/clients', { name: 'Token', type: 'brand' });
    const token = made.headers.get('x-consistency-token') ?? '';
    for (const sent of [token, `${token}x`, 'nonsense', '']) {
      assert.equal((await other.get('/clients', { headers: { 'x-consistency-token': sent } })).status, 200);
    }
  });
});
