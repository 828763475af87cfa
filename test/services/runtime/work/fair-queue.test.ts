import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { FairQueue, type QueueLimits } from '#runtime/work/fair-queue.ts';
import { atMost, Slots, type Taker } from '#runtime/work/slots.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const settled = () => new Promise((resolve) => setImmediate(resolve));
const nameOf = ({ workspaceId, network = '' }: Taker): string => `${workspaceId} ${network}`;
const held = ({ workspaceId }: Taker, slots: Slots): number => slots.of(workspaceId);

interface Ran {
  readonly taker: Taker;
  /** Its place among the work of its line. */
  readonly place: number;
  readonly end: () => void;
}

/** Work that runs until the test ends it. */
class Crowd {
  readonly queue: FairQueue;
  readonly running: Ran[] = [];
  readonly begun: Ran[] = [];
  readonly refused: string[] = [];
  asked = 0;
  readonly #places = new Map<string, number>();

  constructor(queue: FairQueue) {
    this.queue = queue;
  }

  add(taker: Taker): void {
    const place = this.#places.get(nameOf(taker)) ?? 0;
    this.#places.set(nameOf(taker), place + 1);
    this.asked += 1;
    const work = () =>
      new Promise<void>((end) => {
        this.begun.push({ taker, place, end });
        this.running.push({ taker, place, end });
      });
    this.queue.run(taker, work).catch((error: Error) => this.refused.push(error.message));
  }

  async end(at: number): Promise<void> {
    this.running.splice(at, 1)[0]?.end();
    await settled();
  }

  count(of: (taker: Taker) => boolean): number {
    return this.running.filter(({ taker }) => of(taker)).length;
  }
}

const limits = (waiting: number, waitMs: number): QueueLimits => ({
  waiting,
  waitMs,
  refusal: (reason) => new Error(reason),
});

suite('a fair queue', (t) => {
  t('keeps its bounds in all and for each workspace, begins each line in its order, and loses nothing', async () => {
    const random = seeded('laws of a queue');
    for (let round = 0; round < 60; round += 1) {
      const [size, each, networks] = [random.int(1, 8), random.int(1, 4), random.int(1, 3)];
      const slots = new Slots(size, atMost(each));
      const crowd = new Crowd(new FairQueue({ slots, ...(round % 2 === 0 ? {} : { rank: held }) }));
      const check = (): void => {
        ok(crowd.running.length <= size);
        equal(slots.taken, crowd.running.length);
        for (const { taker } of crowd.running) ok(crowd.count((one) => one.workspaceId === taker.workspaceId) <= each);
      };
      for (let step = 0; step < 120; step += 1) {
        if (random.next() < 0.6)
          crowd.add({ workspaceId: `w${random.int(0, 5)}`, network: `n${random.int(1, networks)}` });
        else await crowd.end(random.int(0, Math.max(0, crowd.running.length - 1)));
        await settled();
        check();
      }
      for (; crowd.running.length > 0; check()) await crowd.end(random.int(0, crowd.running.length - 1));
      equal(crowd.begun.length, crowd.asked);
      equal(slots.taken, 0);
      const next = new Map<string, number>();
      for (const { taker, place } of crowd.begun) {
        equal(place, next.get(nameOf(taker)) ?? 0);
        next.set(nameOf(taker), place + 1);
      }
    }
  });

  t('starves no line, however much others ask for and however they rank', async () => {
    for (const rank of [undefined, held]) {
      const slots = new Slots(3, atMost(2));
      const crowd = new Crowd(new FairQueue({ slots, ...(rank === undefined ? {} : { rank }) }));
      const takers = ['a', 'b', 'c', 'd'].flatMap((workspaceId) => [
        { workspaceId, network: 'x' },
        { workspaceId, network: 'y' },
      ]);
      for (let at = 0; at < 40; at += 1) crowd.add(takers[0] as Taker);
      for (const taker of takers) for (let at = 0; at < 30; at += 1) crowd.add(taker);
      for (let at = 0; at < 150; at += 1) await crowd.end(0);
      for (let from = 8; from + 16 <= 150; from += 1) {
        const served = new Set(crowd.begun.slice(from, from + 16).map(({ taker }) => nameOf(taker)));
        equal(served.size, takers.length, `${from}: ${[...served].join(', ')}`);
      }
    }
  });

  t('refuses whom it cannot serve in time: those take no slot, and all others begin in their order', async () => {
    const random = seeded('refusals of a queue');
    for (let round = 0; round < 12; round += 1) {
      const slots = new Slots(random.int(1, 4), atMost(random.int(1, 2)));
      const crowd = new Crowd(new FairQueue({ slots, limits: limits(4, 15) }));
      for (let step = 0; step < 60; step += 1) {
        crowd.add({ workspaceId: `w${random.int(0, 3)}` });
        if (random.next() < 0.4) await crowd.end(0);
        if (random.next() < 0.1) await delay(random.int(1, 20));
      }
      while (crowd.running.length > 0) await crowd.end(0);
      equal(crowd.begun.length + crowd.refused.length, crowd.asked);
      equal(slots.taken, 0);
      const last = new Map<string, number>();
      for (const { taker, place } of crowd.begun) {
        ok(place > (last.get(nameOf(taker)) ?? -1));
        last.set(nameOf(taker), place);
      }
      equal(await crowd.queue.run({ workspaceId: 'after' }, async () => 'ran'), 'ran');
    }
  });

  t('says why it refuses, and a workspace that waits alone now gets what its share leaves', async () => {
    const one = new FairQueue({ slots: new Slots(1, atMost(1)), limits: limits(1, 10) });
    const crowd = new Crowd(one);
    crowd.add({ workspaceId: 'a' });
    crowd.add({ workspaceId: 'a' });
    await rejects(
      one.run({ workspaceId: 'a' }, async () => undefined),
      /full/,
    );
    await delay(30);
    deepEqual([crowd.begun.length, crowd.refused], [1, ['late']]);
    // One slot while others wait, two without others: the end of the others' wait is what frees the second.
    const slots = new Slots(3, (taker, _slots, othersWait) => {
      const own = slots.of(taker.workspaceId);
      return taker.workspaceId === 'big' ? own < (othersWait ? 1 : 2) : own < 1;
    });
    const alone = new Crowd(new FairQueue({ slots, limits: limits(9, 40) }));
    for (const workspaceId of ['small', 'small', 'big']) alone.add({ workspaceId });
    await delay(20);
    alone.add({ workspaceId: 'big' });
    await settled();
    equal(alone.begun.length, 2, 'big has one slot while small waits');
    await delay(30);
    deepEqual(alone.refused, ['late']);
    equal(alone.begun.length, 3);
  });

  t('looks at no line of a network that has no slot for anybody', async () => {
    let asked = 0;
    const slots = new Slots(4, ({ network = '' }, counts) => {
      asked += 1;
      return counts.on(network) < 2;
    });
    const crowd = new Crowd(new FairQueue({ slots }));
    for (let at = 0; at < 1_000; at += 1) crowd.add({ workspaceId: `w${at}`, network: 'hangs' });
    crowd.add({ workspaceId: 'a', network: 'quick' });
    asked = 0;
    await crowd.end(crowd.running.findIndex(({ taker }) => taker.network === 'quick'));
    ok(asked < 10, `${asked} questions`);
  });
});
