import assert from 'node:assert/strict';
import { takeFairly as take } from '#runtime/work/fair-pick.ts';
import type { FairQueue } from '#runtime/work/fair-queue.ts';
import type { Slots, Taker } from '#runtime/work/slots.ts';
import { publisherQueue, publisherSlots, roomOf } from '#services/publisher/shares.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const on = (workspaceId: string, network = 'live/x'): Required<Taker> => ({ workspaceId, network });
const takeFairly = (slots: Slots, found: readonly Taker[]) => take(found, { slots, takerOf: (one) => one });

/** Takes as many slots as possible and gives none back. */
const fill = (shares: Slots, taker: Taker, othersWait = false): number => {
  let taken = 0;
  for (; shares.admits(taker, othersWait); taken += 1) shares.take(taker);
  return taken;
};

/** Every promise that can settle has settled. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Work that hangs until the test releases it. */
class Crowd {
  readonly queue: FairQueue;
  readonly running: { readonly taker: Required<Taker>; end(): void }[] = [];
  waiting = 0;
  readonly #onStart: (taker: Required<Taker>) => void;

  constructor(slots: number, onStart: (taker: Required<Taker>) => void = () => undefined) {
    this.queue = publisherQueue(slots);
    this.#onStart = onStart;
  }

  add(taker: Required<Taker>): void {
    this.waiting += 1;
    void this.queue.run(taker, () => {
      this.waiting -= 1;
      this.#onStart(taker);
      return new Promise<void>((end) => this.running.push({ taker, end }));
    });
  }

  async end(at: number): Promise<void> {
    const [one] = this.running.splice(at, 1);
    one?.end();
    await settled();
  }

  count(of: (taker: Required<Taker>) => boolean): number {
    return this.running.filter(({ taker }) => of(taker)).length;
  }
}

suite('shares', (t) => {
  t('one workspace on one network has a quarter, one network a half, and each further one leaves room', () => {
    for (const [slots, quarter, half] of [
      [8, 2, 4],
      [64, 16, 32],
      [4_096, 1_024, 2_048],
    ] as const) {
      assert.equal(fill(publisherSlots(slots), on('one')), quarter);
      const crowded = publisherSlots(slots);
      let held = 0;
      for (let at = 0; at < 4 * slots; at += 1) held += fill(crowded, on(`w${at}`));
      assert.equal(held, half);
      // Networks that hang, with as many workspaces as one likes: side by side, and at the worst one after the other.
      const hanging = publisherSlots(slots);
      for (let at = 0; at < 40 * slots; at += 1) {
        const taker = on(`w${at}`, `live/${at % 10}`);
        if (hanging.admits(taker, true)) hanging.take(taker);
      }
      assert.ok(hanging.free >= Math.floor(slots / 11), `${hanging.free} of ${slots}`);
      const inARow = publisherSlots(slots);
      for (let at = 0; at < 3 * 4 * slots; at += 1) fill(inARow, on(`w${at}`, `live/${Math.floor(at / (4 * slots))}`));
      assert.equal(inARow.free, slots / 8);
    }
  });

  t('any workspace gets a single slot, and the first of any number', () => {
    for (const slots of [1, 2, 3]) {
      const shares = publisherSlots(slots);
      assert.ok(fill(shares, on('one'), true) >= 1, `${slots}`);
      assert.ok(shares.free >= 0);
    }
  });

  t('over several networks a workspace may exceed a quarter, but not while another workspace waits', () => {
    const spread = (othersWait: boolean) => {
      const shares = publisherSlots(64);
      return [0, 1, 2, 3, 4, 5].reduce((sum, at) => sum + fill(shares, on('one', `live/${at}`), othersWait), 0);
    };
    assert.ok(spread(false) > 24, `${spread(false)}`);
    assert.equal(spread(true), 16);
  });

  t('room is the number of slots that can be taken one after the other', () => {
    const random = seeded('room');
    for (let round = 0; round < 200; round += 1) {
      const shares = publisherSlots(random.int(1, 100));
      for (let at = 0; at < random.int(0, 60); at += 1) {
        const taker = on(`w${random.int(0, 5)}`, `live/${random.int(0, 3)}`);
        if (shares.admits(taker, false)) shares.take(taker);
      }
      const taker = on(`w${random.int(0, 6)}`, `live/${random.int(0, 4)}`);
      const room = roomOf(shares, taker);
      assert.equal(fill(shares, taker), room);
    }
  });

  t('workspaces with the fewest slots go first, and one alone may have the rest', () => {
    const shares = publisherSlots(64);
    for (let at = 0; at < 10; at += 1) shares.take(on('big'));
    const found = [...Array.from({ length: 100 }, () => on('big')), on('small', 'live/y'), on('new', 'live/y')];
    const taken = takeFairly(shares, found).map(({ workspaceId }) => workspaceId);
    assert.deepEqual(taken.slice(0, 2), ['small', 'new']);
    assert.equal(taken.length, 2 + 6, 'up to its quarter');
    const networks = Array.from({ length: 100 }, (_, at) => on('alone', `live/${at % 6}`));
    assert.ok(takeFairly(publisherSlots(64), networks).length > 24);
    const beside = takeFairly(publisherSlots(64), [...networks, ...Array.from({ length: 60 }, () => on('other'))]);
    assert.equal(beside.filter(({ workspaceId }) => workspaceId === 'alone').length, 16);
    // The others have all that they want: what is left is for the one that wants more.
    const served = takeFairly(publisherSlots(64), [...networks, on('other', 'live/z')]);
    assert.ok(served.some(({ workspaceId }) => workspaceId === 'other'));
    assert.ok(served.length > 24, `${served.length}`);
  });

  t('while work hangs the shares hold, new workspaces start at once, and all work runs', async () => {
    const random = seeded('shares of slots');
    for (let round = 0; round < 30; round += 1) {
      const slots = random.pick([4, 8, 33, 64]);
      const quarter = Math.max(1, Math.floor(slots / 4));
      const half = Math.ceil(slots / 2);
      const waits = new Map<string, number>();
      let asked = 0;
      let started = 0;
      const crowd: Crowd = new Crowd(slots, (taker) => {
        started += 1;
        const left = (waits.get(taker.workspaceId) ?? 0) - 1;
        waits.set(taker.workspaceId, left);
        const others = [...waits].some(([id, count]) => id !== taker.workspaceId && count > 0);
        // Counted before this one runs.
        const own = 1 + crowd.count(({ workspaceId }) => workspaceId === taker.workspaceId);
        if (others) assert.ok(own <= quarter, `${own} of ${slots} while others wait`);
        assert.ok(1 + crowd.count(({ network }) => network === taker.network) <= half);
        assert.ok(1 + crowd.running.length <= slots);
      });
      const add = (taker: Required<Taker>) => {
        asked += 1;
        waits.set(taker.workspaceId, (waits.get(taker.workspaceId) ?? 0) + 1);
        crowd.add(taker);
      };
      for (let step = 0; step < 150; step += 1) {
        if (random.next() < 0.7) add(on(`w${random.int(0, 6)}`, `live/${random.int(0, 2)}`));
        else await crowd.end(random.int(0, Math.max(0, crowd.running.length - 1)));
        await settled();
      }
      // Three networks hang: a fourth, and a workspace that has nothing under way, wait for none of it.
      const before = started;
      add(on('new', 'live/new'));
      await settled();
      if (slots > 2 ** 3) assert.equal(started, before + 1, `with ${crowd.running.length} of ${slots} running`);
      while (crowd.running.length > 0) await crowd.end(random.int(0, crowd.running.length - 1));
      assert.equal(started, asked);
      assert.equal(crowd.waiting, 0);
    }
  });

  t('a workspace starts at once on a network where another workspace hangs', async () => {
    const crowd = new Crowd(8);
    for (let at = 0; at < 10_000; at += 1) crowd.add(on('hangs'));
    for (let at = 0; at < 4; at += 1) crowd.add(on('new', 'live/y'));
    crowd.add(on('other'));
    await settled();
    assert.equal(
      crowd.count(({ workspaceId }) => workspaceId === 'hangs'),
      2,
    );
    assert.equal(
      crowd.count(({ workspaceId }) => workspaceId === 'new'),
      2,
    );
    assert.equal(
      crowd.count(({ workspaceId }) => workspaceId === 'other'),
      1,
    );
  });

  t('a freed slot goes to the workspace with the fewest slots, in turn among equals', async () => {
    const order: string[] = [];
    const crowd = new Crowd(4, ({ workspaceId }) => order.push(workspaceId));
    for (let at = 0; at < 3; at += 1) for (const id of ['a', 'b', 'c']) crowd.add(on(id));
    await settled();
    // Two slots for the network.
    assert.deepEqual(order, ['a', 'b']);
    while (crowd.running.length > 0) await crowd.end(0);
    assert.deepEqual(order.slice(2, 3), ['c']);
    assert.deepEqual([...order].sort(), ['a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'c']);
    for (let at = 0; at < 9; at += 3) assert.equal(new Set(order.slice(at, at + 3)).size, 3, order.join(' '));
  });

  t('of two waiting workspaces the one with fewer slots gets the next, whatever its place in the queue', async () => {
    for (const rows of [
      ['many', 'few'],
      ['few', 'many'],
    ]) {
      const order: string[] = [];
      const crowd = new Crowd(16, ({ workspaceId }) => order.push(workspaceId));
      for (const id of ['many', 'many', 'few']) crowd.add(on(id, 'live/y'));
      for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) crowd.add(on(id));
      await settled();
      assert.equal(crowd.running.length, 10);
      for (const id of rows) crowd.add(on(id));
      await settled();
      assert.equal(crowd.waiting, 2, 'the network leaves the rest free');
      await crowd.end(crowd.running.findIndex(({ taker }) => taker.workspaceId === 'a'));
      assert.deepEqual(order.slice(10), ['few'], rows.join(' before '));
    }
  });

  t('a lone workspace gets all slots that its networks leave, even while it waits', async () => {
    const crowd = new Crowd(64);
    for (let at = 0; at < 600; at += 1) crowd.add(on('alone', `live/${at % 6}`));
    await settled();
    assert.ok(crowd.running.length > 24, `${crowd.running.length} of 64`);
    assert.ok(crowd.waiting > 0);
    const before = crowd.running.length;
    await crowd.end(0);
    assert.equal(crowd.running.length, before, 'the slot that it gave back is its own again');
  });

  t('work that fails gives its slot back', async () => {
    const queue = publisherQueue(1);
    const failing = queue.run(on('a'), async () => {
      throw new Error('broken');
    });
    const next = queue.run(on('b'), async () => 'ran');
    await assert.rejects(failing, /broken/);
    assert.equal(await next, 'ran');
  });
});
