import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { post } from '#domain/post/post.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

suite('a revision and the publisher', { waits: true, timeoutMs: 120_000 }, (t) => {
  let world: PublishingWorld;
  let clientId: string;
  const random = seeded('revise');

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
  });
  t.after(() => world.close());

  /** What the api does: the intent, then the fan-out. */
  const revise = async (postId: string, targetIds: readonly string[], content: string, more = {}): Promise<void> => {
    const { state } = await world.store.load(post, postId);
    assert.ok(state.status === 'live');
    const command = { type: 'Revise', commandId: randomUUID(), changed: ['content'], targetIds, times: null } as const;
    const body = { ...state.body, content, ...more };
    const loaded = await execute(world.store, post, postId, { ...command, body }, world.context());
    await fanOut(world.store, postId, world.context(), { loaded });
  };

  t('a revised disclosure of AI goes out on every target', async () => {
    const publisher = world.publisher();
    const accounts = [await world.connect(clientId, 'x'), await world.connect(clientId, 'linkedin')];
    const dueAt = Date.now() + 2_000;
    const { postId, targetIds } = await world.schedule(accounts, { dueAt });
    await revise(postId, targetIds, 'made by AI', { aiDisclosure: true });
    await world.all(targetIds, 'published');
    for (const id of targetIds) {
      const [create] = await world.sandbox.creates(id);
      assert.deepEqual([create?.content, create?.overrides.aiGenerated], ['made by AI', true]);
    }
    await publisher.stop();
  });

  t('at the due instant: each target goes out once, as a whole, with the content that its stream names', async () => {
    const publisher = world.publisher();
    const accounts = await Promise.all(Array.from({ length: 8 }, () => world.connect(clientId, 'x')));
    const seen = { former: 0, newer: 0 };
    // The first is early enough for any machine, the last one too late; the others meet the publisher.
    for (const [round, offsetMs] of [-1_400, -150, -80, -40, -15, 300].entries()) {
      const dueAt = Date.now() + 1_500;
      const { postId, targetIds } = await world.schedule(accounts, { dueAt, text: `former ${round}` });
      await delay(Math.max(0, dueAt + offsetMs + random.int(-10, 10) - Date.now()));
      await revise(postId, targetIds, `newer ${round}`);
      const states = await world.all(targetIds, 'published');
      const { events } = await world.store.load(post, postId);
      const skipped = events.flatMap(({ type, data }) =>
        type === 'PostTargetsSkipped' ? (data.targetIds as readonly string[]) : [],
      );
      for (const [at, id] of targetIds.entries()) {
        const [create, ...more] = (await world.sandbox.creates(id)).filter(({ outcome }) => outcome === 'created');
        assert.deepEqual(more, []);
        const state = states[at];
        const bound = state?.status === 'published' ? state.common.postRevision : -1;
        assert.equal(create?.content, bound === 0 ? `former ${round}` : `newer ${round}`);
        assert.equal(skipped.includes(id), bound === 0, 'the skip is recorded exactly for those that went out before');
        seen[bound === 0 ? 'former' : 'newer'] += 1;
      }
    }
    process.stdout.write(`  ${JSON.stringify(seen)}\n`);
    assert.ok(seen.former > 0 && seen.newer > 0);
    await publisher.stop();
  });

  t('an upload of the former content that an attempt left behind does not go out', async () => {
    const one = await world.connect(clientId, 'instagram');
    // The first attempt fails before its boundary, after its container was made.
    const { postId, targetIds } = await world.schedule([one], { text: 'former [[sandbox:reject once]]' });
    const publisher = world.publisher();
    await world.all(targetIds, 'failed');
    await revise(postId, targetIds, 'newer');
    await world.all(targetIds, 'published');
    const [id = ''] = targetIds;
    const created = (await world.sandbox.creates(id)).filter(({ outcome }) => outcome === 'created');
    assert.deepEqual(
      created.map(({ content }) => content),
      ['newer'],
    );
    await publisher.stop();
  });
});
