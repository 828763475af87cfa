import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { DomainStore, Unavailable } from '#runtime/eventing/domain-store.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { openPublishing, PublishingWorld, quickNetwork } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';

type Append = DomainStore['append'];

/** Does something else with the first appends of a boundary. The publisher makes no call, so no outcome is unknown. */
class FaultyAtBoundary extends DomainStore {
  #left: number;
  readonly #fault: (append: () => ReturnType<Append>) => ReturnType<Append>;

  constructor(
    { eventStore, codec }: Awaited<ReturnType<typeof openPublishing>>,
    fault: (append: () => ReturnType<Append>) => ReturnType<Append>,
    times = 1,
  ) {
    super(eventStore, codec, defaultPartitions);
    this.#fault = fault;
    this.#left = times;
  }

  override async append(...[stream, expected, events, ...rest]: Parameters<Append>) {
    const append = () => super.append(stream, expected, events, ...rest);
    const isBoundary = events.some(({ data }) => (data as { readonly step?: string }).step === 'boundary');
    if (!isBoundary || this.#left === 0) return append();
    this.#left -= 1;
    return this.#fault(append);
  }
}

const { boundaryDeadlineMs } = quickNetwork;
const acknowledgedAfter = (ms: number) => async (append: () => ReturnType<Append>) => {
  const appended = await append();
  await delay(ms);
  return appended;
};
const faults = {
  'is not stored': async () => {
    throw new Unavailable('away');
  },
  'is stored, but not acknowledged': async (append: () => ReturnType<Append>) => {
    await append();
    throw new Unavailable('away');
  },
  'is acknowledged too late for the call': acknowledgedAfter(boundaryDeadlineMs),
  'is acknowledged when nobody waits any more': acknowledgedAfter(boundaryDeadlineMs + 1_000),
} as const;

suite('a boundary whose append fails', { waits: true }, (t) => {
  let world: PublishingWorld;
  let parts: Awaited<ReturnType<typeof openPublishing>>;
  t.before(async () => {
    const { url } = await preparedDatabase();
    world = await PublishingWorld.open(url);
    parts = await openPublishing(url);
  });
  t.after(async () => {
    await parts?.close();
    await world?.close();
  });

  for (const [name, fault] of Object.entries(faults)) {
    t(`that ${name}: the target is tried again and published once, without an unknown outcome`, async () => {
      for (const platform of ['x', 'instagram'] as const) {
        const account = await world.connect(await world.client(), platform);
        const publisher = world.publisher({}, { store: new FaultyAtBoundary(parts, fault) });
        const { targetIds } = await world.schedule([account]);
        const [id = ''] = targetIds;
        await world.all([id], 'published');
        const story = await world.story(`target-${id}`);
        assert.ok(!story.includes('TargetOutcomeUnknown'), story.join(' '));
        assert.equal(story.filter((type) => type === 'TargetPublishDeferred').length, 1, story.join(' '));
        assert.equal((await world.sandbox.creates(id)).length, 1);
        await publisher.stop();
      }
    });
  }

  t(
    'a lease that ran out while the boundary was stored: the target is tried again, without an unknown outcome',
    async () => {
      const account = await world.connect(await world.client(), 'x');
      const config = { leaseTtlMs: 300, boundaryDeadlineMs: 3_000 };
      const suspended = async (append: () => ReturnType<Append>) => {
        const appended = await append();
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * config.leaseTtlMs);
        return appended;
      };
      const publisher = world.publisher(config, { store: new FaultyAtBoundary(parts, suspended) });
      const { targetIds } = await world.schedule([account]);
      await world.all(targetIds, 'published');
      const story = await world.story(`target-${targetIds[0]}`);
      assert.deepEqual(story.slice(2, 4), ['TargetPublishCheckpointed', 'TargetPublishDeferred'], story.join(' '));
      assert.ok(!story.includes('TargetOutcomeUnknown'), story.join(' '));
      await publisher.stop();
    },
  );

  t('a store that is too late each time ends the target in the end, and a person may retry it', async () => {
    const account = await world.connect(await world.client(), 'x');
    const store = new FaultyAtBoundary(parts, acknowledgedAfter(boundaryDeadlineMs), Number.POSITIVE_INFINITY);
    const publisher = world.publisher({ deferDelaysMs: [10] }, { store });
    const { targetIds } = await world.schedule([account]);
    const [state] = await world.all(targetIds, 'failed');
    assert.ok(state?.status === 'failed');
    assert.deepEqual([state.failure.code, state.failure.retryable], ['publish_interrupted', true]);
    assert.deepEqual([state.common.attempts, await world.created(targetIds[0] ?? '')], [2, 0]);
    await publisher.stop();
  });
});
