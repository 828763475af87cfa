import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import knexOf, { type Knex } from 'knex';
import { Pool } from 'pg';
import { migrate as migrateReadModels } from '#projections/engine/tables.ts';
import { getWebhook, listWebhooks } from '#projections/models/webhook-endpoints.ts';
import { type DeliveryKey, getDelivery, getReplays, listDeliveries } from '#projections/webhooks/queries.ts';
import { ensurePartitions } from '#projections/webhooks/tables.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

const many = 60_000;
const weekMs = 7 * 86_400_000;

suite('queries of webhooks', { timeoutMs: 180_000 }, (t) => {
  let pool: Pool;
  let knex: Knex;
  const statements: { sql: string; bindings: readonly unknown[] }[] = [];
  const workspaceId = randomUUID();
  const webhookId = randomUUID();
  const of = { workspaceId, webhookId };
  const begin = Math.floor(Date.now() / weekMs) * weekMs - 3 * weekMs;
  const at = (ms: number): string => new Date(begin + ms).toISOString();

  t.before(async () => {
    const { url } = await preparedDatabase();
    pool = new Pool({ connectionString: url, max: 4 });
    await migrateReadModels(pool);
    await ensurePartitions(
      pool,
      [0, 1, 2, 3].map((week) => begin + week * weekMs),
    );
    knex = knexOf({ client: 'pg', connection: url, pool: { min: 0, max: 2 } });
    knex.on('query', ({ sql, bindings }) => statements.push({ sql, bindings }));
    // Four weeks of deliveries, half of them of the endpoint that is asked about; the newest wait.
    await pool.query(
      `insert into ops.webhook_deliveries (event_time, id, endpoint_id, workspace_id, message_id, type, position, status,
         created_at, updated_at)
       select $1::timestamptz + n * interval '40 seconds', gen_random_uuid(),
         case when n % 2 = 0 then $2::uuid else gen_random_uuid() end, $3, gen_random_uuid(), 'target.published', n,
         case when n > ${many} - 20000 then 'pending' else 'delivered' end,
         $1::timestamptz + n * interval '40 seconds', now()
       from generate_series(1, ${many}) n`,
      [new Date(begin), webhookId, workspaceId],
    );
    await pool.query(
      `insert into ops.webhook_queue (delivery_id, event_time, message_id, endpoint_id, workspace_id, lane, next_at, leased,
         attempt, tries, trigger)
       select id, event_time, message_id, endpoint_id, workspace_id, 0, now(), false, 0, 0, 'scheduled'
       from ops.webhook_deliveries where status = 'pending'`,
    );
    await pool.query(
      `insert into read.webhooks_v1 (id, workspace_id, revision, created_at, updated_at, url, events, active, secrets)
       select gen_random_uuid(), $1, 0, '2026-01-01'::timestamptz + n * interval '1 second', now(), 'https://a.example/',
         '{*}', true, '[]'
       from generate_series(1, 20000) n`,
      [workspaceId],
    );
    await pool.query('analyze');
  });
  t.after(async () => {
    await knex?.destroy();
    await pool?.end();
  });

  interface Node {
    readonly 'Node Type': string;
    readonly 'Relation Name'?: string;
    readonly 'Actual Rows': number;
    readonly 'Shared Hit Blocks': number;
    readonly 'Shared Read Blocks': number;
    readonly Plans?: readonly Node[];
  }
  const nodesOf = (plan: Node): readonly Node[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
  const blocksOf = (node: Node): number => node['Shared Hit Blocks'] + node['Shared Read Blocks'];

  /** The first statement that `run` sends reads its rows by index and little else, and sorts no more than a page or two. */
  const indexed = async (what: string, most: number, run: () => Promise<unknown>): Promise<void> => {
    statements.length = 0;
    await run();
    const [first] = statements;
    assert.ok(first !== undefined);
    const found = await pool.query(`explain (analyze, buffers, format json) ${first.sql}`, [...first.bindings]);
    const plan: Node = found.rows[0]['QUERY PLAN'][0].Plan;
    const nodes = nodesOf(plan);
    // Of an empty partition there is nothing to read by index.
    const whole = nodes.filter((node) => node['Node Type'] === 'Seq Scan' && blocksOf(node) > 0);
    assert.deepEqual(
      whole.map((node) => node['Relation Name']),
      [],
      `${what}: read as a whole`,
    );
    const sorted = nodes
      .filter((node) => node['Node Type'] === 'Sort')
      .flatMap(({ Plans: below = [] }) => below.map((node) => node['Actual Rows']));
    assert.ok(Math.max(0, ...sorted) <= 100, `${what}: ${sorted} rows were sorted`);
    assert.ok(
      nodes.some((node) => /Index (Only )?Scan/.test(node['Node Type']) && node['Actual Rows'] > 0),
      what,
    );
    assert.ok(blocksOf(plan) < most, `${what}: ${blocksOf(plan)} blocks`);
  };

  t('the first page and a deep page of deliveries are read by index, in order', async () => {
    const deep: DeliveryKey = { sortKey: at(1.5 * weekMs), id: randomUUID() };
    for (const after of [null, deep]) {
      const page = { after, limit: 25 };
      await indexed('deliveries', 400, () => listDeliveries(knex, of, {}, page));
      await indexed('delivered ones of a type', 1_500, () =>
        listDeliveries(knex, of, { statuses: ['delivered'], eventType: 'target.published' }, page),
      );
      await indexed('of an hour', 400, () =>
        listDeliveries(knex, of, { from: at(weekMs), to: at(weekMs + 3_600_000) }, page),
      );
    }
  });

  t('one delivery and one endpoint are found by their ids', async () => {
    const { rows } = await pool.query('select id from ops.webhook_deliveries where endpoint_id = $1 limit 1', [
      webhookId,
    ]);
    await indexed('delivery', 60, () => getDelivery(knex, of, rows[0].id));
    const endpoint = await pool.query('select id from read.webhooks limit 1');
    await indexed('endpoint', 20, () => getWebhook(knex, workspaceId, endpoint.rows[0].id));
    for (const after of [null, { createdAt: '2026-01-01T02:00:00.000Z', id: randomUUID() }]) {
      await indexed('endpoints', 60, () => listWebhooks(knex, workspaceId, { after, limit: 25 }));
    }
  });

  t('pages neither skip nor repeat a delivery, also with equal milliseconds', async () => {
    const close = { workspaceId: randomUUID(), webhookId: randomUUID() };
    await pool.query(
      `insert into ops.webhook_deliveries (event_time, id, endpoint_id, workspace_id, message_id, type, position, created_at)
       select $1::timestamptz, gen_random_uuid(), $2, $3, gen_random_uuid(), 'post.created', n,
         $1::timestamptz + (n / 3) * interval '1 microsecond'
       from generate_series(1, 50) n`,
      [at(weekMs), close.webhookId, close.workspaceId],
    );
    const seen: string[] = [];
    for (let after: DeliveryKey | null = null; ; ) {
      const page = await listDeliveries(knex, close, {}, { after, limit: 7 });
      seen.push(...page.rows.map(({ id }) => id));
      const last = page.rows.at(-1);
      if (!page.hasMore || last === undefined) break;
      after = { sortKey: last.sort_key, id: last.id };
    }
    const { rows } = await pool.query(
      'select id from ops.webhook_deliveries where endpoint_id = $1 order by created_at desc, id desc',
      [close.webhookId],
    );
    assert.equal(seen.length, 50);
    assert.deepEqual(
      seen,
      rows.map(({ id }) => id),
    );
  });

  t('another workspace and another endpoint see nothing', async () => {
    const { rows } = await pool.query('select id from ops.webhook_deliveries where endpoint_id = $1 limit 1', [
      webhookId,
    ]);
    const replayId = randomUUID();
    await pool.query(
      `insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id, from_time, to_time)
       values ($1, 'replay', $2, $3, now(), now())`,
      [replayId, webhookId, workspaceId],
    );
    assert.equal((await getReplays(knex, of, [replayId])).size, 1);
    for (const foreign of [
      { workspaceId: randomUUID(), webhookId },
      { workspaceId, webhookId: randomUUID() },
    ]) {
      assert.equal(await getDelivery(knex, foreign, rows[0].id), null);
      assert.deepEqual((await listDeliveries(knex, foreign, {}, { after: null, limit: 5 })).rows, []);
      assert.equal((await getReplays(knex, foreign, [replayId])).size, 0);
    }
    const catchUp = randomUUID();
    await pool.query(
      "insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id) values ($1, 'catch_up', $2, $3)",
      [catchUp, webhookId, workspaceId],
    );
    assert.equal((await getReplays(knex, of, [catchUp])).size, 0, 'a catch-up is no replay');
    const endpoint = await pool.query('select id from read.webhooks limit 1');
    assert.equal(await getWebhook(knex, randomUUID(), endpoint.rows[0].id), null);
  });
});
