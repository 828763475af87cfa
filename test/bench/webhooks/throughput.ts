/** Deliveries a second while events are appended as fast as they arrive, to one endpoint and to five of one tenant. */
import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { sparing, until } from '#test/support/until.ts';
import { type BenchRow, spread } from '../row.ts';
import { cleanup } from './cleanup.ts';
import { bodyBytes } from './feed.ts';
import { type Limit, limitOf, limits } from './limits.ts';
import { type Counts, Receiver } from './receiver.ts';
import { BenchWorld, type CpuOf, settled } from './world.ts';

/** Deliveries on their way at most. */
const window = 4_000;

interface Goal {
  readonly endpoints: number;
  readonly goal: number;
  /** Of the best open-source peer, measured on another day on a similar machine: it cannot run here. */
  readonly peer: number;
}

const goals: Readonly<Record<'one' | 'five', Goal>> = {
  one: { endpoints: 1, goal: 4_000, peer: 782 },
  five: { endpoints: 5, goal: 6_000, peer: 1_896 },
};

/** @throws when the database, the appended events and the arrivals differ */
const check = async (pool: Pool, counts: Counts, events: number, endpoints: number): Promise<void> => {
  const { rows } = await pool.query(
    `select
       (select count(*)::int from ops.webhook_messages) as messages,
       (select sum(('x' || left(id::text, 8))::bit(32)::int8)::float8 from ops.webhook_messages) as digest,
       (select count(*)::int from ops.webhook_deliveries) as deliveries,
       (select count(*)::int from ops.webhook_deliveries where status = 'delivered' and delivered_at is not null
          and jsonb_array_length(attempts) = 1) as delivered,
       (select count(*)::int from ops.webhook_queue) as queued`,
  );
  const expected = {
    messages: events,
    deliveries: events * endpoints,
    delivered: events * endpoints,
    queued: 0,
    arrived: events * endpoints,
    ids: events,
    repeated: 0,
    digest: rows[0]?.digest,
  };
  const wrong = Object.entries(expected).flatMap(([name, is]) => {
    const found = { ...rows[0], ...counts }[name];
    return found === is ? [] : [`${name}: ${found} instead of ${is}`];
  });
  if (wrong.length > 0) throw new Error(`not delivered once each: ${wrong.join(', ')}`);
  if (counts.shortest !== bodyBytes || counts.longest !== bodyBytes) {
    throw new Error(`bodies had ${counts.shortest} to ${counts.longest} bytes instead of ${bodyBytes}`);
  }
};

/** The sender records after the answer: an arrival is recorded a little later. */
const recorded = (pool: Pool): Promise<boolean> =>
  until(
    'all that was delivered is recorded',
    async () => {
      const { rowCount } = await pool.query('select 1 from ops.webhook_queue limit 1');
      return rowCount === 0;
    },
    sparing,
  );

const perSecond = (rate: number): string => Math.round(rate).toLocaleString('en');
const range = (rates: readonly number[]): string => {
  const { min, max } = spread(rates);
  return `${perSecond(min)} to ${perSecond(max)}`;
};

const cpuLine = (cpus: readonly CpuOf[]): string =>
  Object.keys(cpus[0] ?? {})
    .map((name) => `${name} ${spread(cpus.map((cpu) => cpu[name] ?? Number.NaN)).median.toFixed(3)}`)
    .join(', ');

export const throughput = async (name: 'one' | 'five', quick: boolean): Promise<BenchRow[]> => {
  const { endpoints, goal, peer } = goals[name];
  const rounds = quick ? 1 : 3;
  const [warmMs, ms, limitMs] = quick ? [3_000, 10_000, 2_000] : [10_000, 60_000, 10_000];
  await using stack = cleanup();
  const receiver = await Receiver.start({ ports: endpoints });
  stack.defer(() => receiver.stop());
  const world = await BenchWorld.open(stack);
  const other = await Receiver.start({ ports: endpoints });
  stack.defer(() => other.stop());
  const workspaceId = randomUUID();
  const feed = await world.feed(workspaceId);
  for (const url of receiver.urls) await world.register(workspaceId, url);
  await settled(world.pool, endpoints);

  const ours: number[] = [];
  const cpus: CpuOf[] = [];
  const theirs: Record<Limit, number[]> = { rough: [], signing: [], bare: [] };
  await feed.closedLoop(receiver, { ms: warmMs, endpoints, window });
  const turns = [
    async () => {
      const cpu = world.cpu(receiver.pid);
      const { rate, events } = await feed.closedLoop(receiver, { ms, endpoints, window });
      cpus.push(cpu(events * endpoints));
      ours.push(rate);
      console.log(`  ${name}: ${perSecond(rate)}/s`);
    },
    ...limits.map((limit) => async () => {
      const rate = await limitOf(stack, { limit, urls: other.urls, databaseUrl: world.databaseUrl, ms: limitMs });
      theirs[limit].push(rate);
      console.log(`  ${limit}: ${perSecond(rate)}/s`);
    }),
  ];
  for (let round = 0; round < rounds; round += 1) {
    for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
  }
  await recorded(world.pool);
  await check(world.pool, await receiver.counts(), feed.appended, endpoints);
  const complaints = world.complaints();
  const { median } = spread(ours);
  const figures = limits.map((limit) => `${limit} ${range(theirs[limit])}`).join(', ');
  return [
    {
      name: `webhooks: ${endpoints === 1 ? 'one endpoint' : 'five endpoints of one tenant'}`,
      unit: 'deliveries/s',
      ours: median,
      limit: spread(theirs.rough).median,
      peer,
      goal: `≥ ${goal.toLocaleString('en')}`,
      ok: median >= goal,
      note: `ours ${range(ours)} (${rounds} × ${ms / 1_000} s, ${feed.appended.toLocaleString('en')} events, each delivered once and recorded); ${figures}; peer quoted
    processor, ms a delivery: ${cpuLine(cpus)}${complaints.length === 0 ? '' : `; it complained: ${[...new Set(complaints)].join('; ')}`}`,
    },
  ];
};
