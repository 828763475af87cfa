/** The index of workspaces over the event table: filled over old rows in pieces, through deaths, and read by its own index. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { EventToAppend, RecordedEvent } from '#contracts/ports/event-store.ts';
import type { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { workspaceStatements } from '#infra/postgres/workspace-index.sql.ts';
import { type PostgresHarness, postgresHarness, runSql } from '#test/support/event-store/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const sql = workspaceStatements('es');
const foreignEvents = 20_000;

const eventOf = (workspaceId: string): EventToAppend => {
  const id = randomUUID();
  const metadata = Buffer.from(JSON.stringify({ workspaceId, partitionKey: id }));
  return { id, type: 'PostCreated', data: Buffer.from('{}'), metadata, partitionKey: id, workspaceId };
};

const ids = (events: readonly { readonly id: string }[]): string[] => events.map(({ id }) => id);

interface Plan {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

/** Rows of a table that a plan has looked at. */
const rowsOf = (plan: Plan, table: string): number => {
  const own = plan['Relation Name'] === table ? plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0) : 0;
  return own * plan['Actual Loops'] + (plan.Plans ?? []).reduce((sum, one) => sum + rowsOf(one, table), 0);
};

suite('postgres index of workspaces', { timeoutMs: 120_000 }, (t) => {
  let harness: PostgresHarness;
  let store: PostgresEventStore;
  const [mine, theirs] = [randomUUID(), randomUUID()];

  /** Rows as a process of any release leaves them: nothing of the index. */
  const insertForeign = (count: number) =>
    runSql(
      harness.url,
      `with base as materialized (select nextval('es.positions') as first, setval('es.positions', currval('es.positions') + $2))
       insert into es.event_rows (position, stream, revision, id, type, data, metadata, partition_key)
       select first + n, 'post-' || gen_random_uuid(), 0, gen_random_uuid(), 'PostCreated', '{}',
         convert_to('{"workspaceId":"' || $1 || '"}', 'utf8'), 'k' from base, generate_series(1, $2) n`,
      [theirs, count],
    );
  const indexed = async (): Promise<bigint> => BigInt((await runSql(harness.url, sql.indexed))[0]?.position as string);
  const rowsIn = async (workspace: string): Promise<number> =>
    Number(
      (await runSql(harness.url, 'select count(*) from es.workspace_events where workspace = $1', [workspace]))[0]
        ?.count,
    );
  const lines: { readonly fields: object; readonly message: string }[] = [];
  const reported = (fields: object, message: string): void => void lines.push({ fields, message });
  const keeping = (pieceEvents: number) => {
    const stop = new AbortController();
    const kept = store.keepWorkspaceIndex({
      signal: stop.signal,
      logger: { info: reported, warn: reported },
      pieceEvents,
    });
    return async (): Promise<void> => {
      stop.abort();
      await kept;
    };
  };
  /** Its connection may be cut while it asks. */
  const becomes = (what: string, holds: () => Promise<boolean>) => until(what, () => holds().catch(() => false));
  const isFilled = async () => (await runSql(harness.url, sql.behind)).length === 0;
  const whole = async (workspaceId: string, limit = 500): Promise<RecordedEvent[]> => {
    const found: RecordedEvent[] = [];
    for (let after: bigint | null = null; ; ) {
      const { events, next, isEnd } = await store.readWorkspace(workspaceId, { after, limit });
      found.push(...events);
      if (isEnd) return found;
      after = next;
    }
  };

  t.before(async () => {
    harness = await postgresHarness();
    store = await harness.open();
    await store.append(`post-${randomUUID()}`, 'none', [eventOf(mine), eventOf(mine)]);
    await insertForeign(foreignEvents);
    await store.append(`post-${randomUUID()}`, 'none', [eventOf(mine)]);
  });
  t.after(() => harness?.close());

  t('killed repeatedly while it fills the index, it continues where it stopped, and reads are complete', async () => {
    const before = ids(await whole(mine));
    assert.equal(before.length, 3);
    const stop = keeping(2_000);
    let reached = 0n;
    for (let killed = 0; killed < 2; killed += 1) {
      await becomes('it gets on', async () => (await indexed()) > reached);
      reached = await indexed();
      assert.deepEqual(ids(await whole(mine, 2)), before);
      await harness.killConnections?.();
      assert.ok((await indexed()) >= reached, 'nothing of what was filled is filled again');
    }
    assert.ok(!(await isFilled()), 'it was killed in the middle');
    await becomes('all is filled', isFilled);
    await stop();
    assert.equal(await rowsIn(theirs), foreignEvents);
    assert.equal(await rowsIn(mine), 3);
    assert.deepEqual(ids(await whole(mine)), before);
    assert.ok(lines.some(({ message }) => message.includes('is filled')));
  });

  t('a page of one workspace reads its own events alone, beside 20,000 others', async () => {
    const client = new pg.Client({ connectionString: harness.url });
    await client.connect();
    try {
      for (const mode of ['force_custom_plan', 'force_generic_plan']) {
        await client.query(`set plan_cache_mode = ${mode}; deallocate all`);
        await client.query(`prepare page (text, int8, int8, int8, int8) as ${sql.fromIndex}`);
        const { rows } = await client.query(
          `explain (analyze, format json) execute page ('${mine}', 0, ${await indexed()}, 500, 1000000)`,
        );
        const plan: Plan = rows[0]['QUERY PLAN'][0].Plan;
        assert.ok(rowsOf(plan, 'event_rows') <= 3, `${mode}: ${JSON.stringify(rows[0])}`);
        assert.ok(rowsOf(plan, 'workspace_events') <= 3, `${mode}: ${JSON.stringify(rows[0])}`);
      }
    } finally {
      await client.end();
    }
  });

  t('appends of any release are found at once and enter the index', async () => {
    const stop = keeping(2_000);
    const [event] = [eventOf(mine)];
    const before = await whole(mine);
    await store.append(`post-${randomUUID()}`, 'none', [event]);
    assert.deepEqual(ids(await whole(mine)), [...ids(before), event.id]);
    await insertForeign(10);
    await becomes('it is filled', isFilled);
    assert.equal(await rowsIn(mine), before.length + 1);
    await stop();
  });

  t('four processes that fill the index at once leave out no event', async () => {
    await insertForeign(4_000);
    await store.append(`post-${randomUUID()}`, 'none', [eventOf(mine)]);
    const wanted = await rowsIn(theirs);
    const filling = async (): Promise<void> => {
      for (;;) if ((await store.pool.query(sql.fill, [300])).rowCount === 0) return;
    };
    await Promise.all([filling(), filling(), filling(), filling()]);
    assert.equal(await rowsIn(theirs), wanted + 4_000);
    assert.ok(await isFilled());
    const { rows } = await store.pool.query(
      `select count(*)::int as n from es.events e where not exists (select from es.workspace_events w where w.position = e.position)`,
    );
    assert.equal(rows[0].n, 0);
  });

  t('after a restore of the events alone reads are complete, and no old row shows another workspace', async () => {
    // The restored copy is older: the last events are gone, and other events get their positions.
    const list = await whole(mine);
    const last = list.at(-1);
    const gone = await whole(mine).then((events) => events.at(-2));
    assert.ok(last !== undefined && gone !== undefined);
    await runSql(harness.url, 'delete from es.events where position >= $1', [gone.position]);
    await runSql(
      harness.url,
      `insert into es.event_rows (position, stream, revision, id, type, data, metadata, partition_key)
       select p, 'post-' || gen_random_uuid(), 0, gen_random_uuid(), 'PostCreated', '{}',
         convert_to('{"workspaceId":"' || $1 || '"}', 'utf8'), 'k' from unnest($2::int8[]) p`,
      [theirs, [gone.position, last.position]],
    );
    const left = ids(list.slice(0, -2));
    assert.deepEqual(ids(await whole(mine)), left);
    // Even where the index says so itself.
    await runSql(
      harness.url,
      'update es.workspace_index set event_id = (select id from es.events where position = $1), position = $1',
      [last.position],
    );
    assert.deepEqual(ids(await whole(mine)), left);
    await runSql(harness.url, 'update es.workspace_index set event_id = gen_random_uuid()');
    const stop = keeping(5_000);
    await becomes('it is filled anew', async () => (await isFilled()) && (await rowsIn(mine)) === left.length);
    await stop();
    assert.deepEqual(ids(await whole(mine)), left);
  });

  t('after a restore while the index is filled, the index covers every restored event', async () => {
    const stop = keeping(5_000);
    try {
      await becomes('it is filled', isFilled);
      const list = ids(await whole(mine));
      const head = (await store.head()) ?? 0n;
      const again = randomUUID();
      // The last twenty are others now, the first of them ours, and there are more than there were: one transaction.
      await runSql(
        harness.url,
        `delete from es.events where position > ${head - 20n};
         insert into es.event_rows (position, stream, revision, id, type, data, metadata, partition_key)
         select ${head - 20n} + n, 'post-' || gen_random_uuid(), 0,
           case when n = 1 then '${again}' else gen_random_uuid() end, 'PostCreated', '{}',
           convert_to('{"workspaceId":"' || case when n = 1 then '${mine}' else '${theirs}' end || '"}', 'utf8'), 'k'
         from generate_series(1, 25) n;
         select setval('es.positions', ${head + 5n})`,
      );
      const wanted = [...list, again];
      assert.deepEqual(ids(await whole(mine)), wanted, 'the index is not believed');
      await becomes('the index has reached the end', isFilled);
      assert.deepEqual(ids(await whole(mine)), wanted);
      await becomes('it is filled anew', async () => (await isFilled()) && (await rowsIn(mine)) === wanted.length);
      await store.append(`post-${randomUUID()}`, 'none', [eventOf(theirs)]);
      await becomes('it goes on', async () => (await indexed()) > head + 5n);
      assert.deepEqual(ids(await whole(mine)), wanted);
    } finally {
      await stop();
    }
  });

  t('a page is limited by its bytes and the next one continues, within the index and behind it', async () => {
    const large = randomUUID();
    const list = Array.from({ length: 20 }, () => ({ ...eventOf(large), data: Buffer.alloc(500_000, ' ') }));
    for (const event of list) await store.append(`post-${event.id}`, 'none', [event]);
    const pages = async () => {
      const page = await store.readWorkspace(large, { after: null, limit: 500 });
      assert.ok(page.events.length < list.length && !page.isEnd, `${page.events.length} in one page`);
      for (const limit of [500, 7]) assert.deepEqual(ids(await whole(large, limit)), ids(list));
    };
    await pages();
    const stop = keeping(5_000);
    await becomes('it is filled', isFilled);
    await stop();
    assert.equal(await rowsIn(large), list.length);
    await pages();
  });
});
