import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import knexOf, { type Knex } from 'knex';
import { Pool, type PoolClient } from 'pg';
import { migrate } from '#projections/engine/tables.ts';
import { listPosts, type PostFilters } from '#projections/queries/post-queries.ts';
import { listTargets, type TargetFilters } from '#projections/queries/target-queries.ts';
import { view } from '#projections/shapes.ts';
import { readSettings } from '#services/api/call/lists.ts';
import { fillLists, postValues, singlesAndPairs, targetValues, workspaceId } from '#test/support/filtered-lists.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

const posts = 5_000;
const limit = 100;

interface Target {
  readonly id: string;
  readonly post_id: string;
  readonly client_id: string;
  readonly post_client_id: string;
  readonly external_ref: string;
  readonly account_id: string;
  readonly platform: string;
  readonly status: string;
  readonly at: string;
}
interface Post {
  readonly id: string;
  readonly client_id: string;
  readonly campaign_id: string | null;
  readonly external_ref: string;
  readonly platforms: readonly string[];
  readonly shown_status: string;
  readonly at: string;
  readonly created: string;
}

const isAmong = (value: string | null, some: readonly string[] | undefined): boolean =>
  some === undefined || (value !== null && some.includes(value));
const is = (value: string | null, asked: string | undefined): boolean => asked === undefined || value === asked;
const isWithin = (at: string, { from, to }: { readonly from?: string; readonly to?: string }): boolean =>
  (from === undefined || at >= from) && (to === undefined || at < to);

suite('lists by each filter and each pair of filters', { drawn: true, costs: 5, timeoutMs: 120_000 }, (t) => {
  let pool: Pool;
  /** With the settings of a list: all its plans are asked for here, as a new connection knows nothing of the tables. */
  let planner: PoolClient;
  let knex: Knex;
  const statements: { sql: string; bindings: readonly unknown[] }[] = [];
  t.before(async () => {
    const { url } = await preparedDatabase();
    pool = new Pool({ connectionString: url, max: 2 });
    await migrate(pool);
    await fillLists(pool, posts);
    planner = await pool.connect();
    await planner.query(readSettings);
    knex = knexOf({
      client: 'pg',
      connection: url,
      pool: {
        min: 0,
        max: 1,
        afterCreate: (client: { query(text: string, done: (error: unknown) => void): void }, done: () => void) =>
          client.query(readSettings, done),
      },
    });
    knex.on('query', ({ sql, bindings }) => statements.push({ sql, bindings }));
  });
  t.after(async () => {
    await knex?.destroy();
    planner?.release();
    await pool?.end();
  });

  /** No statement of the list reads a table whole. */
  const readsByIndex = async (name: string): Promise<void> => {
    for (const { sql, bindings } of statements) {
      const found = await planner.query(`explain (format json) ${sql}`, [...bindings]);
      assert.doesNotMatch(JSON.stringify(found.rows), /Seq Scan"[^}]*"Relation Name":"post/, name);
    }
  };

  /** A page from the start and one from behind the middle of all rows, beside the rows that match. */
  const compare = async <Row extends { readonly id: string }, Filters extends object>(
    all: readonly Row[],
    cases: readonly { readonly name: string; readonly filters: Filters }[],
    matches: (row: Row, filters: Filters) => boolean,
    ask: (
      filters: Filters,
      after: Row | null,
    ) => Promise<{ readonly ids: readonly string[]; readonly hasMore: boolean }>,
  ): Promise<void> => {
    const placed = all.map((row, place) => ({ row, place }));
    const half = all.length >> 1;
    for (const { name, filters } of cases) {
      const expected = placed.filter(({ row }) => matches(row, filters));
      for (const place of [-1, half]) {
        const left = expected.filter((one) => one.place > place);
        statements.length = 0;
        const { ids, hasMore } = await ask(filters, all[place] ?? null);
        const first = left.slice(0, limit).map(({ row }) => row.id);
        assert.deepEqual(ids, first, `${name}, after ${place}`);
        assert.equal(hasMore, left.length > limit, name);
        if (place === -1) await readsByIndex(name);
      }
    }
  };
  const iso = (column: string): string => `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

  t('targets: the rows that match, in order, by index, from the start and from the middle', async () => {
    const { rows } = await pool.query<Target>(
      `select t.*, ${iso('t.due_at')} as at, p.client_id as post_client_id, p.external_ref
       from ${view('post_targets')} t join ${view('posts')} p on p.id = t.post_id order by t.due_at, t.id`,
    );
    await compare<Target, TargetFilters>(
      rows,
      singlesAndPairs<TargetFilters>(targetValues(posts)),
      (one, filters) =>
        is(one.post_id, filters.postId) &&
        is(one.client_id, filters.clientId) &&
        is(one.account_id, filters.accountId) &&
        is(one.external_ref, filters.externalRef) &&
        isAmong(one.client_id, filters.clientIds) &&
        isAmong(one.post_client_id, filters.clientIds) &&
        isAmong(one.platform, filters.platforms) &&
        isAmong(one.status, filters.statuses) &&
        isWithin(one.at, filters),
      async (filters, row) => {
        const after = row === null ? null : { scheduledAt: row.at, id: row.id };
        const page = await listTargets(knex, workspaceId, filters, { after, limit });
        return { ids: page.rows.map(({ target }) => target.id), hasMore: page.hasMore };
      },
    );
  });

  t('posts: the rows that match, in order, by index, from the start and from the middle', async () => {
    const { rows } = await pool.query<Post>(
      `select *, ${iso('scheduled_at')} as at, ${iso('created_at')} as created
       from ${view('posts')} order by created_at desc, id desc`,
    );
    // The posts of the rare client go to its accounts alone, as all do here.
    await compare<Post, PostFilters>(
      rows,
      singlesAndPairs<PostFilters>(postValues(posts)),
      (one, filters) =>
        is(one.client_id, filters.clientId) &&
        is(one.campaign_id, filters.campaignId) &&
        is(one.external_ref, filters.externalRef) &&
        isAmong(one.client_id, filters.clientIds) &&
        isAmong(one.shown_status, filters.statuses) &&
        (filters.platforms?.some((platform) => one.platforms.includes(platform)) ?? true) &&
        isWithin(one.at, filters),
      async (filters, row) => {
        const after = row === null ? null : { createdAt: row.created, id: row.id };
        const page = await listPosts(knex, workspaceId, filters, { after, limit });
        return { ids: page.rows.map(({ id }) => id), hasMore: page.hasMore };
      },
    );
  });

  t('another workspace finds nothing by any of them', async () => {
    const page = { after: null, limit };
    const other = randomUUID();
    for (const { name, filters } of singlesAndPairs<TargetFilters>(targetValues(posts)))
      assert.equal((await listTargets(knex, other, filters, page)).rows.length, 0, name);
    for (const { name, filters } of singlesAndPairs<PostFilters>(postValues(posts)))
      assert.equal((await listPosts(knex, other, filters, page)).rows.length, 0, name);
  });
});
