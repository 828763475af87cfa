import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

const secret = (version: string): string => `${version}:${randomBytes(32).toString('base64')}`;

suite('data keys in Postgres', (t) => {
  const first = secret('v1');
  const secrets = new Secrets(first);
  const pools: Pool[] = [];
  let url = '';
  /** As another process would hold them. */
  const another = (over: { secrets?: Secrets; freshMs?: number; most?: number } = {}): PostgresDataKeys => {
    const pool = openPool({ url, max: 2 });
    pools.push(pool);
    return new PostgresDataKeys({ pool, secrets, ...over });
  };
  t.before(async () => {
    url = (await preparedDatabase()).url;
  });
  t.after(async () => void (await Promise.all(pools.map((pool) => pool.end()))));

  t('ten processes that create a key at once get the same key, as every reader does', async () => {
    const client = randomUUID();
    const keys = Array.from({ length: 10 }, () => another());
    const made = await Promise.all(keys.flatMap((one) => [one.forWriting(client), one.forWriting(client)]));
    const [key] = made;
    assert.equal(key?.length, 32);
    for (const one of made) assert.deepEqual(one, key);
    assert.deepEqual(await another().forReading(client), key);
    assert.notDeepEqual(await another().forWriting(randomUUID()), key);
  });

  t('a key is committed and wrapped before it is returned', async () => {
    const client = randomUUID();
    const keys = another();
    const key = await keys.forWriting(client);
    assert.deepEqual(await another().forReading(client), key);
    const { rows } = await (pools[0] as Pool).query('select wrapped from ops.data_keys where client_id = $1', [client]);
    assert.equal((rows[0].wrapped as Buffer).includes(key as Buffer), false, 'the stored key is wrapped');
  });

  t('reading a missing key fails and never gives null', async () => {
    const client = randomUUID();
    await assert.rejects(another().forReading(client), /no data key/);
    const keys = another({ freshMs: 0 });
    await keys.forWriting(client);
    await (pools[0] as Pool).query('delete from ops.data_keys where client_id = $1', [client]);
    await assert.rejects(keys.forReading(client), /no data key/);
  });

  t('a destroyed key reads as null and is never created again', async () => {
    const client = randomUUID();
    const keys = another();
    await keys.forWriting(client);
    await keys.destroy(client);
    await keys.destroy(client);
    for (const one of [keys, another()]) {
      assert.equal(await one.forReading(client), null);
      assert.equal(await one.forWriting(client), null);
    }
    const unknownClient = randomUUID();
    await keys.destroy(unknownClient);
    assert.equal(await another().forWriting(unknownClient), null);
  });

  t('another process reads null within a second of the destruction', async () => {
    const client = randomUUID();
    const other = another();
    assert.equal((await other.forWriting(client))?.length, 32);
    await another().destroy(client);
    const began = performance.now();
    while ((await other.forReading(client)) !== null) {
      assert.ok(performance.now() - began < 1_100, 'still believed after a second');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });

  t('a key wrapped by an older version opens; without that version, or in another row, it does not', async () => {
    const client = randomUUID();
    const key = await another().forWriting(client);
    const rotated = new Secrets(`${secret('v2')},${first}`);
    const keys = another({ secrets: rotated });
    assert.deepEqual(await keys.forReading(client), key);
    await keys.forWriting(randomUUID());
    assert.equal((await keys.uses()).get('v2'), 1);
    await assert.rejects(another({ secrets: new Secrets(secret('v2')) }).forReading(client), /lacks version v1/);
    const thief = randomUUID();
    await (pools[0] as Pool).query(
      'insert into ops.data_keys select $1, key_version, wrapped from ops.data_keys where client_id = $2',
      [thief, client],
    );
    await assert.rejects(another().forReading(thief));
  });

  t('caches at most the given number of keys', async () => {
    const keys = another({ most: 2 });
    for (let i = 0; i < 5; i += 1) assert.equal((await keys.forWriting(randomUUID()))?.length, 32);
  });
});
