/** What networks said of people, carried out: consents that were taken back, data that is to be deleted. */
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { credentialOf } from '#contracts/ports/credentials.suite.ts';
import { account } from '#domain/account.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { deletionOf, type KeptKind, keepNotice, noticeDays } from '#runtime/work/network-notices.ts';
import type { Platform } from '#schemas/common.ts';
import { noticeRound } from '#services/outcomes/notices.ts';
import { Resting } from '#services/outcomes/resting.ts';
import { runRevocations } from '#services/outcomes/revocations.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('what networks say of people', { timeoutMs: 120_000 }, (t) => {
  let world: PublishingWorld;
  let credentials: PostgresCredentials;
  let clientId: string;
  let mortals: Mortals;
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    const secrets = new Secrets(`v1:${randomBytes(32).toString('base64')}`);
    credentials = new PostgresCredentials({
      pool: world.pool,
      keys: new PostgresDataKeys({ pool: world.pool, secrets }),
    });
    clientId = await world.client();
    const script = new URL('./rounds-process.ts', import.meta.url).pathname;
    mortals = new Mortals(script, () => [world.url, 'notices']);
  });
  t.after(async () => {
    await mortals?.end();
    await world?.close();
  });

  const deps = () => ({
    ...{ pool: world.pool, store: world.store, logger: world.logger, now: Date.now },
    config: { sweepIntervalMs: 100, leaseTtlMs: 900 },
  });
  const round = () => noticeRound(deps(), AbortSignal.timeout(20_000));
  const statusOf = async (id: string) => (await world.store.load(account, id)).state.status;
  const externalIdOf = async ({ id }: Account): Promise<string> => {
    const { state } = await world.store.load(account, id);
    return state.status === 'none' ? '' : state.externalId;
  };
  const shown = (ids: readonly string[]) =>
    until('the read model shows the accounts', async () => {
      const sql = `select from ${view('accounts')} where id = any($1)`;
      return (await world.pool.query(sql, [ids])).rowCount === ids.length;
    });
  /** Live accounts, each with credentials; a name is that of the account on the network. */
  const connected = async (platform: Platform, name: string, more: { of?: string; grant?: string } = {}) => {
    const { of = clientId, grant } = more;
    const one = await world.connect(of, platform, name, 'live');
    const owner = { accountId: one.id, workspaceId: world.workspaceId, clientId: of, platform };
    await credentials.keep(owner, credentialOf({ expiresAt: null, ...(grant === undefined ? {} : { grant }) }));
    await shown([one.id]);
    return one;
  };
  interface Said {
    readonly at?: number;
    readonly network?: 'live' | 'sandbox';
  }
  const said = async (kind: KeptKind, platform: Platform, person: string, more: Said = {}) => {
    const { at = Date.now(), network = 'live' } = more;
    const notice = { kind, person, at: new Date(at).toISOString() };
    const id = createHash('sha256').update(randomUUID()).digest();
    const code = kind === 'delete_data' ? randomBytes(24).toString('hex') : null;
    await keepNotice(world.pool, { id, network, platform, notice, code });
    return { id, code: code ?? '' };
  };
  /** As if the notices had come that long ago, and were due. */
  const later = (ms: number) =>
    world.pool.query(
      `update ops.network_notices set due_at = now(), received_at = received_at - $1 * interval '1 millisecond'`,
      [ms],
    );
  const rowOf = async (id: Buffer) => {
    const sql =
      'select person, done_at is not null as "isDone", failures, due_at > now() as waits from ops.network_notices where id = $1';
    return (await world.pool.query(sql, [id])).rows[0];
  };
  const reasons = async (id: string) =>
    (await world.store.readStream(`account-${id}`)).flatMap(({ data }) => (data as { reason?: string }).reason ?? []);

  t('an owner who took the consent back: their accounts of every client need a new one, and no others', async () => {
    const name = randomUUID();
    const elsewhere = await world.client();
    const [one, other] = [await connected('threads', name), await connected('threads', name, { of: elsewhere })];
    const neighbour = await connected('threads', randomUUID());
    const ofSandbox = await world.connect(clientId, 'threads', randomUUID(), 'sandbox');
    await shown([ofSandbox.id]);
    const { id } = await said('deauthorized', 'threads', await externalIdOf(one));
    await said('deauthorized', 'x', await externalIdOf(neighbour));
    await said('deauthorized', 'threads', await externalIdOf(ofSandbox));
    await round();
    const all = [one, other, neighbour, ofSandbox];
    assert.deepEqual(await Promise.all(all.map((each) => statusOf(each.id))), [
      ...['reauth_required', 'reauth_required', 'connected', 'connected'],
    ]);
    assert.deepEqual(await reasons(one.id), ['The owner took the permission of this app back on Threads.']);
    assert.ok((await credentials.read(one.id)) !== null, 'as where a call finds the consent gone');
    assert.deepEqual(await rowOf(id), { person: null, isDone: true, failures: 0, waits: false });
    await said('deauthorized', 'threads', await externalIdOf(ofSandbox), { network: 'sandbox' });
    await round();
    await round();
    assert.equal(await statusOf(ofSandbox.id), 'reauth_required');
    assert.deepEqual(await world.story(`account-${one.id}`), ['AccountConnected', 'AccountReauthRequired']);
  });

  t('a person of whom several accounts came is known by the consent', async () => {
    const grant = randomUUID();
    const pages = [
      await connected('facebook', randomUUID(), { grant }),
      await connected('facebook', randomUUID(), { grant }),
    ];
    const ofAnother = await connected('facebook', randomUUID(), { grant: randomUUID() });
    await said('deauthorized', 'facebook', grant);
    await said('deauthorized', 'instagram', grant);
    await round();
    assert.deepEqual(await Promise.all([...pages, ofAnother].map(({ id }) => statusOf(id))), [
      ...['reauth_required', 'reauth_required', 'connected'],
    ]);
  });

  t('a deletion by the consent forgets its accounts of every client, and waits for each', async () => {
    const grant = randomUUID();
    const pages = [
      await connected('facebook', randomUUID(), { grant }),
      await connected('facebook', randomUUID(), { grant, of: await world.client() }),
    ];
    const { id } = await said('delete_data', 'facebook', grant);
    await round();
    for (const { id: page } of pages) assert.equal(await statusOf(page), 'disconnected');
    await later(3_600_000);
    await credentials.destroy(pages[0]?.id ?? '');
    await round();
    assert.equal((await rowOf(id)).isDone, false, 'one of two is kept');
    await credentials.destroy(pages[1]?.id ?? '');
    await later(0);
    await round();
    assert.equal((await rowOf(id)).isDone, true);
    for (const { id: page } of pages) {
      assert.deepEqual(await reasons(page), ['The owner asked Facebook to have their data deleted.']);
    }
  });

  t('a consent that came after it is another one, and stays', async () => {
    const one = await connected('threads', randomUUID());
    const person = await externalIdOf(one);
    await said('deauthorized', 'threads', person, { at: Date.now() - 60_000 });
    const { id } = await said('delete_data', 'threads', person, { at: Date.now() - 60_000 });
    await round();
    await later(3_600_000);
    await round();
    assert.equal(await statusOf(one.id), 'connected');
    assert.ok((await credentials.read(one.id)) !== null);
    assert.equal((await rowOf(id)).isDone, true, 'though its credentials are kept');
    await said('deauthorized', 'threads', person, { at: Date.now() - 4_000 });
    await round();
    assert.equal(await statusOf(one.id), 'reauth_required', 'the clock of the network is a little behind');
  });

  t('an owner who wants their data deleted: no profile, no account, no credentials; only then it is done', async () => {
    const one = await connected('threads', randomUUID());
    const person = await externalIdOf(one);
    const { id, code } = await said('delete_data', 'threads', person);
    await round();
    assert.deepEqual(await world.story(`account-${one.id}`), [
      ...['AccountConnected', 'AccountProfileChanged', 'AccountDisconnected'],
    ]);
    assert.deepEqual(await reasons(one.id), ['The owner asked Threads to have their data deleted.']);
    await until('the read model shows no name', async () => {
      const sql = `select username, display_name, avatar_url, status from ${view('accounts')} where id = $1`;
      const { rows } = await world.pool.query(sql, [one.id]);
      return JSON.stringify(Object.values(rows[0])) === JSON.stringify([null, null, null, 'disconnected']);
    });
    assert.equal((await rowOf(id)).waits, true);
    await later(3_600_000);
    await round();
    assert.equal((await rowOf(id)).isDone, false, 'the network has not been asked to revoke');
    await world.pool.query(
      `update ops.network_credentials set kept_at = now() - interval '1 second' where account_id = $1`,
      [one.id],
    );
    const revoking = world.run((signal) =>
      runRevocations({ ...deps(), credentials, revokers: {} }, new Resting(), signal),
    );
    await until('they are destroyed', async () => (await credentials.read(one.id)) === null);
    await revoking.stop();
    assert.equal((await deletionOf(world.pool, code))?.doneAt, null);
    await later(0);
    await round();
    assert.notEqual((await deletionOf(world.pool, code))?.doneAt, null);
    assert.equal((await rowOf(id)).person, null);
    assert.equal((await world.story(`account-${one.id}`)).length, 3);
  });

  t(
    'an account that was disconnected before loses its name too, and one that is connected meanwhile is found',
    async () => {
      const name = randomUUID();
      const former = await connected('threads', name);
      await execute(world.store, account, former.id, { type: 'Disconnect', reason: 'left' }, world.context());
      await credentials.destroy(former.id);
      const at = Date.now() + 60_000;
      const { id } = await said('delete_data', 'threads', await externalIdOf(former), { at });
      await round();
      assert.deepEqual((await world.story(`account-${former.id}`)).slice(1), [
        'AccountDisconnected',
        'AccountProfileChanged',
      ]);
      assert.equal((await rowOf(id)).isDone, false, 'a read model may have been behind');
      await later(3_600_000);
      await round();
      assert.equal((await rowOf(id)).isDone, true);
    },
  );

  t(
    'killed behind an account, and before it is noted: the next process goes on, and nothing happens twice',
    async () => {
      for (const point of ['outcomes:after-notice', 'outcomes:before-notice-done']) {
        const name = randomUUID();
        const elsewhere = await world.client();
        const both = [await connected('threads', name), await connected('threads', name, { of: elsewhere })];
        const { id } = await said('deauthorized', 'threads', await externalIdOf(both[0] as Account));
        await mortals.died(await mortals.child(point));
        assert.equal((await rowOf(id)).isDone, false);
        const survivors = await Promise.all(['', ''].map((none) => mortals.child(none)));
        await until('it is done', async () => (await rowOf(id))?.isDone === true);
        for (const one of both) {
          assert.deepEqual(
            await world.story(`account-${one.id}`),
            ['AccountConnected', 'AccountReauthRequired'],
            point,
          );
        }
        for (const one of survivors) one.kill('SIGKILL');
      }
    },
  );

  t('one that cannot be carried out waits ever longer, and holds up no other', async () => {
    const [broken, fine] = [await connected('threads', randomUUID()), await connected('threads', randomUUID())];
    const { id } = await said('deauthorized', 'threads', await externalIdOf(broken));
    await said('deauthorized', 'threads', await externalIdOf(fine));
    const failed: string[] = [];
    const load = (decider: typeof account, one: string) =>
      one === broken.id ? Promise.reject(new Error('a stream that cannot be read')) : world.store.load(decider, one);
    const append = world.store.append.bind(world.store);
    const store = { load, append } as unknown as typeof world.store;
    await noticeRound({ ...deps(), store, onFailure: (kind) => failed.push(kind) }, AbortSignal.timeout(20_000));
    assert.deepEqual([await statusOf(broken.id), await statusOf(fine.id)], ['connected', 'reauth_required']);
    const { failures, waits, isDone } = await rowOf(id);
    assert.deepEqual([failed, failures, waits, isDone], [['account'], 1, true, false]);
    await later(0);
    await round();
    assert.equal(await statusOf(broken.id), 'reauth_required');
  });

  t('what was done long ago is forgotten, and what is not done never is', async () => {
    const one = await connected('threads', randomUUID());
    const person = await externalIdOf(one);
    const done = await said('deauthorized', 'threads', person);
    await round();
    const open = await said('delete_data', 'threads', randomUUID());
    const age = (days: number) =>
      world.pool.query(
        `update ops.network_notices set received_at = now() - $1 * interval '1 day', due_at = now() + interval '1 hour',
           done_at = case when done_at is not null then now() - $1 * interval '1 day' end`,
        [days],
      );
    await age(noticeDays - 1);
    await round();
    assert.ok((await rowOf(done.id)) !== undefined);
    await age(noticeDays + 1);
    await round();
    assert.equal(await rowOf(done.id), undefined);
    assert.ok((await rowOf(open.id)) !== undefined);
  });
});
