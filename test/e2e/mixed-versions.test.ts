import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { check, untilQuiet } from '#test/faults/check.ts';
import { Handover } from '#test/faults/handover.ts';
import { FaultWorld } from '#test/faults/world.ts';
import { unpackBefore } from '#test/support/before.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { rowsOfRun, withoutTests } from '#test/support/drawing.ts';
import { doubleProcess } from '#test/support/eventstoredb/server-handle.ts';
import { kafkaBroker } from '#test/support/kafka.ts';
import { patience } from '#test/support/patience.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { seeded } from '#test/support/seed.ts';
import { type Declare, suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/**
 * A deploy runs the build before and this one on one database, and may be taken back. The database is the older build's
 * first; then processes of both change places under load, workers and api by turns, there and back. With MIXED=kafka they
 * share EventStoreDB and Kafka, and the relay changes, too.
 */
const withKafka = process.env.MIXED === 'kafka';
/** Calls that each mixture answers, and posts it takes, before it is the next one's turn. */
const enough = { calls: 10, posts: 3 };
const workers = withKafka ? ['workers', 'relay'] : ['workers'];
const workersBefore = withKafka ? ['before workers', 'before relay'] : ['before workers'];

suite('mixed versions', { timeoutMs: 240_000 }, (t) => {
  let world: FaultWorld;
  let handover: Handover;
  const closers: (() => Promise<void>)[] = [];
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
    const { reported, posts } = world.load;
    const [calls, taken] = [reported.length + enough.calls, posts.length + enough.posts];
    await until('the load goes on', async () => reported.length >= calls && posts.length >= taken, {
      withinMs: 90_000,
    });
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

  /** A job that the former workers wrote or began is ended by those who take their place. */
  const rollWorkers = async (from: readonly string[], to: readonly string[]): Promise<void> => {
    await handover.begin();
    await roll(from, to);
    await handover.end();
  };

  const distributed = async (): Promise<Record<string, string>> => {
    if (!withKafka) return {};
    const [store, broker] = await Promise.all([doubleProcess(), kafkaBroker()]);
    if ('skip' in broker) throw new Error(broker.skip);
    closers.push(store.stop, broker.stop);
    return {
      ESDB_URL: store.url,
      KAFKA_BROKERS: broker.brokers.join(','),
      KAFKA_TOPIC_PREFIX: `mixed-${randomBytes(4).toString('hex')}-`,
    };
  };

  t.before(async () => {
    const before = unpackBefore();
    const [{ url: databaseUrl }, { url: analyticsUrl }, env] = await Promise.all([
      testDatabase(),
      testClickHouse(),
      distributed(),
    ]);
    world = await FaultWorld.open({ databaseUrl, analyticsUrl, before, env, random: seeded('mixed versions') });
    await world.begin([...workersBefore, 'before api']);
    handover = new Handover(world);
    await handover.prepare();
    going = Promise.all([world.load.keepGoing(1, stop.signal), world.hooks.keepChanging(world.load, stop.signal)]).then(
      () => undefined,
    );
    going.catch(() => undefined);
  });
  t.after(async () => {
    stop.abort();
    await world?.close();
    for (const close of closers) await close();
  });

  t('new workers beside the former api', () => rollWorkers(workersBefore, workers));
  // A run goes on or back from here.
  const turns = rowsOfRun('turns of a deploy', ['on', 'back'], String);
  const of = (turn: string): Declare => (turns.includes(turn) ? t : withoutTests(t));
  of('on')('new workers and the new api', () => roll(['before api'], ['api']));
  of('back')('rollback: former workers, an api of each release', async () => {
    await world.role(turns.includes('on') ? 'before api' : 'api').begin();
    await rollWorkers(workers, workersBefore);
  });
  of('back')('new workers again', () => rollWorkers(workersBefore, workers));

  t('no accepted post is lost or published twice, and the read models agree with the streams', async () => {
    stop.abort();
    await going;
    const { checked } = world;
    assert.deepEqual(await untilQuiet(checked, 90_000 * patience), []);
    await world.load.repeat(200);
    const verdict = await check(checked);
    process.stdout.write(
      `  ${world.load.reported.length} keyed calls, ${verdict.posts} posts, ${verdict.targets} targets ${JSON.stringify(verdict.statuses)}, ${verdict.rows} rows, ${verdict.observations} observations, ${verdict.runs} reports, ${JSON.stringify(verdict.hooks)}\n`,
    );
    assert.equal(world.kills, 0);
    assert.deepEqual([...world.violations, ...verdict.violations], []);
  });
});
