import assert from 'node:assert/strict';
import pg from 'pg';
import { DatabaseClock, type DatabaseClockOptions } from '#runtime/postgres/database-clock.ts';
import { createLogger, Readiness } from '#runtime/process/telemetry.ts';
import { Leases } from '#runtime/work/leases.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const logger = createLogger('test', 'silent');

suite("the database's clock", (t) => {
  let pool: pg.Pool;
  const open: DatabaseClock[] = [];
  const clockOf = async (options: Partial<DatabaseClockOptions> = {}): Promise<DatabaseClock> => {
    const clock = await DatabaseClock.open({ pool, logger, ...options });
    open.push(clock);
    return clock;
  };
  const databaseNow = async (): Promise<number> => {
    const { rows } = await pool.query<{ now: number }>(
      'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
    );
    return rows[0]?.now ?? Number.NaN;
  };
  const clockCheck = async (readiness: Readiness) => (await readiness.ask()).find(({ name }) => name === 'clock');

  t.before(async () => {
    pool = new pg.Pool({ connectionString: (await preparedDatabase()).url, max: 3 });
    pool.on('error', () => undefined);
  });
  t.after.each(async () => {
    for (const clock of open.splice(0)) await clock.close();
  });
  t.after(() => pool?.end());

  t("is never ahead of the server's and at most slightly behind, whatever the wall clock", async () => {
    for (const offMs of [0, 3_600_000, -3_600_000]) {
      const clock = await clockOf({ wall: () => Date.now() + offMs });
      for (let n = 0; n < 20; n += 1) {
        const before = await databaseNow();
        const now = clock.now();
        const after = await databaseNow();
        assert.ok(now <= after, `${now - after} ms ahead`);
        assert.ok(now > before - 100, `${before - now} ms behind`);
        await clock.renew();
      }
      assert.ok(Math.abs(clock.offsetMs() - offMs) < 100, `${clock.offsetMs()} for ${offMs}`);
    }
  });

  /** A database that is `aheadMs` ahead, and whose answers take their time on the way. */
  const database = () => {
    const server = { aheadMs: 0, thereMs: 0, backMs: 0, asked: 0 };
    const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    const query = async () => {
      server.asked += 1;
      await wait(server.thereMs);
      const now = Date.now() + server.aheadMs;
      await wait(server.backMs);
      return { rows: [{ now }] };
    };
    const client = { query, release: () => undefined };
    return { server, pool: { connect: async () => client } as unknown as pg.Pool };
  };

  t('a slow answer does not move it ahead of the server, nor back', async () => {
    const { server, pool: far } = database();
    server.thereMs = 40;
    const clock = await clockOf({ pool: far });
    assert.ok(clock.now() <= Date.now() + 1, 'the way there counts as time that has passed');
    server.thereMs = 0;
    await clock.renew();
    assert.ok(clock.now() >= Date.now() - 20);
    server.backMs = 200;
    await clock.renew();
    assert.ok(clock.now() <= Date.now() + 1);
    assert.ok(clock.now() >= Date.now() - 20, 'a slow answer is worth less than the quick one before it');
  });

  t('it follows a database whose clock was set', async () => {
    const { server, pool: set } = database();
    const clock = await clockOf({ pool: set });
    for (const aheadMs of [30_000, -30_000]) {
      server.aheadMs = aheadMs;
      await clock.renew();
      assert.ok(Math.abs(clock.now() - Date.now() - aheadMs) < 50, `${clock.now() - Date.now()}`);
    }
  });

  t('a change of the wall clock only makes it measure again', async () => {
    const { server, pool: asked } = database();
    const off = { ms: 0 };
    const clock = await clockOf({ pool: asked, wall: () => Date.now() + off.ms });
    const before = server.asked;
    off.ms = 20_000;
    await until('it measures anew', async () => {
      assert.equal(clock.fault(), null);
      return server.asked > before;
    });
    assert.ok(Math.abs(clock.now() - Date.now()) < 50);
    assert.ok(Math.abs(clock.offsetMs() - 20_000) < 50);
  });

  t('/readyz warns beyond 5 s; beyond 60 s a worker is not ready and takes no lease', async () => {
    const off = { ms: 0 };
    const wall = () => Date.now() + off.ms;
    const [worker, api] = [new Readiness(), new Readiness()];
    const clock = await clockOf({ wall, readiness: worker });
    await clockOf({ wall, readiness: api, claims: false });
    const leases = new Leases({ pool, kind: 'target', ttlMs: 5_000, clock });
    assert.deepEqual(await clockCheck(worker), { name: 'clock', ok: true });
    const [kept] = await leases.acquire(['kept']);
    off.ms = -6_000;
    const warned = await clockCheck(worker);
    assert.ok(warned?.ok);
    assert.match(warned.detail ?? '', /^warning: the clock of this machine is 6\.0 s behind the database’s/);
    assert.equal((await leases.acquire(['a'])).length, 1);
    off.ms = 61_000;
    const ill = await clockCheck(worker);
    assert.ok(ill?.ok === false);
    assert.match(ill.detail ?? '', /61\.0 s ahead of the database’s; .*claims no work/);
    assert.match((await clockCheck(api))?.detail ?? '', /^warning: .*61\.0 s ahead/);
    assert.ok((await clockCheck(api))?.ok);
    assert.deepEqual(await leases.acquire(['b']), []);
    assert.ok(kept?.isHeld(), 'what was begun is brought to its end');
    off.ms = 0;
    assert.equal((await leases.acquire(['b'])).length, 1);
    await leases.close();
  });

  t('it keeps running while the database does not answer', async () => {
    const broken = new pg.Pool({ connectionString: 'postgres://nobody@127.0.0.1:1/none' });
    await assert.rejects(DatabaseClock.open({ pool: broken, logger }));
    await broken.end();
    const gone = { away: false };
    const half = {
      connect: () => (gone.away ? Promise.reject(new Error('away')) : pool.connect()),
    } as unknown as pg.Pool;
    const clock = await clockOf({ pool: half });
    gone.away = true;
    await clock.renew();
    assert.ok(Math.abs(clock.now() - (await databaseNow())) < 100);
  });
});
