import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Pool, type PoolClient } from 'pg';
import { parkedRows } from '#projections/engine/positions.ts';
import { migrate as migrateReadModels } from '#projections/engine/tables.ts';
import { countParked, isRetryPending, listParked, maxListed, parkedGroups } from '#runtime/consuming/parked-reads.ts';
import {
  keepParked,
  parkedFrom,
  requestRetry,
  requestSkip,
  streamsToRetry,
  unpark,
} from '#runtime/consuming/parked-requests.ts';
import { behindReason, parkedStreams, setAside, TooManyParked } from '#runtime/consuming/parking.ts';
import type { StoredBytes } from '#runtime/eventing/codec.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

suite('parking', { timeoutMs: 60_000 }, (t) => {
  let pool: Pool;
  t.before(async () => {
    const { url } = await preparedDatabase();
    pool = new Pool({ connectionString: url, max: 4 });
    await migrateReadModels(pool);
  });
  t.after(() => pool?.end());

  const bytes = new TextEncoder().encode('{}');
  const recordsOf = (stream: string, from: number, count: number): StoredBytes[] =>
    Array.from({ length: count }, (_, at) => ({
      ...{ stream, id: randomUUID(), type: 'T', data: bytes, metadata: bytes },
      ...{ revision: BigInt(from + at), position: BigInt(from + at) },
    }));

  /** Parks the poison event of a stream and `events - 1` events behind it; answers the id of the poison event. */
  const parked = async (group: string, stream: string, events: number): Promise<string> => {
    await pool.query(
      `insert into ops.parked_events (consumer_group, stream, revision, event_id, type, position, reason, parked_at)
       select $1, $2, n, gen_random_uuid(), 'T', n, case when n = 1 then 'to blame' else $3 end,
         now() - interval '1 hour' + n * interval '1 ms'
       from generate_series(1, $4::int) as n`,
      [group, stream, behindReason, events],
    );
    const { rows } = await pool.query(
      'select event_id from ops.parked_events where consumer_group = $1 and stream = $2 and revision = 1',
      [group, stream],
    );
    return rows[0].event_id;
  };

  /** Runs the work; before each statement tries it once under `explain` and notes the pages that it touches. */
  const pagesOf = async (
    tx: PoolClient,
    work: (db: PoolClient & Pool) => Promise<unknown>,
  ): Promise<readonly { readonly text: string; readonly pages: number }[]> => {
    const reported: { readonly text: string; readonly pages: number }[] = [];
    const query = async (text: string, values: unknown[]) => {
      await tx.query('savepoint before_it');
      const { rows } = await tx.query(`explain (analyze, buffers, format json) ${text}`, values);
      await tx.query('rollback to before_it');
      const plan = rows[0]['QUERY PLAN'][0].Plan;
      reported.push({ text, pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'] });
      return tx.query(text, values);
    };
    const asQuery = (given: string | { readonly text: string; readonly values?: unknown[] }, values: unknown[] = []) =>
      typeof given === 'string' ? query(given, values) : query(given.text, given.values ?? []);
    await work({ query: asQuery } as unknown as PoolClient & Pool);
    return reported;
  };

  t(
    'an event that timed out is retried 1, 4 and 16 minutes after it was parked, then waits for an operator',
    async () => {
      const dueAfter = async (row: { parked: number; due: number; reason?: string }, doubt: number | null = 60_000) => {
        const [group, stream] = [`g-${randomUUID()}`, `client-${randomUUID()}`];
        await pool.query(
          `insert into ops.parked_events
           (consumer_group, stream, revision, event_id, type, position, reason, parked_at, retry_at)
         values ($1, $2, 1, gen_random_uuid(), 'T', 1, $3, now() - $4 * interval '1 minute', now() - $5 * interval '1 minute')`,
          [group, stream, row.reason ?? 'too slow', row.parked, row.due],
        );
        await keepParked({ query: pool.query.bind(pool) as PoolClient['query'] }, group, stream, 1n, 'too slow', doubt);
        const [left] = await listParked(pool, group);
        assert.equal(left?.reason, 'too slow');
        return left.retryAt === null ? null : Math.round((left.retryAt.getTime() - left.since.getTime()) / 60_000);
      };
      assert.equal(await dueAfter({ parked: 1, due: 0 }), 4);
      // Each of its tries took a minute.
      assert.equal(await dueAfter({ parked: 2, due: 1 }), 4);
      assert.equal(await dueAfter({ parked: 5, due: 1 }), 16);
      assert.equal(await dueAfter({ parked: 17, due: 1 }), null);
      // The database was unavailable until now.
      assert.equal(await dueAfter({ parked: 12, due: 11 }), 13);
      // The event waited behind another one, which was applied just now.
      assert.equal(await dueAfter({ parked: 120, due: 0, reason: behindReason }), 121);
      // An operator requested the retry after two hours; or the event failed without a time-out.
      assert.equal(await dueAfter({ parked: 120, due: 0 }), null);
      assert.equal(await dueAfter({ parked: 1, due: 0 }, null), null);
      assert.equal(await dueAfter({ parked: 1, due: 0, reason: behindReason }, null), null);
    },
  );

  t('with 20,000 events parked behind one, each statement touches a bounded number of pages', async () => {
    const [group, stream] = [`g-${randomUUID()}`, `client-${randomUUID()}`];
    const blamed = await parked(group, stream, 20_000);
    await parked(group, `client-${randomUUID()}`, 3);
    await pool.query('insert into ops.consumer_positions (consumer_group, lane) values ($1, $2)', [group, 'w-0']);
    const first = { stream, first: 1n };
    const hundred = Array.from({ length: 100 }, (_, at) => BigInt(at + 1));
    const works: readonly (readonly [most: number, work: (db: PoolClient & Pool) => Promise<unknown>])[] = [
      [60, (db) => setAside(db, group, recordsOf('client-new', 0, 3), new Map())],
      [60, (db) => setAside(db, group, recordsOf(stream, 20_001, 3), new Map())],
      [60, (db) => parkedStreams(db, group)],
      [60, (db) => parkedGroups(db)],
      [60, (db) => countParked(db, [group, 'another'])],
      [60, (db) => parkedRows(db)],
      [60, (db) => streamsToRetry(db, group, '')],
      [60, (db) => isRetryPending(db, group, stream)],
      [60, (db) => parkedFrom(db, group, first, 100)],
      [60, (db) => requestRetry(db, group, stream)],
      [60, (db) => requestRetry(db, group, null)],
      [60, (db) => requestSkip(db, group, blamed)],
      [60, (db) => keepParked(db, group, stream, 1n, 'no')],
      [60, (db) => keepParked(db, group, stream, 1n, 'slow', 60_000)],
      // Five pages an event: its row, and a page of each index.
      [900, (db) => unpark(db, group, stream, hundred)],
      [(maxListed * 3) / 10, (db) => listParked(db, group)],
    ];
    for (const analyzed of [false, true]) {
      if (analyzed) await pool.query('analyze ops.parked_events');
      for (const [most, work] of works) {
        await inTransaction(
          pool,
          async (tx) => {
            for (const { text, pages } of await pagesOf(tx, work)) {
              assert.ok(pages <= most, `${pages} pages, ${analyzed ? 'analyzed' : 'not analyzed'}: ${text}`);
            }
            return { commit: false, result: null };
          },
          'begin',
        );
      }
    }
  });

  t('a batch is parked in a few statements, however many events it has', async () => {
    const [group, stream] = [`g-${randomUUID()}`, `client-${randomUUID()}`];
    const records = [...recordsOf(stream, 0, 400), ...recordsOf('client-other', 0, 100)];
    const judged = new Map([[records[0]?.id ?? '', { action: 'park', reason: 'no' }]]);
    let asked = 0;
    const { ids } = await inTransaction(pool, async (tx) => {
      const counting = {
        query: (text: string, values: unknown[]) => {
          asked += 1;
          return tx.query(text, values);
        },
      } as unknown as PoolClient;
      return { commit: true, result: await setAside(counting, group, records, judged) };
    });
    assert.equal(ids.size, 400);
    assert.ok(asked <= 4, `${asked} statements`);
    const [row] = await listParked(pool, group);
    assert.deepEqual([row?.events, row?.revision, row?.reason], [400, '0', 'no']);
    // The batch is parked again, as after a commit whose answer was lost.
    await inTransaction(pool, async (tx) => ({ commit: true, result: await setAside(tx, group, records, judged) }));
    assert.equal((await listParked(pool, group))[0]?.events, 400);
  });

  t(
    'a group parks at most ten streams within a minute; the events behind the first of a stream do not count',
    async () => {
      const group = `g-${randomUUID()}`;
      const park = (streams: readonly string[]) =>
        inTransaction(pool, async (tx) => {
          const records = streams.flatMap((stream) => recordsOf(stream, 0, 3));
          const judged = new Map(
            records.flatMap(({ id, revision }) => (revision === 0n ? [[id, { action: 'park', reason: 'no' }]] : [])),
          );
          return { commit: true, result: await setAside(tx, group, records, judged) };
        });
      await park(Array.from({ length: 10 }, (_, at) => `client-${at}`));
      await assert.rejects(park(['client-11']), TooManyParked);
      await pool.query(
        `update ops.parked_events set parked_at = parked_at - interval '61 s' where consumer_group = $1 and stream = 'client-3'`,
        [group],
      );
      await park(['client-11']);
      await assert.rejects(park(['client-12']), TooManyParked);
      assert.equal((await countParked(pool, [group])).get(group)?.streams, 11);
    },
  );

  t('the list counts at most maxListed events of a stream', async () => {
    const [group, stream] = [`g-${randomUUID()}`, `client-${randomUUID()}`];
    await parked(group, stream, maxListed + 5);
    const [row, ...others] = await listParked(pool, group, stream);
    assert.deepEqual([row?.events, others.length], [maxListed, 0]);
    const counted = (await countParked(pool, [group])).get(group);
    assert.equal(counted?.streams, 1);
    assert.ok(Math.abs((counted?.oldest ?? 0) - 3_600) < 60, `${counted?.oldest} s`);
  });
});
