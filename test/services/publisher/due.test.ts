import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Pool, type PoolClient } from 'pg';
import { migrate } from '#projections/engine/tables.ts';
import { spareRows } from '#projections/queries/due-targets.ts';
import { takeFairly } from '#runtime/work/fair-pick.ts';
import { Leases } from '#runtime/work/leases.ts';
import { AskedSearch } from '#services/publisher/asked-search.ts';
import { DueSearch } from '#services/publisher/due-search.ts';
import type { SearchScope } from '#services/publisher/search.ts';
import { publisherSlots } from '#services/publisher/shares.ts';
import { StaleRows } from '#services/publisher/stale-rows.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

const kind = 'target';
const parked = 6_000;

suite('searches of the publisher', { timeoutMs: 120_000 }, (t) => {
  let pool: Pool;

  t.before(async () => {
    pool = new Pool({ connectionString: (await preparedDatabase()).url, max: 4 });
    await migrate(pool);
    // Its statistics of a moment when the table was all but empty would choose another plan.
    await pool.query('alter table read.post_targets_v1 set (autovacuum_enabled = off)');
  });
  t.after(() => pool?.end());
  t.before.each(async () => {
    await pool.query('truncate read.post_targets_v1, read.accounts_v1, ops.work_leases');
  });

  interface Rows {
    readonly rows?: number;
    readonly status?: string;
    readonly platform?: string;
    readonly workspaceId?: string;
    readonly accountId?: string;
    /** SQL of the instant at which the row is due; `n` counts from 1. */
    readonly at?: string;
  }
  /** Inserts rows without streams, which the searches do not read. Answers the ids in the order of their due time. */
  const add = async (given: Rows = {}): Promise<readonly string[]> => {
    const { rows = 1, status = 'pending', platform = 'x', workspaceId = randomUUID(), at = 'now()' } = given;
    const made = await pool.query(
      `with made as (insert into read.post_targets_v1 (id, workspace_id, revision, created_at, updated_at, post_id, client_id,
         account_id, platform, status, due_at, timezone, jitter_seconds, schedule_mode, attempts, takeover, next_action_at,
         post_revision, applied_revision)
       select gen_random_uuid(), $1, 0, now(), now(), gen_random_uuid(), gen_random_uuid(), $2, $3, $4, ${at}, 'UTC', 0, 'managed',
         0, 0, ${at}, 0, 0 from generate_series(1, $5) n returning id, next_action_at)
       select id::text as id from made order by next_action_at, id`,
      [workspaceId, given.accountId ?? randomUUID(), platform, status, rows],
    );
    return made.rows.map(({ id }) => id);
  };
  const lease = (ids: readonly string[], until: string, notBefore: string) =>
    pool.query(
      `insert into ops.work_leases (kind, id, holder, epoch, until, not_before)
       select $1, id, 'other', nextval('ops.work_lease_epochs'), ${until}, ${notBefore} from unnest($2::text[]) id`,
      [kind, ids],
    );
  const scope = (slots = 4_096, underWay: readonly string[] = []): SearchScope => ({
    underWay,
    slots: publisherSlots(slots),
    staleRows: new StaleRows(),
  });
  const soon = () => new Date(Date.now() + 3_000);
  const ids = (rows: readonly { readonly id: string }[]): readonly string[] => rows.map(({ id }) => id);
  const sorted = (rows: readonly string[]): readonly string[] => [...rows].sort();

  /** The blocks that the statements of a search touch, and the plan of each statement. */
  const cost = async (search: (db: Pool) => Promise<unknown>) => {
    const plans: string[] = [];
    let blocks = 0;
    const client = await pool.connect();
    const noting = {
      on: () => undefined,
      off: () => undefined,
      release: () => undefined,
      query: async (statement: string | { readonly text: string; readonly values: unknown[] }) => {
        if (typeof statement === 'string') return client.query(statement);
        const { text, values } = statement;
        const explained = await client.query(`explain (analyze, buffers, format json) ${text}`, values);
        const [{ Plan: plan }] = explained.rows[0]['QUERY PLAN'];
        plans.push(JSON.stringify(plan));
        blocks += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
        return client.query(text, values);
      },
    } as unknown as PoolClient;
    await search({ connect: async () => noting } as unknown as Pool);
    client.release();
    return { plans, blocks };
  };

  t(
    'due targets are found in the order of their due time, without those that are leased or wait for a retry',
    async () => {
      const [late, soonest, held, rests, lapsed, ours] = (await add({ rows: 6, at: `now() - n * interval '1 s'` })) as [
        string,
        string,
        string,
        string,
        string,
        string,
      ];
      await add({ at: `now() + interval '1 minute'` });
      await add({ at: 'null', status: 'published' });
      const claimed = await add({ status: 'publishing', platform: 'bluesky' });
      await lease([held], `now() + interval '5 s'`, 'null');
      await lease([rests], 'now()', `now() + interval '5 s'`);
      await lease([lapsed], 'now()', 'null');
      const found = await new DueSearch(pool, kind).find(soon(), scope(4_096, [ours]));
      assert.deepEqual(ids(found), [late, soonest, lapsed, ...claimed]);
    },
  );

  t(
    'what a clock ahead of ours made due is found in its workspace alone, by an index, however much is planned',
    async () => {
      const workspaceId = randomUUID();
      const day = 86_400_000;
      await add({ rows: 20_000, at: `now() + interval '1 hour' + n * interval '4 s'` });
      await add({ rows: 20_000, workspaceId, at: `now() + interval '2 days' + n * interval '4 s'` });
      await add({ rows: 5_000, workspaceId, status: 'canceled', at: `now() + n * interval '4 s'` });
      await pool.query('analyze read.post_targets_v1');
      const due = await add({ rows: 3, workspaceId, at: `now() + n * interval '1 hour'` });
      const [retried] = await add({ workspaceId, status: 'rate_limited', at: `now() + interval '5 hours'` });
      const [later] = await add({ workspaceId, status: 'rate_limited', at: `now() + interval '5 hours'` });
      await pool.query(`update read.post_targets_v1 set retry_at = now() + interval '3 days' where id = $1`, [later]);
      const moved = () => [{ workspaceId, aheadMs: day, movedAt: 0 }];
      const search = (db: Pool) => new DueSearch(db, kind, { moved }).find(new Date(Date.now() - day), scope());
      assert.deepEqual(ids(await search(pool)), [], 'a day earlier nothing is due');
      const found = await new DueSearch(pool, kind, { moved }).find(soon(), scope());
      assert.deepEqual(ids(found), [...due, retried]);
      const { plans, blocks } = await cost((db) => new DueSearch(db, kind, { moved }).find(soon(), scope()));
      const [plan = ''] = plans.slice(-1);
      assert.match(plan, /Index Scan/);
      assert.doesNotMatch(plan, /Seq Scan/);
      assert.ok(blocks < 1_000, `${blocks} blocks`);
    },
  );

  t('a row has the network of its account; an account without a row counts as live', async () => {
    const accountId = randomUUID();
    await pool.query(
      `insert into read.accounts_v1 (id, workspace_id, revision, platform, network) values ($1, $1, 0, 'x', 'sandbox')`,
      [accountId],
    );
    const [sandbox] = await add({ accountId });
    const [unknown] = await add({ status: 'outcome_unknown' });
    const [processed] = await add({ status: 'processing' });
    const found = await new DueSearch(pool, kind).find(soon(), scope());
    assert.deepEqual(
      found.map(({ id, network }) => [id, network]),
      [[sandbox, 'sandbox/x']],
    );
    const asked = await new AskedSearch(pool, kind).find(scope());
    assert.deepEqual(
      new Map(asked.map(({ id, network }) => [id, network])),
      new Map([unknown, processed].map((id) => [id, 'live/x'])),
    );
  });

  t(
    'targets of a network that rests are left out, those of its sandbox and those that it has already are not',
    async () => {
      const accountId = randomUUID();
      await pool.query(
        `insert into read.accounts_v1 (id, workspace_id, revision, platform, network) values ($1, $1, 0, 'linkedin', 'sandbox')`,
        [accountId],
      );
      const [sandbox] = await add({ accountId, platform: 'linkedin' });
      const [elsewhere] = await add();
      const [begun] = await add({ status: 'publishing', platform: 'linkedin' });
      for (const status of ['pending', 'rate_limited', 'published']) await add({ status, platform: 'linkedin' });
      const resting = async () => ['live/linkedin'];
      const found = await new DueSearch(pool, kind, { resting }).find(soon(), scope());
      assert.deepEqual(sorted(ids(found)), sorted([sandbox, elsewhere, begun].map(String)));
      assert.equal((await new DueSearch(pool, kind).find(soon(), scope())).length, 6);
    },
  );

  t('neither search scans the unknown outcomes that wait for their next question, however many', async () => {
    const half = { rows: parked / 2, at: `now() - n * interval '1 s'` };
    const resting = await Promise.all(['outcome_unknown', 'processing'].map((status) => add({ ...half, status })));
    await lease(resting.flat(), 'now()', `now() + interval '30 minutes'`);
    await add({ rows: parked, at: `now() + interval '1 hour' + n * interval '1 s'` });
    const due = await add({ rows: 100, platform: 'linkedin' });
    for (const analyzed of [false, true]) {
      if (analyzed) await pool.query('analyze');
      const one = await cost(async (db) => {
        assert.deepEqual(sorted(ids(await new DueSearch(db, kind).find(soon(), scope()))), sorted(due));
      });
      assert.match(one.plans.join(), /post_targets_v1_6/);
      assert.doesNotMatch(one.plans.join(), /Seq Scan/);
      assert.ok(one.blocks < 800, `${one.blocks} blocks for 100 rows`);
      const other = await cost(async (db) => {
        assert.deepEqual(await new AskedSearch(db, kind).find(scope(256)), []);
      });
      assert.match(other.plans.join(), /work_leases_resting/);
      assert.match(other.plans.join(), /post_targets_v1_7/);
      assert.doesNotMatch(other.plans.join(), /Seq Scan/);
      // One step looks up the lease of a bounded number of outcomes by key.
      assert.ok(other.blocks < 1_600, `${other.blocks} blocks`);
    }
  });

  t('hand-overs, verifications and undos are found by the same index, beside many handed-over targets', async () => {
    await add({
      rows: parked,
      status: 'handed_to_platform',
      platform: 'facebook',
      at: `now() + n * interval '1 minute'`,
    });
    const [toHandOver = ''] = await add({ platform: 'facebook', at: `now() - interval '3 s'` });
    const [toVerify = ''] = await add({
      status: 'handed_to_platform',
      platform: 'youtube',
      at: `now() - interval '2 s'`,
    });
    const [toUndo = ''] = await add({
      status: 'handed_to_platform',
      platform: 'facebook',
      at: `now() - interval '1 s'`,
    });
    for (const analyzed of [false, true]) {
      if (analyzed) await pool.query('analyze');
      const { plans, blocks } = await cost(async (db) => {
        assert.deepEqual(ids(await new DueSearch(db, kind).find(soon(), scope())), [toHandOver, toVerify, toUndo]);
      });
      assert.match(plans.join(), /post_targets_v1_6/);
      assert.doesNotMatch(plans.join(), /Seq Scan/);
      assert.ok(blocks < 200, `${blocks} blocks for 3 rows`);
    }
  });

  t('an unknown outcome is due when its wait is over, when it has no lease, and when its lease lapsed', async () => {
    const [rested, rests, held, died, bare, ours] = (await add({ rows: 6, status: 'outcome_unknown' })) as [
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    const [settled = ''] = await add({ status: 'published', at: 'null' });
    await lease([rested, settled, ours], `now() - interval '1 minute'`, `now() - interval '1 ms'`);
    await lease([rests], 'now()', `now() + interval '1 minute'`);
    await lease([held], `now() + interval '1 minute'`, 'null');
    await lease([died], `now() - interval '1 ms'`, 'null');
    const found = await new AskedSearch(pool, kind).find(scope(256, [ours]));
    assert.deepEqual(sorted(ids(found)), sorted([rested, died, bare]));
    assert.deepEqual(await new DueSearch(pool, kind).find(soon(), scope()), [], 'an unknown outcome is no due target');
  });

  t('every unknown outcome without a lease is found within a few steps, behind many with a lease', async () => {
    const all = await add({ rows: 200, status: 'outcome_unknown', at: `now() - n * interval '1 s'` });
    const bare = [all[0], all[70], all[199]].map((id) => id ?? '');
    await lease(
      all.filter((id) => !bare.includes(id)),
      'now()',
      `now() + interval '1 hour'`,
    );
    const search = new AskedSearch(pool, kind, { bare: 50, stepEveryMs: 0, passEveryMs: 0 });
    const found = new Set<string>();
    for (let step = 0; step < 4; step += 1) for (const id of ids(await search.find(scope()))) found.add(id);
    assert.deepEqual(sorted([...found]), sorted(bare));
  });

  t('one pass finds outcomes without a lease once; stale rows are left out', async () => {
    await add({ rows: 100, status: 'outcome_unknown', workspaceId: randomUUID() });
    const questions = scope(16);
    const search = new AskedSearch(pool, kind, { passEveryMs: 3_600_000 });
    const found = await search.find(questions);
    assert.equal(found.length, 4 + spareRows, "the workspace's quarter, and the spare rows");
    assert.deepEqual(await search.find(questions), [], 'the pass is over');
    for (const row of found) questions.staleRows.add(row, 5);
    const others = await new AskedSearch(pool, kind).find(questions);
    assert.ok(others.length > 0 && others.every(({ id }) => !ids(found).includes(id)));
  });

  t('a workspace with thousands of unknown outcomes does not delay those of another workspace', async () => {
    const big = randomUUID();
    const many = await add({ rows: 5_000, status: 'outcome_unknown', workspaceId: big });
    const small = await add({ rows: 2, status: 'outcome_unknown', workspaceId: randomUUID() });
    await lease(many, 'now()', `now() - random() * interval '1 hour'`);
    await lease(small.slice(0, 1), 'now()', `now() - interval '30 minutes'`);
    await lease(small.slice(1), 'now()', `now() - interval '1 ms'`);
    const search = new AskedSearch(pool, kind);
    const questions = scope(256);
    const taken = takeFairly(await search.find(questions), { slots: questions.slots, takerOf: (row) => row });
    assert.ok(
      taken.some(({ id }) => id === small[1]),
      'the outcome that has just become due',
    );
    const ofBig = taken.filter(({ workspaceId }) => workspaceId === big).length;
    assert.ok(ofBig >= 60 && ofBig <= 64, `${ofBig} of 256`);
    for (let step = 0, found = false; !found; step += 1) {
      assert.ok(step < 15, 'the outcome that became due earlier was not found');
      const rows = await search.find(questions);
      assert.ok(rows.length < 100, 'the large workspace has its share');
      found = rows.some(({ id }) => id === small[0]);
    }
  });

  t('beside a backlog of one workspace the oldest and newest targets are found at once, others soon', async () => {
    const big = randomUUID();
    await add({ rows: 6_500, workspaceId: big, at: `now() - n * interval '0.1 s'` });
    const [oldest, between, newest] = await Promise.all(
      [`interval '1 hour'`, `interval '420.05 s'`, `interval '-1 s'`].map(
        async (ago) => (await add({ at: `now() - ${ago}` }))[0],
      ),
    );
    const search = new DueSearch(pool, kind);
    const supply = scope();
    const answered = await search.find(soon(), supply);
    assert.ok(answered.length <= 2 * (1_024 + spareRows) + 3, `${answered.length} rows, and 1,024 may be taken`);
    const first = takeFairly(answered, { slots: supply.slots, takerOf: (row) => row });
    const ofBig = first.filter(({ workspaceId }) => workspaceId === big).length;
    assert.ok(ofBig >= 1_000 && ofBig <= 1_024, `${ofBig} of 4,096`);
    for (const id of [oldest, newest]) assert.ok(first.some((row) => row.id === id));
    const found = new Set(ids(first));
    for (let step = 0; step < 3; step += 1) {
      const rows = await search.find(soon(), supply);
      assert.ok(
        rows.every(({ workspaceId }) => workspaceId !== big),
        'the large workspace has its share',
      );
      for (const id of ids(rows)) found.add(id);
    }
    assert.ok(found.has(between ?? ''));
  });

  t('repeated searches reach every row of a long backlog, while new targets are found first', async () => {
    const big = randomUUID();
    await add({ rows: 1_500, workspaceId: big, at: `now() - n * interval '1 s'` });
    const wanted = new Set<string>();
    for (const place of [150.5, 350.5, 750.5, 1_150.5]) {
      for (const id of await add({ at: `now() - interval '${place} s'` })) wanted.add(id);
    }
    const search = new DueSearch(pool, kind, { front: 100, behind: 100 });
    const supply = scope(8);
    const ofBig = { workspaceId: big, network: 'live/x' };
    while (supply.slots.admits(ofBig, false)) supply.slots.take(ofBig);
    for (let step = 0; wanted.size > 0; step += 1) {
      assert.ok(step < 2 * 16, `${wanted.size} were not found in ${step} searches`);
      const [fresh = ''] = await add({ at: `now() + ${step} * interval '1 ms'` });
      const found = ids(await search.find(soon(), supply));
      assert.ok(found.includes(fresh) || step % 2 === 1, 'at least every other search finds the new target');
      for (const id of found) wanted.delete(id);
    }
  });

  t('rows of a network without a free slot are not scanned, and targets of other networks are found', async () => {
    await add({ rows: 5_000, at: `now() - n * interval '1 s'` });
    const healthy = await add({ platform: 'linkedin' });
    const supply = scope(8);
    for (const mode of ['live', 'sandbox']) {
      for (let at = 0; supply.slots.admits({ workspaceId: `w${at}`, network: `${mode}/x` }, true); at += 1) {
        supply.slots.take({ workspaceId: `w${at}`, network: `${mode}/x` });
      }
    }
    const { blocks } = await cost(async (db) => {
      assert.deepEqual(ids(await new DueSearch(db, kind).find(soon(), supply)), healthy);
    });
    assert.ok(blocks < 60, `${blocks} blocks`);
  });

  t('stale rows do not hide the due targets of their workspace', async () => {
    const workspaceId = randomUUID();
    const all = await add({ rows: 300, workspaceId, at: `now() - n * interval '1 s'` });
    const supply = scope(64);
    const rows = await new DueSearch(pool, kind).find(soon(), scope());
    for (const row of rows.slice(0, 299)) supply.staleRows.add(row, 5);
    const found = await new DueSearch(pool, kind).find(soon(), supply);
    assert.deepEqual(ids(found), all.slice(299));
  });

  t('the search finds an outcome after a release with a wait, and after a release without one', async () => {
    const leases = new Leases({ pool, kind, ttlMs: 60_000 });
    try {
      const [id = ''] = await add({ status: 'outcome_unknown' });
      const search = new AskedSearch(pool, kind, { passEveryMs: 0 });
      const find = async () => ids(await search.find(scope()));
      assert.deepEqual(await find(), [id]);
      const [first] = await leases.acquire([id]);
      assert.deepEqual(await find(), [], 'held');
      first?.release({ notBeforeMs: 60_000 });
      await leases.flush();
      assert.deepEqual(await find(), [], 'waits');
      await pool.query(`update ops.work_leases set not_before = now() - interval '1 ms'`);
      const { rows } = await pool.query('select id from ops.work_leases where not_before <= now()');
      assert.deepEqual(ids(rows), await find());
      const [second] = await leases.acquire([id]);
      second?.release();
      await leases.flush();
      assert.deepEqual(await find(), [id], 'without a lease');
    } finally {
      await leases.close();
    }
  });
});
