import { deepEqual, equal, ok } from 'node:assert/strict';
import { pickFairly as pick, takeFairly } from '#runtime/work/fair-pick.ts';
import { atMost, type Share, Slots, type Taker } from '#runtime/work/slots.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

interface Job {
  readonly id: string;
  readonly workspace: string;
  readonly network: string;
}

let made = 0;
const jobs = (workspace: string, count: number, network = 'x'): readonly Job[] =>
  Array.from({ length: count }, () => {
    made += 1;
    return { id: `${workspace}${made}`, workspace, network };
  });
const takerOf = ({ workspace, network }: Job): Taker => ({ workspaceId: workspace, network });
const slotsOf = (running: readonly Job[], size: number, ...shares: readonly [Share, ...Share[]]): Slots => {
  const slots = new Slots(size, ...shares);
  for (const job of running) slots.take(takerOf(job));
  return slots;
};
const pickFairly = (waiting: readonly Job[], slots: Slots) => pick(waiting, { slots, takerOf, byNetwork: true });
const workspaces = (picked: readonly Job[]): readonly string[] => picked.map(({ workspace }) => workspace);

const half: Share = ({ network = '' }, slots) => slots.on(network) < Math.ceil((slots.free + slots.on(network)) / 2);
const quarterBesideOthers: Share = (taker, slots, othersWait) =>
  slots.on(taker.network ?? '') + 2 * slots.ofBoth(taker) < slots.free &&
  (!othersWait || slots.of(taker.workspaceId) < Math.max(1, slots.size >> 2));
const rules: readonly (readonly [Share, ...Share[]])[] = [
  [atMost(100)],
  [atMost(2)],
  [(taker, slots, others) => half(taker, slots, others) && atMost(3)(taker, slots, others), atMost(5)],
  [quarterBesideOthers],
  [quarterBesideOthers, quarterBesideOthers],
  [atMost(1), atMost(2), (_taker, slots) => slots.taken < slots.size - 1],
];

/** The same choice, by looking at every job for each slot. */
const leastAgainAndAgain = (waiting: readonly Job[], given: Slots, byNetwork: boolean): readonly Job[] => {
  const slots = new Slots(given.size, ...(given.shares as [Share, ...Share[]]));
  for (const taker of given.takers()) for (let at = given.ofBoth(taker); at > 0; at -= 1) slots.take(taker);
  const left = new Set(waiting);
  const picked: Job[] = [];
  const rank = ({ workspace, network }: Job) => [slots.of(workspace), byNetwork ? slots.on(network) : 0] as const;
  for (const share of slots.shares) {
    const othersWait = new Set([...left].map(({ workspace }) => workspace)).size > 1;
    while (slots.free > 0) {
      let least: Job | null = null;
      for (const job of left) {
        if (!share(takerOf(job), slots, othersWait)) continue;
        const [[own, on], [leastOwn, leastOn]] = [
          rank(job),
          least === null ? [Number.POSITIVE_INFINITY, 0] : rank(least),
        ];
        if (own < leastOwn || (own === leastOwn && on < leastOn)) least = job;
      }
      if (least === null) break;
      slots.take(takerOf(least));
      left.delete(least);
      picked.push(least);
    }
  }
  return picked;
};

suite('a fair pick', (t) => {
  t('gives a slot to the workspace with the fewest running jobs, whatever its place in the queue', () => {
    const running = [...jobs('large', 2), ...jobs('middle', 1)];
    const waiting = [...jobs('large', 500), ...jobs('middle', 3), ...jobs('small', 3)];
    deepEqual(workspaces(pickFairly(waiting, slotsOf(running, 8, atMost(8)))), [
      'small',
      'middle',
      'small',
      'large',
      'middle',
    ]);
  });

  t('gives no workspace more than its share, even while slots stay free', () => {
    const picked = pickFairly(jobs('large', 500), slotsOf(jobs('large', 2), 8, atMost(3)));
    equal(picked.length, 1);
  });

  t('picks no more than there are free slots, and nothing where none is free', () => {
    const running = jobs('a', 6);
    equal(pickFairly(jobs('b', 500), slotsOf(running, 8, atMost(8))).length, 2);
    equal(pickFairly(jobs('b', 500), slotsOf(running, 6, atMost(8))).length, 0);
    equal(pickFairly([], slotsOf(running, 8, atMost(8))).length, 0);
  });

  t('compares the second key among workspaces that run equally much, then keeps the order of the queue', () => {
    const running = jobs('other', 2, 'slow');
    const waiting = [...jobs('a', 1, 'slow'), ...jobs('b', 1, 'quick'), ...jobs('c', 1, 'calm')];
    deepEqual(workspaces(pickFairly(waiting, slotsOf(running, 8, atMost(8)))), ['b', 'c', 'a']);
  });

  t('continues with the next share once no job is within the first', () => {
    const waiting = [...jobs('a', 5), ...jobs('b', 1)];
    const picked = pickFairly(
      waiting,
      slotsOf([], 6, atMost(1), (_taker, { taken }) => taken < 4),
    );
    deepEqual(workspaces(picked), ['a', 'b', 'a', 'a']);
  });

  t('leaves the counts it was given as they are, and counts go down when a job ends', () => {
    const slots = new Slots(1, atMost(1));
    const [job] = pickFairly(jobs('a', 1), slots);
    ok(job !== undefined);
    equal(slots.taken, 0);
    slots.take(takerOf(job));
    deepEqual([slots.taken, slots.of('a'), slots.on('x')], [1, 1, 1]);
    deepEqual(slots.takers(), [{ workspaceId: 'a', network: 'x' }]);
    slots.give(takerOf(job));
    deepEqual([slots.taken, slots.of('a'), slots.on('x')], [0, 0, 0]);
    deepEqual(slots.takers(), []);
  });

  t('is the choice of the least job again and again, whatever the rules, and keeps the order of each line', () => {
    const random = seeded('laws of a pick');
    for (let round = 0; round < 400; round += 1) {
      const size = random.int(1, 24);
      const slots = new Slots(size, ...random.pick(rules));
      const byNetwork = random.next() < 0.5;
      const [owners, networks] = [random.int(1, 6), random.int(1, 4)];
      const one = (): Job => jobs(`w${random.int(1, owners)}`, 1, `n${random.int(1, networks)}`)[0] as Job;
      for (let at = random.int(0, size); at > 0; at -= 1) slots.take(takerOf(one()));
      const waiting = Array.from({ length: random.int(0, 40) }, one);
      const before = [slots.taken, slots.takers()];
      const expected = leastAgainAndAgain(waiting, slots, byNetwork);
      deepEqual(pick(waiting, { slots, takerOf, byNetwork }), expected);
      deepEqual([slots.taken, slots.takers().length], [before[0], (before[1] as readonly Taker[]).length]);
      const [taken, taking] = [slots.taken, takeFairly(waiting, { slots, takerOf, byNetwork })];
      deepEqual(taking, expected);
      equal(slots.taken, taken + taking.length);
      ok(slots.taken <= size);
      for (const job of taking) {
        const line = (all: readonly Job[]) =>
          all.filter(({ workspace, network }) => workspace === job.workspace && network === job.network);
        deepEqual(line(taking), line(waiting).slice(0, line(taking).length));
      }
    }
  });
});
