import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { createLogger } from '#runtime/process/telemetry.ts';
import { dueSql, type WorkTable } from '#runtime/work/due-work.ts';
import { LeasedWork, type LeasedWorkOptions } from '#runtime/work/leased-work.ts';
import { Leases } from '#runtime/work/leases.ts';
import { WakeSignal } from '#runtime/work/wake-signal.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const leaseKind = 'chore';
const table: WorkTable = {
  name: 'chores',
  id: 'id',
  due: 'due_at',
  where: 'not done',
  columns: 'j.id::text as id, j.workspace_id::text as "workspaceId"',
};

interface Chore {
  readonly id: string;
  readonly workspaceId: string;
}

suite('leased work', (t) => {
  let pool: pg.Pool;
  t.before(async () => {
    const { url } = await preparedDatabase();
    pool = new pg.Pool({ connectionString: url, max: 5 });
    await pool.query(`
      create table chores (id uuid primary key default gen_random_uuid(), workspace_id uuid not null,
        due_at timestamptz not null default now(), done boolean not null default false);
      create index chores_due on chores (workspace_id, due_at) where not done`);
  });
  t.after.each(async () => {
    await pool.query('delete from chores');
    await pool.query('delete from ops.work_leases');
  });
  t.after(() => pool?.end());

  const add = async (workspaceId: string, count: number, ago = '1 minute'): Promise<readonly string[]> => {
    const { rows } = await pool.query<{ id: string }>(
      `insert into chores (workspace_id, due_at) select $1, now() - $3::interval from generate_series(1, $2)
       returning id::text as id`,
      [workspaceId, count, ago],
    );
    return rows.map(({ id }) => id);
  };
  const due = async (ofEach = 2, most = 100): Promise<readonly Chore[]> =>
    (await pool.query<Chore>(dueSql(table), [leaseKind, ofEach, most])).rows;
  const finish = (id: string) => pool.query('update chores set done = true where id = $1 and not done', [id]);
  const open = async (): Promise<number> =>
    (await pool.query('select 1 from chores where not done')).rowCount ?? Number.NaN;

  const started = (over: Partial<LeasedWorkOptions<Chore>> = {}) => {
    const stop = new AbortController();
    const wakeSignal = new WakeSignal();
    const work = new LeasedWork<Chore>({
      ...{ pool, leaseKind, leaseTtlMs: 30_000, pollMs: 20, stalePolls: 1_000, wakeSignal, signal: stop.signal },
      logger: createLogger('test', 'silent'),
      idOf: ({ id }) => id,
      work: async ({ id }) => {
        await finish(id);
        return null;
      },
      ...over,
    });
    const done = work.run(async () => (await work.begin(await due())).length > 0, 'chores');
    const end = async (): Promise<void> => {
      stop.abort();
      await done;
    };
    return { work, end, wakeSignal };
  };

  t('finds the first of each workspace before the second of any, a bounded number of each and of all', async () => {
    const [large, small] = [randomUUID(), randomUUID()];
    await add(large, 50, '2 hours');
    const [only] = await add(small, 1, '1 minute');
    await add(randomUUID(), 1, '-1 hour');
    const found = await due();
    deepEqual(
      found.map(({ workspaceId }) => workspaceId),
      [large, small, large],
    );
    equal(found[1]?.id, only);
    equal((await due(2, 1)).length, 1);
  });

  t('leaves out rows that are leased or delayed, and takes the next of their workspace', async () => {
    const workspace = randomUUID();
    const ids = await add(workspace, 4);
    const leases = new Leases({ pool, kind: leaseKind, ttlMs: 30_000 });
    const [, resting] = await leases.acquire(ids.slice(0, 2));
    resting?.release({ notBeforeMs: 60_000 });
    await leases.flush();
    deepEqual((await due(10)).map(({ id }) => id).sort(), ids.slice(2).sort());
    await leases.close();
  });

  t('costs the same however many rows a workspace has, and reads no table from end to end', async () => {
    const large = randomUUID();
    await add(large, 20_000, '2 hours');
    for (let at = 0; at < 20; at += 1) await add(randomUUID(), 1);
    await pool.query('analyze chores');
    const { rows } = await pool.query(`explain (analyze, buffers, format json) ${dueSql(table)}`, [leaseKind, 4, 100]);
    const [{ Plan }] = rows[0]['QUERY PLAN'];
    const blocks = Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'];
    ok(blocks < 21 * 15, `a look at 21 workspaces reads ${blocks} blocks`);
    const scanned = JSON.stringify(Plan).match(/"Node Type":"Seq Scan"[^{}]*?"Relation Name":"(\w+)"/g) ?? [];
    ok(!scanned.some((one) => one.includes('chores')), scanned.join());
  });

  t('works on all due rows, none in two workers at once, and sleeps until it is woken', async () => {
    const [seen, twice]: [string[], string[]] = [[], []];
    const busy = new Set<string>();
    const work = async ({ id }: Chore): Promise<null> => {
      if (busy.has(id)) twice.push(id);
      busy.add(id);
      // A row that was found before another worker finished it is leased again: workers read anew what they change.
      if ((await finish(id)).rowCount === 1) seen.push(id);
      busy.delete(id);
      return null;
    };
    const [one, two] = [started({ work }), started({ work, pollMs: 60_000 })];
    const ids = await add(randomUUID(), 20);
    two.wakeSignal.wake();
    await until('all are done', async () => (await open()) === 0);
    await Promise.all([one.end(), two.end()]);
    deepEqual([[...seen].sort(), twice], [[...ids].sort(), []]);
  });

  t('a worker that dies after it leased a job and before it worked leaves the job to another', async () => {
    const lost = new pg.Pool({ ...pool.options, max: 2 });
    const begun: string[] = [];
    const dying = started({
      pool: lost,
      leaseTtlMs: 600,
      work: async ({ id }, lease) => {
        begun.push(id);
        // Its renewals fail from here on, as those of a process that is gone.
        await lost.end();
        if (!lease.signal.aborted) await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
        return null;
      },
    });
    const [id] = await add(randomUUID(), 1);
    await until('the first worker holds it', () => begun.length === 1);
    const other = started();
    await until('the other worker has done it', async () => (await open()) === 0);
    deepEqual(begun, [id]);
    await other.end();
    await dying.end().catch(() => undefined);
  });

  t('no worker takes a delayed job, and an unhandled failure ends no other job', async () => {
    const tries = new Map<string, number>();
    const [bad, good] = [randomUUID(), randomUUID()];
    const worker = started({
      work: async ({ id, workspaceId }) => {
        tries.set(id, (tries.get(id) ?? 0) + 1);
        if (workspaceId === bad && tries.get(id) === 1) return 200;
        if (workspaceId === bad && tries.get(id) === 2) throw new Error('asked for');
        await finish(id);
        return null;
      },
    });
    const [restless] = await add(bad, 1);
    await add(good, 3);
    await until('all are done', async () => (await open()) === 0);
    equal(tries.get(restless ?? ''), 3);
    await worker.end();
    equal(worker.work.size, 0);
  });

  t('a failed look is tried again, and the loop ends after its running jobs', async () => {
    const stop = new AbortController();
    let looks = 0;
    let ended = false;
    const release = Promise.withResolvers<void>();
    const work = new LeasedWork<Chore>({
      ...{ pool, leaseKind, leaseTtlMs: 30_000, pollMs: 5, stalePolls: 1_000, wakeSignal: new WakeSignal() },
      ...{ signal: stop.signal, logger: createLogger('test', 'silent'), idOf: ({ id }) => id },
      work: async ({ id }) => {
        await release.promise;
        await finish(id);
        ended = true;
        return null;
      },
    });
    await add(randomUUID(), 1);
    const done = work.run(async () => {
      looks += 1;
      if (looks === 1) throw new Error('asked for');
      return (await work.begin(await due())).length > 0;
    }, 'chores');
    await until('it has begun', () => work.size === 1);
    deepEqual(
      work.running.map(({ workspaceId }) => typeof workspaceId),
      ['string'],
    );
    stop.abort();
    release.resolve();
    await done;
    ok(ended && work.size === 0);
    equal((await pool.query('select 1 from ops.work_leases')).rowCount, 0);
  });
});
