import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import knexOf, { type Knex } from 'knex';
import { Pool } from 'pg';
import { migrate } from '#projections/engine/tables.ts';
import { listPosts } from '#projections/queries/post-queries.ts';
import { listTargets } from '#projections/queries/target-queries.ts';
import { readSettings } from '#services/api/call/lists.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

const many = 20_000;

suite('lists by externalRef', (t) => {
  let pool: Pool;
  let knex: Knex;
  const statements: { sql: string; bindings: readonly unknown[] }[] = [];
  const workspaceId = randomUUID();

  t.before(async () => {
    const { url } = await preparedDatabase();
    pool = new Pool({ connectionString: url, max: 2 });
    await migrate(pool);
    knex = knexOf({ client: 'pg', connection: url, pool: { min: 0, max: 2 } });
    knex.on('query', ({ sql, bindings }) => statements.push({ sql, bindings }));
    // Every tenth post has a reference, and another workspace has the same ones.
    await pool.query(
      `insert into read.posts_v1 (id, workspace_id, revision, created_at, updated_at, client_id, status, body, external_ref)
       select gen_random_uuid(), w, 0, now() - n * interval '1 second', now(), gen_random_uuid(), 'draft', '{}',
         case when n % 10 = 0 then 'CMS-' || n end
       from generate_series(1, ${many}) n, unnest(array[$1::uuid, gen_random_uuid()]) w`,
      [workspaceId],
    );
    await pool.query(
      `insert into read.post_targets_v1 (id, workspace_id, revision, created_at, updated_at, post_id, client_id, platform,
         status, due_at)
       select gen_random_uuid(), p.workspace_id, 0, now(), now(), p.id, p.client_id, network, 'pending', p.created_at
       from read.posts_v1 p, unnest(array['x', 'threads']) network`,
    );
    await pool.query('analyze');
  });
  t.after(async () => {
    await knex?.destroy();
    await pool?.end();
  });

  /** Pages that the list's first statement touches, and its plan. */
  const explained = async (): Promise<{ readonly pages: number; readonly plan: string }> => {
    const [{ sql, bindings } = { sql: '', bindings: [] }] = statements;
    const client = await pool.connect();
    const found = await client
      .query(readSettings)
      .then(() => client.query(`explain (analyze, buffers, format json) ${sql.replaceAll('?', '$')}`, [...bindings]))
      .finally(() => client.release(true));
    const [{ Plan: plan }] = found.rows[0]['QUERY PLAN'];
    return { pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'], plan: JSON.stringify(plan) };
  };

  t('posts are found by their index, in their own workspace', async () => {
    for (const [externalRef, count] of [
      ['CMS-500', 1],
      ['CMS-501', 0],
    ] as const) {
      statements.length = 0;
      const page = await listPosts(knex, workspaceId, { externalRef }, { after: null, limit: 100 });
      assert.deepEqual(
        [page.rows.length, page.rows.filter((row) => row.external_ref === externalRef).length],
        [count, count],
      );
      const { pages, plan } = await explained();
      assert.match(plan, /posts_v1_8/);
      assert.doesNotMatch(plan, /Seq Scan/);
      assert.ok(pages < 20, `${pages} pages: ${plan}`);
    }
  });

  t('targets are found through their post, without a walk through the workspace', async () => {
    statements.length = 0;
    const page = await listTargets(knex, workspaceId, { externalRef: 'CMS-500' }, { after: null, limit: 100 });
    assert.equal(page.rows.length, 2);
    const { pages, plan } = await explained();
    assert.match(plan, /posts_v1_8/);
    assert.doesNotMatch(plan, /Seq Scan/);
    assert.ok(pages < 40, `${pages} pages: ${plan}`);
    assert.deepEqual(
      (await listTargets(knex, randomUUID(), { externalRef: 'CMS-500' }, { after: null, limit: 9 })).rows,
      [],
    );
  });
});
