import assert from 'node:assert/strict';
import { posts } from '#projections/posts.ts';
import { given, ids, instant, notProjected, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { failure, postBody } from '#test/support/samples.ts';
import { claim, out, scheduled } from '#test/support/scheduled-post.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: posts', (t) => {
  t('posts: a draft, replaced', async () => {
    const { id, clientId, campaignId } = ids('id', 'clientId', 'campaignId');
    const post = on('post', id);
    const createdBy = { type: 'member', id: 'm' };
    await given(
      post('PostDrafted', { clientId, createdBy, body: postBody() }),
      post('DraftReplaced', { body: postBody({ content: 'a "new" \\ text {\u{1f98a}}', campaignId }) }),
    )
      .project(pool, posts)
      .sees([
        {
          id,
          client_id: clientId,
          status: 'draft',
          shown_status: 'draft',
          body: postBody({ content: 'a "new" \\ text {\u{1f98a}}', campaignId }),
          created_by: createdBy,
          campaign_id: campaignId,
          plan_revision: null,
          planned: 0,
          scheduled_at: null,
          counts: { total: 0 },
          platforms: [],
          fan_out_behind: false,
        },
      ]);
  });

  t('posts: the plan, and whether its fan-out is complete', async () => {
    const { id, plan, fanOut } = scheduled();
    await given(plan)
      .project(pool, posts)
      .sees([{ id, status: 'scheduled', planned: 2, plan_revision: 0, target_count: 0, fan_out_behind: true }]);
    await given(plan, ...fanOut)
      .project(pool, posts)
      .sees([
        {
          id,
          status: 'scheduled',
          shown_status: 'scheduled',
          target_count: 2,
          fan_out_behind: false,
          scheduled_at: '2026-03-02T08:00:00.000Z',
          platforms: ['threads', 'x'],
          counts: { total: 2, pending: 2 },
        },
      ]);
  });

  t('posts: shown as publishing while a target is; otherwise the status of the post', async () => {
    const { id, a, b, plan, fanOut, targetA, targetB, post } = scheduled();
    const started = [plan, ...fanOut, targetA('TargetPublishStarted', claim)];
    await given(...started)
      .project(pool, posts)
      .sees([{ id, status: 'scheduled', shown_status: 'publishing', publishing_count: 1 }]);
    const settle = (targetId: string, outcome: string, publishedAt: string | null) =>
      post('PostTargetSettled', { targetId, targetRevision: 2, outcome, publishedAt });
    const partly = [...started, targetA('TargetPublished', out), settle(a, 'published', instant(90))];
    await given(...partly)
      .project(pool, posts)
      .sees([{ id, status: 'publishing', published_at: instant(90), counts: { total: 2, pending: 1, published: 1 } }]);
    const all = [
      ...partly,
      targetB('TargetPublishStarted', claim),
      targetB('TargetFailed', { ...claim, failure }),
      settle(b, 'failed', null),
      post('PostPartiallyPublished', { publishedAt: instant(90) }),
    ];
    await given(...all)
      .project(pool, posts)
      .sees([{ id, revision: 3, status: 'partially_published', counts: { total: 2, published: 1, failed: 1 } }]);
    await given(...all, post('PostTargetReopened', { targetId: b, targetRevision: 3 }))
      .project(pool, posts)
      .sees([{ id, status: 'publishing' }]);
    const again = { targetId: b, targetRevision: 6, outcome: 'published', publishedAt: instant(80) };
    await given(
      ...all,
      post('PostTargetReopened', { targetId: b, targetRevision: 3 }),
      post('PostTargetSettled', again),
      post('PostPublished', { publishedAt: instant(80) }),
    )
      .project(pool, posts)
      .sees([{ id, status: 'published', published_at: instant(80) }]);
    await given(plan, settle(a, 'failed', null), settle(b, 'failed', null), post('PostFailed', {}))
      .project(pool, posts)
      .sees([{ id, status: 'failed', published_at: null }]);
  });

  t('posts: an intent counts as behind until its open targets have applied it', async () => {
    const { id, a, b, plan, fanOut, targets, targetA, targetB, post } = scheduled();
    const intent = post('PostTargetsChanged', {
      change: { kind: 'cancel', reason: 'client_archived' },
      targetIds: [a, b],
    });
    const cancel = { reason: 'client_archived', postRevision: 1 };
    const begun = [plan, ...fanOut, targetB('TargetPublishStarted', claim), intent];
    await given(...begun)
      .project(pool, posts)
      .sees([{ id, fan_out_behind: true, shown_status: 'publishing' }]);
    const done = [...begun, targetA('TargetCanceled', cancel)];
    await given(...done)
      .project(pool, posts)
      .sees([{ id, fan_out_behind: false }]);
    // A skipped target that is open again later (a retry) is not behind.
    await given(
      ...done,
      post('PostTargetsSkipped', { intentRevision: 1, targetIds: [b], reason: 'publishing' }),
      targetB('TargetFailed', { ...claim, failure }),
      targetB('TargetRequeued', { by: 'retry', dueAt: instant(99) }),
    )
      .project(pool, posts)
      .sees([
        { id, fan_out_behind: false, scheduled_at: targets[1]?.dueAt, counts: { total: 2, canceled: 1, pending: 1 } },
      ]);
    const settle = (targetId: string) =>
      post('PostTargetSettled', { targetId, targetRevision: 9, outcome: 'canceled', publishedAt: null });
    await given(plan, ...fanOut, intent, settle(a), settle(b), post('PostCanceled', { reason: 'client_archived' }))
      .project(pool, posts)
      .sees([{ id, status: 'canceled' }]);
  });

  t('every event of the model was projected above', () => {
    assert.deepEqual(notProjected('post'), []);
  });
});
