import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { MediaUsage } from '#services/workflows/media-usage.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

suite('media usage', (t) => {
  let pool: Pool;
  t.before(async () => {
    pool = new Pool({ connectionString: (await preparedDatabase()).url, max: 8 });
  });
  t.after(() => pool.end());

  const sums = async (customer: string) => {
    const { rows } = await pool.query(
      `select (select coalesce(sum(bytes), 0)::int from ops.media_usage where customer_id = $1) as rows,
         (select bytes::int from ops.media_customers where customer_id = $1) as counter`,
      [customer],
    );
    return [rows[0].rows, rows[0].counter];
  };

  t('the counter is the sum of the rows, however the rows came to be', async () => {
    const usage = new MediaUsage(pool, 10_000);
    const customer = randomUUID();
    const [first, second] = [randomUUID(), randomUUID()];
    await usage.set(first, customer, 1_738);
    assert.deepEqual(await sums(customer), [1_738, 1_738]);
    await usage.setQuota(customer, 3_316);
    const answers = await Promise.all([second, randomUUID()].map((id) => usage.reserve(id, customer, 1_568, null)));
    assert.deepEqual([...answers].sort(), [false, true]);
    assert.deepEqual(await sums(customer), [3_306, 3_306]);
    // A repair by hand writes rows alone.
    await pool.query('update ops.media_usage set bytes = bytes + 5 where asset_id = $1', [first]);
    assert.deepEqual(await sums(customer), [3_311, 3_311]);
    const other = randomUUID();
    await usage.set(first, other, 100);
    assert.deepEqual(await sums(customer), [1_568, 1_568]);
    assert.deepEqual(await sums(other), [100, 100]);
    await pool.query('delete from ops.media_usage where customer_id = any($1)', [[customer, other]]);
    assert.deepEqual(
      [await sums(customer), await sums(other)],
      [
        [0, 0],
        [0, 0],
      ],
    );
  });
});
