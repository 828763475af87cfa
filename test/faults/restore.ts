import { setTimeout as delay } from 'node:timers/promises';
import { openPool } from '#infra/postgres/pool.ts';
import { everyWorkspace, migrateHolds, resumePublishing } from '#runtime/work/publishing-hold.ts';
import { migrateRestores, newestRestore, restored } from '#runtime/work/restores.ts';
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
  const [source, copy] = [from, to].map((url) => openPool({ url, max: 1, name: 'network' }));
  if (source === undefined || copy === undefined) return;
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

/** Waits until no target is under way and nothing more is stored. */
const atRest = async (world: FaultWorld): Promise<readonly string[]> => {
  let [head, since, left]: [bigint | null, number, readonly string[]] = [
    null,
    performance.now(),
    ['nothing was looked at'],
  ];
  const limit = performance.now() + 120_000 * patience;
  for (; performance.now() < limit; await delay(250)) {
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
  const open = (url: string) => FaultWorld.open({ databaseUrl: url, random, installed });
  const first = await open(databaseUrl);
  await first.begin();
  await first.load.upcoming(posts, 40_000, 90_000);
  for (const action of ['native', 'approve', 'recycled'] as const) await first.load.run(action);
  await first.close();
  const copy = (await testDatabase(new URL(databaseUrl).pathname.slice(1))).url;
  const asOf = new Date().toISOString();
  say(`a copy was made with ${posts} posts that are due`);

  const original = await open(databaseUrl);
  await original.begin();
  const stop = new AbortController();
  const going = original.load.keepGoing(2, stop.signal);
  await original.role('publisher-1').kill();
  await delay(5_000);
  stop.abort();
  await going;
  const unended = await atRest(original);
  const streams = await streamsOf({ store: original.adapters.store, codec: original.codec });
  const ledger = await original.sandbox.ledger({ after: 0, limit: 1_000_000 });
  const lost: Lost = { streams, untilSeq: ledger.at(-1)?.seq ?? 0 };
  await original.close();
  await keepNetwork(databaseUrl, copy);

  const pool = openPool({ url: copy, max: 2, name: 'operator' });
  await migrateHolds(pool);
  await migrateRestores(pool);
  await restored(pool, asOf, 'chaos');
  const world = await open(copy);
  await world.begin();
  await until('what was due is recorded', async () => (await newestRestore(pool))?.completedAt !== null, {
    withinMs: 60_000,
  });
  say('the copy is in its place');
  await resumePublishing(pool, everyWorkspace);
  await world.role('publisher-1').kill();
  await world.load.upcoming(3, 500, 2_000);
  const left = await atRest(world);
  const after = await streamsOf({ store: world.adapters.store, codec: world.codec });
  const ours = new Map([...after].filter(([, events]) => events[0]?.metadata.workspaceId !== workspaceId));
  const { violations, statuses } = await checkTargets(ours, world.sandbox, null, { lost });
  say(`after the restore: ${JSON.stringify(statuses)}`);
  const all = [...original.violations, ...world.violations, ...unended, ...left, ...violations];
  await pool.end();
  await world.close();
  return all.map((what) => `after a restore: ${what}`);
};
