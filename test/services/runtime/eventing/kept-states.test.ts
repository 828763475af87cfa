import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type QuotaState, quota } from '#domain/quota.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { WorkspaceCache } from '#runtime/eventing/workspace-cache.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { writeQuota } from '#services/workflows/quota/write.ts';
import { commandContext, MemoryDataKeys } from '#test/support/domain.ts';
import { MemoryEventStore } from '#test/support/event-store/memory.ts';
import { suite } from '#test/support/suite.ts';

const month = '2027-02';
const resetsAt = '2027-03-01T00:00:00.000Z';
const sizeOf = ({ held }: QuotaState): number => held;

class CountingStore extends MemoryEventStore {
  events = 0;
  /** Read instead of this one, once it was restored. */
  restored: MemoryEventStore | null = null;
  override async read(...asked: Parameters<MemoryEventStore['read']>) {
    const found = await (this.restored === null ? super.read(...asked) : this.restored.read(...asked));
    this.events += found.length;
    return found;
  }
}

/** Two processes on one store. */
const world = () => {
  const events = new CountingStore();
  const open = (): DomainStore => new DomainStore(events, new EventCodec(new MemoryDataKeys()), defaultPartitions);
  return { events, one: open(), other: open(), id: randomUUID() };
};
const reserved = (postId = randomUUID()) => ({
  type: 'QuotaReserved',
  data: { month, postId, targetIds: [randomUUID()], n: 1, awaits: null },
});
const append = async (store: DomainStore, id: string, revision: number, count: number): Promise<void> => {
  for (let done = 0; done < count; done += 100) {
    const some = Array.from({ length: Math.min(100, count - done) }, () => reserved());
    await store.append(`quota-${id}`, revision + done, some, commandContext(), `quota-${id}`);
  }
};
const reserve = (postId: string, limit: number) =>
  ({ type: 'Reserve', month, postId, targetIds: [postId], awaits: null, limit, resetsAt }) as const;

suite('states that are kept', (t) => {
  t('a state of many pages is the fold of the stream, and is read on from its last event', async () => {
    const { events, one, other, id } = world();
    await append(one, id, -1, 2_500);
    const { state, revision } = await one.loadState(quota, id, sizeOf);
    assert.deepEqual([state.held, revision], [2_500, 2_499]);
    assert.deepEqual(state, (await one.load(quota, id)).state);
    await append(other, id, 2_499, 1);
    events.events = 0;
    assert.equal((await one.loadState(quota, id, sizeOf)).state.held, 2_501);
    assert.equal(events.events, 2, 'the last known event, and the new one');
    assert.deepEqual(await one.loadState(quota, randomUUID(), sizeOf), { state: quota.initial, revision: -1 });
  });

  t('whoever asks after an append sees it, however many ask at once', async () => {
    const { one, other, id } = world();
    await append(one, id, -1, 1);
    for (let round = 0; round < 20; round += 1) {
      const early = one.loadState(quota, id, sizeOf);
      await append(other, id, round, 1);
      const late = await Promise.all([1, 2, 3].map(() => one.loadState(quota, id, sizeOf)));
      assert.ok((await early).state.held >= round + 1);
      for (const { state } of late) assert.equal(state.held, round + 2);
    }
  });

  t('a store that was restored to an earlier day is read from its first event again', async () => {
    const { events, one, id } = world();
    await append(one, id, -1, 5);
    await one.loadState(quota, id, sizeOf);
    const { events: earlier, one: writer } = world();
    await append(writer, id, -1, 7);
    events.restored = earlier;
    assert.equal((await one.loadState(quota, id, sizeOf)).state.held, 7);
    events.restored = new MemoryEventStore();
    assert.deepEqual(await one.loadState(quota, id, sizeOf), { state: quota.initial, revision: -1 });
  });

  t(
    'a writer goes on from its own append without a read, and never decides a refusal on what it remembers',
    async () => {
      const { events, one, other, id } = world();
      const context = commandContext();
      const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
      await writeQuota(one, id, reserve(first, 2), context);
      await one.loadState(quota, id, sizeOf);
      events.events = 0;
      await writeQuota(one, id, reserve(second, 2), context);
      assert.equal(events.events, 0);
      // Full as this process knows it; the other one has given a place back.
      const places = await other.loadState(quota, id, sizeOf);
      assert.equal(places.state.held, 2);
      const release = { type: 'Release', postId: first, targets: [{ targetId: first, revision: 0 }] } as const;
      await writeQuota(other, id, release, context);
      await writeQuota(one, id, reserve(third, 2), context);
      // A place that it remembers, and that was given back meanwhile, is taken anew.
      const again = { type: 'Release', postId: third, targets: [{ targetId: third, revision: 3 }] } as const;
      await writeQuota(other, id, again, context);
      await writeQuota(one, id, reserve(third, 2), context);
      assert.deepEqual((await other.loadState(quota, id, sizeOf)).state.held, 2);
      await assert.rejects(writeQuota(one, id, reserve(randomUUID(), 2), context), { code: 'quota_exceeded' });
    },
  );

  t('what is over the bound goes from the workspace that holds the most, the least recently used first', () => {
    const cache = new WorkspaceCache<{ readonly workspaceId: string; readonly size: number }>(10);
    cache.set('small', { workspaceId: 'a', size: 3 });
    cache.set('old', { workspaceId: 'b', size: 3 });
    cache.set('used', { workspaceId: 'b', size: 3 });
    cache.get('old');
    cache.set('new', { workspaceId: 'b', size: 3 });
    assert.deepEqual(
      ['small', 'old', 'used', 'new'].map((key) => cache.peek(key) !== undefined),
      [true, true, false, true],
    );
  });
});
