import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { targetIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { type ScheduledTarget, target } from '#domain/post-target/target.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { RelatedStreams } from '#services/publisher/related-streams.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { commandContext, MemoryDataKeys } from '#test/support/domain.ts';
import { MemoryEventStore } from '#test/support/event-store/memory.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

class CountingStore extends MemoryEventStore {
  reads = 0;
  override read(...asked: Parameters<MemoryEventStore['read']>) {
    this.reads += 1;
    return super.read(...asked);
  }
}

suite('contents that a publisher keeps', (t) => {
  const events = new CountingStore();
  const store = new DomainStore(events, new EventCodec(new MemoryDataKeys()), defaultPartitions);
  /** A target of a post with so much text. */
  const scheduled = async (workspaceId: string, bytes: number): Promise<ScheduledTarget> => {
    const context = { ...commandContext(), workspaceId };
    const [postId, accountId, clientId] = [randomUUID(), randomUUID(), randomUUID()];
    const targetId = targetIdOf(postId, accountId, 1);
    const body = postBody({ content: 'x'.repeat(bytes) });
    const plan = { number: 1, targets: [planned({ targetId, accountId, clientId, platform: 'x' })] };
    const { commandId, actor: createdBy } = context;
    const command = { type: 'Schedule', commandId, clientId, createdBy, body, plan } as const;
    const loaded = await execute(store, post, postId, command, context);
    await fanOut(store, postId, context, { loaded });
    const { state } = await store.load(target, targetId);
    assert.ok(state.status !== 'none');
    return state;
  };

  t('are bounded by their bytes; the many of one workspace leave those of another', async () => {
    const [big, small] = [randomUUID(), randomUUID()];
    const streams = new RelatedStreams(store, 500_000);
    const own = await scheduled(small, 10);
    const many = await Promise.all(Array.from({ length: 20 }, () => scheduled(big, 50_000)));
    const readsOf = async (one: ScheduledTarget | undefined): Promise<number> => {
      assert.ok(one !== undefined);
      events.reads = 0;
      const [a, b] = await Promise.all([streams.content(one), streams.content(one)]);
      assert.equal(a, b, 'two that ask at once share one reading');
      return events.reads;
    };
    assert.ok((await readsOf(own)) > 0);
    for (const one of many) assert.ok((await readsOf(one)) > 0);
    assert.equal(await readsOf(own), 0);
    assert.equal(await readsOf(many.at(-1)), 0, 'the newest is kept');
    assert.ok((await readsOf(many.at(10))) > 0, 'twenty would be 1 MB');
  });
});
