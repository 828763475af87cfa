import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import knexOf, { type Knex } from 'knex';
import { Pool } from 'pg';
import { useOf } from '#domain/platforms/index.ts';
import { contentFor } from '#domain/post/content.ts';
import { migrate } from '#projections/engine/tables.ts';
import { excerptsOf, getPublished, listPublished, type PublishedFirst } from '#projections/models/published.ts';
import { postKinds } from '#projections/models/sql.ts';
import { platforms } from '#schemas/common.ts';
import type { MediaKind } from '#schemas/media.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const many = 20_000;
const first = Date.UTC(2026, 0, 1);
/** The n-th post goes out n seconds after the first. */
const at = (seconds: number): string => new Date(first + seconds * 1_000).toISOString();

suite('published posts', (t) => {
  let pool: Pool;
  let knex: Knex;
  const statements: { sql: string; bindings: readonly unknown[] }[] = [];
  const big = randomUUID();
  const [client, account] = [randomUUID(), randomUUID()];
  const all = { from: at(0), to: at(many + 1) };

  t.before(async () => {
    const { url } = await preparedDatabase();
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

  t('the first page and a deep page are read by index and in order', async () => {
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

  t('each post once, the newest first, from inclusive, to exclusive', async () => {
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

  t('the text that names a post: the first characters, of a thread without content its first segment', async () => {
    const { rows } = await listPublished(knex, big, all, {}, { after: null, limit: 5 });
    const long = `${'a'.repeat(279)}🙂${'b'.repeat(50_000)}`;
    const thread = { segments: [{ content: '' }, { content: 'Second' }, { content: 'Third' }] };
    const bodies = [
      { content: 'Short', thread: null },
      { content: long, thread: null },
      { content: '', thread },
      { content: '', thread: null },
      { content: 'Base', thread },
    ];
    for (const [n, { id }] of rows.entries())
      await pool.query('update read.posts_v1 set body = $1 where id = $2', [JSON.stringify(bodies[n]), id]);
    const ids = rows.map(({ id }) => id);
    const found = await excerptsOf(knex, big, ids);
    assert.deepEqual(
      ids.map((id) => found.get(id)),
      ['Short', 'a'.repeat(279), 'Second', '', 'Base'],
    );
    assert.equal((await excerptsOf(knex, randomUUID(), ids)).size, 0, 'of another workspace');
    assert.equal((await excerptsOf(knex, big, [])).size, 0);
    const [one] = (await listPublished(knex, big, { from: at(120), to: at(121) }, {}, { after: null, limit: 1 })).rows;
    const [target] = one?.targets ?? [];
    assert.deepEqual([one?.client_id, target?.clientId, target?.accountId], [client, client, account]);
  });

  t('filters apply to published targets and leave out all others', async () => {
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

  t('the kind of each published target, from its own workspace’s files, read by key', async () => {
    const from = seeded('kinds');
    const workspace = randomUUID();
    const kinds: readonly MediaKind[] = ['image', 'video', 'gif'];
    const files = Array.from({ length: 12 }, (_, place) => {
      return { id: randomUUID(), workspace: place % 3 === 0 ? big : workspace, kind: from.pick(kinds) };
    });
    // A file of another workspace says nothing here.
    const own = files.filter((file) => file.workspace === workspace);
    const kindOf = (id: string): MediaKind => own.find((file) => file.id === id)?.kind ?? 'image';
    const chosen = () => from.shuffle(files.map(({ id }) => id)).slice(0, from.int(0, 2));
    const made = Array.from({ length: 400 }, () => {
      const platform = from.next() < 0.8 ? from.pick(['instagram', 'facebook'] as const) : from.pick(platforms);
      const variants = platforms
        .filter((one) => one === platform || from.next() < 0.3)
        .filter(() => from.next() < 0.8)
        .map((one) => ({
          platform: one,
          contentOverride: null,
          mediaIdsOverride: from.next() < 0.5 ? null : chosen(),
          // A caller may send anything under a name that a network does not know.
          overrides: from.pick<Record<string, unknown>>([{}, { contentType: from.pick(['feed', 'reel', 'story', 7]) }]),
        }));
      const body = { content: 'text', mediaIds: chosen(), variants: from.shuffle(variants), thread: null };
      const { segments, overrides } = contentFor(body, platform);
      const use = useOf(platform, overrides, segments[0].mediaIds.map(kindOf));
      const wanted = use === 'reel' || use === 'story' ? use : 'feed';
      return { id: randomUUID(), postId: randomUUID(), platform, body, wanted };
    });
    await pool.query(
      `insert into read.media_v1 (id, workspace_id, revision, created_at, updated_at, kind)
       select id, workspace, 0, now(), now(), kind
       from jsonb_to_recordset($1::jsonb) as f (id uuid, workspace uuid, kind text)`,
      [JSON.stringify(files)],
    );
    await pool.query(
      `with told as (
         select * from jsonb_to_recordset($2::jsonb) as f (id uuid, "postId" uuid, platform text, body jsonb)
       ), posts as (
         insert into read.posts_v1 (id, workspace_id, revision, created_at, updated_at, body)
         select "postId", $1, 0, now(), now(), body from told
       )
       insert into read.post_targets_v1 (id, workspace_id, revision, created_at, updated_at, post_id, platform)
       select id, $1, 0, now(), now(), "postId", platform from told`,
      [workspace, JSON.stringify(made)],
    );
    await pool.query('analyze');
    const ids = made.map(({ id }) => id);
    statements.length = 0;
    const found = await postKinds(knex, workspace, ids);
    for (const { id, wanted, ...one } of made) assert.equal(found.get(id) ?? 'feed', wanted, JSON.stringify(one));
    assert.deepEqual(new Set(found.values()), new Set(['feed', 'reel', 'story']));
    assert.equal((await postKinds(knex, big, ids)).size, 0);
    assert.equal((await postKinds(knex, workspace, [])).size, 0);
    const [{ sql, bindings } = { sql: '', bindings: [] }] = statements;
    const explained = await pool.query(`explain (analyze, buffers, format json) ${sql}`, [...bindings]);
    const [{ Plan: plan }] = explained.rows[0]['QUERY PLAN'];
    // Each target costs three reads by key, whatever else the tables hold.
    assert.ok(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'] < 12 * ids.length, JSON.stringify(plan));
  });
});
