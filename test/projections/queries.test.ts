import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import knexOf, { type Knex } from 'knex';
import { Pool } from 'pg';
import { migrate } from '#projections/engine/tables.ts';
import { projectionOf } from '#projections/index.ts';
import { findKeys } from '#projections/models/apikeys.ts';
import { listApprovals, walksOfWaiting } from '#projections/models/approvals.ts';
import { getCampaign, listCampaigns } from '#projections/models/campaigns.ts';
import { getClient, listClients } from '#projections/models/clients.ts';
import { getMedia, listMedia, mediaByIds } from '#projections/models/media.ts';
import { beforeAllTargets, deferredSql, unfinishedSql } from '#projections/models/overdue-targets.ts';
import {
  beforeAllRecycles,
  recycledOfClientSql,
  recyclesDueOfSql,
  recyclesDueSql,
} from '#projections/models/post-recycles.ts';
import { renderPost } from '#projections/models/posts.ts';
import { renderTarget } from '#projections/models/targets.ts';
import {
  beforeAllCampaigns,
  postsBehindOf,
  shiftingBefore,
  targetsIn,
  targetsNotIn,
} from '#projections/queries/campaign-targets.ts';
import { getPost } from '#projections/queries/one-post.ts';
import { beforeAllPosts, behindSql, listPosts } from '#projections/queries/post-queries.ts';
import { readPostingRules, slotsOf, takenSlotsOf, workspacesWithQuota } from '#projections/queries/posting-rules.ts';
import { countedTargets, usedPlaces } from '#projections/queries/quota-targets.ts';
import { sameTexts } from '#projections/queries/same-texts.ts';
import { clientsOfTargets, getTarget, listTargets } from '#projections/queries/target-queries.ts';
import { view } from '#projections/shapes.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { readSettings } from '#services/api/call/lists.ts';
import { watched } from '#test/support/pool.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { applyTo, type Given, history, instant, scheduledPost, TestKeys } from '#test/support/projecting.ts';
import { clientFields, planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { withoutIndexes } from '#test/support/tables.ts';
import { vacuumed } from '#test/support/vacuum.ts';

const many = 100_000;

suite('queries of the read models', { timeoutMs: 180_000 }, (t) => {
  let pool: Pool;
  let knex: Knex;
  const statements: { sql: string; bindings: readonly unknown[] }[] = [];
  const big = randomUUID();
  const small = randomUUID();
  const bigClient = randomUUID();
  const bigAccount = randomUUID();
  const bigCampaign = randomUUID();

  /** One big tenant; straight into the tables, for only the plans are looked at. */
  const fill = async (): Promise<void> => {
    await pool.query(
      `insert into read.posts_v1 (id, workspace_id, revision, created_at, updated_at, client_id, status, body, created_by,
         plan_revision, plans, planned, intents, standings, scheduled_at, counts)
       select gen_random_uuid(), $1, 0, '2026-01-01'::timestamptz + n * interval '1 second', now(),
         case when n % 50 = 0 then $2::uuid else gen_random_uuid() end,
         case when n % 20 = 0 then 'draft' else 'scheduled' end, '{"content": "text"}', '{}', 0, 1, 1, '[]', '{}',
         '2026-02-01'::timestamptz + n * interval '1 second', '{"total": 1}'
       from generate_series(1, ${many}) n`,
      [big, bigClient],
    );
    await pool.query(
      `insert into read.post_targets_v1 (id, workspace_id, revision, created_at, updated_at, post_id, client_id, account_id,
         platform, status, due_at, timezone, jitter_seconds, schedule_mode, attempts, takeover, post_revision,
         applied_revision, next_action_at, overdue)
       select gen_random_uuid(), $1, 0, now(), now(), p.id, p.client_id,
         case when random() < 0.02 then $2::uuid else gen_random_uuid() end,
         'x', 'pending', p.scheduled_at, 'UTC', 0, 'managed', 0, 0, 0, 0, p.scheduled_at, false
       from read.posts_v1 p`,
      [big, bigAccount],
    );
    await pool.query(
      `insert into read.clients_v1 (id, workspace_id, revision, created_at, updated_at, name)
       select gen_random_uuid(), $1, 0, '2026-01-01'::timestamptz + n * interval '1 second', now(), 'c' || n
       from generate_series(1, ${many}) n`,
      [big],
    );
    await pool.query(
      `insert into read.media_v1 (id, workspace_id, revision, created_at, updated_at, client_id, folder, kind, name,
         status, needs, platforms, registered_at)
       select gen_random_uuid(), $1, 0, '2026-01-01'::timestamptz + n * interval '1 second', now(),
         case when n % 50 = 0 then $2::uuid end, case when n % 40 = 0 then 'Winter' end,
         case when n % 30 = 0 then 'video' else 'image' end, 'm' || n, 'transcoded', '[]', '{}',
         case when n % 3 > 0 then now() end
       from generate_series(1, ${many}) n`,
      [big, bigClient],
    );
    await pool.query(
      `insert into read.campaigns_v1 (id, workspace_id, revision, created_at, updated_at, client_id, name)
       select case when n = 50000 then $3::uuid else gen_random_uuid() end, $1, 0,
         '2026-01-01'::timestamptz + n * interval '1 second', now(), case when n % 50 = 0 then $2::uuid end, 'c' || n
       from generate_series(1, ${many}) n`,
      [big, bigClient, bigCampaign],
    );
    // One in twenty waits; one in fifty is of the client. A post has few requests.
    await pool.query(
      `insert into read.approvals_v1 (id, workspace_id, revision, created_at, updated_at, post_id, client_id, status,
         post_revision, content_hash, scheduled_at, requested_by)
       select gen_random_uuid(), $1, 0, p.created_at, now(), p.id, p.client_id,
         case when row_number() over () % 20 = 0 then 'pending' else 'approved' end, 1, repeat('a', 64), now(), '{}'
       from read.posts_v1 p`,
      [big],
    );
    await pool.query(
      `update read.posts_v1 p set approval = jsonb_build_object('id', a.id, 'status', 'pending', 'isWhole', true)
       from read.approvals_v1 a where a.post_id = p.id and a.status = 'pending'`,
    );
    await pool.query('update read.posts_v1 set campaign_id = $1 where client_id = $2', [bigCampaign, bigClient]);
  };

  t.before(async () => {
    const { url } = await preparedDatabase();
    pool = new Pool({ connectionString: url, max: 4 });
    await migrate(pool);
    knex = knexOf({ client: 'pg', connection: url, pool: { min: 0, max: 2 } });
    knex.on('query', ({ sql, bindings }) => statements.push({ sql, bindings }));
    await withoutIndexes(pool, fill);
    await vacuumed(pool, 'read.posts_v1');
    // A tenant with few rows among theirs.
    for (const [table, columns] of [
      ['posts', 'client_id, status, body, counts'],
      ['clients', 'name'],
      ['media', 'name, registered_at'],
    ] as const) {
      await pool.query(
        `insert into read.${table}_v1 (id, workspace_id, revision, created_at, updated_at, ${columns})
         select gen_random_uuid(), $2, 0, created_at, now(), ${columns} from ${view(table)} where workspace_id = $1 limit 20`,
        [big, small],
      );
    }
    await pool.query('analyze');
  });
  t.after(async () => {
    await knex?.destroy();
    await pool?.end();
  });

  /** The plan of the first statement that `run` sends, its rows executed. */
  const planOf = async (run: () => Promise<unknown>, settings = '', where = pool) => {
    statements.length = 0;
    await run();
    const [first] = statements;
    assert.ok(first !== undefined);
    const client = await where.connect();
    const found = await client
      .query(settings)
      .then(() => client.query(`explain (analyze, buffers, format json) ${first.sql}`, [...first.bindings]))
      .finally(() => client.release(true));
    const [{ Plan: plan }] = found.rows[0]['QUERY PLAN'];
    return { text: JSON.stringify(plan), buffers: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'] };
  };
  const indexed = async (what: string, run: () => Promise<unknown>, sorted = /Seq Scan|"Sort"/) => {
    const { text, buffers } = await planOf(run);
    assert.match(text, /Index Scan/, what);
    assert.doesNotMatch(text, sorted, what);
    // A page touches its own rows and little else, wherever it is.
    assert.ok(buffers < 400, `${what}: ${buffers} blocks for a page`);
  };

  /** A page that is merged from several scans of an index is put in order once more. */
  const merged = (what: string, run: () => Promise<unknown>) => indexed(what, run, /Seq Scan/);

  t('every list reads its first page and a deep page by index, in order', async () => {
    const deep = { createdAt: new Date(Date.UTC(2026, 0, 1) + 5_000_000).toISOString(), id: randomUUID() };
    for (const after of [null, deep]) {
      const page = { after, limit: 25 };
      await indexed('posts', () => listPosts(knex, big, {}, page));
      await indexed('posts of a client', () => listPosts(knex, big, { clientId: bigClient }, page));
      await merged('posts of a campaign', () => listPosts(knex, big, { campaignId: bigCampaign }, page));
      await merged('drafts', () => listPosts(knex, big, { statuses: ['draft'] }, page));
      await indexed('approvals', () => listApprovals(knex, big, {}, page));
      await indexed('pending approvals', () => listApprovals(knex, big, { statuses: ['pending'] }, page));
      await indexed('approvals of a client', () => listApprovals(knex, big, { clientId: bigClient }, page));
      const waiting = { clientId: bigClient, statuses: ['pending'] } as const;
      await indexed('pending approvals of a client', () => listApprovals(knex, big, waiting, page));
      await indexed('campaigns', () => listCampaigns(knex, big, {}, page));
      await indexed('campaigns of a client', () => listCampaigns(knex, big, { clientId: bigClient }, page));
      await indexed('clients', () => listClients(knex, big, {}, page));
      await indexed('media', () => listMedia(knex, big, {}, page));
      await indexed('media of a client', () => listMedia(knex, big, { clientId: bigClient }, page));
      await indexed('media of a kind', () => listMedia(knex, big, { kind: 'video' }, page));
      await indexed('media of a folder', () => listMedia(knex, big, { folder: 'Winter' }, page));
    }
    const due = { scheduledAt: new Date(Date.UTC(2026, 1, 1) + 55_000_000).toISOString(), id: randomUUID() };
    for (const after of [null, due]) {
      const page = { after, limit: 25 };
      await indexed('targets', () => listTargets(knex, big, {}, page));
      await indexed('targets of a client', () => listTargets(knex, big, { clientId: bigClient }, page));
      await indexed('targets of an account', () => listTargets(knex, big, { accountId: bigAccount }, page));
      await indexed('targets of a day', () =>
        listTargets(knex, big, { from: '2026-02-01T05:00:00.000Z', to: '2026-02-01T06:00:00.000Z' }, page),
      );
    }
  });

  t('a search reads the rows of its own workspace by index, and no others', async () => {
    const page = { after: null, limit: 25 };
    const searches = (workspaceId: string, search: string) => [
      () => listPosts(knex, workspaceId, { search }, page),
      () => listPosts(knex, workspaceId, { search, platforms: ['x'] }, page),
      () => listClients(knex, workspaceId, { search }, page),
      () => listMedia(knex, workspaceId, { search }, page),
    ];
    for (const run of searches(small, 'nowhere')) {
      const { text, buffers } = await planOf(run, readSettings);
      assert.match(text, /Index Cond[^}]*workspace_id/);
      assert.doesNotMatch(text, /Seq Scan/);
      // Whatever the others have: 20 rows, and the way to them.
      assert.ok(buffers < 60, `${buffers} blocks`);
    }
    for (const run of searches(big, 'nowhere')) {
      assert.doesNotMatch((await planOf(run, readSettings)).text, /Seq Scan|Gather/);
    }
    // What is found soon costs no more than its page, in however many rows.
    await indexed('posts found at once', () => listPosts(knex, big, { search: 'TEXT' }, page));
  });

  t('a range of time, one target and one post read only their own rows', async () => {
    const range = { from: '2026-02-01T05:00:00.000Z', to: '2026-02-01T05:10:00.000Z' };
    const { text } = await planOf(() => listPosts(knex, big, range, { after: null, limit: 100 }));
    assert.doesNotMatch(text, /Seq Scan/);
    const { rows } = await pool.query(`select post_id, id from ${view('post_targets')} limit 1`);
    await indexed('target', () => getTarget(knex, big, rows[0].id));
    await indexed('campaign with the number of its posts', () => getCampaign(knex, big, bigCampaign));
    const assets = await pool.query('select id from read.media limit 20');
    await indexed('asset', () => getMedia(knex, big, assets.rows[0].id));
    const { text: byIds } = await planOf(() =>
      mediaByIds(
        knex,
        big,
        assets.rows.map(({ id }) => id),
      ),
    );
    assert.doesNotMatch(byIds, /Seq Scan/);
    const targets = await pool.query(`select id from ${view('post_targets')} limit 100`);
    const ids = targets.rows.map(({ id }) => id);
    const { text: clients } = await planOf(() => clientsOfTargets(knex, big, ids));
    assert.doesNotMatch(clients, /Seq Scan/);
    assert.equal((await clientsOfTargets(knex, big, ids)).size, ids.length);
    const noting = watched(pool, ({ text: sql, values: bindings }) => statements.push({ sql, bindings }));
    const post = await planOf(() => getPost(noting, big, rows[0].post_id));
    assert.match(post.text, /Index Scan/);
    // The generation of the tables stands in a table of one page.
    assert.doesNotMatch(post.text, /Seq Scan"[^}]*"Relation Name":"post/);
    assert.ok(post.buffers < 30, `${post.buffers} blocks for a post`);
  });

  t('a shift of a campaign reads only its own posts and targets, and the sweep only open shifts', async () => {
    const noting: Pool = Object.assign(Object.create(pool), {
      query: (sql: string, bindings: unknown[]) => {
        statements.push({ sql, bindings });
        return pool.query(sql, bindings);
      },
    });
    const found = await targetsIn(noting, big, bigCampaign, ['pending'], 5_001);
    assert.ok(found.length > 1_000, `${found.length} targets`);
    for (const run of [
      () => targetsIn(noting, big, bigCampaign, ['pending'], 5_001),
      () => targetsNotIn(noting, big, bigCampaign, ['pending'], 1_000),
      () => postsBehindOf(noting, big, bigCampaign, 101),
      () => shiftingBefore(noting, new Date(), beforeAllCampaigns),
    ]) {
      assert.doesNotMatch((await planOf(run, readSettings)).text, /Seq Scan"[^}]*"Relation Name":"(?:posts|campaigns)/);
    }
  });

  t('a quota counts the targets of its months by index, page by page', async () => {
    const noting: Pool = Object.assign(Object.create(pool), {
      query: (...[sql, bindings]: [string | { text: string; values: unknown[] }, unknown[]]) => {
        const named = typeof sql === 'string' ? { text: sql, values: bindings } : sql;
        statements.push({ sql: named.text, bindings: named.values });
        return pool.query(named.text, named.values);
      },
    });
    const from = '2026-02-01T10:00:00.000Z';
    const first = await countedTargets(noting, big, from, null);
    assert.equal(first.length, 500);
    assert.ok(first.every(({ dueAt }) => dueAt >= from));
    await indexed('targets of a quota', () => countedTargets(noting, big, from, first.at(-1) ?? null));
    const period = { from, to: '2026-02-01T11:00:00.000Z' };
    assert.deepEqual(await usedPlaces(noting, big, period), [{ platform: 'x', used: 0, scheduled: 3_600 }]);
    for (const run of [
      () => usedPlaces(noting, big, period),
      () => workspacesWithQuota(noting, small),
      () => readPostingRules(noting, small),
    ]) {
      assert.doesNotMatch((await planOf(run, readSettings)).text, /Seq Scan/);
    }
  });

  t('the times of accounts are read by index, a bounded number of each', async () => {
    const noting: Pool = Object.assign(Object.create(pool), {
      query: ({ text, values }: { text: string; values: unknown[] }) => {
        statements.push({ sql: text, bindings: values });
        return pool.query(text, values);
      },
    });
    const from = Date.parse('2026-02-01T10:00:00.000Z');
    const ask = () => slotsOf(noting, { accountId: bigAccount, from, to: from + 3_600_000 });
    const slots = await ask();
    assert.ok(slots.length > 20 && slots.every(({ at, calls }) => at > from && calls === 1), `${slots.length} slots`);
    const { text, buffers } = await planOf(ask, readSettings);
    assert.doesNotMatch(text, /Seq Scan/);
    assert.ok(buffers < 1_200, `${buffers} blocks for ${slots.length} targets and their posts`);
    const asked = { workspaceId: big, accountId: bigAccount, waitingFrom: from };
    const out = { from: from - 3_600_000, to: from + 3_600_000 };
    const claim = await planOf(() => takenSlotsOf(noting, { ...asked, out }), readSettings);
    assert.doesNotMatch(claim.text, /Seq Scan[^}]*post/);
    for (const index of ['post_targets_v1_12', 'post_targets_v1_13'])
      assert.ok(claim.text.includes(`"${index}"`), index);
    assert.ok(claim.buffers < 600, `${claim.buffers} blocks at a claim`);
  });

  t('the same text is searched among few targets of each account, by index', async () => {
    const dueAt = '2026-02-01T14:00:00.000Z';
    const run = (accountId: string, text: string) => () =>
      sameTexts(
        knex,
        { workspaceId: big, postId: null },
        [{ platform: 'x', text }],
        [
          { accountId, platform: 'x', dueAt },
          { accountId: randomUUID(), platform: 'x', dueAt },
        ],
      );
    const { text, buffers } = await planOf(run(bigAccount, 'nowhere'), readSettings);
    assert.match(text, /account_id = a.account_id\) AND \(due_at/);
    assert.doesNotMatch(text, /Seq Scan/);
    // Of some 1,900 targets within the hours, the twenty nearest on either side, and their posts.
    assert.ok(buffers < 500, `${buffers} blocks`);
    // The first that is compared has it: the others before the time are not read.
    const hit = await planOf(run(bigAccount, 'text'), readSettings);
    assert.ok(hit.buffers < 60, `${hit.buffers} blocks`);
    const [found, ...others] = await run(bigAccount, 'text')();
    assert.deepEqual([found?.accountId, others.length], [bigAccount, 0]);
    assert.deepEqual(await run(bigAccount, 'nowhere')(), []);
  });

  t('the same text is searched by the key of each post, also while the tables are new, or have few rows', async () => {
    const { url } = await preparedDatabase();
    const fresh = new Pool({ connectionString: url, max: 1 });
    try {
      await migrate(fresh);
      for (const table of ['posts_v1', 'post_targets_v1'])
        await fresh.query(`alter table read.${table} set (autovacuum_enabled = false)`);
      await fresh.query(
        `insert into read.posts_v1 (id, workspace_id, revision, created_at, updated_at, client_id, status, body, created_by,
           plan_revision, plans, planned, intents, standings, counts)
         select gen_random_uuid(), $1, 0, now(), now(), $1, 'scheduled', '{"content": "text"}', '{}', 0, 1, 1, '[]', '{}', '{}'
         from generate_series(1, 50) n`,
        [big],
      );
      const asked = [{ accountId: bigAccount, platform: 'x', dueAt: '2026-02-01T14:00:00.000Z' }] as const;
      const run = () => sameTexts(knex, { workspaceId: big, postId: null }, [{ platform: 'x', text: 'text' }], asked);
      const check = async () => {
        const { text } = await planOf(run, readSettings, fresh);
        const used = [...text.matchAll(/"Index Name":"(\w+)"/g)].map(([, index]) => index);
        // Both walks go by account and time, and each finds its posts by their key.
        const walk = ['post_targets_v1_3', 'posts_v1_pkey'];
        assert.deepEqual(used, [...walk, ...walk]);
      };
      await check();
      // A connection keeps its plan while the table grows: that of a table with a post or two must serve it too.
      for (const left of [8, 2, 1]) {
        await fresh.query('delete from read.posts_v1 where id not in (select id from read.posts_v1 limit $1)', [left]);
        await fresh.query('vacuum analyze read.posts_v1');
        await check();
      }
    } finally {
      await fresh.end();
    }
  });

  t('the text that a network gets is compared: of the thread, its own override, or the content', async () => {
    const workspaceId = randomUUID();
    const accounts = { x: randomUUID(), facebook: randomUUID() };
    const dueAt = '2026-02-01T14:00:00.000Z';
    const variant = (platform: string, contentOverride: string | null) => ({ platform, contentOverride });
    const bodies = {
      plain: { content: 'plain', thread: null, variants: [variant('x', null)] },
      override: { content: 'base', thread: null, variants: [variant('x', 'own'), variant('facebook', '')] },
      thread: { content: 'whole', thread: { segments: [{ content: 'first' }] }, variants: [variant('x', 'own of x')] },
    };
    const ids: Record<string, string> = {};
    for (const [name, body] of Object.entries(bodies)) {
      const { rows } = await pool.query(
        `insert into read.posts_v1 (id, workspace_id, revision, created_at, updated_at, client_id, status, body, created_by,
           plan_revision, plans, planned, intents, standings, counts)
         values (gen_random_uuid(), $1, 0, now(), now(), $1, 'scheduled', $2, '{}', 0, 1, 2, '[]', '{}', '{}') returning id`,
        [workspaceId, body],
      );
      ids[rows[0].id] = name;
    }
    await pool.query(
      `insert into read.post_targets_v1 (id, workspace_id, revision, created_at, updated_at, post_id, client_id, account_id,
         platform, status, due_at, timezone, jitter_seconds, schedule_mode, attempts, takeover, post_revision,
         applied_revision, overdue)
       select gen_random_uuid(), $1, 0, now(), now(), p, $1, a, platform, 'pending', $5, 'UTC', 0, 'managed', 0, 0, 0, 0, false
       from unnest($2::uuid[]) p cross join unnest($3::uuid[], $4::text[]) as t (a, platform)`,
      [workspaceId, Object.keys(ids), Object.values(accounts), Object.keys(accounts), dueAt],
    );
    const found = async (platform: keyof typeof accounts, text: string) => {
      const asked = { accountId: accounts[platform], platform, dueAt };
      return (await sameTexts(knex, { workspaceId, postId: null }, [{ platform, text }], [asked])).map(
        ({ postId }) => ids[postId],
      );
    };
    assert.deepEqual(await found('x', 'plain'), ['plain']);
    assert.deepEqual(await found('x', 'own'), ['override']);
    assert.deepEqual(await found('x', 'first'), ['thread']);
    for (const hidden of ['base', 'whole', 'own of x']) assert.deepEqual(await found('x', hidden), []);
    assert.deepEqual(await found('facebook', 'whole'), ['thread']);
    for (const hidden of ['base', 'own', 'first']) assert.deepEqual(await found('facebook', hidden), []);
  });

  t('calls that search for the same text at the same time share a query, and each has its own answer', async () => {
    const dueAt = '2026-02-01T14:00:00.000Z';
    const asked = [{ accountId: bigAccount, platform: 'x', dueAt }] as const;
    const run = (text: string, workspaceId = big, postId: string | null = null) =>
      sameTexts(knex, { workspaceId, postId }, [{ platform: 'x', text }], asked);
    const [alone] = await run('text');
    assert.ok(alone !== undefined);
    statements.length = 0;
    const all = await Promise.all([
      ...[run('nowhere'), run('text'), run('text', randomUUID()), run('text', big, alone.postId), run('text')],
      sameTexts(knex, { workspaceId: big, postId: null }, [{ platform: 'facebook', text: 'text' }], asked),
    ]);
    assert.equal(statements.length, 1);
    const [none, found, foreign, other, repeated, withoutText] = all;
    assert.deepEqual([none, found, foreign, repeated, withoutText], [[], [alone], [], [alone], []]);
    assert.ok(other?.length === 1 && other[0]?.postId !== alone.postId, 'its own post is passed over');
  });

  t('the search for overdue targets reads its index, and a page of it', async () => {
    const { rows } = await pool.query(
      `select id, due_at::text as at from ${view('post_targets')} order by due_at, id limit 1`,
    );
    for (const { at, id } of [beforeAllTargets, rows[0]]) {
      const found = await pool.query(`explain (analyze, format json) ${unfinishedSql}`, [
        at,
        id,
        '2027-01-01T00:00:00Z',
      ]);
      const text = JSON.stringify(found.rows);
      assert.match(text, /post_targets_v1_8/);
      assert.doesNotMatch(text, /Seq Scan|"Sort"|Rows Removed by Filter":[1-9]/);
      assert.match(text, /"Actual Rows":100/);
    }
  });

  t('the search for targets that are put off reads its index', async () => {
    const latest = '2027-01-01T00:00:00Z';
    const found = await pool.query(`explain (analyze, format json) ${deferredSql}`, [
      ...[beforeAllTargets.at, beforeAllTargets.id, latest],
    ]);
    const text = JSON.stringify(found.rows);
    assert.match(text, /post_targets_v1_14/);
    assert.doesNotMatch(text, /Seq Scan|"Sort"|Rows Removed by Filter":[1-9]/);
  });

  t('the query of the sweeper reads its index', async () => {
    const found = await pool.query(`explain (analyze, format json) ${behindSql}`, [
      beforeAllPosts.updatedAt,
      beforeAllPosts.id,
    ]);
    const text = JSON.stringify(found.rows);
    assert.match(text, /Index Scan/);
    assert.doesNotMatch(text, /Seq Scan|"Sort"|Bitmap/);
  });

  t('the query for posts whose approval lags reads what waits, and no more', async () => {
    for (const walk of walksOfWaiting) {
      const found = await pool.query(`explain (analyze, format json) ${walk}`, [beforeAllPosts.id]);
      const text = JSON.stringify(found.rows);
      assert.ok(text.includes('Index'), 'no index is read');
      assert.ok(!/"Seq Scan"|"Hash Join"/.test(text), text.slice(0, 2_000));
      assert.ok(text.includes('"Actual Rows":500'), 'the page is not full');
    }
  });

  t(
    'the searches for copies that are due, and for recycled posts of a client, read a page of their index',
    async () => {
      await pool.query(
        `update read.posts_v1 set recycle = '{"enabled": true}', recycle_at = created_at
       where client_id = $1 or id < '08000000-0000-0000-0000-000000000000'`,
        [bigClient],
      );
      await pool.query('analyze read.posts_v1');
      const { rows } = await pool.query(
        `select id, recycle_at::text as at from ${view('posts')} where recycle_at is not null order by recycle_at, id limit 1`,
      );
      const lowest = beforeAllRecycles.id;
      for (const [sql, values] of [
        [recyclesDueSql, ['2027-01-01T00:00:00Z', beforeAllRecycles.at, lowest]],
        [recyclesDueSql, ['2027-01-01T00:00:00Z', rows[0].at, rows[0].id]],
        [recycledOfClientSql, [bigClient, lowest]],
      ] as const) {
        const found = await pool.query(`explain (analyze, buffers, format json) ${sql}`, [...values]);
        const [{ Plan: plan }] = found.rows[0]['QUERY PLAN'];
        const text = JSON.stringify(plan);
        assert.match(text, /Index (?:Only )?Scan/);
        assert.doesNotMatch(text, /Seq Scan|"Sort"|Bitmap/);
        assert.match(text, /"Actual Rows":100/);
        assert.ok(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'] < 400, text);
      }
      const ofMoved = await inTransaction(pool, async (tx) => {
        const asked = [randomUUID(), '2027-01-01T00:00:00Z', lowest];
        const found = await tx.query(`explain (analyze, format json) ${recyclesDueOfSql}`, asked);
        return { commit: false, result: JSON.stringify(found.rows) };
      });
      assert.match(ofMoved, /"Index Name":"posts_v1_\d+"/);
      assert.doesNotMatch(ofMoved, /Seq Scan|Rows Removed by Filter":[1-9]/);
      const none = await pool.query(`explain (analyze, format json) ${recyclesDueSql}`, [
        '2025-01-01T00:00:00Z',
        beforeAllRecycles.at,
        lowest,
      ]);
      assert.doesNotMatch(JSON.stringify(none.rows), /Seq Scan|Rows Removed by Filter":[1-9]/);
    },
  );

  const codec = new EventCodec(new TestKeys());
  const project = async (name: string, workspaceId: string, events: readonly Given[]): Promise<void> =>
    applyTo(pool, projectionOf(name), await history(events, { codec, workspaceId }));

  t('pages neither skip nor repeat a row, also with equal instants', async () => {
    const workspaceId = randomUUID();
    const events = Array.from(
      { length: 23 },
      (_, n): Given => ({
        stream: `client-${randomUUID()}`,
        type: 'ClientCreated',
        data: { ...clientFields, name: `100% sure_${n}`, type: n % 2 === 0 ? 'brand' : 'influencer' },
        at: instant(Math.floor(n / 6)),
      }),
    );
    await project('clients', workspaceId, events);
    const walk = async (filters: Parameters<typeof listClients>[2]) => {
      const seen: string[] = [];
      for (let after: { createdAt: string; id: string } | null = null; ; ) {
        const page = await listClients(knex, workspaceId, filters, { after, limit: 4 });
        seen.push(...page.rows.map((row) => row.id));
        const last = page.rows.at(-1);
        if (!page.hasMore || last === undefined) return seen;
        after = { createdAt: last.created_at, id: last.id };
      }
    };
    const all = await walk({});
    assert.equal(all.length, 23);
    assert.equal(new Set(all).size, 23);
    assert.equal((await walk({ type: 'brand' })).length, 12);
    assert.equal((await walk({ search: '100% SURE_1' })).length, 11);
    assert.equal((await walk({ search: '0%s' })).length, 0, 'wildcards are taken literally');
    assert.equal((await walk({ archived: true })).length, 0);
  });

  t('another workspace sees nothing', async () => {
    const { rows } = await pool.query(`select id, post_id from ${view('post_targets')} limit 1`);
    const other = randomUUID();
    assert.equal(await getPost(pool, other, rows[0].post_id), null);
    assert.equal(await getTarget(knex, other, rows[0].id), null);
    assert.equal(await getClient(knex, other, bigClient), null);
    const assets = await pool.query('select id from read.media where registered_at is not null limit 1');
    assert.equal(await getMedia(knex, other, assets.rows[0].id), null);
    assert.equal((await clientsOfTargets(knex, other, [rows[0].id])).size, 0);
    assert.equal((await mediaByIds(knex, other, [assets.rows[0].id])).size, 0);
    assert.equal((await listMedia(knex, other, {}, { after: null, limit: 5 })).rows.length, 0);
    assert.equal((await listPosts(knex, other, {}, { after: null, limit: 5 })).rows.length, 0);
    assert.equal((await listTargets(knex, other, {}, { after: null, limit: 5 })).rows.length, 0);
  });

  t('filters of posts and targets; a target shows members of its post', async () => {
    const workspaceId = randomUUID();
    const [postId, clientId, accountId] = [randomUUID(), randomUUID(), randomUUID()];
    const one = planned({ targetId: randomUUID(), accountId, clientId, dueAt: instant(60) });
    const two = planned({ targetId: randomUUID(), accountId, clientId, platform: 'linkedin', dueAt: instant(50) });
    const body = postBody({
      content: 'base text',
      variants: [
        {
          platform: 'linkedin',
          contentOverride: '',
          mediaIdsOverride: null,
          overrides: { firstComment: 'hi' },
        },
      ],
    });
    const createdBy = { type: 'member', id: 'm' };
    await project('posts', workspaceId, [
      ...scheduledPost(postId, clientId, [one, two], body),
      {
        stream: `target-${one.targetId}`,
        type: 'TargetPublishStarted',
        data: { attempt: 1, takeover: 0 },
      },
      { stream: `post-${randomUUID()}`, type: 'PostDrafted', data: { clientId, createdBy, body: postBody() } },
    ]);
    const found = async (filters: Parameters<typeof listPosts>[2]) =>
      (await listPosts(knex, workspaceId, filters, { after: null, limit: 10 })).rows.map((row) => row.status);
    assert.deepEqual(await found({}), ['draft', 'scheduled']);
    assert.deepEqual(await found({ statuses: ['scheduled'] }), []);
    assert.deepEqual(await found({ statuses: ['publishing'] }), ['scheduled'], 'the overlay is what is filtered');
    assert.deepEqual(await found({ statuses: ['publishing', 'draft'] }), ['draft', 'scheduled']);
    assert.deepEqual(await found({ platforms: ['linkedin', 'youtube'] }), ['scheduled']);
    assert.deepEqual(await found({ search: 'BASE' }), ['scheduled']);
    assert.deepEqual(await found({ from: instant(50), to: instant(51) }), ['scheduled'], 'its earliest due instant');
    assert.deepEqual(await found({ to: instant(50) }), ['draft'], 'a draft stands for its creation');
    const targets = async (filters: Parameters<typeof listTargets>[2]) =>
      (await listTargets(knex, workspaceId, filters, { after: null, limit: 10 })).rows.map((row) =>
        renderTarget(row.target, row.body),
      );
    const all = await targets({ postId });
    assert.deepEqual(
      all.map((row) => [row.id, row.content, row.firstComment, row.scheduledAt]),
      [
        [two.targetId, '', 'hi', instant(50)],
        [one.targetId, 'base text', null, instant(60)],
      ],
    );
    assert.equal((await targets({ statuses: ['publishing'] })).length, 1);
    assert.equal((await targets({ platforms: ['linkedin'], accountId, clientId })).length, 1);
    assert.equal((await targets({ from: instant(50), to: instant(60) })).length, 1);
    const post = await getPost(pool, workspaceId, postId);
    assert.ok(post !== null);
    const shown = renderPost(post.post, post.targets);
    assert.equal(shown.status, 'publishing');
    assert.deepEqual(shown.targets, all);
    const single = await getTarget(knex, workspaceId, two.targetId);
    assert.ok(single !== null);
    assert.deepEqual(renderTarget(single.target, single.body), all[0]);
  });

  t('a key is found by its current and its former hash, with the role of its member', async () => {
    const [live, member, key, client] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    const [a, b] = ['a'.repeat(64), 'b'.repeat(64)];
    const ws = (id: string, type: string, data: object): Given => ({ stream: `workspace-${id}`, type, data });
    await project('workspaces', live, [
      ws(live, 'WorkspaceCreated', { name: 'A', timezone: 'UTC', mode: 'live', twinOf: null }),
      ws(live, 'MemberAdded', { memberId: member, name: 'Ann', role: 'manager' }),
      {
        stream: `apikey-${key}`,
        type: 'ApiKeyCreated',
        data: {
          memberId: member,
          name: 'k',
          hash: a,
          prefix: 'sk_test_aaaa',
          scopes: ['posts.read'],
          mode: 'test',
          expiresAt: instant(9000),
          clientIds: [client],
        },
      },
      {
        stream: `apikey-${key}`,
        type: 'ApiKeyRotated',
        data: { hash: b, prefix: 'sk_test_bbbb', previousHash: a, previousUntil: instant(99) },
      },
    ]);
    const found = await findKeys(pool, [a, b, 'c'.repeat(64)]);
    const shared = {
      keyId: key,
      memberId: member,
      role: 'manager',
      scopes: ['posts.read'],
      mode: 'test',
      expiresAt: instant(9000),
      revokedAt: null,
      workspaceId: live,
      clientIds: [client],
      isWithdrawn: false,
    };
    assert.deepEqual(found.get(b), { ...shared, previousUntil: null });
    assert.deepEqual(found.get(a), { ...shared, previousUntil: instant(99) });
    assert.equal(found.size, 2);
  });
});
