/**
 * One tenant at 50 events a second, alone and then beside another one whose endpoint takes 10 s for each of 1,500. The
 * configuration is that of the throughput.
 */
import { randomUUID } from 'node:crypto';
import { sparing, until } from '#test/support/until.ts';
import { type BenchRow, percentile, spread } from '../row.ts';
import { cleanup } from './cleanup.ts';
import { Receiver } from './receiver.ts';
import { BenchWorld, settled } from './world.ts';

const rate = 50;
const queued = 1_500;
const answerMs = 10_000;

interface Round {
  readonly idle: readonly number[];
  readonly beside: readonly number[];
  /** Deliveries of the slow tenant left at the end. */
  readonly left: number;
}

const round = async (quick: boolean): Promise<Round> => {
  await using stack = cleanup();
  const receiver = await Receiver.start({ timed: true });
  stack.defer(() => receiver.stop());
  const world = await BenchWorld.open(stack);
  const slow = await Receiver.start({ answerMs });
  // Ends before the process that waits for its answers.
  stack.defer(() => slow.stop());
  const [a, b] = [randomUUID(), randomUUID()];
  await world.register(a, slow.urls[0] ?? '');
  await world.register(b, receiver.urls[0] ?? '');
  await settled(world.pool, 2);
  const [noise, feed] = [await world.feed(a), await world.feed(b)];
  await feed.openLoop(receiver, { rate, ms: 5_000 });
  const ms = quick ? 8_000 : 30_000;
  const idle = await feed.openLoop(receiver, { rate, ms });
  await noise.appendMany(queued);
  await until(
    'the noise is queued',
    async () => {
      const { rowCount } = await world.pool.query('select 1 from ops.webhook_deliveries where workspace_id = $1', [a]);
      return rowCount === queued;
    },
    sparing,
  );
  const beside = await feed.openLoop(receiver, { rate, ms });
  const left = queued - Math.max(0, slow.arrived - 64);
  if (slow.arrived === 0 || left < queued / 2) throw new Error(`the slow endpoint was not slow: ${left} left`);
  return { idle: idle.fromStart, beside: beside.fromStart, left };
};

export const noisy = async (quick: boolean): Promise<BenchRow[]> => {
  const rounds: Round[] = [];
  for (let n = 0; n < (quick ? 1 : 3); n += 1) rounds.push(await round(quick));
  const figure = (of: 'idle' | 'beside', share: number) => spread(rounds.map((one) => percentile(one[of], share)));
  const [idle, beside] = [figure('idle', 0.5), figure('beside', 0.5)];
  const [idle99, beside99] = [figure('idle', 0.99), figure('beside', 0.99)];
  const said = ({ min, max }: { readonly min: number; readonly max: number }) =>
    `${min.toFixed(1)} to ${max.toFixed(1)}`;
  return [
    {
      name: 'webhooks: p50 of a tenant beside a slow one',
      unit: 'ms',
      ours: beside.median,
      peer: 17_000,
      goal: `≤ 2 × idle (${idle.median.toFixed(1)})`,
      ok: beside.median <= 2 * idle.median,
      note: `${said(beside)}, idle ${said(idle)}; ${rate}/s, ${rounds.map(({ left }) => left).join(', ')} of ${queued} of the slow one left at the end; peer quoted (idle 5)`,
    },
    {
      name: 'webhooks: p99 of a tenant beside a slow one',
      unit: 'ms',
      ours: beside99.median,
      goal: 'shown',
      ok: true,
      note: `${said(beside99)}, idle ${idle99.median.toFixed(1)} (${said(idle99)})`,
    },
  ];
};
