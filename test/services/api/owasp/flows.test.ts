import assert from 'node:assert/strict';
import { testTwinIdOf } from '#domain/ids.ts';
import { target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld, composer, refused } from '#test/support/composing.ts';
import type { Answered, Caller } from '#test/support/http.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

/** OWASP API6: no way around an approval, for a creator and for a client that wants one from everybody. */

const { world, tester } = await composedWorld(['x']);
const free = await composer(world, ['x', 'bluesky']);
const strict = await composer(world, ['x', 'bluesky']);
await tester.patch(`/clients/${strict.clientId}`, { approvalRequired: true });
const member = await world.memberOf(world.workspaceId, 'creator');
const creator = (await world.keyOf(world.workspaceId, member, { mode: 'test' })).caller;

interface Way {
  readonly who: string;
  readonly by: Caller;
  readonly own: typeof free;
}
/** A creator where no client asks for approval, and an Owner where the client does. */
const ways: readonly Way[] = [
  { who: 'a creator', by: creator, own: free },
  { who: 'an Owner for a client that wants approval', by: tester, own: strict },
];
const statuses = ({ data }: Pick<Answered, 'data'>): readonly string[] =>
  (data.targets as readonly { readonly status: string }[]).map(({ status }) => status);
const targetIds = ({ data }: Pick<Answered, 'data'>): readonly string[] =>
  (data.targets as readonly { readonly id: string }[]).map(({ id }) => id);
const postOf = (id: string) => tester.get(`/posts/${id}`);
const isHeld = async (answer: Answered, id = answer.data.id): Promise<void> => {
  assert.equal(answer.status, 200, answer.text);
  // Another credential reads what this one wrote.
  await world.settled();
  const { data } = await postOf(id);
  assert.equal(data.status, 'pending_approval', answer.text);
  assert.ok(
    statuses({ data }).every((status) => status === 'awaiting_approval'),
    statuses({ data }).join(),
  );
};

suite('OWASP API6: ways around an approval', (t) => {
  for (const { who, by, own } of ways) {
    const compose = async (more: Record<string, unknown> = {}): Promise<Answered> => by.post('/posts', own.body(more));
    const approved = async (): Promise<Answered> => {
      const made = await compose();
      await isHeld(made);
      const decided = await tester.post(`/approvals/${made.data.approvalId}/approve`, {});
      assert.equal(decided.status, 200, decided.text);
      const after = await postOf(made.data.id);
      assert.deepEqual(statuses(after), ['pending', 'pending']);
      return after;
    };

    t(`${who}: composing at once, later, in bulk, or with requestApproval false`, async () => {
      await isHeld(await compose({ schedule: { type: 'now' } }));
      await isHeld(await compose({ requestApproval: false }));
      await isHeld(await compose({ status: 'scheduled', approvalId: null, approvalRequired: false }));
      const bulk = await by.post('/posts/bulk', { posts: [own.body({ requestApproval: false }), own.body()] });
      type Result = { readonly post: { readonly id: string } };
      for (const { post } of bulk.data.results as readonly Result[]) await isHeld(bulk, post.id);
    });

    t(`${who}: publishing a draft, also one that another member wrote, also now`, async () => {
      for (const writer of [by, tester]) {
        const draft = await writer.post('/posts', own.body({ saveDraft: true }));
        const { id } = draft.data;
        await isHeld(await by.post(`/posts/${id}/publish`, { schedule: { type: 'now' } }), id);
        refused(await by.post(`/posts/${id}/publish`, { schedule: { type: 'now' } }), 409, 'post_not_draft');
        await isHeld(draft, id);
      }
    });

    t(`${who}: an edit after the approval asks anew, and the former request decides nothing`, async () => {
      const { data } = await approved();
      const revised = await by.post(`/posts/${data.id}/revise`, { content: 'What nobody approved.' });
      await isHeld(revised, data.id);
      assert.notEqual(revised.data.approvalId, data.approvalId);
      refused(await tester.post(`/approvals/${data.approvalId}/approve`, {}), 409, 'approval_not_pending');
      await isHeld(revised, data.id);
    });

    t(`${who}: retry, reschedule and bulk of what is held release nothing`, async () => {
      const made = await compose();
      const ids = targetIds(made);
      for (const id of ids) {
        refused(await by.post(`/post-targets/${id}/retry`), 409, 'target_not_retryable');
        await isHeld(await by.post(`/post-targets/${id}/reschedule`, { shiftMinutes: 10 }), made.data.id);
      }
      await isHeld(await by.post('/post-targets/bulk', { action: 'retry', targetIds: ids }), made.data.id);
      const moved = { action: 'reschedule', targetIds: ids, shiftMinutes: 10 };
      await isHeld(await by.post('/post-targets/bulk', moved), made.data.id);
      const recycled = await by.request('PUT', `/posts/${made.data.id}/recycle`, { body: { everyDays: 7, times: 3 } });
      await isHeld(recycled, made.data.id);
    });

    t(`${who}: a target that failed is published again only as it was approved`, async () => {
      const { data } = await approved();
      const [failing = ''] = targetIds({ data });
      const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
      for (const command of [
        { type: 'Start', now: '2099-01-01T00:00:00.000Z' },
        { type: 'RecordFailed', attempt: 1, takeover: 0, failure },
      ] as const) {
        await execute(world.store, target, failing, command, context, { partitionKey: data.id });
      }
      await world.settled();
      assert.equal((await tester.get(`/post-targets/${failing}`)).data.status, 'failed');
      const revised = await by.post(`/posts/${data.id}/revise`, { content: 'Changed after it failed.' });
      assert.equal(revised.status, 200, revised.text);
      await by.post(`/post-targets/${failing}/retry`);
      await by.post('/post-targets/bulk', { action: 'retry', targetIds: [failing] });
      await isHeld(revised, data.id);
    });

    t(`${who}: joining, leaving and shifting a campaign release nothing`, async () => {
      const campaign = await tester.post('/campaigns', { name: `Of ${who}`, clientId: own.clientId });
      const made = await compose({ campaignId: campaign.data.id });
      const path = `/campaigns/${campaign.data.id}`;
      await isHeld(await tester.post(`${path}/shift`, { days: 1 }), made.data.id);
      await isHeld(await tester.post(`${path}/unassign`, { postIds: [made.data.id] }), made.data.id);
      await isHeld(await tester.post(`${path}/assign`, { postIds: [made.data.id] }), made.data.id);
    });
  }

  t('a creator decides nothing, makes no link, and does not end the approval of a client', async () => {
    const made = await creator.post('/posts', strict.body());
    const path = `/approvals/${made.data.approvalId}`;
    refused(await creator.post(`${path}/approve`, {}), 403, 'role_required');
    refused(await creator.post(`${path}/links`, {}), 403, 'role_required');
    refused(await creator.patch(`/clients/${strict.clientId}`, { approvalRequired: false }), 403, 'role_required');
    await isHeld(made);
  });

  t('a link of a request that was withdrawn decides nothing', async () => {
    const made = await creator.post('/posts', strict.body());
    const link = await tester.post(`/approvals/${made.data.approvalId}/links`, {});
    const revised = await creator.post(`/posts/${made.data.id}/revise`, { content: 'Another text.' });
    const form = new URLSearchParams({ name: 'Guest', decision: 'approve' });
    await fetch(String(link.data.url), { method: 'POST', body: form, redirect: 'manual' });
    await world.settled();
    await isHeld(revised, made.data.id);
  });

  t('a time that has passed is refused, however it is asked for', async () => {
    const past = { type: 'at', scheduledAt: new Date(Date.now() - 3_600_000).toISOString() };
    assert.equal((await tester.post('/posts', free.body({ schedule: past }))).status, 422);
    const made = await tester.post('/posts', free.body());
    const [id = ''] = targetIds(made);
    const moved = await tester.post(`/post-targets/${id}/reschedule`, { scheduledAt: past.scheduledAt });
    assert.equal(moved.status, 422, moved.text);
    const revised = await tester.post(`/posts/${made.data.id}/revise`, { schedule: past });
    assert.equal(revised.status, 422, revised.text);
  });
});
