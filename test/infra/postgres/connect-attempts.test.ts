import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { type AttemptBearer, type ConnectAttempt, maxAttempts } from '#contracts/ports/connect-attempts.ts';
import { MissingKey } from '#contracts/ports/data-keys.ts';
import { PostgresConnectAttempts } from '#infra/postgres/connect-attempts.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

suite('attempts to connect an account in Postgres', (t) => {
  let pool: Pool;
  let keys: PostgresDataKeys;
  let store: PostgresConnectAttempts;
  t.before(async () => {
    pool = openPool({ url: (await preparedDatabase()).url, max: 8 });
    keys = new PostgresDataKeys({ pool, secrets: new Secrets(`v1:${randomBytes(32).toString('base64')}`) });
    store = new PostgresConnectAttempts({ pool, keys });
  });
  t.after(() => pool?.end());

  const bearerOf = (): AttemptBearer => ({ token: randomUUID(), browser: randomUUID() });
  const attemptOf = (more: Partial<ConnectAttempt> = {}): ConnectAttempt => ({
    ...{ kind: 'consent', inviteId: randomUUID(), workspaceId: randomUUID(), clientId: randomUUID(), platform: 'x' },
    kept: { verifier: 'the verifier', more: [1, null] },
    ...more,
  });
  const kept = async (attempt = attemptOf()) => {
    const bearer = bearerOf();
    assert.equal(await store.keep(bearer, attempt), true);
    return { bearer, attempt };
  };

  t('an attempt is found by its token and its browser, and taken once', async () => {
    const { bearer, attempt } = await kept();
    for (const other of [
      { ...bearer, token: randomUUID() },
      { ...bearer, browser: randomUUID() },
    ]) {
      assert.equal(await store.find(other, 'consent'), null);
      assert.equal(await store.take(other, 'consent'), null);
    }
    assert.equal(await store.take(bearer, 'choice'), null, 'another kind');
    assert.deepEqual(await store.find(bearer, 'consent'), attempt);
    const taken = await Promise.all(Array.from({ length: 8 }, () => store.take(bearer, 'consent')));
    assert.deepEqual(
      taken.filter((one) => one !== null),
      [attempt],
    );
    assert.equal(await store.find(bearer, 'consent'), null);
  });

  t('nothing of it can be read in the table, and no row can take the place of another', async () => {
    const { bearer } = await kept(attemptOf({ kept: { verifier: 'a-verifier-that-is-secret' } }));
    const { bearer: other } = await kept();
    const { rows } = await pool.query('select t::text as text, sealed from ops.connect_attempts t');
    const all = rows.map(({ text, sealed }) => `${text} ${sealed.toString('latin1')}`).join();
    for (const secret of ['a-verifier-that-is-secret', bearer.token, bearer.browser]) assert.ok(!all.includes(secret));
    await pool.query('update ops.connect_attempts set sealed = $1', [rows[0].sealed]);
    const moved = await Promise.allSettled([store.find(bearer, 'consent'), store.find(other, 'consent')]);
    const [refused] = moved.filter((one) => one.status === 'rejected');
    assert.ok(refused?.reason instanceof MissingKey);
    await pool.query('delete from ops.connect_attempts');
  });

  t('it ends by time, and is swept', async () => {
    const { bearer, attempt } = await kept();
    const { rows } = await pool.query(
      'select extract(epoch from expires_at - now())::int as left from ops.connect_attempts where invite_id = $1',
      [attempt.inviteId],
    );
    assert.ok(rows[0].left > 890 && rows[0].left <= 900);
    const { bearer: open } = await kept();
    await pool.query('update ops.connect_attempts set expires_at = now() where invite_id = $1', [attempt.inviteId]);
    assert.equal(await store.find(bearer, 'consent'), null);
    assert.equal(await store.take(bearer, 'consent'), null);
    assert.equal(await store.sweep(), 1);
    assert.equal(await store.sweep(), 0);
    assert.notEqual(await store.find(open, 'consent'), null);
  });

  t('an invite has a number of them: the oldest goes, and those of others stay', async () => {
    const other = await kept();
    const inviteId = randomUUID();
    const first = await kept(attemptOf({ inviteId }));
    for (let at = 1; at < maxAttempts; at += 1) await kept(attemptOf({ inviteId }));
    assert.notEqual(await store.find(first.bearer, 'consent'), null);
    await kept(attemptOf({ inviteId }));
    assert.equal(await store.find(first.bearer, 'consent'), null);
    assert.notEqual(await store.find(other.bearer, 'consent'), null);
    const { rows } = await pool.query('select count(*)::int as n from ops.connect_attempts where invite_id = $1', [
      inviteId,
    ]);
    assert.equal(rows[0].n, maxAttempts);
  });

  t('it ends with the key of its client', async () => {
    const { bearer, attempt } = await kept();
    const { clientId } = attempt;
    await keys.destroy(clientId);
    assert.equal(await store.find(bearer, 'consent'), null);
    assert.equal((await pool.query('select 1 from ops.connect_attempts where client_id = $1', [clientId])).rowCount, 0);
    assert.equal(await store.keep(bearer, attempt), false);
    const { bearer: live, attempt: its } = await kept();
    await store.destroyOfClient(its.clientId);
    await store.destroyOfClient(its.clientId);
    assert.equal(await store.find(live, 'consent'), null);
  });

  t('what is too long is refused', async () => {
    const kept = { accounts: 'a'.repeat(512 * 1024) };
    await assert.rejects(store.keep(bearerOf(), attemptOf({ kept })), /longer than 524288 bytes/);
  });
});
