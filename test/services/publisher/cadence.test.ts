import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { account } from '#domain/account.ts';
import { target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('cadence at the claim', { timeoutMs: 120_000 }, (t) => {
  let world: PublishingWorld;
  let clientId = '';
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
    await world.pool.query(
      `insert into read.workspaces_v1 (id, workspace_id, revision, created_at, updated_at, name, timezone, mode, members)
       values ($1, $1, 0, now(), now(), 'A', 'UTC', 'test', '{}')`,
      [world.workspaceId],
    );
  });
  t.after(() => world.close());

  /** As the read model has it; no publisher that knows other rules runs. */
  const ruled = (more: Partial<CadenceRule>) =>
    world.pool.query('update read.workspaces_v1 set cadence = $2 where id = $1', [
      world.workspaceId,
      JSON.stringify([{ platform: null, minIntervalMinutes: null, perDay: null, ...more }]),
    ]);
  const story = (id: string) => world.story(`target-${id}`);
  const deferral = async (id: string) =>
    (await world.store.readStream(`target-${id}`)).findLast(({ type }) => type === 'TargetPublishDeferred')?.data;

  t('of two targets due at the same instant one goes out, and the other waits for the next free time', async () => {
    await ruled({ minIntervalMinutes: 60 });
    const [one, other] = [await world.connect(clientId, 'x'), await world.connect(clientId, 'bluesky')];
    const dueAt = Date.now() + 500;
    const posts = [await world.schedule([one, other], { dueAt }), await world.schedule([one], { dueAt })];
    const [first = '', free = '', second = ''] = posts.flatMap(({ targetIds }) => targetIds);
    const publisher = world.publisher();
    await world.all([free], 'published');
    const waiting = await until('one of the two waits', async () => {
      const stories = await Promise.all([first, second].map(async (id) => ({ id, types: await story(id) })));
      const out = stories.find(({ types }) => types.includes('TargetPublished'));
      const held = stories.find(({ types }) => types.includes('TargetPublishDeferred'));
      return out !== undefined && held !== undefined ? held.id : null;
    });
    assert.deepEqual(await story(waiting), ['TargetScheduled', 'TargetPublishDeferred']);
    const state = await world.target(waiting);
    assert.ok(state.status === 'pending');
    assert.equal(state.common.dueAt, new Date(dueAt).toISOString());
    assert.deepEqual([state.common.attempts, state.common.defers], [0, 0]);
    const ahead = Date.parse(state.retryAt ?? '') - dueAt;
    assert.ok(ahead >= 3_600_000 && ahead < 3_660_000, `${ahead} ms`);
    const failure = (await deferral(waiting))?.failure as { readonly code: string };
    assert.equal(failure.code, 'cadence_reached');
    assert.equal(await world.created(waiting), 0);
    await publisher.stop();
  });

  t('a network’s own report holds a target back until it resets', async () => {
    await ruled({});
    const one = await world.connect(clientId, 'x');
    const resetsAt = new Date(Date.now() + 2_000).toISOString();
    const windows = [{ name: '15 minutes', seconds: 900, limit: 5, used: 5, resetsAt }];
    await execute(world.store, account, one.id, { type: 'ObserveLimits', windows }, world.context());
    const { targetIds } = await world.schedule([one]);
    const [id = ''] = targetIds;
    const publisher = world.publisher();
    await world.all([id], 'published');
    assert.deepEqual(await story(id).then((types) => types.slice(0, 3)), [
      'TargetScheduled',
      'TargetPublishDeferred',
      'TargetPublishStarted',
    ]);
    assert.equal((await deferral(id))?.retryAt, resetsAt);
    assert.equal(await world.created(id), 1);
    await publisher.stop();
  });

  t('a first comment on X counts as one call more', async () => {
    await ruled({});
    const one = await world.connect(clientId, 'x', randomUUID());
    const resetsAt = new Date(Date.now() + 600_000).toISOString();
    const windows = [{ name: '15 minutes', seconds: 900, limit: 5, used: 4, resetsAt }];
    await execute(world.store, account, one.id, { type: 'ObserveLimits', windows }, world.context());
    const commented = [
      { platform: 'x' as const, contentOverride: null, mediaIdsOverride: null, overrides: { firstComment: 'More.' } },
    ];
    const { targetIds: held } = await world.schedule([one], { variants: commented });
    const { targetIds: out } = await world.schedule([one]);
    const publisher = world.publisher();
    await world.all(out, 'published');
    await until('it waits', async () => (await deferral(held[0] ?? ''))?.retryAt === resetsAt);
    await publisher.stop();
  });

  t('what can never fit a window fails and says what to do, and goes out once it fits and is retried', async () => {
    await ruled({});
    const one = await world.connect(clientId, 'x', randomUUID());
    const observed = (limit: number) => {
      const windows = [{ name: '24 hours', seconds: 86_400, limit, used: 0, resetsAt: null }];
      return execute(world.store, account, one.id, { type: 'ObserveLimits', windows }, world.context());
    };
    await observed(2);
    const segments = ['first', 'second', 'third'].map((content) => ({ content, mediaIds: [] }));
    const { postId, targetIds } = await world.schedule([one], { body: { thread: { segments } } });
    const [id = ''] = targetIds;
    const publisher = world.publisher();
    const [types] = await until('its end is known', async () => {
      const now = await story(id);
      return now.length > 1 ? [now] : null;
    });
    assert.deepEqual(types, ['TargetScheduled', 'TargetFailed']);
    const state = await world.target(id);
    assert.ok(state.status === 'failed');
    const { code, retryable, actor, message } = state.failure;
    assert.deepEqual([code, retryable, actor], ['cadence_never_fits', true, 'user']);
    assert.match(message, /shorter thread/);
    assert.equal(await world.created(id), 0);
    await observed(3);
    const retry = { type: 'Retry', commandId: randomUUID(), now: new Date().toISOString() } as const;
    await execute(world.store, target, id, retry, world.context(), { partitionKey: postId });
    await world.all([id], 'published');
    await publisher.stop();
  });

  t('a thread that has begun goes on, however few calls are left by our count', async () => {
    await ruled({});
    const resetsAt = new Date(Date.now() + 86_400_000).toISOString();
    const window = { name: '24 hours', seconds: 86_400, resetsAt };
    const segments = ['first', 'second [[sandbox:rate_limit once 1s]]', 'third'].map((content) => ({
      content,
      mediaIds: [],
    }));
    const publisher = world.publisher();
    // The two that are left fit; none fits.
    for (const used of [1, 3]) {
      const one = await world.connect(clientId, 'x', randomUUID());
      const { targetIds } = await world.schedule([one], { body: { thread: { segments } } });
      const [id = ''] = targetIds;
      await until('the second segment is refused', async () => (await story(id)).includes('TargetRateLimited'));
      const windows = [{ ...window, limit: 3, used }];
      await execute(world.store, account, one.id, { type: 'ObserveLimits', windows }, world.context());
      await until('it goes on', async () => (await world.created(id)) > 1 || (await deferral(id)) !== undefined);
      assert.equal(await deferral(id), undefined);
      await world.all([id], 'published');
      assert.equal(await world.created(id), 3);
    }
    await publisher.stop();
  });
});
