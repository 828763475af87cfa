import assert from 'node:assert/strict';
import { DomainStore, Unavailable } from '#runtime/eventing/domain-store.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { openPublishing, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';

/** The event store fails the append of the boundary once: the publisher makes no call, so no outcome is unknown. */
class AwayAtBoundary extends DomainStore {
  away = true;

  override async append(...[stream, expected, events, ...rest]: Parameters<DomainStore['append']>) {
    const isBoundary = events.some(({ data }) => (data as { readonly step?: string }).step === 'boundary');
    if (!isBoundary || !this.away) return super.append(stream, expected, events, ...rest);
    this.away = false;
    throw new Unavailable('away');
  }
}

suite('a boundary whose append fails', (t) => {
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

  for (const platform of ['x', 'instagram'] as const) {
    t(`${platform}: the target is tried again and published once, without an unknown outcome`, async () => {
      const account = await world.connect(await world.client(), platform);
      const store = new AwayAtBoundary(parts.eventStore, parts.codec, defaultPartitions);
      const publisher = world.publisher({}, { store });
      const { targetIds } = await world.schedule([account]);
      const [id = ''] = targetIds;
      await world.all([id], 'published');
      const story = await world.story(`target-${id}`);
      assert.ok(!story.includes('TargetOutcomeUnknown'), story.join(' '));
      assert.equal(await world.created(id), 1);
      await publisher.stop();
    });
  }
});
