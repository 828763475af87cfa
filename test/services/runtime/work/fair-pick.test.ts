import { deepEqual, equal, ok } from 'node:assert/strict';
import { type FairRules, pickFairly, RunningCounts } from '#runtime/work/fair-pick.ts';
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
const keysOf = ({ workspace, network }: Job): readonly string[] => [workspace, network];
const rules = (slots: number, share: number): FairRules<Job> => ({
  slots,
  keysOf,
  shares: [({ workspace }, running) => running.of(workspace) < share],
});
const workspaces = (picked: readonly Job[]): readonly string[] => picked.map(({ workspace }) => workspace);

suite('a fair pick', (t) => {
  t('gives a slot to the workspace with the fewest running jobs, whatever its place in the queue', () => {
    const running = new RunningCounts([...jobs('large', 2), ...jobs('middle', 1)].map(keysOf));
    const waiting = [...jobs('large', 500), ...jobs('middle', 3), ...jobs('small', 3)];
    deepEqual(workspaces(pickFairly(waiting, running, rules(8, 8))), ['small', 'middle', 'small', 'large', 'middle']);
  });

  t('gives no workspace more than its share, even while slots stay free', () => {
    const picked = pickFairly(jobs('large', 500), new RunningCounts(jobs('large', 2).map(keysOf)), rules(8, 3));
    equal(picked.length, 1);
  });

  t('picks no more than there are free slots, and nothing where none is free', () => {
    const running = new RunningCounts(jobs('a', 6).map(keysOf));
    equal(pickFairly(jobs('b', 500), running, rules(8, 8)).length, 2);
    equal(pickFairly(jobs('b', 500), running, rules(6, 8)).length, 0);
    equal(pickFairly([], running, rules(8, 8)).length, 0);
  });

  t('compares the second key among workspaces that run equally much, then keeps the order of the queue', () => {
    const running = new RunningCounts(jobs('other', 2, 'slow').map(keysOf));
    const waiting = [...jobs('a', 1, 'slow'), ...jobs('b', 1, 'quick'), ...jobs('c', 1, 'calm')];
    deepEqual(workspaces(pickFairly(waiting, running, rules(8, 8))), ['b', 'c', 'a']);
  });

  t('continues with the next share once no job is within the first', () => {
    const waiting = [...jobs('a', 5), ...jobs('b', 1)];
    const shares: FairRules<Job>['shares'] = [
      ({ workspace }, running) => running.of(workspace) < 1,
      (_job, running) => running.total < 4,
    ];
    const picked = pickFairly(waiting, new RunningCounts(), { slots: 6, keysOf, shares });
    deepEqual(workspaces(picked), ['a', 'b', 'a', 'a']);
  });

  t('leaves the counts it was given as they are, and counts go down when a job ends', () => {
    const running = new RunningCounts();
    const [job] = pickFairly(jobs('a', 1), running, rules(1, 1));
    ok(job !== undefined);
    equal(running.total, 0);
    running.add(keysOf(job));
    deepEqual([running.total, running.of('a'), running.of('x')], [1, 1, 1]);
    running.remove(keysOf(job));
    deepEqual([running.total, running.of('a'), running.of('x')], [0, 0, 0]);
  });
});
