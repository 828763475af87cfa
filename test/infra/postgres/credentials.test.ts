import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import type { Pool } from 'pg';
import { credentialCases, credentialOf, ownerOf, slowNetwork } from '#contracts/ports/credentials.suite.ts';
import type { Credential, NewCredential, Refresh } from '#contracts/ports/credentials.ts';
import { QueryTimeout } from '#contracts/ports/database.ts';
import { endingSql } from '#infra/postgres/credential-rows.ts';
import { PostgresCredentials, type PostgresCredentialsOptions } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { built } from '#test/support/bundles.ts';
import { type ProxiedDatabase, proxiedDatabase } from '#test/support/silent-postgres.ts';
import { suite } from '#test/support/suite.ts';
import type { Falls } from '#test/support/tcp-proxy.ts';

const script = fileURLToPath(new URL('./credentials-process.ts', import.meta.url));
const never = new AbortController().signal;
/** Words that only the statement which stores an answer has. */
const storing = 'version = version + 1';

suite('network credentials in Postgres', { timeoutMs: 120_000 }, (t) => {
  const key = `v1:${randomBytes(32).toString('base64')}`;
  const secrets = new Secrets(key);
  const pools: Pool[] = [];
  let database: ProxiedDatabase;
  let pool: Pool;
  let keys: PostgresDataKeys;
  let store: PostgresCredentials;
  /** As another process would hold them. */
  const another = (limits: PostgresCredentialsOptions['limits'] = {}, url = database.direct) => {
    const own = openPool({ url, max: 4 });
    pools.push(own);
    return new PostgresCredentials({ pool: own, keys: new PostgresDataKeys({ pool: own, secrets }), limits });
  };
  t.before(async () => {
    database = await proxiedDatabase();
    pool = openPool({ url: database.direct, max: 4 });
    pools.push(pool);
    keys = new PostgresDataKeys({ pool, secrets });
    store = new PostgresCredentials({ pool, keys });
  });
  t.after(async () => {
    await Promise.all(pools.map((one) => one.end()));
    await database?.close();
  });

  credentialCases(t, async () => ({
    ...{ store, other: another() },
    destroyKey: (clientId) => keys.destroy(clientId),
    close: async () => undefined,
  }));

  const kept = async (of = ownerOf()) => {
    const credential = credentialOf();
    await store.keep(of, credential);
    return { owner: of, id: of.accountId, credential };
  };
  const neverAsked = (): Promise<Refresh> => assert.fail('the network was asked');
  const answering = (credential: NewCredential) => async (): Promise<Refresh> => ({ kind: 'refreshed', credential });
  const refusing = async (): Promise<Refresh> => ({ kind: 'refused', reason: 'invalid_grant' });

  /** Kills a process at the fault point, and gives what it was to do. */
  const leaseMs = 700;
  const child = async (step: string, answer: 'refreshed' | 'refused', fault: string) => {
    const owner = ownerOf();
    const credential = credentialOf();
    const next = credentialOf();
    if (step !== 'keep') await store.keep(owner, credential);
    const given = { kind: answer, credential: next, reason: 'invalid_grant' };
    const order = JSON.stringify({ owner, credential, answer: given, leaseMs });
    const spawned = spawn(process.execPath, [built(script), database.direct, key, step, order], {
      env: { ...process.env, POSTLINE_FAULT: fault, POSTLINE_FAULT_SIGNAL: 'SIGKILL' },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const died = await new Promise((resolve) => spawned.once('exit', (_code, signal) => resolve(signal)));
    assert.equal(died, 'SIGKILL');
    return { id: owner.accountId, credential, next };
  };

  t('a process that dies after it kept a credential leaves it whole', async () => {
    const { id, credential } = await child('keep', 'refreshed', 'credentials.kept');
    assert.deepEqual(await store.read(id), { version: 1, ...credential });
  });

  t('a process that dies before its call holds the account no longer than its lease', async () => {
    const { id, credential } = await child('refresh', 'refreshed', 'credentials.leased');
    const asked: Credential[] = [];
    const next = credentialOf();
    const ask = async (former: Credential): Promise<Refresh> => {
      asked.push(former);
      return { kind: 'refreshed', credential: next };
    };
    const result = await store.refresh(id, 1, ask, never);
    assert.deepEqual(result, { kind: 'current', credential: { version: 2, ...next } });
    assert.deepEqual(asked, [{ version: 1, ...credential }]);
    const after = await store.refresh(id, 2, refusing, never);
    assert.ok(after.kind === 'lapsed' && !after.isLost, 'a success leaves nothing lost');
  });

  t('a pair lost between the answer and the row: the next refresh tries once, and the lapse says so', async () => {
    const { id } = await child('refresh', 'refreshed', 'credentials.answered');
    const result = await store.refresh(id, 1, refusing, never);
    assert.ok(result.kind === 'lapsed' && result.isLost);
    assert.match(result.reason, /^The network's answer to a refresh was lost.*invalid_grant$/);
    assert.deepEqual(await another().refresh(id, 1, neverAsked, never), result);
  });

  t('a process that dies after the row leaves the new pair, which nobody asks for again', async () => {
    const { id, next } = await child('refresh', 'refreshed', 'credentials.stored');
    const result = await store.refresh(id, 1, neverAsked, never);
    assert.deepEqual(result, { kind: 'current', credential: { version: 2, ...next } });
  });

  t('a process that dies after a refusal leaves the lapse to whoever asks next', async () => {
    const { id } = await child('refresh', 'refused', 'credentials.lapsed');
    const result = await store.refresh(id, 1, neverAsked, never);
    assert.deepEqual(result, { kind: 'lapsed', version: 1, reason: 'invalid_grant', isLost: false });
  });

  t('a process that dies after a destruction leaves nothing', async () => {
    const { id } = await child('destroy', 'refreshed', 'credentials.destroyed');
    assert.equal(await store.read(id), null);
  });

  t('a call that does not end is ended at its deadline, and a refusal after it counts as lost', async () => {
    const { id } = await kept();
    const deaf = another({ callMs: 100 });
    const endless = () => new Promise<Refresh>(() => undefined);
    assert.equal((await deaf.refresh(id, 1, endless, never)).kind, 'unavailable');
    const result = await store.refresh(id, 1, refusing, never);
    assert.ok(result.kind === 'lapsed' && result.isLost);
  });

  t('a call that we ended counts as lost, whatever its adapter makes of that', async () => {
    const { id } = await kept();
    const ask = (_: Credential, signal: AbortSignal) =>
      new Promise<Refresh>((resolve) => {
        signal.addEventListener('abort', () => resolve({ kind: 'unavailable', reason: 'aborted' }));
      });
    assert.equal((await another({ callMs: 50 }).refresh(id, 1, ask, never)).kind, 'unavailable');
    const result = await store.refresh(id, 1, refusing, never);
    assert.ok(result.kind === 'lapsed' && result.isLost);
  });

  t("a call ends some time after its caller's signal", async () => {
    const { id } = await kept();
    const stopped = new AbortController();
    const ask = (_: Credential, signal: AbortSignal) =>
      new Promise<Refresh>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        stopped.abort();
      });
    const result = await another({ graceMs: 50 }).refresh(id, 1, ask, stopped.signal);
    assert.deepEqual(result, { kind: 'unavailable', reason: 'the network did not answer in time' });
  });

  t('an answer that comes after another process took the refresh over is not stored', async () => {
    const { id } = await kept();
    const network = slowNetwork();
    const late = another({ leaseMs: 200 }).refresh(id, 1, network.ask, never);
    await network.isAsked;
    const next = credentialOf();
    const result = await another().refresh(id, 1, answering(next), never);
    assert.deepEqual(result, { kind: 'current', credential: { version: 2, ...next } });
    network.answer({ kind: 'refreshed', credential: credentialOf() });
    assert.deepEqual(await late, result);
    assert.deepEqual(await store.read(id), { version: 2, ...next });
  });

  t('Postgres falls silent while the answer is stored: the next try stores it', async () => {
    const { id } = await kept();
    const { url, proxy } = await database.way();
    let isSilent = false;
    const theFirst: Falls = (to, chunk) => {
      if (isSilent || to !== 'server' || !chunk.includes(storing)) return null;
      isSilent = true;
      return 0;
    };
    proxy.silence(theFirst);
    const next = credentialOf();
    const result = await another({ answerMs: 300 }, url).refresh(id, 1, answering(next), never);
    assert.ok(isSilent);
    assert.deepEqual(result, { kind: 'current', credential: { version: 2, ...next } });
    assert.deepEqual(await store.read(id), { version: 2, ...next });
  });

  t("Postgres stored the answer and its own was lost: the caller gets the pair's one version", async () => {
    const { id } = await kept();
    const { url, proxy } = await database.way();
    const lost = proxy.loseAnswer((request) => request.includes(storing));
    const next = credentialOf();
    const result = await another({}, url).refresh(id, 1, answering(next), never);
    await lost;
    assert.deepEqual(result, { kind: 'current', credential: { version: 2, ...next } });
  });

  t('Postgres stays silent for a whole lease: the caller is told, and the pair counts as lost', async () => {
    const { id } = await kept();
    const { url, proxy } = await database.way();
    proxy.silence((to, chunk) => (to === 'server' && chunk.includes(storing) ? 0 : null));
    const patient = another({ leaseMs: 900, callMs: 500, answerMs: 200 }, url);
    await assert.rejects(patient.refresh(id, 1, answering(credentialOf()), never), QueryTimeout);
    const result = await store.refresh(id, 1, refusing, never);
    assert.ok(result.kind === 'lapsed' && result.isLost);
  });

  t('a sealed secret opens at its own place only', async () => {
    const { id, owner } = await kept();
    const { id: twin } = await kept(ownerOf({ clientId: owner.clientId }));
    await pool.query(
      `update ops.network_credentials set sealed = (select sealed from ops.network_credentials where account_id = $1)
       where account_id = $2`,
      [id, twin],
    );
    await assert.rejects(store.read(twin), /does not open the network credential/);
    await assert.rejects(store.refresh(twin, 1, neverAsked, never), /does not open the network credential/);
    await pool.query('update ops.network_credentials set version = 2 where account_id = $1', [id]);
    await assert.rejects(store.read(id), /does not open the network credential/);
  });

  t('a key that is missing is an error, and no credential is lost by it', async () => {
    const { id, owner, credential } = await kept();
    const { rows } = await pool.query('delete from ops.data_keys where client_id = $1 returning *', [owner.clientId]);
    const fresh = another();
    await assert.rejects(fresh.read(id), /no data key/);
    await assert.rejects(fresh.refresh(id, 1, neverAsked, never), /no data key/);
    await pool.query('insert into ops.data_keys (client_id, key_version, wrapped) values ($1, $2, $3)', [
      ...[owner.clientId, rows[0].key_version, rows[0].wrapped],
    ]);
    const result = await fresh.refresh(id, 1, answering(credential), never);
    assert.equal(result.kind, 'current');
    const after = await fresh.refresh(id, 2, refusing, never);
    assert.ok(after.kind === 'lapsed' && !after.isLost, 'the network was not asked without the key');
  });

  t('a row that was written during an erasure is deleted by whoever reads it', async () => {
    const { id, owner } = await kept();
    await keys.destroy(owner.clientId);
    assert.equal((await store.refresh(id, 1, neverAsked, never)).kind, 'missing');
    const { rowCount } = await pool.query('select 1 from ops.network_credentials where account_id = $1', [id]);
    assert.equal(rowCount, 0);
  });

  t('no row and no error has a byte of a secret in any form', async () => {
    const canary = `canary-${randomBytes(24).toString('hex')}`;
    const owner = ownerOf();
    const secret = { accessToken: canary, nested: { list: [canary] } };
    const forms = [canary, Buffer.from(canary).toString('hex'), ...[0, 1, 2].map((at) => inBase64(canary, at))];
    const clean = (text: string, where: string) => {
      for (const form of forms) assert.ok(!text.includes(form), `${where} has the secret`);
    };
    const rowsAreClean = async () => {
      const { rows } = await pool.query<{ row: string }>(
        'select t::text as row from ops.network_credentials t where account_id = $1',
        [owner.accountId],
      );
      assert.equal(rows.length, 1);
      clean(String(rows[0]?.row), 'the row');
    };
    await store.keep(owner, { secret, expiresAt: null });
    await rowsAreClean();
    await store.refresh(owner.accountId, 1, answering({ secret, expiresAt: null }), never);
    await rowsAreClean();
    const errors: unknown[] = [
      await store.keep(owner, { secret, expiresAt: `no instant` }).catch((error: unknown) => error),
      await store
        .keep(owner, { secret: { ...secret, long: canary.repeat(3_000) }, expiresAt: null })
        .catch((error: unknown) => error),
      await store
        .keep({ ...owner, workspaceId: 'no uuid' }, { secret, expiresAt: null })
        .catch((error: unknown) => error),
    ];
    const refused = async (): Promise<Refresh> => ({ kind: 'refused', reason: `unknown token ${canary}` });
    errors.push(await store.refresh(owner.accountId, 2, refused, never));
    await rowsAreClean();
    await pool.query(`update ops.network_credentials set sealed = sealed || '\\x00' where account_id = $1`, [
      owner.accountId,
    ]);
    errors.push(await store.read(owner.accountId).catch((error: unknown) => error));
    for (const error of errors.slice(0, 3)) assert.ok(error instanceof Error);
    clean(inspect(errors, { depth: 10 }), 'an error');
  });

  t('ending finds a hundred among ten thousand by its index', async () => {
    await pool.query(`
      insert into ops.network_credentials
        (account_id, workspace_id, client_id, platform, version, sealed, expires_at)
      select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'linkedin', 1, '\\x00',
             timestamptz '2030-01-01' + n * interval '1 minute'
      from generate_series(1, 10000) n`);
    await pool.query('analyze ops.network_credentials');
    const before = '2030-01-01T01:40:30Z';
    assert.equal((await store.ending('linkedin', before, 1_000)).length, 100);
    const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`explain ${endingSql}`, ['linkedin', before, 1_000]);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    assert.match(plan, /Index Scan.*network_credentials_ending/);
    assert.doesNotMatch(plan, /Seq Scan/);
  });
});

/** As base64 has it behind a number of other bytes, without the characters that its neighbours change. */
const inBase64 = (text: string, at: number): string =>
  Buffer.from(' '.repeat(at) + text)
    .toString('base64')
    .slice(at === 0 ? 0 : 4, -4);
