import { setTimeout as delay } from 'node:timers/promises';
import { openPool } from '#infra/postgres/pool.ts';
import { everyWorkspace, resumePublishing } from '#runtime/work/publishing-hold.ts';
import { newestRestore, restored } from '#runtime/work/restores.ts';
import { patience } from '#test/support/patience.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { until } from '#test/support/until.ts';
import { openTargets, streamsOf } from './check.ts';
import { checkTargets, type Lost } from './check-targets.ts';
import { FaultWorld, type WorldOptions } from './world.ts';

/**
 * One restore: posts are scheduled, a copy of the database is made, the posts go out, and the copy takes the place of the
 * database. The ledger of the network is the one that it had: networks are outside of what is restored.
 */

interface Restoring extends Pick<WorldOptions, 'random'> {
  readonly databaseUrl: string;
  readonly installed: NonNullable<WorldOptions['installed']>;
  readonly say: (what: string) => void;
}

const posts = 25;
const quietMs = 3_000;

/** Gives the copy what the network has now. */
const keepNetwork = async (from: string, to: string): Promise<void> => {
  const source = openPool({ url: from, max: 1, name: 'network' });
  const copy = openPool({ url: to, max: 1, name: 'network' });
  const { rows } = await source.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'sandbox' and c.relkind = 'r'`,
  );
  for (const { name } of rows) {
    const all = await source.query(`select coalesce(json_agg(t), '[]')::text as rows from sandbox.${name} t`);
    // The ledger takes no deletion.
    await copy.query(`alter table sandbox.${name} disable trigger user`);
    await copy.query(`delete from sandbox.${name}`);
    await copy.query(
      `insert into sandbox.${name} overriding system value
       select * from json_populate_recordset(null::sandbox.${name}, $1)`,
      [all.rows[0].rows],
    );
    await copy.query(`alter table sandbox.${name} enable trigger user`);
  }
  await copy.query(
    `select setval(pg_get_serial_sequence('sandbox.ledger', 'seq'), (select coalesce(max(seq), 0) + 1 from sandbox.ledger))`,
  );
  await Promise.all([source.end(), copy.end()]);
};

/**
 * Waits until no target is under way and nothing more is stored. `untilQuiet` waits for more, which may never come: the
 * receivers and the analytics engine of the world before have ended.
 */
const atRest = async (world: FaultWorld): Promise<readonly string[]> => {
  let head: bigint | null = null;
  let since = performance.now();
  let left: readonly string[] = ['nothing was looked at'];
  for (const limit = performance.now() + 120_000 * patience; performance.now() < limit; await delay(250)) {
    const now = await world.adapters.store.head();
    if (now !== head) [head, since] = [now, performance.now()];
    if (performance.now() - since < quietMs) continue;
    left = await openTargets({ ...world.checked, live: null });
    if (left.length === 0) return [];
  }
  return left;
};

/** @param workspaceId of the live accounts, whose networks have ended */
export const restoreOnce = async (
  { databaseUrl, installed, random, say }: Restoring,
  workspaceId: string | null,
): Promise<readonly string[]> => {
  const inWorld = async <T>(url: string, work: (world: FaultWorld) => Promise<T>): Promise<T> => {
    const world = await FaultWorld.open({ databaseUrl: url, random, installed });
    try {
      await world.begin();
      return await work(world);
    } finally {
      await world.close();
    }
  };
  await inWorld(databaseUrl, async ({ load }) => {
    await load.upcoming(posts, 40_000, 90_000);
    for (const action of ['native', 'approve', 'recycled'] as const) await load.run(action);
  });
  const copy = (await testDatabase(new URL(databaseUrl).pathname.slice(1))).url;
  const asOf = new Date().toISOString();
  say(`a copy was made with ${posts} posts that are due`);

  const { lost, before } = await inWorld(databaseUrl, async (world) => {
    const stop = new AbortController();
    const going = world.load.keepGoing(2, stop.signal);
    await world.role('publisher-1').kill();
    await delay(5_000);
    stop.abort();
    await going;
    const left = await atRest(world);
    const ledger = await world.sandbox.ledger({ after: 0, limit: 1_000_000 });
    const lost: Lost = { streams: await streamsOf(world.checked), untilSeq: ledger.at(-1)?.seq ?? 0 };
    return { lost, before: [...world.violations, ...left] };
  });
  await keepNetwork(databaseUrl, copy);

  const operator = openPool({ url: copy, max: 1, name: 'operator' });
  await restored(operator, asOf, 'chaos');
  await operator.end();
  const after = await inWorld(copy, async (world) => {
    const { pool } = world.adapters;
    await until('what was due is recorded', async () => (await newestRestore(pool))?.completedAt !== null, {
      withinMs: 60_000,
    });
    say('the copy is in its place');
    await resumePublishing(pool, everyWorkspace);
    await world.role('publisher-1').kill();
    await world.load.upcoming(3, 500, 2_000);
    const left = await atRest(world);
    const streams = await streamsOf(world.checked);
    const ours = new Map([...streams].filter(([, events]) => events[0]?.metadata.workspaceId !== workspaceId));
    const { violations, statuses } = await checkTargets(ours, world.sandbox, null, { lost });
    say(`after the restore: ${JSON.stringify(statuses)}`);
    return [...world.violations, ...left, ...violations];
  });
  return [...before, ...after].map((what) => `after a restore: ${what}`);
};
