import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import knexOf, { type Knex } from 'knex';
import { Pool } from 'pg';
import { rebuild } from '#projections/engine/rebuild.ts';
import { runProjections } from '#projections/engine/run.ts';
import { migrate } from '#projections/engine/tables.ts';
import { projectionOf } from '#projections/index.ts';
import { listPosts } from '#projections/queries/post-queries.ts';
import { view } from '#projections/shapes.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { searchedCharacters } from '#schemas/post.ts';
import { readSettings } from '#services/api/call/lists.ts';
import { compareWithReplay } from '#test/support/compare-with-replay.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { applyTo, type Given, history, scheduledPost, TestKeys } from '#test/support/projecting.ts';
import { type ProjectionWorld, projectionWorld } from '#test/support/projection-world.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { vacuumed } from '#test/support/vacuum.ts';

const createdBy = { type: 'member', id: 'm' };
const clientId = randomUUID();
const draft = (id: string, content: string): Given => ({
  stream: `post-${id}`,
  type: 'PostDrafted',
  data: { clientId, createdBy, body: postBody({ content }) },
});
const replaced = (id: string, content: string): Given => ({ ...draft(id, content), type: 'DraftReplaced' });

const finder =
  (knex: Knex) =>
  async (workspaceId: string, search: string): Promise<readonly string[]> =>
    (await listPosts(knex, workspaceId, { search }, { after: null, limit: 100 })).rows.map(({ id }) => id);

suite('searching posts', (t) => {
  let pool: Pool;
  let knex: Knex;
  let found: ReturnType<typeof finder>;
  const codec = new EventCodec(new TestKeys());

  t.before(async () => {
    const { url } = await preparedDatabase();
    pool = new Pool({ connectionString: url, max: 3 });
    await migrate(pool);
    knex = knexOf({ client: 'pg', connection: url, pool: { min: 0, max: 2 } });
    found = finder(knex);
  });
  t.after(async () => {
    await knex?.destroy();
    await pool?.end();
  });

  const project = async (workspaceId: string, events: readonly Given[]) =>
    applyTo(pool, projectionOf('posts'), await history(events, { codec, workspaceId }));

  /** Events beyond those a stream had before, as a batch of their own. */
  const projectLast = async (workspaceId: string, events: readonly Given[]) => {
    const all = await history(events, { codec, workspaceId });
    await applyTo(pool, projectionOf('posts'), all.slice(-1));
  };

  /** What a process of the release before does with a row: it knows the body and the revision. */
  const writtenBefore = (id: string, workspaceId: string, revision: number, content: string | null) =>
    pool.query(
      `insert into read.posts_v1 as t (id, workspace_id, revision, created_at, updated_at, client_id, status, body,
         created_by, plans, planned, intents, standings)
       values ($1, $2, $3, now(), now(), $4, 'draft', $5, '{}', 0, 0, '[]', '{}')
       on conflict (id) do update set revision = excluded.revision, body = coalesce(excluded.body, t.body)
       where excluded.revision > t.revision`,
      [id, workspaceId, revision, clientId, content === null ? null : JSON.stringify(postBody({ content }))],
    );

  t('finds text that lies within the bound, counted in characters, and no text beyond it', async () => {
    const workspaceId = randomUUID();
    const [inside, across] = [randomUUID(), randomUUID()];
    const before = 'é🙂'.repeat(searchedCharacters / 2 - 3);
    await project(workspaceId, [
      draft(inside, `${before}Needle beyond the bound`),
      draft(across, `${before}.Needle beyond the bound`),
    ]);
    assert.deepEqual(await found(workspaceId, 'NEEDLE'), [inside]);
    assert.deepEqual((await found(workspaceId, 'needl')).toSorted(), [inside, across].toSorted());
    assert.deepEqual(await found(workspaceId, 'beyond'), []);
    assert.deepEqual(await found(randomUUID(), 'needle'), [], 'of another tenant');
    // The same of rows without the text.
    await pool.query('update read.posts_v1 set searched = null, searched_revision = null where workspace_id = $1', [
      workspaceId,
    ]);
    assert.deepEqual(await found(workspaceId, 'NEEDLE'), [inside]);
    assert.deepEqual(await found(workspaceId, 'beyond'), []);
  });

  t('reads the search column and never the long column', async () => {
    const workspaceId = randomUUID();
    await project(
      workspaceId,
      Array.from({ length: 150 }, () =>
        draft(randomUUID(), `Coffee ${Array.from({ length: 1_300 }, () => randomUUID()).join(' ')}`),
      ),
    );
    await vacuumed(pool, 'read.posts_v1');
    const sent: { sql: string; bindings: readonly unknown[] }[] = [];
    const noting = (query: { sql: string; bindings: readonly unknown[] }) => void sent.push(query);
    knex.on('query', noting);
    assert.deepEqual(await found(workspaceId, 'nowhere'), []);
    knex.off('query', noting);
    const [search] = sent;
    assert.ok(search !== undefined);
    const touched = async (sql: string): Promise<number> => {
      const client = await pool.connect();
      try {
        await client.query(readSettings);
        const { rows: plan } = await client.query(`explain (analyze, buffers, format json) ${sql}`, [
          ...search.bindings,
        ]);
        const [{ Plan: top }] = plan[0]['QUERY PLAN'];
        assert.match(JSON.stringify(top), /Index Cond[^}]*workspace_id/);
        return top['Shared Hit Blocks'] + top['Shared Read Blocks'];
      } finally {
        client.release(true);
      }
    };
    const kept = /case when searched_revision .* end like/;
    assert.match(search.sql, kept);
    const [short, long] = [
      await touched(search.sql),
      await touched(search.sql.replace(kept, `body ->> 'content' like`)),
    ];
    assert.ok(short < long * 0.7, `${short} blocks of the kept text, ${long} of the bodies`);
    // Bodies that no query reads may hold anything.
    await pool.query(`update read.posts_v1 set body = '{"content": "tea"}' where workspace_id = $1`, [workspaceId]);
    assert.equal((await found(workspaceId, 'coffee')).length, 100);
    assert.deepEqual(await found(workspaceId, 'tea'), []);
  });

  t('finds posts that a build without the search column writes, and later changes of this build', async () => {
    const workspaceId = randomUUID();
    const [mine, theirs] = [randomUUID(), randomUUID()];
    const events = [draft(mine, 'first mine')];
    await project(workspaceId, events);
    await writtenBefore(theirs, workspaceId, 0, 'First theirs');
    assert.deepEqual((await found(workspaceId, 'FIRST')).toSorted(), [mine, theirs].toSorted());
    for (const id of [mine, theirs]) await writtenBefore(id, workspaceId, 1, 'Second text');
    assert.deepEqual(await found(workspaceId, 'first'), []);
    assert.equal((await found(workspaceId, 'second')).length, 2);
    await writtenBefore(theirs, workspaceId, 2, null);
    events.push(replaced(mine, 'Second text'), replaced(mine, 'Third text'));
    await projectLast(workspaceId, events);
    assert.deepEqual(await found(workspaceId, 'third'), [mine]);
    assert.deepEqual(await found(workspaceId, 'second'), [theirs]);
  });

  t('an event without a body keeps the search text, and repairs a row of a build without it', async () => {
    const workspaceId = randomUUID();
    const postId = randomUUID();
    const target = planned({ targetId: randomUUID(), accountId: randomUUID(), clientId });
    const change = { change: { kind: 'cancel', reason: 'client_archived' }, targetIds: [target.targetId] };
    const events = scheduledPost(postId, clientId, [target], postBody({ content: 'Ünique TEXT' })).slice(0, 1);
    await project(workspaceId, events);
    const text = async () =>
      (await pool.query('select revision, searched, searched_revision from read.posts_v1 where id = $1', [postId]))
        .rows[0];
    assert.deepEqual(await text(), { revision: 0, searched: 'ünique text', searched_revision: 0 });
    for (const mend of [false, true]) {
      if (mend)
        await pool.query(`update read.posts_v1 set searched = 'old', searched_revision = -1 where id = $1`, [postId]);
      events.push({ stream: `post-${postId}`, type: 'PostTargetsChanged', data: change });
      await projectLast(workspaceId, events);
      const revision = events.length - 1;
      assert.deepEqual(await text(), { revision, searched: 'ünique text', searched_revision: revision });
    }
  });

  t('letters fold as Postgres folds them, and wildcards are ordinary letters', async () => {
    const texts = ['İstanbul ılık IŞIK', 'Straße STRASSE', 'ΟΔΥΣΣΕΥΣ σας', 'Ǆ ﬁ É é', '100%_\\ done', 'Ｆｕｌｌ 🙂 ẞ'];
    const needles = [
      'i',
      'İ',
      'ı',
      'I',
      'ß',
      'ẞ',
      'SS',
      'Σ',
      'ς',
      'σας',
      'ǆ',
      'FI',
      'É',
      '%',
      '_',
      '\\',
      '%_\\',
      '🙂',
      'ｆ',
    ];
    const workspaceId = randomUUID();
    const ids = texts.map(() => randomUUID());
    await project(
      workspaceId,
      texts.map((content, n) => draft(String(ids[n]), content)),
    );
    for (const needle of needles) {
      const { rows } = await pool.query(
        `select id from ${view('posts')} where workspace_id = $1 and body ->> 'content' ilike $2`,
        [workspaceId, `%${needle.replace(/[\\%_]/g, '\\$&')}%`],
      );
      assert.deepEqual((await found(workspaceId, needle)).toSorted(), rows.map(({ id }) => id).toSorted(), needle);
    }
    for (const wild of ['%', '_', '\\']) assert.deepEqual(await found(workspaceId, wild), [ids[4]]);
  });
});

suite('searching posts after a rebuild', { timeoutMs: 60_000 }, (t) => {
  let world: ProjectionWorld;
  t.before(async () => {
    world = await projectionWorld();
  });
  t.after(() => world?.close());

  t('tables have the search text, those of a rebuild too', async () => {
    const workspaceId = randomUUID();
    const [first, second] = [randomUUID(), randomUUID()];
    const knex = knexOf({ client: 'pg', connection: world.url, pool: { min: 0, max: 1 } });
    const found = finder(knex);
    const stop = new AbortController();
    try {
      const running = runProjections({ ...world, names: ['posts'], signal: stop.signal });
      await world.append([draft(first, 'Coffee one')], workspaceId);
      await until('the post shows', async () => {
        const { rows } = await world.pool.query(`select count(*)::int as n from ${view('posts')}`);
        return rows[0].n === 1;
      });
      assert.deepEqual(await found(workspaceId, 'COFFEE'), [first]);
      const { generation } = await rebuild({ ...world, name: 'posts', signal: stop.signal });
      await world.append([draft(second, 'Coffee two')], workspaceId);
      await until('the second shows', async () => (await found(workspaceId, 'coffee')).length === 2);
      const { rows } = await world.pool.query(
        `select searched, searched_revision from read.posts_v${generation} order by searched`,
      );
      assert.deepEqual(rows, [
        { searched: 'coffee one', searched_revision: 0 },
        { searched: 'coffee two', searched_revision: 0 },
      ]);
      stop.abort();
      await running.done;
      const proof = () => compareWithReplay({ ...world, only: [projectionOf('posts')] });
      await world.pool.query(
        `update read.posts_v${generation} set searched = null, searched_revision = null where id = $1`,
        [first],
      );
      assert.deepEqual((await proof()).differences, [], 'a row without the text is no difference');
      await world.pool.query(`update read.posts_v${generation} set searched = 'tea' where id = $1`, [second]);
      assert.deepEqual(
        (await proof()).differences.map(({ id }) => id),
        [second],
        'a text that the body does not have is one',
      );
    } finally {
      stop.abort();
      await knex.destroy();
    }
  });
});
