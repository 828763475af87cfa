import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import knexOf, { type Knex } from 'knex';
import { Pool } from 'pg';
import { getPublished, listPublished, type PublishedFirst } from '#projections/published.ts';
import { migrate } from '#projections/tables.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

const many = 20_000;
const first = Date.UTC(2026, 0, 1);
/** The n-th post goes out n seconds after the first. */
const at = (seconds: number): string => new Date(first + seconds * 1_000).toISOString();

suite('posts that went out', (t) => {
  let pool: Pool;
  let knex: Knex;
  const statements: { sql: string; bindings: readonly unknown[] }[] = [];
  const big = randomUUID();
  const [client, account] = [randomUUID(), randomUUID()];
  const all = { from: at(0), to: at(many + 1) };

  t.before(async () => {
    const { url } = await testDatabase();
    pool = new Pool({ connectionString: url, max: 2 });
    await migrate(pool);
    knex = knexOf({ client: 'pg', connection: url, pool: { min: 0, max: 2 } });
    knex.on('query', ({ sql, bindings }) => statements.push({ sql, bindings }));
    // Every fifth is out on two networks, every seventh has not gone out.
    await pool.query(
      `insert into read.posts_v1 (id, workspace_id, revision, created_at, updated_at, client_id, published_at)
       select gen_random_uuid(), $1, 0, $2::timestamptz, now(), $3::uuid,
         case when n % 7 > 0 then $2::timestamptz + n * interval '1 second' end
       from generate_series(1, ${many}) n`,
      [big, at(0), client],
    );
    await pool.query(
      `insert into read.post_targets_v1 (id, workspace_id, revision, created_at, updated_at, post_id, client_id, account_id,
         platform, status, due_at, published_at)
       select gen_random_uuid(), $1, 0, now(), now(), p.id, p.client_id,
         case when extract(second from p.published_at) = 0 then $2::uuid else gen_random_uuid() end,
         network, 'published', now(), p.published_at
       from read.posts_v1 p, unnest(array['x', 'threads']) network
       where network = 'x' or extract(epoch from p.published_at)::int8 % 5 = 0`,
      [big, account],
    );
    await pool.query('analyze');
  });
  t.after(async () => {
    await knex?.destroy();
    await pool?.end();
  });

  t('a page is read by index and in order, deep as well as first', async () => {
    for (const after of [null, { publishedAt: at(5_000), id: randomUUID() }]) {
      statements.length = 0;
      const page = await listPublished(knex, big, all, {}, { after, limit: 25 });
      assert.equal(page.rows.length, 25);
      const [{ sql, bindings } = { sql: '', bindings: [] }] = statements;
      const found = await pool.query(`explain (analyze, buffers, format json) ${sql}`, [...bindings]);
      const [{ Plan: plan }] = found.rows[0]['QUERY PLAN'];
      const text = JSON.stringify(plan);
      assert.match(text, /posts_v1_6/);
      // The order is the index's own; what is sorted is the targets of one post.
      assert.doesNotMatch(text, /Seq Scan|"Sort Key":\["p\./);
      assert.ok(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'] < 400, text);
    }
  });

  t('each once, the newest first, within the range: from inclusive, to exclusive', async () => {
    const range = { from: at(100), to: at(120) };
    const seen: (string | null)[] = [];
    let after: PublishedFirst | null = null;
    for (;;) {
      const page: Awaited<ReturnType<typeof listPublished>> = await listPublished(
        knex,
        big,
        range,
        {},
        { after, limit: 3 },
      );
      seen.push(...page.rows.map((row) => row.published_at));
      const last = page.rows.at(-1);
      if (!page.hasMore || last === undefined) break;
      after = { publishedAt: last.published_at ?? '', id: last.id };
    }
    const wanted = Array.from({ length: 20 }, (_, n) => 119 - n).filter((n) => n % 7 > 0);
    assert.deepEqual(seen, wanted.map(at));
    assert.deepEqual((await listPublished(knex, randomUUID(), all, {}, { after: null, limit: 5 })).rows, []);
  });

  t('filters hold against the targets that went out, and leave out the others', async () => {
    const range = { from: at(100), to: at(121) };
    const page = { after: null, limit: 100 };
    const threads = await listPublished(knex, big, range, { platforms: ['threads'] }, page);
    assert.deepEqual(
      threads.rows.map((row) => [row.published_at, row.targets.map(({ platform }) => platform)]),
      [120, 115, 110, 100].map((n) => [at(n), ['threads']]),
    );
    const both = await listPublished(knex, big, { from: at(110), to: at(111) }, {}, page);
    assert.deepEqual(
      both.rows[0]?.targets.map(({ platform }) => platform),
      ['threads', 'x'],
    );
    const own = await listPublished(knex, big, range, { accountId: account, clientId: client }, page);
    assert.deepEqual(
      own.rows.map((row) => row.published_at),
      [at(120)],
    );
    assert.deepEqual((await listPublished(knex, big, range, { clientId: randomUUID() }, page)).rows, []);
    const id = both.rows[0]?.id ?? '';
    assert.deepEqual((await getPublished(knex, big, id, { platforms: ['facebook'] }))?.targets, []);
    assert.equal((await getPublished(knex, big, id, {}))?.targets.length, 2);
    assert.equal(await getPublished(knex, randomUUID(), id, {}), null);
  });
});
