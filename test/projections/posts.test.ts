import assert from 'node:assert/strict';
import { posts } from '#projections/models/posts.ts';
import { view } from '#projections/shapes.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { failure, postBody } from '#test/support/samples.ts';
import { claim, out, scheduled } from '#test/support/scheduled-post.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

const scheduledHeld = () => {
  const { id, plan, fanOut } = scheduled();
  return { id, plan: { ...plan, data: { ...(plan.data as object), held: true } }, targets: fanOut };
};
const heldOf = (stream: string) => ({ stream, type: 'TargetHeld', data: { postRevision: 0 } });

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

  t('posts: another campaign, and none, without a change of the rest', async () => {
    const { id, plan } = scheduled();
    const { campaignId } = ids('campaignId');
    const post = on('post', id);
    const joined = post('PostCampaignChanged', { campaignId, previousCampaignId: null });
    const body = postBody({ externalRef: 'CMS-1' });
    const first = { ...plan, data: { ...(plan.data as object), body } };
    await given(first, joined)
      .project(pool, posts)
      .sees([{ id, campaign_id: campaignId, external_ref: 'CMS-1', body: { ...body, campaignId } }]);
    await given(first, joined, post('PostCampaignChanged', { campaignId: null, previousCampaignId: campaignId }))
      .project(pool, posts)
      .sees([{ id, campaign_id: null, external_ref: 'CMS-1', body }]);
  });

  t('posts: held, released, returned as a draft whose targets are still to be canceled', async () => {
    const { id, plan, targets } = scheduledHeld();
    const post = on('post', id);
    const [approvalId = ''] = Object.values(ids('approvalId'));
    const hash = 'a'.repeat(64);
    const targetIds = targets.map(({ stream }) => stream.slice('target-'.length));
    const submittedBy = { type: 'apikey', id: 'k1' };
    const decision = { decidedBy: { type: 'member', id: 'm' }, comment: null };
    const submitted = post('PostSubmittedForApproval', { approvalId, request: 1, hash, submittedBy, targetIds });
    const asked = [plan, submitted, ...targets, ...targets.map(({ stream }) => heldOf(stream))];
    const approval = { id: approvalId, request: 1, hash, status: 'pending', targetIds, isWhole: true };
    await given(...asked)
      .project(pool, posts)
      .sees([{ id, status: 'pending_approval', approval, fan_out_behind: false }]);
    await given(...asked, post('PostReleased', { approvalId, hash, ...decision }))
      .project(pool, posts)
      .sees([{ id, status: 'scheduled', approval: { ...approval, status: 'released' }, fan_out_behind: true }]);
    const returned = post('PostReturnedToDraft', { approvalId, ...decision });
    const draft = { id, status: 'draft', plan_revision: null, planned: 0, approval };
    await given(...asked, returned)
      .project(pool, posts)
      .sees([{ ...draft, fan_out_behind: true }]);
    const canceled = targets.map(({ stream }) => ({
      ...{ stream, type: 'TargetCanceled' },
      data: { reason: 'changes_requested', postRevision: 2 },
    }));
    await given(...asked, returned, ...canceled)
      .project(pool, posts)
      .sees([{ ...draft, fan_out_behind: false }]);
  });

  t('posts: a reference taken, kept by the plan and left; a fence before the creation makes no row', async () => {
    const { id, plan } = scheduled();
    const post = on('post', id);
    const { body: _body, plan: planned, ...created } = plan.data as Record<string, unknown>;
    const drafted = post('PostDrafted', { ...created, body: postBody({ externalRef: 'CMS-1' }) });
    const lapsed = post('PostExternalRefClaimLapsed', { externalRef: 'CMS-2' });
    await given(drafted, lapsed)
      .project(pool, posts)
      .sees([{ id, external_ref: 'CMS-1' }]);
    await given(
      drafted,
      post('PostScheduled', { ...created, plan: planned, body: postBody({ externalRef: 'CMS-1' }) }),
      lapsed,
    )
      .project(pool, posts)
      .sees([{ id, external_ref: 'CMS-1', status: 'scheduled' }]);
    await given(drafted, post('DraftReplaced', { body: postBody() }))
      .project(pool, posts)
      .sees([{ id, external_ref: null }]);
    await given(lapsed).project(pool, posts).sees([]);
    const abandoned = post('PostAbandoned', {});
    await given(abandoned).project(pool, posts).sees([]);
    await given(drafted, abandoned)
      .project(pool, posts)
      .sees([{ id, status: 'draft', revision: 1 }]);
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
    const said = { handle: null, askAt: instant(40), until: instant(90) };
    await given(...started, targetA('TargetAcceptedByPlatform', { ...claim, ...said }))
      .project(pool, posts)
      .sees([
        {
          ...{ id, status: 'scheduled', shown_status: 'publishing', publishing_count: 1 },
          counts: { total: 2, pending: 1, processing: 1 },
        },
      ]);
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

  t('posts: a discarded draft stays discarded', async () => {
    const { id, clientId } = ids('id', 'clientId');
    const post = on('post', id);
    const createdBy = { type: 'member', id: 'm' };
    await given(post('PostDrafted', { clientId, createdBy, body: postBody() }), post('PostDiscarded', {}))
      .project(pool, posts)
      .sees([{ id, status: 'discarded', shown_status: 'discarded', body: postBody(), plan_revision: null }]);
  });

  t('posts: a revision keeps the former body for as long as a target may show it', async () => {
    const { id, a, b, plan, fanOut, targetA, post } = scheduled();
    const time = {
      dueAt: instant(5),
      scheduledLocal: null,
      timezone: 'UTC',
      jitterSeconds: 0,
      scheduleMode: 'managed',
      scheduleModeReason: null,
    };
    const body = (content: string) => postBody({ content });
    const revise = (content: string, targetIds: readonly string[], times: readonly object[] | null = null) =>
      post('PostRevised', { body: body(content), changed: ['content'], targetIds, times });
    const apply = (target: typeof targetA, postRevision: number) => target('TargetRevised', { postRevision, ...time });
    const first = [plan, ...fanOut, revise('one', [a, b], [time, time])];
    await given(...first)
      .project(pool, posts)
      .sees([
        {
          id,
          body: body('one'),
          body_revision: 1,
          earlier: { bodies: { 0: postBody() }, targets: { [a]: [1, 0], [b]: [1, 0] } },
          fan_out_behind: true,
        },
      ]);
    const skipped = (intentRevision: number, ...targetIds: readonly string[]) =>
      post('PostTargetsSkipped', { intentRevision, targetIds, reason: 'publishing' });
    const settled = [...first, apply(targetA, 1), skipped(1, b)];
    await given(...settled)
      .project(pool, posts)
      .sees([
        {
          id,
          body_revision: 1,
          earlier: { bodies: { 0: postBody() }, targets: { [a]: [1, 0], [b]: [0, 0] } },
          fan_out_behind: false,
        },
      ]);
    // The third body is there for a, the first for b; nothing shows the second any more.
    const third = [...settled, revise('two', [a]), apply(targetA, 3), revise('three', [a])];
    await given(...third)
      .project(pool, posts)
      .sees([
        {
          id,
          body: body('three'),
          body_revision: 4,
          earlier: { bodies: { 0: postBody(), 3: body('two') }, targets: { [a]: [4, 3], [b]: [0, 0] } },
          fan_out_behind: true,
        },
      ]);
    // A skip of an older revision, or of a target that no revision names, changes nothing.
    await given(...third, skipped(1, a), skipped(4, b))
      .project(pool, posts)
      .sees([{ id, earlier: { bodies: { 0: postBody(), 3: body('two') }, targets: { [a]: [4, 3], [b]: [0, 0] } } }]);
    await given(...third, apply(targetA, 4))
      .project(pool, posts)
      .sees([{ id, fan_out_behind: false, body_revision: 4 }]);
  });

  t('posts: a content that a network may have is kept, also once the post has left its scheduler', async () => {
    const { id, a, b, plan, fanOut, post } = scheduled();
    const native = postBody({ content: 'handed over', scheduleMode: 'native' });
    const revise = (body: object) => post('PostRevised', { body, changed: ['content'], targetIds: [a], times: null });
    const managed = (content: string) => postBody({ content });
    await given(plan, ...fanOut, revise(native), revise(managed('one')), revise(managed('two')))
      .project(pool, posts)
      .sees([
        {
          ...{ id, body: managed('two'), body_revision: 3 },
          earlier: {
            bodies: { 0: postBody(), 1: native, 2: managed('one') },
            targets: { [a]: [3, 2, 1, 0], [b]: [0] },
          },
        },
      ]);
  });

  t('posts: a revision counts as behind until the failed target that it names is tried again', async () => {
    const { id, a, b, targets, plan, fanOut, targetA, targetB, post } = scheduled();
    const settle = (targetId: string) =>
      post('PostTargetSettled', { targetId, targetRevision: 1, outcome: 'failed', publishedAt: null });
    const failed = [plan, ...fanOut, targetA('TargetFailed', { ...claim, failure }), settle(a)];
    const revised = post('PostRevised', { body: postBody(), changed: [], targetIds: [a, b], times: null });
    const limited = targetB('TargetRateLimited', { ...claim, retryAt: instant(30), failure });
    const begun = [...failed, targetB('TargetPublishStarted', claim), limited, revised];
    await given(...begun)
      .project(pool, posts)
      .sees([{ id, status: 'scheduled', fan_out_behind: true, counts: { total: 2, failed: 1, rate_limited: 1 } }]);
    const [planned] = targets;
    assert.ok(planned);
    const { targetId: _id, accountId: _account, clientId: _client, platform: _platform, ...time } = planned;
    const done = [
      ...begun,
      targetA('TargetRevised', { ...time, postRevision: 2 }),
      targetA('TargetRequeued', { by: 'revise', dueAt: instant(40) }),
    ];
    // The rate-limited one is reached, or skipped, by the run that finds it: nothing is left to do now.
    await given(...done)
      .project(pool, posts)
      .sees([{ id, fan_out_behind: false, counts: { total: 2, pending: 1, rate_limited: 1 } }]);
    await given(...done, targetB('TargetRequeued', { by: 'schedule', dueAt: instant(31) }))
      .project(pool, posts)
      .sees([{ id, fan_out_behind: true }]);
  });

  t(
    'posts: a cancel counts as behind until it reaches a target that its network has, a revision does not',
    async () => {
      const { id, a, plan, fanOut, targetA, post } = scheduled();
      const over = targetA('TargetHandedToPlatform', { ...claim, nativeId: 'n', dueAt: instant(50) });
      const handed = [plan, ...fanOut, targetA('TargetPublishStarted', claim), over];
      const cancel = post('PostTargetsChanged', {
        change: { kind: 'cancel', reason: 'post_canceled' },
        targetIds: [a],
      });
      const revise = post('PostRevised', { body: postBody(), changed: [], targetIds: [a], times: null });
      const none = { reason: null, dueAt: null, scheduledLocal: null, jitterSeconds: null };
      const undo = targetA('TargetUndoRequested', {
        ...none,
        then: 'cancel',
        reason: 'post_canceled',
        postRevision: 1,
      });
      for (const [events, isBehind] of [
        [[...handed, cancel], true],
        [[...handed, cancel, undo], false],
        [[...handed, revise], false],
      ] as const) {
        await given(...events)
          .project(pool, posts)
          .sees([{ id, fan_out_behind: isBehind, counts: { total: 2, pending: 1, handed_to_platform: 1 } }]);
      }
    },
  );

  t('posts: a revised post keeps one intent for each target in its row', async () => {
    const { id, a, b, plan, fanOut, post } = scheduled();
    const revise = (...targetIds: readonly string[]) =>
      post('PostRevised', { body: postBody(), changed: [], targetIds, times: null });
    const cancel = post('PostTargetsChanged', { change: { kind: 'cancel', reason: 'post_canceled' }, targetIds: [b] });
    await given(plan, ...fanOut, revise(a, b), revise(a), revise(a), cancel)
      .project(pool, posts)
      .sees([{ id }]);
    const { rows } = await pool.query(`select intents from ${view('posts')}`);
    assert.deepEqual(
      rows[0].intents.map((one: { kind: string; targetIds: string[] }) => [one.kind, one.targetIds]),
      [
        ['revise', [b]],
        ['revise', [a]],
        ['cancel', [b]],
      ],
    );
  });

  t('posts: the row wakes the worker once a recycled post is out, and before each copy', async () => {
    const { id, a, b, plan, fanOut, post } = scheduled();
    const setBy = { type: 'apikey', id: 'k1' };
    const settings = { enabled: true, everyDays: 7, times: 2, until: null, setBy, needsApproval: false };
    const out = (targetId: string) =>
      post('PostTargetSettled', { targetId, targetRevision: 3, outcome: 'published', publishedAt: instant(9) });
    const set = [plan, ...fanOut, post('PostRecycleSet', settings)];
    await given(...set)
      .project(pool, posts)
      .sees([{ id, recycle_at: null, recycled_from: null }]);
    const published = [...set, out(a), out(b), post('PostPublished', { publishedAt: instant(9) })];
    await given(...published)
      .project(pool, posts)
      .sees([{ id, recycle_at: instant(9) }]);
    const run = { day: 7, dueAt: '2026-01-08T09:00:00.000Z' };
    const planned = [...published, post('PostRecyclePlanned', run)];
    await given(...planned)
      .project(pool, posts)
      .sees([{ id, recycle_at: '2026-01-08T08:00:00.000Z' }]);
    const copy = { occurrence: 1, newPostId: b, day: 7, scheduledAt: run.dueAt };
    const refusal = { day: 14, code: 'no_targets', message: 'None is left.' };
    await given(...planned, post('PostRecycled', copy), post('PostRecycleFailed', refusal))
      .project(pool, posts)
      .sees([{ id, recycle_at: instant(9) }]);
    await given(...planned, post('PostRecycleCleared', { reason: 'requested' }))
      .project(pool, posts)
      .sees([{ id, recycle_at: null }]);
  });

  everyEventIsProjected(t, 'post');
});
