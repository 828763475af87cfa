import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { type RunningProjections, runProjections } from '#projections/engine/run.ts';
import { Freshness, type FreshnessSources } from '#projections/queries/freshness.ts';
import { listParked } from '#runtime/consuming/parked-reads.ts';
import { requestSkip } from '#runtime/consuming/parked-requests.ts';
import type { StoredBytes } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { mintSecret } from '#runtime/identity/key-form.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { Keyring } from '#services/api/callers/keyring.ts';
import { Stamp } from '#services/api/callers/stamped.ts';
import { watched } from '#test/support/pool.ts';
import type { Given } from '#test/support/projecting.ts';
import { type ProjectionWorld, projectionWorld } from '#test/support/projection-world.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('keyring', (t) => {
  let world: ProjectionWorld;
  let running: RunningProjections;
  const stop = new AbortController();
  const workspaceId = randomUUID();
  const memberId = randomUUID();
  /** Type → the stream of the event that the projection cannot apply. */
  const chokesOn = new Map<string, string>();
  t.before(async () => {
    world = await projectionWorld();
    const { codec } = world;
    const choking: typeof codec = Object.assign(Object.create(codec), {
      decode: async (event: StoredBytes) => {
        if (chokesOn.has(event.type) && chokesOn.get(event.type) === event.stream) throw new TypeError('choked');
        return codec.decode(event);
      },
      decodeAll: async (events: readonly StoredBytes[]) => Promise.all(events.map((event) => choking.decode(event))),
    });
    running = runProjections({ ...world, codec: choking, names: ['workspaces'], signal: stop.signal });
    await world.append(
      [
        {
          stream: `workspace-${workspaceId}`,
          type: 'WorkspaceCreated',
          data: { name: 'W', timezone: 'UTC', mode: 'live', twinOf: null },
        },
        {
          stream: `workspace-${workspaceId}`,
          type: 'MemberAdded',
          data: { memberId, name: 'Olga', role: 'owner' },
        },
      ],
      workspaceId,
    );
  });
  t.after(async () => {
    stop.abort();
    await running.done;
    await world.close();
  });

  const created = (token: string, keyId: string): Given => ({
    stream: `apikey-${keyId}`,
    type: 'ApiKeyCreated',
    data: {
      memberId,
      name: 'main',
      prefix: token.slice(0, 12),
      hash: createHash('sha256').update(token).digest('hex'),
      scopes: ['posts.read'],
      mode: 'live',
      expiresAt: '2100-01-01T00:00:00.000Z',
      clientIds: null,
    },
  });
  const someToken = () => mintSecret('live');

  const keyringOver = (pool: Pool, freshness?: Pick<Freshness, 'isBehind'>) => {
    const store = new DomainStore(world.store, world.codec, defaultPartitions);
    return new Keyring({ pool, store, clock: Date.now }, new Stamp(pool, freshness));
  };
  /** A keyring whose statements are counted by their names. */
  const counted = () => {
    const asked: string[] = [];
    const pool = watched(world.pool, ({ name }) => asked.push(name));
    const count = (name: string) => asked.filter((one) => one === name).length;
    return { keyring: keyringOver(pool), count };
  };
  const codeOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'known',
      (error: { readonly code?: string }) => error.code ?? String(error),
    );

  t('a key is looked up once while the projection applies nothing new, however long that is', async () => {
    const [token, keyId] = [someToken(), randomUUID()];
    await world.append([created(token, keyId)], workspaceId);
    await until('the row is there', async () => {
      const { rowCount } = await world.pool.query('select 1 from read.api_keys where id = $1', [keyId]);
      return rowCount === 1;
    });
    const { keyring, count } = counted();
    await keyring.identify(token);
    const found = count('find-keys');
    const stamps = count('projection-stamp');
    await until('two stamps later', async () => {
      assert.equal((await keyring.identify(token)).id, keyId);
      return count('projection-stamp') >= stamps + 2;
    });
    assert.equal(count('find-keys'), found);
  });

  t('a revoked key is dead within a second of its projection', async () => {
    const [token, keyId] = [someToken(), randomUUID()];
    await world.append([created(token, keyId)], workspaceId);
    const { keyring } = counted();
    await until('the key is known', async () => (await codeOf(keyring.identify(token))) === 'known');
    await world.append([{ stream: `apikey-${keyId}`, type: 'ApiKeyRevoked', data: {} }], workspaceId);
    await until('the row says so', async () => {
      const { rows } = await world.pool.query('select revoked_at from read.api_keys where id = $1', [keyId]);
      return rows[0].revoked_at !== null;
    });
    const began = performance.now();
    await until('it is refused', async () => (await codeOf(keyring.identify(token))) === 'token_revoked');
    assert.ok(performance.now() - began < 1_000);
  });

  t('a new key is found soon, and a token without the form of a key costs no query', async () => {
    const [token, keyId] = [someToken(), randomUUID()];
    const { keyring, count } = counted();
    assert.equal(await codeOf(keyring.identify('sk_live_short')), 'invalid_token');
    assert.equal(count('find-keys') + count('projection-stamp'), 0);
    assert.equal(await codeOf(keyring.identify(token)), 'invalid_token');
    await world.append([created(token, keyId)], workspaceId);
    await until('the key is known', async () => (await codeOf(keyring.identify(token))) === 'known', {
      withinMs: 5_000,
    });
  });

  t('thousands of wrong tokens do not make the keyring forget a right one', async () => {
    const [token, keyId] = [someToken(), randomUUID()];
    await world.append([created(token, keyId)], workspaceId);
    const { keyring } = counted();
    await until('the key is known', async () => (await codeOf(keyring.identify(token))) === 'known');
    const wrong = await Promise.all(Array.from({ length: 10_500 }, () => codeOf(keyring.identify(someToken()))));
    assert.deepEqual([...new Set(wrong)], ['invalid_token']);
    assert.ok(keyring.hasSeen(token));
  });

  t('a deferred token is looked up soon, in one query with at most five hundred others', async () => {
    const [token, keyId] = [someToken(), randomUUID()];
    await world.append([created(token, keyId)], workspaceId);
    await until('the row is there', async () => {
      const { rowCount } = await world.pool.query('select 1 from read.api_keys where id = $1', [keyId]);
      return rowCount === 1;
    });
    const { keyring, count } = counted();
    for (let at = 0; at < 20_000; at += 1) keyring.lookUpLater(someToken(), 'a stranger');
    // Where there is no more room, an address that has less of it takes some from the one that has most.
    keyring.lookUpLater(token, 'a caller');
    for (let at = 0; at < 20_000; at += 1) keyring.lookUpLater(someToken(), 'a stranger');
    assert.ok(!keyring.hasSeen(token));
    await until('it is seen', async () => keyring.hasSeen(token), { withinMs: 5_000 });
    assert.equal(count('find-keys'), 1);
    // One that came when there was no more room is heard the next time.
    const late = [someToken(), randomUUID()] as const;
    await world.append([created(...late)], workspaceId);
    await until('it is seen', async () => {
      keyring.lookUpLater(late[0], 'a caller');
      return keyring.hasSeen(late[0]);
    });
  });

  t('an unavailable database is reported, and the keyring does not remember it', async () => {
    const [token, keyId] = [someToken(), randomUUID()];
    await world.append([created(token, keyId)], workspaceId);
    let away = true;
    const pool = watched(world.pool, () => {
      if (away) throw new Error('Connection terminated');
    });
    const keyring = keyringOver(pool);
    await assert.rejects(keyring.identify(token), /Connection terminated/);
    away = false;
    await until('the key is known', async () => (await codeOf(keyring.identify(token))) === 'known');
  });

  t('of a stream that the projection has parked, the stream decides, however fresh the other rows are', async () => {
    const [own, ofMember] = [someToken(), someToken()];
    const [ownId, ofMemberId, leftId] = [randomUUID(), randomUUID(), randomUUID()];
    const homeId = randomUUID();
    const home = `workspace-${homeId}`;
    const owner = { memberId, name: 'Olga', role: 'owner' };
    const leaver = { memberId: leftId, name: 'Lena', role: 'manager' };
    const made: Given[] = [
      { stream: home, type: 'WorkspaceCreated', data: { name: 'W', timezone: 'UTC', mode: 'live', twinOf: null } },
      { stream: home, type: 'MemberAdded', data: owner },
      { stream: home, type: 'MemberAdded', data: leaver },
    ];
    await world.append(made, homeId);
    const left = created(ofMember, ofMemberId);
    await world.append(
      [created(own, ownId), { ...left, data: { ...(left.data as object), memberId: leftId } }],
      homeId,
    );
    const keyring = keyringOver(world.pool);
    for (const token of [own, ofMember]) {
      await until('the key is known', async () => (await codeOf(keyring.identify(token))) === 'known');
    }
    chokesOn.set('ApiKeyRevoked', `apikey-${ownId}`).set('MemberRemoved', home);
    const taken: Given[] = [
      { stream: `apikey-${ownId}`, type: 'ApiKeyRevoked', data: {} },
      { stream: home, type: 'MemberRemoved', data: { memberId: leftId } },
    ];
    await world.append(taken, homeId);
    await until('both are parked', async () => {
      const { rowCount } = await world.pool.query('select 1 from ops.parked_events');
      return rowCount === 2;
    });
    // The rows that say of a withdrawal are long gone by now: here there were none.
    for (const token of [own, ofMember]) {
      await until('it is refused', async () => (await codeOf(keyring.identify(token))) === 'token_revoked');
    }
    // An operator who has an event skipped takes no power back with it.
    for (const { group, stream, events } of await listParked(world.pool, null)) {
      assert.equal(events, 1, stream);
      const { rows } = await world.pool.query('select event_id::text as id from ops.parked_events where stream = $1', [
        stream,
      ]);
      await inTransaction(world.pool, async (tx) => ({
        commit: true,
        result: await requestSkip(tx, group, String(rows[0].id)),
      }));
    }
    await until('none is parked', async () => (await listParked(world.pool, null)).length === 0);
    for (const token of [own, ofMember]) assert.equal(await codeOf(keyring.identify(token)), 'token_revoked');
  });

  // The last ones: the read models of this world stand still from here on.
  t('while the read model is more than five seconds behind, the streams decide', async () => {
    const [token, keyId] = [someToken(), randomUUID()];
    await world.append([created(token, keyId)], workspaceId);
    const freshness = new Freshness(world, 'workspaces');
    const keyring = keyringOver(world.pool, freshness);
    await until('the key is known', async () => (await codeOf(keyring.identify(token))) === 'known');
    await until('the read model is not behind', async () => !(await freshness.isBehind()));
    stop.abort();
    await running.done;
    // Of a process that commits no row before it: a former build, an operator with a database of yesterday.
    await world.append([{ stream: `apikey-${keyId}`, type: 'ApiKeyRevoked', data: {} }], workspaceId);
    const began = performance.now();
    await until('it is refused', async () => (await codeOf(keyring.identify(token))) === 'token_revoked');
    const took = performance.now() - began;
    assert.ok(took > 3_000 && took < 9_000, `${took} ms`);
    assert.ok(await freshness.isBehind());
  });

  t('a relay or a log that is away makes the read model behind; a store that is away takes no event', async () => {
    const head = await world.store.head();
    const relayed = (position: bigint | null) =>
      world.pool.query(
        `insert into ops.relay_checkpoints (name, position) values ('relay', $1)
         on conflict (name) do update set position = $1`,
        [position],
      );
    const away = async (): Promise<never> => Promise.reject(new Error('away'));
    const reset = async () => [];
    const log = { reset, ends: async () => [] };
    const { pool, store } = world;
    const isBehind = (sources: Partial<FreshnessSources>) =>
      new Freshness({ pool, store, log, ...sources }, 'workspaces').isBehind();
    await relayed(head);
    assert.equal(await isBehind({}), false);
    assert.equal(await isBehind({ log: { reset, ends: away } }), true);
    assert.equal(await isBehind({ store: { head: away } }), false);
    await relayed((head ?? 0n) - 1n);
    assert.equal(await isBehind({}), true);
  });
});
