import assert from 'node:assert/strict';
import { check, untilQuiet } from '#test/faults/check.ts';
import { FaultWorld } from '#test/faults/world.ts';
import { unpackBefore } from '#test/support/before.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { until } from '#test/support/processes.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/**
 * A deploy runs the build before and this one on one database, and may be taken back. The database is the older build's
 * first; then processes of both change places under load, workers and api by turns, there and back.
 */
/** Calls that each mixture answers, and posts it takes, before it is the next one's turn. */
const enough = { calls: 15, posts: 4 };

suite('mixed versions', { timeoutMs: 240_000 }, (t) => {
  let world: FaultWorld;
  const stop = new AbortController();
  let going: Promise<void> = Promise.resolve();

  /** Processes that say something of themselves that does not hold. */
  const ill = async (): Promise<readonly string[]> => {
    const asked = [...world.roles.values()].flatMap(({ name, up }) =>
      (up?.opsUrls('/readyz') ?? []).map(async (url) => {
        const answer = await fetch(url);
        return answer.status === 200 ? [] : [`${name}: ${await answer.text()}`];
      }),
    );
    return (await Promise.all(asked)).flat();
  };

  /** Until the load has gone on for a while; a mixture that only stands still would find nothing. */
  const goOn = async (): Promise<void> => {
    const { told, posts } = world.load;
    const [calls, taken] = [told.length + enough.calls, posts.length + enough.posts];
    await until('the load goes on', async () => told.length >= calls && posts.length >= taken, 90_000);
  };

  /** New ones come up beside the old ones before those go, as an orchestrator does it. */
  const roll = async (from: readonly string[], to: readonly string[]): Promise<void> => {
    await Promise.all(to.map((name) => world.role(name).begin()));
    await goOn();
    await Promise.all(from.map((name) => world.role(name).end()));
    await goOn();
    // A lane is nobody's for a moment when its holder goes; one that stopped stays stopped.
    await until('all are ready', async () => (await ill()).length === 0).catch(async (error: unknown) => {
      throw new Error((await ill()).join('\n'), { cause: error });
    });
    assert.deepEqual(world.violations, []);
  };

  t.before(async () => {
    const before = unpackBefore();
    const [{ url: databaseUrl }, { url: analyticsUrl }] = await Promise.all([testDatabase(), testClickHouse()]);
    world = await FaultWorld.open({ databaseUrl, analyticsUrl, before, random: seeded('mixed versions') });
    await world.begin(['before workers', 'before api']);
    going = Promise.all([world.load.keepGoing(2, stop.signal), world.hooks.keepChanging(world.load, stop.signal)]).then(
      () => undefined,
    );
    going.catch(() => undefined);
  });
  t.after(async () => {
    stop.abort();
    await world?.close();
  });

  t('the workers are these, the api is the one before', () => roll(['before workers'], ['workers']));
  t('all are these', () => roll(['before api'], ['api']));
  t('it is taken back: the workers are those before, the api is this one', () => roll(['workers'], ['before workers']));
  t('an api of each', () => roll([], ['before api']));

  t('nothing is lost, nothing is out twice, and the read models say what the streams say', async () => {
    stop.abort();
    await going;
    const { checked } = world;
    assert.deepEqual(await untilQuiet(checked, 90_000), []);
    await world.load.repeat(200);
    const verdict = await check(checked);
    process.stdout.write(
      `  ${world.load.told.length} keyed calls, ${verdict.posts} posts, ${verdict.targets} targets ${JSON.stringify(verdict.statuses)}, ${verdict.rows} rows, ${verdict.observations} observations, ${verdict.runs} reports, ${JSON.stringify(verdict.hooks)}\n`,
    );
    assert.equal(world.kills, 0);
    assert.deepEqual([...world.violations, ...verdict.violations], []);
  });
});
