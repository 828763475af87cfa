import assert from 'node:assert/strict';
import pg from 'pg';
import { acquireLease, type LogLease } from '#infra/postgres/log-lease.ts';
import { type TestDatabase, testDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('leases on the connection that a process shares', (t) => {
  let db: TestDatabase;
  let other: pg.Client;

  t.before(async () => {
    db = await testDatabase();
    other = new pg.Client({ connectionString: db.url });
    await other.connect();
  });
  t.after(async () => {
    await other.end();
    await db.drop();
  });

  const never = new AbortController().signal;
  const lease = async (name: string, signal = never): Promise<LogLease> => {
    const given = await acquireLease({ url: db.url, name, signal });
    assert.ok(given !== null);
    return given;
  };
  /** Whether another process is given the name at once; it gives it back. */
  const isFree = async (name: string): Promise<boolean> => {
    const { rows } = await other.query(
      'select pg_try_advisory_lock(hashtextextended($1, 0)) as given, pg_advisory_unlock(hashtextextended($1, 0))',
      [name],
    );
    return rows[0].given;
  };
  const connections = async (): Promise<readonly number[]> => {
    const { rows } = await other.query(
      `select pid from pg_stat_activity where datname = current_database() and application_name = 'log-lease'`,
    );
    return rows.map(({ pid }) => pid);
  };

  /** Whether a holder waits for one of the names. */
  const isAwaited = async (): Promise<boolean> => {
    const { rows } = await other.query(
      `select 1 from pg_locks join pg_database on pg_database.oid = database
       where datname = current_database() and locktype = 'advisory' and not granted`,
    );
    return rows.length > 0;
  };
  const oneConnection = () => until('there is one connection', async () => (await connections()).length === 1);

  t('many leases hold one connection, and it ends with the last of them', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `group ${i}`);
    const leases = await Promise.all(names.map((name) => lease(name)));
    await oneConnection();
    for (const name of names) assert.equal(await isFree(name), false);
    await Promise.all(leases.map((one) => one.release()));
    for (const name of names) assert.equal(await isFree(name), true);
    await until('the connection ends', async () => (await connections()).length === 0);
  });

  t('a lease that is released is free at once, and the others stay', async () => {
    const [first, second] = [await lease('first'), await lease('second')];
    await first.release();
    assert.equal(await isFree('first'), true);
    assert.equal(await isFree('second'), false);
    assert.equal(first.lost.aborted, true);
    assert.equal(second.lost.aborted, false);
    const again = await lease('first');
    await oneConnection();
    assert.equal(await isFree('first'), false);
    await Promise.all([again.release(), second.release()]);
  });

  t('when the connection is cut every holder is told at once, and another process is given the names', async () => {
    const leases = [await lease('first'), await lease('second')];
    const reported: string[] = [];
    leases.forEach(({ lost }, i) => {
      lost.addEventListener('abort', () => reported.push(String(i)));
    });
    const waiting = other.query("select pg_advisory_lock(hashtextextended('first', 0))");
    const admin = new pg.Client({ connectionString: db.url });
    await admin.connect();
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'log-lease'`,
    );
    await admin.end();
    await waiting;
    await until('both are told', () => reported.length === 2);
    assert.equal(await isFree('second'), true);
    // The next holder finds a connection that lives.
    const next = await lease('second');
    assert.equal(next.lost.aborted, false);
    await Promise.all([...leases, next].map((one) => one.release()));
  });

  t('two holders of one name take turns in one process, too', async () => {
    const first = await lease('name');
    let given = false;
    const second = lease('name').then((it) => {
      given = true;
      return it;
    });
    await until('the second waits', isAwaited);
    const third = await lease('other');
    assert.equal(given, false);
    await first.release();
    const held = await second;
    assert.equal(held.lost.aborted, false);
    assert.equal(await isFree('name'), false);
    await Promise.all([held.release(), third.release()]);
    assert.equal(await isFree('name'), true);
  });

  t('a name that another process holds is passed on when that one leaves', async () => {
    await other.query("select pg_advisory_lock(hashtextextended('name', 0))");
    const waiting = lease('name');
    await until('it waits', isAwaited);
    await other.query("select pg_advisory_unlock(hashtextextended('name', 0))");
    const held = await waiting;
    assert.equal(await isFree('name'), false);
    await held.release();
    assert.equal(await isFree('name'), true);
  });

  t('a caller that leaves while it asks holds nothing, also beside others', async () => {
    const alone = new AbortController();
    const none = acquireLease({ url: db.url, name: 'name', signal: alone.signal });
    alone.abort();
    assert.equal(await none, null);
    const held = await lease('held');
    const beside = new AbortController();
    const left = acquireLease({ url: db.url, name: 'name', signal: beside.signal });
    beside.abort();
    assert.equal(await left, null);
    await until('the name is free', () => isFree('name'));
    assert.equal(held.lost.aborted, false);
    const again = await lease('name');
    assert.equal(await isFree('name'), false);
    await Promise.all([held.release(), again.release()]);
  });
});
