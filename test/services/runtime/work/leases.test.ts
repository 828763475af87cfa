import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { LeaseLost, Leases } from '#runtime/work/leases.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('leases', (t) => {
  let pool: pg.Pool;
  const open: Leases[] = [];
  const leases = (ttlMs: number, kind = 'target', from = pool): Leases => {
    const made = new Leases({ pool: from, kind, ttlMs });
    open.push(made);
    return made;
  };
  const ids = (one: readonly { readonly id: string }[]) => one.map(({ id }) => id).sort();

  t.before(async () => {
    const db = await preparedDatabase();
    pool = new pg.Pool({ connectionString: db.url, max: 5 });
  });
  t.after.each(async () => {
    for (const one of open.splice(0)) await one.close();
    await pool.query('delete from ops.work_leases');
  });
  t.after(() => pool.end());

  t('each row has one holder, however many callers ask for however many rows', async () => {
    const [a, b] = [leases(5_000), leases(5_000)];
    const all = Array.from({ length: 300 }, (_, at) => `id-${String(at).padStart(3, '0')}`);
    const got = await Promise.all([a.acquire(all), b.acquire([...all].reverse()), a.acquire(all.slice(0, 50))]);
    assert.deepEqual(ids(got.flat()), all);
    assert.deepEqual(await b.acquire(all), []);
    assert.ok(got.flat().every((one) => one.isHeld()));
    assert.equal(new Set(got.flat().map((one) => one.epoch)).size, 300);
  });

  t('the same id of another kind is another lease', async () => {
    assert.equal((await leases(5_000, 'target').acquire(['x'])).length, 1);
    assert.equal((await leases(5_000, 'sweep').acquire(['x'])).length, 1);
  });

  t('a released lease is free at once, or after the given delay', async () => {
    const [a, b] = [leases(5_000), leases(5_000)];
    const got = await a.acquire(['now', 'later']);
    const [first, second] = ['now', 'later'].map((id) => got.find((one) => one.id === id));
    assert.ok(first && second);
    first.release();
    second.release({ notBeforeMs: 400 });
    const from = performance.now();
    assert.equal(first.isHeld(), false);
    await a.flush();
    assert.deepEqual(ids(await b.acquire(['now', 'later'])), ['now']);
    await until('the rest is over', async () => (await b.acquire(['later'])).length === 1);
    assert.ok(performance.now() - from >= 395, `taken after ${performance.now() - from} ms`);
    first.release();
    assert.equal(first.signal.aborted, false);
  });

  t('a renewed lease outlives its first time', async () => {
    const [a, b] = [leases(300), leases(300)];
    const [held] = await a.acquire(['x']);
    for (const end = performance.now() + 1_000; performance.now() < end; await delay(50)) {
      assert.deepEqual(await b.acquire(['x']), []);
    }
    assert.equal(held?.isHeld(), true);
    assert.equal(held?.signal.aborted, false);
  });

  t('a holder whose renewals fail learns of the loss before another one can take the row', async () => {
    const broken = new pg.Pool({ ...pool.options, max: 1 });
    try {
      const [a, b] = [leases(400, 'target', broken), leases(400)];
      const [held] = await a.acquire(['x']);
      assert.ok(held);
      const blocker = await broken.connect();
      let taken = false;
      await until('another takes it', async () => {
        taken = (await b.acquire(['x'])).length === 1;
        assert.equal(taken && held.isHeld(), false, 'held by two');
        return taken;
      });
      await until('the holder is aborted', () => held.signal.aborted);
      assert.ok(held.signal.reason instanceof LeaseLost);
      blocker.release();
      held.release();
      await a.close();
      assert.deepEqual(await b.acquire(['x']), [], 'the old holder gave back what is not its own');
    } finally {
      await broken.end();
    }
  });

  t('a row that another has taken is lost at the next renewal', async () => {
    const a = leases(300);
    const [held] = await a.acquire(['x']);
    await pool.query(`update ops.work_leases set epoch = nextval('ops.work_lease_epochs'), holder = 'thief'`);
    await until('the holder is aborted', () => held?.signal.aborted === true);
    assert.equal(held?.isHeld(), false);
  });

  t('time that passes while the process is suspended counts', async () => {
    const a = leases(300);
    const [held] = await a.acquire(['x']);
    const end = performance.now() + 350;
    while (performance.now() < end);
    assert.equal(held?.isHeld(), false);
    assert.equal(held?.signal.aborted, false, 'no timer has run yet, and still it is not held');
  });

  t('close releases every lease', async () => {
    const [a, b] = [leases(60_000), leases(60_000)];
    const got = await a.acquire(['x', 'y']);
    await a.close();
    assert.ok(got.every((one) => one.signal.aborted && !one.isHeld()));
    assert.deepEqual(ids(await b.acquire(['x', 'y'])), ['x', 'y']);
  });

  t('rows that lapsed long ago are deleted', async () => {
    await pool.query(`insert into ops.work_leases (kind, id, holder, epoch, until, not_before) values
      ('target', 'old', 'dead', 1, now() - interval '2 hours', null),
      ('target', 'resting', 'dead', 2, now() - interval '2 hours', now() + interval '1 hour'),
      ('target', 'young', 'dead', 3, now() - interval '1 minute', null)`);
    await leases(300).acquire(['x']);
    const left = async () => (await pool.query('select id from ops.work_leases order by id')).rows.map(({ id }) => id);
    await until('old is gone', async () => !(await left()).includes('old'));
    assert.deepEqual(await left(), ['resting', 'x', 'young']);
  });

  t('each cleaning checks some rows, the next one the rows behind them; a due row stays for an hour', async () => {
    await pool.query(`insert into ops.work_leases (kind, id, holder, epoch, until, not_before)
      select 'target', 'old-' || n, 'dead', n, now() - interval '2 hours', null from generate_series(1, 7) n
      union all select 'target', 'resting-' || n, 'dead', n, now() - interval '2 hours', now() + interval '1 day' from generate_series(1, 7) n
      union all values ('target', 'due', 'dead', 1, now() - interval '2 hours', now() - interval '59 minutes'),
        ('target', 'due-long', 'dead', 1, now() - interval '2 hours', now() - interval '61 minutes'),
        ('other', 'old', 'dead', 1, now() - interval '2 hours', null)`);
    const cleaner = new Leases({ pool, kind: 'target', ttlMs: 300, cleaning: { rows: 3, everyMs: 0 } });
    open.push(cleaner);
    const left = async () => (await pool.query('select id from ops.work_leases order by id')).rows.map(({ id }) => id);
    await cleaner.acquire(['x']);
    const stays = ['due', 'old', ...Array.from({ length: 7 }, (_, at) => `resting-${at + 1}`), 'x'];
    const seen = new Set<number>();
    await until('all that is old is gone', async () => {
      const rows = await left();
      seen.add(rows.length);
      return rows.length === stays.length;
    });
    assert.deepEqual(await left(), stays);
    assert.ok(seen.size > 2, `in steps: ${[...seen].join(' ')}`);
  });
});
