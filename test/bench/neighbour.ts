/**
 * A tenant beside one that attacks in every way at once, with strangers beside both: standalone with production
 * defaults, five rounds of quiet and of attack. The attackers run in their own process, so the measured tenant shares
 * its event loop with no other load.
 *
 * Run alone: node test/bench/neighbour.ts (QUICK=1 for the short form).
 */
import { Attackers, type Tally } from './neighbour/attacks.ts';
import { type Noticed, Victim } from './neighbour/victim.ts';
import { type BenchRow, percentile, printRows, type Spread, spread } from './row.ts';
import { startStandalone } from './standalone.ts';

const floor = { get: 25, webhook: 20 };
const times = { get: 5, webhook: 2 };

const said = ({ min, max }: Spread): string => `${min.toFixed(1)} to ${max.toFixed(1)}`;
const reported = (tally: Tally): string =>
  Object.entries(tally)
    .map(
      ([name, answers]) =>
        `${name} ${Object.entries(answers)
          .map(([status, count]) => `${status}×${count}`)
          .join(' ')}`,
    )
    .join(', ');

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  await using stack = new AsyncDisposableStack();
  const world = await startStandalone({ keys: 20, neighbour: true, env: { PRIVATE_TARGETS: '*' } });
  stack.defer(() => world.stop());
  const { port, neighbour } = world;
  const attackers = await Attackers.start({ port, ...neighbour, drafts: quick ? 200 : 1_500 });
  stack.defer(() => attackers.stop());
  const victim = await Victim.open(world, stack);
  const ms = quick ? 5_000 : 15_000;
  await victim.notice(3_000);
  const quiet: Noticed[] = [];
  const attacked: Noticed[] = [];
  let tally: Tally = {};
  for (let round = 0; round < (quick ? 2 : 5); round += 1) {
    quiet.push(await victim.notice(ms));
    attackers.begin();
    attacked.push(await victim.notice(ms));
    tally = await attackers.rest();
  }
  const gets = (rounds: readonly Noticed[]) => spread(rounds.map((one) => percentile(one.gets, 0.99)));
  const webhooks = (rounds: readonly Noticed[]) => spread(rounds.map((one) => percentile(one.webhooks, 0.5)));
  const [quietGets, attackedGets] = [gets(quiet), gets(attacked)];
  const [quietHooks, attackedHooks] = [webhooks(quiet), webhooks(attacked)];
  const most = {
    get: Math.max(floor.get, times.get * quietGets.median),
    webhook: Math.max(floor.webhook, times.webhook * quietHooks.median),
  };
  return [
    {
      name: 'neighbour: GET p99 beside an attack',
      unit: 'ms',
      ours: attackedGets.median,
      goal: `≤ ${times.get} × quiet, at least ${floor.get} (${most.get.toFixed(0)})`,
      ok: attackedGets.median <= most.get,
      note: `${said(attackedGets)}; quiet ${quietGets.median.toFixed(1)} (${said(quietGets)}); last attack: ${reported(tally)}`,
    },
    {
      name: 'neighbour: webhook p50 beside an attack',
      unit: 'ms',
      ours: attackedHooks.median,
      goal: `≤ ${times.webhook} × quiet, at least ${floor.webhook} (${most.webhook.toFixed(0)})`,
      ok: attackedHooks.median <= most.webhook,
      note: `${said(attackedHooks)}; quiet ${quietHooks.median.toFixed(1)} (${said(quietHooks)}), from the call to the arrival`,
    },
  ];
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));
