import { deepEqual, equal, match, notEqual, ok, rejects } from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { apikey } from '#domain/apikey.ts';
import { client } from '#domain/client.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { workspace } from '#domain/workspace.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { isKeyForm, keyPattern, keysOf } from '#runtime/identity/key-form.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import {
  contextOf,
  createApiKey,
  createWorkspace,
  hashKey,
  loadWorkspace,
  mintKey,
  type NewKey,
  type Operator,
  revokeApiKey,
  rotateApiKey,
} from '#services/workflows/provision.ts';
import { openDomain, RecordingEventStore } from '#test/support/domain.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const start = Date.parse('2026-01-01T00:00:00.000Z');
const day = 86_400_000;

const world = () => {
  const domain = openDomain();
  const time = { now: start };
  const operator: Operator = {
    store: domain.store,
    // A store in memory has no database beside it.
    pool: { query: async () => ({ rows: [] }) } as unknown as Operator['pool'],
    actor: { type: 'admin', id: 'ann' },
    clock: () => time.now,
    positions: new Map(),
  };
  return { ...domain, operator, time };
};
const north = { name: 'North', timezone: 'Europe/Paris', ownerName: 'Ann' };
const keyOf = (workspaceId: string, memberId: string, over: Partial<NewKey> = {}): NewKey => ({
  workspaceId,
  memberId,
  name: 'CI',
  scopes: ['posts.read'],
  mode: 'live',
  expiresAt: new Date(start + 30 * day).toISOString(),
  ...over,
});

suite('workspaces', (t) => {
  t('come with their Owner and a sandbox twin that has no members', async () => {
    const { operator, store } = world();
    const { workspaceId, memberId } = await createWorkspace(operator, north);
    deepEqual((await loadWorkspace(operator, workspaceId)).members, { [memberId]: { name: 'Ann', role: 'owner' } });
    const twin = await store.load(workspace, testTwinIdOf(workspaceId));
    ok(twin.state.status === 'created');
    deepEqual([twin.state.mode, twin.state.twinOf, twin.state.members], ['test', workspaceId, {}]);
    equal(twin.events[0]?.metadata.workspaceId, testTwinIdOf(workspaceId));
    ok(operator.positions.size > 0);
  });

  t('are refused an unknown zone', async () => {
    const { operator, events } = world();
    for (const timezone of ['Mars/Olympus', '+02:00', '']) {
      await rejects(createWorkspace(operator, { ...north, timezone }), { code: 'validation_failed' });
    }
    equal(await events.head(), null);
  });

  t('are not their twins: an operator of one does not get the other', async () => {
    const { operator } = world();
    const { workspaceId } = await createWorkspace(operator, north);
    await rejects(loadWorkspace(operator, testTwinIdOf(workspaceId)), { code: 'not_found' });
    await rejects(loadWorkspace(operator, randomUUID()), { code: 'not_found' });
  });

  t('get their twin with the first test key, if a crash prevented its creation', async () => {
    const { operator, events, keys } = world();
    class DiesAtTheTwin extends RecordingEventStore {
      override append(...asked: Parameters<RecordingEventStore['append']>) {
        return this.asked.length === 1 ? Promise.reject(new Error('killed')) : super.append(...asked);
      }
    }
    const dying = new DiesAtTheTwin(events.log);
    const store = new DomainStore(dying, new EventCodec(keys), defaultPartitions);
    await rejects(createWorkspace({ ...operator, store }, north), /killed/);
    const [stream = ''] = dying.asked.map((one) => one.stream);
    const workspaceId = stream.slice('workspace-'.length);
    const [memberId = ''] = Object.keys((await loadWorkspace(operator, workspaceId)).members);
    const twin = () => operator.store.load(workspace, testTwinIdOf(workspaceId));
    equal((await twin()).state.status, 'none');
    await createApiKey(operator, keyOf(workspaceId, memberId));
    equal((await twin()).state.status, 'none');
    await createApiKey(operator, keyOf(workspaceId, memberId, { mode: 'test' }));
    await createApiKey(operator, keyOf(workspaceId, memberId, { mode: 'test' }));
    equal((await twin()).revision, 0);
  });
});

suite('keys', (t) => {
  const made = async (over: Partial<NewKey> = {}) => {
    const here = world();
    const { workspaceId, memberId } = await createWorkspace(here.operator, north);
    const key = await createApiKey(here.operator, keyOf(workspaceId, memberId, over));
    return { ...here, ...key, workspaceId, memberId };
  };

  t('are 256 random bits, of which only the hash and the first four characters are kept', async () => {
    for (const mode of ['live', 'test'] as const) {
      const { store, id, secret, events } = await made({ mode });
      match(secret, new RegExp(`^sk_${mode}_[\\w-]{43}[0-9A-Za-z]{6}$`));
      const { state, events: stored } = await store.load(apikey, id);
      ok(state.status === 'active');
      equal(state.hash, createHash('sha256').update(secret).digest('hex'));
      equal(hashKey(secret), state.hash);
      equal(stored[0]?.data.prefix, secret.slice(0, 12));
      const random = secret.slice(12);
      for (const { data, metadata } of await events.readAll({ after: null, limit: 100 })) {
        ok(!Buffer.from(data).includes(random) && !Buffer.from(metadata).includes(random));
      }
    }
    notEqual(mintKey('live').secret, mintKey('live').secret);
    for (const mode of ['live', 'test'] as const) {
      const { secret } = mintKey(mode);
      match(secret, new RegExp(`^${keyPattern}$`));
      deepEqual(keysOf(`key=${secret}; "${secret}"`), [secret]);
      // Whoever mistypes a key, or makes one up, is told from the checksum alone.
      for (const wrong of [`${secret.slice(0, 20)}${secret[20] === 'a' ? 'b' : 'a'}${secret.slice(21)}`]) {
        ok(isKeyForm(secret) && !isKeyForm(wrong));
        deepEqual(keysOf(wrong), []);
      }
    }
    // As an implementation of others would compute it.
    const text = `sk_test_${'A'.repeat(43)}`;
    ok(isKeyForm(`${text}${'1AUt6i'}`));
  });

  t('stay with the live workspace, also those that open the sandbox', async () => {
    const { store, id, workspaceId } = await made({ mode: 'test' });
    equal((await store.readStream(`apikey-${id}`))[0]?.metadata.workspaceId, workspaceId);
  });

  t('are for members of an existing workspace', async () => {
    const { operator, workspaceId, memberId } = await made();
    await rejects(createApiKey(operator, keyOf(workspaceId, randomUUID())), { code: 'not_found' });
    await rejects(createApiKey(operator, keyOf(randomUUID(), memberId)), { code: 'not_found' });
    const late = new Date(start + 400 * day).toISOString();
    await rejects(createApiKey(operator, keyOf(workspaceId, memberId, { expiresAt: late })), {
      code: 'validation_failed',
    });
    await rejects(createApiKey(operator, keyOf(workspaceId, memberId, { scopes: ['all'] })), {
      code: 'validation_failed',
    });
  });

  t('are limited to clients of the workspace in which they act', async () => {
    const { operator, store, workspaceId, memberId } = await made();
    const clientOf = async (owner: string): Promise<string> => {
      const id = randomUUID();
      await execute(store, client, id, { type: 'Create', fields: clientFields }, contextOf(operator, owner));
      return id;
    };
    const [own, twins, foreign] = [
      await clientOf(workspaceId),
      await clientOf(testTwinIdOf(workspaceId)),
      await clientOf(randomUUID()),
    ];
    const limited = (mode: 'live' | 'test', ...clientIds: string[]) =>
      createApiKey(operator, keyOf(workspaceId, memberId, { mode, clientIds }));
    for (const [mode, mine, other] of [
      ['live', own, twins],
      ['test', twins, own],
    ] as const) {
      const { id } = await limited(mode, mine);
      deepEqual((await store.load(apikey, id)).events[0]?.data.clientIds, [mine]);
      for (const strange of [other, foreign, randomUUID()])
        await rejects(limited(mode, mine, strange), { code: 'not_found' });
    }
    await rejects(limited('live'), { code: 'validation_failed' });
  });

  t('are rotated with a day of grace for the former secret', async () => {
    const { operator, store, id, secret, workspaceId, time } = await made();
    time.now += day;
    const rotated = await rotateApiKey(operator, workspaceId, id);
    match(rotated.secret, /^sk_live_/);
    notEqual(rotated.secret, secret);
    const { events } = await store.load(apikey, id);
    deepEqual(
      { ...events[1]?.data, prefix: null },
      {
        hash: hashKey(rotated.secret),
        prefix: null,
        previousHash: hashKey(secret),
        previousUntil: new Date(start + 2 * day).toISOString(),
      },
    );
  });

  t('are revoked once, and rotated no more', async () => {
    const { operator, store, id, workspaceId } = await made();
    await revokeApiKey(operator, workspaceId, id);
    await revokeApiKey(operator, workspaceId, id);
    equal((await store.load(apikey, id)).revision, 1);
    await rejects(rotateApiKey(operator, workspaceId, id), { code: 'validation_failed' });
  });

  t('of another workspace are as unknown', async () => {
    const { operator, store, id } = await made();
    const other = await createWorkspace(operator, { ...north, name: 'South' });
    for (const keyId of [id, randomUUID()]) {
      await rejects(revokeApiKey(operator, other.workspaceId, keyId), { code: 'not_found' });
      await rejects(rotateApiKey(operator, other.workspaceId, keyId), { code: 'not_found' });
    }
    equal((await store.load(apikey, id)).revision, 0);
  });
});
