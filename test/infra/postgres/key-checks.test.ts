import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { SetupError } from '#contracts/ports/setup-error.ts';
import { openAdapters } from '#infra/adapters.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { checkKeys } from '#infra/postgres/key-checks.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { run, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';

const keyOf = (version: string): string => `${version}:${randomBytes(32).toString('base64')}`;

suite('check values of the secret keys', { timeoutMs: 120_000 }, (t) => {
  const v1 = keyOf('v1');
  const v2 = keyOf('v2');
  let url = '';
  let pool: Pool;

  const fresh = async (): Promise<void> => {
    await pool?.end();
    url = (await preparedDatabase()).url;
    pool = openPool({ url, max: 4 });
  };
  /** What a process does with its keys when it starts. */
  const starts = (list: string, source?: string): Promise<void> => {
    const secrets = new Secrets(list, source);
    return checkKeys(pool, secrets, new PostgresDataKeys({ pool, secrets }));
  };
  const refused = (list: string, words: RegExp, source?: string): Promise<void> =>
    assert.rejects(starts(list, source), (error) => {
      assert.ok(error instanceof SetupError, String(error));
      assert.match(error.message, words);
      for (const key of list.split(',')) assert.ok(!error.message.includes(key.slice(3)), 'no key in an error');
      return true;
    });
  const wraps = (list: string): Promise<unknown> =>
    new PostgresDataKeys({ pool, secrets: new Secrets(list) }).forWriting(randomUUID());
  const stored = async (): Promise<readonly { version: string; check_value: Buffer }[]> =>
    (await pool.query('select version, check_value from ops.secret_keys order by version')).rows;

  t.before.each(fresh);
  t.after(() => pool.end());

  t(
    'the first start stores check values; the same key passes, another key is refused with version and place',
    async () => {
      await starts(v1);
      await starts(v1);
      await refused(keyOf('v1'), /v1 of \/data\/secret\.key is not the key v1/, '/data/secret.key');
      await starts(v1);
      const rows = await stored();
      assert.deepEqual(
        rows.map(({ version }) => version),
        ['v1'],
      );
      const key = Buffer.from(v1.slice(3), 'base64');
      const [check] = rows.map((row) => row.check_value);
      assert.equal(check?.length, 32);
      assert.ok(!check?.equals(key) && !check?.equals(new Secrets(v1).subKey('key-check')), 'no key is kept');
    },
  );

  t('of two first starts with different keys one is refused', async () => {
    for (let round = 0; round < 5; round += 1) {
      await fresh();
      const ended = await Promise.allSettled([starts(keyOf('v1')), starts(keyOf('v1'))]);
      assert.equal(ended.filter(({ status }) => status === 'fulfilled').length, 1, JSON.stringify(ended));
    }
  });

  t('rotation: a new key is added first, and the old key can be removed once it wraps no data key', async () => {
    await starts(v1);
    const client = randomUUID();
    await new PostgresDataKeys({ pool, secrets: new Secrets(v1) }).forWriting(client);
    await starts(`${v2},${v1}`);
    await starts(v1);
    await wraps(`${v2},${v1}`);
    await refused(v2, /version v1 is not in SECRET_KEY, and 1 data keys/);
    await refused(v1, /version v2 is not in SECRET_KEY/);
    await refused(`${v2},${keyOf('v1')}`, /v1 of SECRET_KEY is not the key v1/);
    await refused(`${keyOf('v2')},${v1}`, /v2 of SECRET_KEY is not the key v2/);
    await new PostgresDataKeys({ pool, secrets: new Secrets(v1) }).destroy(client);
    await starts(v2);
  });

  t('a database without check values gets them only from the key that opens its data keys', async () => {
    for (let n = 0; n < 3; n += 1) await wraps(v1);
    await refused(keyOf('v1'), /v1 of SECRET_KEY is not the key v1/);
    assert.deepEqual(await stored(), [], 'a wrong key leaves nothing behind');
    await starts(`${v2},${v1}`);
    assert.deepEqual(
      (await stored()).map(({ version }) => version),
      ['v1', 'v2'],
    );
    await refused(keyOf('v1'), /v1/);
  });

  t('a database with data keys of a lost and of a newer key starts with the newer one', async () => {
    for (let n = 0; n < 60; n += 1) await wraps(keyOf('v1'));
    await wraps(v1);
    await starts(v1);
    await refused(keyOf('v1'), /v1/);
  });

  t('processes end with code 2 and a message under another key, and start under the right one', async () => {
    const env = { DATABASE_URL: url, PORT: '0' };
    const adapters = await openAdapters({ name: 'test', config: readConfig(env), secrets: new Secrets(v1) });
    await adapters.close();
    const wrong = { ...env, SECRET_KEY: keyOf('v1') };
    for (const main of ['services/publisher/main.ts', 'services/admin/main.ts']) {
      const { code, output } = await run(main, { env: wrong, args: main.includes('admin') ? ['secrets'] : [] });
      assert.equal(code, 2, output);
      assert.match(output, /^(publisher: )?SECRET_KEY: v1 of SECRET_KEY is not the key v1/m);
      assert.ok(!output.includes(wrong.SECRET_KEY.slice(3)), output);
    }
    const right = await start('services/publisher/main.ts', { env: { ...env, SECRET_KEY: v1 } });
    assert.equal((await right.stop()).code, 0);
    const { code, output } = await run('services/admin/main.ts', {
      env: { ...env, SECRET_KEY: v1 },
      args: ['secrets'],
    });
    assert.equal(code, 0, output);
    assert.match(output, /v1 +true +true +true/);
  });
});
