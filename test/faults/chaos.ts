/**
 * `make chaos`: kills our processes at every fault point and at random until enough have died, then compares
 * everything.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { leaseKindOfTargets } from '#projections/queries/due-targets.ts';
import { patience } from '#test/support/patience.ts';
import { dataFolder, testDatabase } from '#test/support/postgres.ts';
import { random as seededRandom } from '#test/support/seed.ts';
import { runCleanups } from '#test/support/suite.ts';
import { type CheckResult, check, untilQuiet } from './check.ts';
import { endRestsOfAccounts } from './check-insights.ts';
import { moments } from './live-moments.ts';
import { type MutantName, mutantNames, mutated } from './mutants.ts';
import { mortals, points, roleNames } from './points.ts';
import { restoreOnce } from './restore.ts';
import { FaultWorld, newSecretKey } from './world.ts';

const HELP = `usage: npm run chaos -- [options]      (or: make chaos ARGS="[options]")

Starts api, projections, outcomes, two publishers, two that send webhooks, media, insights, reports, a relay and rebuilds, each a process
of its own, over one Postgres and one analytics store, under load, also on live accounts of all ten networks: Bluesky is
the real server of its protocol, the others are simulated. In rounds: kills
them with -9 once at every named gap, the publishers at every call to a live network too, has a version of LinkedIn end, then at random, the analytics engine too, and
puts those that work under leases to sleep past them; then it waits until all is quiet and compares: what was acknowledged, the networks'
ledgers, the read models, the analytics, the reports, the streams. At last the database is restored from a copy that is older than
what the network has, and the targets are compared with the network's ledger.
The ingester of the analytics has a run of its own: INGESTER_KILLS=100 node test/projections/analytics/ingest.test.ts

Ends with "chaos: N kills, M posts, K targets, 0 violations, seed S"; exit code 1 when there is a violation.

  --kills <n>      begins no further round after so many kills (default 200)
  --seed <n>       plays the random choices of a run again
  --minutes <n>    begins no further round after so many (default 30)
  --moments <n>    a slice: so many of the calls to live networks in each round, drawn by the seed (default all)
  --mutant <name>  with a broken build, which must end in violations: ${mutantNames.join(', ')}
  --help           this text

Environment: DATABASE_URL or TEST_DATABASE_URL gives a server; a database of its own is made on it, and dropped.`;

interface Options {
  readonly kills: number;
  readonly seed: number;
  readonly minutes: number;
  readonly moments: number;
  readonly mutant: MutantName | null;
}

const readOptions = (): Options | null => {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '200' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      minutes: { type: 'string', default: '30' },
      moments: { type: 'string', default: String(moments.length) },
      mutant: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return null;
  const number = (name: 'kills' | 'seed' | 'minutes' | 'moments'): number => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} must be a whole number, not ${values[name]}`);
    return value;
  };
  const mutant = mutantNames.find((one) => one === values.mutant) ?? null;
  if (values.mutant !== undefined && mutant === null) throw new Error(`--mutant is one of ${mutantNames.join(', ')}`);
  return {
    kills: number('kills'),
    seed: number('seed'),
    minutes: number('minutes'),
    moments: number('moments'),
    mutant,
  };
};

const began = performance.now();
const say = (what: string): void =>
  void process.stdout.write(`${((performance.now() - began) / 1_000).toFixed(0).padStart(5)} s  ${what}\n`);

/**
 * Lets every target be looked at now. The questions of this world are over after a minute, in which a network may have been
 * silent, and then come hourly: more of them would keep it from its rest, since each call to X is an event. Figures are
 * asked for too: those of an account whose network ended a version rest for a quarter of an hour.
 */
const endRests = async (pool: pg.Pool): Promise<void> => {
  const sql = 'update ops.work_leases set not_before = now() where kind = $1 and not_before > now()';
  await pool.query(sql, [leaseKindOfTargets]);
  const rested = await endRestsOfAccounts(pool);
  if (rested.length > 0) say(`figures rested on ${rested.toSorted().join(', ')}`);
};

/** Every fault point once, then kills at random, all under load; then quiet and the comparison. */
const round = async (world: FaultWorld, random: FaultWorld['random'], ofMoments: number): Promise<CheckResult> => {
  const stop = new AbortController();
  await world.role('webhooks-2').end();
  const { live } = world;
  const going = Promise.all([
    world.load.keepGoing(3, stop.signal, true),
    world.hooks.keepChanging(world.load, stop.signal),
  ]);
  // Until all is quiet: an unknown outcome is looked for with the account's token.
  const done = new AbortController();
  const consenting = live?.keepConsenting(done.signal);
  await Promise.all(
    mortals.map((names) =>
      world.dieAtEach(
        names.map((name) => world.role(name)),
        points.filter((one) => names.includes(one.role)),
      ),
    ),
  );
  await world.role('webhooks-2').begin();
  await world.dieAtMoments(random.shuffle(moments).slice(0, ofMoments));
  const alsoLive = live?.load.keepGoing(2, stop.signal);
  await world.endVersion();
  const steady = roleNames.filter((name) => name !== 'rebuild');
  const senders = steady.filter((name) => name.startsWith('webhooks'));
  const counters = [...steady.filter((name) => /^(projections|insights|reports)/.test(name)), engine];
  const others = steady.filter((name) => !senders.includes(name) && !counters.includes(name));
  // Each kind in turn: only senders show faults of sending in memory, and only counters those of the analytics.
  const turns = [senders, counters, others];
  for (let turn = 0; turn < atRandom; turn += 1) {
    const name = random.pick(turns[turn % turns.length] ?? []);
    const leases = /^(publisher|webhooks|insights|reports)/.test(name);
    const sleeps = leases && random.int(0, 3) === 0;
    if (name === engine) await world.killEngine();
    else if (sleeps) await world.freeze(world.role(name), sleepMs);
    else await world.role(name).kill();
    say(`${name} ${sleeps ? 'slept' : 'was killed'} (${world.kills})`);
    await delay(random.int(50, 1_500));
  }
  stop.abort();
  await Promise.all([going, alsoLive]);
  live?.networks.calm();
  const { checked } = world;
  // Twice: the owner of an account that a question found lapsed consents again, and the next question comes in an hour too.
  let open: readonly string[] = ['nothing was looked at'];
  for (let looks = 0; looks < 2 && open.length > 0; looks += 1) {
    await endRests(checked.pool);
    open = await untilQuiet(checked, 60_000 * patience);
  }
  done.abort();
  await consenting;
  await Promise.all([world.load.repeat(500), live?.load.repeat(200)]);
  // The comparison takes minutes, in which accounts come due: what it reads first would lack figures that it reads later.
  // The next round starts it again.
  await world.role('insights').end();
  const result = await check(checked);
  return { ...result, violations: [...world.violations, ...open, ...result.violations] };
};

const engine = 'the analytics engine';
/** Kills and naps of a round, after its fault points. */
const atRandom = 60;
/**
 * Milliseconds. Longer than in other worlds: beside so many processes one that renews a lease of a second is late, and
 * publishers take targets from each other until none comes to its network.
 */
const leaseMs = 3_000;
/** Longer than any lease of these processes. */
const sleepMs = 4_000;

const main = async ({ kills, seed, minutes, moments: ofMoments, mutant }: Options): Promise<void> => {
  say(`seed ${seed}${mutant === null ? '' : `, broken build: ${mutant}`}`);
  const random = seededRandom(seed);
  const databaseUrl = (await testDatabase()).url;
  const installed = { secretKey: newSecretKey(), dataDir: dataFolder().dataDir };
  const world = await FaultWorld.open({
    ...{ databaseUrl, installed, random },
    live: 'all',
    onProgress: say,
    env: { LEASE_TTL_MS: String(leaseMs), ...(mutant === null ? {} : mutated(mutant)) },
  });
  const leave = (signal: NodeJS.Signals): void => {
    say(`${signal}: stopping`);
    void Promise.allSettled([...world.roles.values()].map((role) => role.end()))
      .then(runCleanups)
      .finally(() => process.exit(130));
  };
  process.on('SIGINT', leave).on('SIGTERM', leave);
  try {
    await world.begin();
    let result: CheckResult;
    do {
      result = await round(world, random, ofMoments);
      const { events, rows, observations, runs, statuses, hooks, violations } = result;
      const { deliveries, arrivals, repeats } = hooks;
      say(`quiet: ${events} events, ${rows} rows, ${JSON.stringify(statuses)}, ${violations.length} violations`);
      say(`analytics: ${observations} observations, ${runs} runs of reports`);
      say(`webhooks: ${deliveries} deliveries, ${arrivals} arrivals, ${repeats} of what was taken before`);
    } while (result.violations.length === 0 && world.kills < kills && performance.now() - began < minutes * 60_000);
    const { posts, targets, hooks } = result;
    await world.close();
    const violations =
      result.violations.length > 0
        ? result.violations
        : await restoreOnce({ databaseUrl, installed, random, say }, world.checked.live?.workspaceId ?? null);
    for (const what of violations) process.stdout.write(`\nviolation: ${what}\n`);
    process.stdout.write(
      `\nchaos: ${world.kills} kills, ${posts} posts, ${targets} targets, ${hooks.deliveries} deliveries, ${violations.length} violations, seed ${seed}\n`,
    );
    if (violations.length > 0) process.exitCode = 1;
  } finally {
    await world.close();
  }
};

const options = readOptions();
if (options === null) process.stdout.write(`${HELP}\n`);
else {
  try {
    await main(options);
  } finally {
    await runCleanups();
  }
}
