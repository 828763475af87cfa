import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { type ReportCommand, report } from '#domain/report.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { mintSession } from '#runtime/identity/sessions.ts';
import { operations } from '#services/api/operations.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld, composer } from '#test/support/composing.ts';
import { startNumbering } from '#test/support/numbering.ts';
import { suite } from '#test/support/suite.ts';
import { presignBody } from '#test/support/uploads.ts';

const nowhere = '00000000-0000-4000-8000-000000000000';

interface Scheduled {
  plan: { targets: { targetId: string }[] };
}

const { world, tester, composed: one } = await composedWorld(['x']);

suite('reads over HTTP', (t) => {
  /** A post whose api process died between the post's append and the fan-out: its target has no stream. */
  const withoutFanOut = async () => {
    const { data: source } = await tester.post('/posts', one.body());
    const [scheduled] = await world.store.readStream(`post-${source.id}`);
    const [postId, targetId] = [randomUUID(), randomUUID()];
    const data = structuredClone(scheduled?.data) as unknown as Scheduled;
    for (const target of data.plan.targets) target.targetId = targetId;
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    const event = { type: 'PostScheduled', data };
    const [stored] = await world.store.append(`post-${postId}`, -1, [event], context, postId);
    await world.settled();
    return { postId, targetId, plannedAt: stored?.metadata.occurredAt };
  };

  const reportWithRun = async (): Promise<{ readonly id: string; readonly runId: string }> => {
    const [id, runId] = [randomUUID(), randomUUID()];
    const commands: readonly ReportCommand[] = [
      {
        type: 'Define',
        definition: {
          ...{ name: 'Monthly', kind: 'workspace', window: 'last_30_days', formats: ['pdf'], schedule: null },
          filters: { clientId: null, socialAccountId: null, platform: null },
        },
      },
      { type: 'RequestRun', runId, at: '2026-03-03T12:00:00.000Z', timezone: 'UTC', by: 'request', formats: null },
    ];
    for (const command of commands) {
      await execute(world.store, report, id, command, contextOf(world.operator, testTwinIdOf(world.workspaceId)));
    }
    return { id, runId };
  };

  t('no GET appends anything to the store', async () => {
    const { postId, targetId } = await withoutFanOut();
    const media = await tester.post('/media/presign', presignBody());
    const webhook = await tester.post('/webhooks', { url: 'https://hooks.agency.example/in', events: ['*'] });
    const replay = await tester.post(`/webhooks/${webhook.data.id}/replays`, { from: '2026-01-31T08:00:00Z' });
    const delivery = await tester.post(`/webhooks/${webhook.data.id}/test`, { eventType: 'webhook.test' });
    const { id: reportId, runId } = await reportWithRun();
    const campaign = await tester.post('/campaigns', { name: 'Spring' });
    await tester.patch(`/clients/${one.clientId}`, { approvalRequired: true });
    const { approvalId } = (await tester.post('/posts', one.body())).data;
    await tester.patch(`/clients/${one.clientId}`, { approvalRequired: false });
    await world.settled();
    const account = String(one.accounts.x);
    const { accounts: choosing } = await composer(world, ['pinterest']);
    /** By the folder of the path, the id of something that is there. */
    const ids: Readonly<Record<string, string>> = {
      clients: one.clientId,
      accounts: account,
      posts: postId,
      'post-targets': targetId,
      approvals: String(approvalId),
      campaigns: campaign.data.id,
      media: String(media.data.assetId),
      reports: reportId,
      webhooks: webhook.data.id,
      members: world.memberId,
      'api-keys': world.testKey.id,
    };
    const pathOf = (path: string): string =>
      path
        .replace('{id}/options/{key}', `${choosing.pinterest}/options/boardId`)
        .replace(/([a-z-]+)\/\{id\}/, (_all, folder: string) => `${folder}/${ids[folder] ?? nowhere}`)
        .replace('{runId}', runId)
        .replace('{replayId}', replay.data.id)
        .replace('{deliveryId}', delivery.data.id)
        .replace('{code}', 'not_found')
        .replace(/\{(sequence|size)\}/, '1');
    const numbering = startNumbering(world);
    await numbering.numbered();
    await numbering.stop();
    const before = await world.head();
    const statuses: Record<string, number> = {};
    const sessions = { store: world.store, secrets: world.secrets, clock: world.deps.clock };
    const { workspaceId, memberId } = world;
    const session = world.callerWith((await mintSession(sessions, { workspaceId, memberId, mode: 'test' })).token);
    for (const { id, method, path, firstParty } of operations) {
      if (method !== 'GET') continue;
      const by = firstParty === true ? session : tester;
      statuses[id] = (await by.get(pathOf(path))).status;
      assert.deepEqual(await world.eventsAfter(before), [], id);
    }
    const others = Object.entries(statuses).filter(([, status]) => status !== 200);
    // This world has neither a dispatcher nor a store for analytics, and the run has not ended.
    assert.deepEqual(Object.fromEntries(others), {
      getAnalyticsOverview: 503,
      getPostAnalytics: 503,
      listPostAnalytics: 503,
      getAccountAnalytics: 503,
      getClientAnalytics: 503,
      listBestTimes: 503,
      getReportExport: 409,
      getWebhookDelivery: 503,
      getWebhookReplay: 503,
    });
  });

  t('a planned target without a stream is answered from the plan of its post', async () => {
    const { postId, targetId, plannedAt } = await withoutFanOut();
    const planned = await tester.get(`/post-targets/${targetId}`);
    assert.equal(planned.status, 200, planned.text);
    assert.equal(planned.headers.get('etag'), null);
    const { createdAt, status, postId: of, content } = planned.data;
    assert.deepEqual(
      { createdAt, status, of, content },
      { createdAt: plannedAt, status: 'pending', of: postId, content: 'A word from us.' },
    );
    assert.deepEqual(await world.store.readStream(`target-${targetId}`), []);
    for (const caller of [world.owner, (await world.agency('Southern Cross')).owner]) {
      assert.equal((await caller.get(`/post-targets/${targetId}`)).status, 404);
    }
  });

  t('If-Match on an action ensures the fan-out first; the target then reads as planned', async () => {
    const { targetId } = await withoutFanOut();
    const planned = await tester.get(`/post-targets/${targetId}`);
    const move = (revision: number) =>
      tester.post(
        `/post-targets/${targetId}/reschedule`,
        { shiftMinutes: 30 },
        { headers: { 'if-match': `"${revision}"` } },
      );
    const refused = await move(1);
    assert.equal(refused.body.code, 'revision_mismatch');
    await world.settled();
    const written = await tester.get(`/post-targets/${targetId}`);
    assert.equal(written.headers.get('etag'), '"0"');
    assert.deepEqual(written.data, planned.data);
    assert.equal((await move(0)).status, 200);
  });

  t('a target whose stream says more than its plan is 503 without its row, never answered from the plan', async () => {
    const { postId, targetId } = await withoutFanOut();
    const { state } = await world.store.load(post, postId);
    assert.ok(state.status === 'live');
    const [planned] = state.plan.targets;
    assert.ok(planned);
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    const commands: readonly TargetCommand[] = [
      { type: 'Schedule', planned, postId, postRevision: 0 },
      { type: 'Cancel', reason: 'requested', postRevision: null, now: '2026-01-01T00:00:00.000Z' },
    ];
    for (const command of commands)
      await execute(world.store, target, targetId, command, context, { partitionKey: postId });
    await world.settled();
    assert.equal((await tester.get(`/post-targets/${targetId}`)).data.status, 'canceled');
    // As while the stream is parked from its first event on.
    await world.pool.query(`delete from ${view('post_targets')} where id = $1`, [targetId]);
    await world.pool.query(`update ${view('posts')} set fan_out_behind = true where id = $1`, [postId]);
    assert.equal((await tester.get(`/post-targets/${targetId}`)).status, 503);
  });
});
