import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld, composer, refused } from '#test/support/composing.ts';
import type { Answered } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester } = await composedWorld(['x']);
const nowhere = randomUUID();
const own = await composer(world, ['x', 'bluesky']);
await tester.patch(`/clients/${own.clientId}`, { approvalRequired: true });
const member = await world.memberOf(world.workspaceId, 'creator');
const creator = (await world.keyOf(world.workspaceId, member, { mode: 'test' })).caller;

const statuses = ({ data }: Pick<Answered, 'data'>): readonly unknown[] =>
  (data.targets as readonly { readonly status: string }[]).map(({ status }) => status);
const held = ['awaiting_approval', 'awaiting_approval'];

suite('approvals over HTTP', (t) => {
  const submit = async (more: Record<string, unknown> = {}, by = tester) => {
    const made = await by.post('/posts', own.body(more));
    assert.equal(made.status, 200, made.text);
    assert.equal(made.data.status, 'pending_approval');
    assert.deepEqual(statuses(made), held);
    return { postId: made.data.id, approvalId: String(made.data.approvalId) };
  };
  const decide = (id: string, decision: string, body: object = {}, options = {}) =>
    tester.post(`/approvals/${id}/${decision}`, body, options);
  const postOf = (id: string) => tester.get(`/posts/${id}`);
  const approvalOf = async (id: string) => (await tester.get(`/approvals/${id}`)).data;

  t(
    'a post of a client that wants approval is held, shown as it will go out, and released by an approval',
    async () => {
      const { postId, approvalId } = await submit({ content: 'As it is.', aiDisclosure: true });
      assert.deepEqual((await postOf(postId)).data.approvalId, approvalId);
      const asked = await tester.get(`/approvals/${approvalId}`);
      assert.equal(asked.headers.get('etag'), '"0"');
      const { data } = asked;
      assert.deepEqual(
        [data.object, data.postId, data.clientId, data.status, data.decidedBy, data.comment],
        ['approval', postId, own.clientId, 'pending', null, null],
      );
      const shown = data.post as {
        content: string;
        aiDisclosure: boolean;
        targets: { platform: string; accountId: string }[];
      };
      assert.deepEqual([shown.content, shown.aiDisclosure], ['As it is.', true]);
      assert.deepEqual(shown.targets.map(({ platform, accountId }) => [platform, accountId]).sort(), [
        ['bluesky', own.accounts.bluesky],
        ['x', own.accounts.x],
      ]);
      const approved = await decide(approvalId, 'approve', { comment: 'Lovely.' });
      assert.equal(approved.status, 200, approved.text);
      assert.deepEqual(
        [approved.data.status, approved.data.comment, approved.data.revision],
        ['approved', 'Lovely.', 1],
      );
      assert.ok(approved.data.decidedAt);
      const released = await postOf(postId);
      assert.deepEqual([released.data.status, ...statuses(released)], ['scheduled', 'pending', 'pending']);
      assert.deepEqual(await approvalOf(approvalId), approved.data);
    },
  );

  t('a creator’s post is held where no client asks for it; a manager’s is not', async () => {
    const free = await composer(world, ['x']);
    const made = await creator.post('/posts', free.body());
    assert.deepEqual([made.status, made.data.status], [200, 'pending_approval'], made.text);
    refused(await creator.post(`/approvals/${made.data.approvalId}/approve`, {}), 403, 'role_required');
    const asked = await tester.post('/posts', free.body({ requestApproval: true }));
    assert.deepEqual([asked.data.status, asked.data.approvalId], ['scheduled', null]);
    const draft = await creator.post('/posts', free.body({ saveDraft: true }));
    const published = await creator.post(`/posts/${draft.data.id}/publish`, {});
    assert.deepEqual([published.status, published.data.status], [200, 'pending_approval'], published.text);
  });

  t('a rejection cancels what is held; it needs a comment', async () => {
    const { postId, approvalId } = await submit();
    refused(await decide(approvalId, 'reject', {}), 422, 'validation_failed', ['/comment']);
    refused(await decide(approvalId, 'reject', { comment: ' ' }), 422, 'validation_failed', ['/comment']);
    refused(await decide(approvalId, 'approve', { comment: '\u0000' }), 422, 'validation_failed', ['/comment']);
    const rejected = await decide(approvalId, 'reject', { comment: 'Off brand.' });
    assert.deepEqual([rejected.status, rejected.data.status, rejected.data.comment], [200, 'rejected', 'Off brand.']);
    const after = await postOf(postId);
    assert.deepEqual([after.data.status, ...statuses(after)], ['canceled', 'canceled', 'canceled']);
  });

  t('asked for changes: the post is a draft, is changed, and its next plan needs a new approval', async () => {
    const { postId, approvalId } = await submit();
    const sent = await decide(approvalId, 'request-changes', { comment: 'Shorter.' });
    assert.deepEqual([sent.status, sent.data.status], [200, 'changes_requested']);
    const draft = await postOf(postId);
    assert.deepEqual([draft.data.status, draft.data.targets], ['draft', []]);
    const { clientId: _client, ...replaced } = own.body({ content: 'Short.' });
    assert.equal((await tester.patch(`/posts/${postId}`, replaced)).status, 200);
    const again = await tester.post(`/posts/${postId}/publish`, {});
    assert.deepEqual(
      [again.status, again.data.status, ...statuses(again)],
      [200, 'pending_approval', ...held],
      again.text,
    );
    assert.notEqual(again.data.approvalId, approvalId);
    const old = await tester.get(`/post-targets?postId=${postId}&limit=100`);
    assert.equal(old.status, 200, old.text);
    const asked = await approvalOf(String(again.data.approvalId));
    assert.equal((asked.post as { content: string }).content, 'Short.');
    assert.equal((await decide(String(again.data.approvalId), 'approve')).status, 200);
    assert.deepEqual(statuses(await postOf(postId)), ['pending', 'pending']);
  });

  t('a revise withdraws the request and asks anew; the former one decides nothing', async () => {
    const { postId, approvalId } = await submit({ content: 'First.' });
    const revised = await tester.post(`/posts/${postId}/revise`, { content: 'Second.' });
    assert.deepEqual([revised.status, revised.data.status, ...statuses(revised)], [200, 'pending_approval', ...held]);
    const next = String(revised.data.approvalId);
    assert.notEqual(next, approvalId);
    const former = await approvalOf(approvalId);
    assert.deepEqual([former.status, former.withdrawnReason], ['withdrawn', 'post_changed']);
    assert.equal((former.post as { content: string }).content, 'First.');
    const late = await decide(approvalId, 'approve');
    refused(late, 409, 'approval_not_pending');
    assert.deepEqual([late.body.approvalStatus, late.body.decidedBy], ['withdrawn', null]);
    assert.equal((await decide(next, 'approve')).status, 200);
    // Approved, then changed again: it needs a third approval, whoever changes it.
    const third = await tester.post(`/posts/${postId}/revise`, { content: 'Third.' });
    assert.deepEqual([third.data.status, ...statuses(third)], ['pending_approval', ...held]);
    assert.equal((await approvalOf(next)).status, 'withdrawn');
    // Other times leave the content as it was approved.
    assert.equal((await decide(String(third.data.approvalId), 'approve')).status, 200);
    const schedule = { type: 'at', scheduledAt: new Date(Date.now() + 50 * 3_600_000).toISOString() };
    const moved = await tester.post(`/posts/${postId}/revise`, { schedule });
    assert.deepEqual([moved.status, moved.data.status, ...statuses(moved)], [200, 'scheduled', 'pending', 'pending']);
    assert.equal(moved.data.approvalId, third.data.approvalId);
  });

  t('changes asked for after a release leave the post held, until a revise', async () => {
    const { postId, approvalId } = await submit();
    await decide(approvalId, 'approve');
    const revised = await tester.post(`/posts/${postId}/revise`, { content: 'Changed.' });
    const sent = await decide(String(revised.data.approvalId), 'request-changes', { comment: 'No.' });
    assert.deepEqual([sent.status, sent.data.status], [200, 'changes_requested'], sent.text);
    const after = await postOf(postId);
    assert.deepEqual([after.data.status, ...statuses(after)], ['pending_approval', ...held]);
    const again = await tester.post(`/posts/${postId}/revise`, { content: 'Changed again.' });
    assert.equal((await decide(String(again.data.approvalId), 'approve')).status, 200);
    assert.deepEqual(statuses(await postOf(postId)), ['pending', 'pending']);
  });

  t('a canceled post withdraws its request, and nobody can approve it', async () => {
    const { postId, approvalId } = await submit();
    assert.equal((await tester.delete(`/posts/${postId}`)).status, 200);
    const late = await decide(approvalId, 'approve');
    assert.equal(late.status, 409, late.text);
    assert.ok(['approval_superseded', 'approval_not_pending'].includes(String(late.body.code)), late.text);
    const { status, withdrawnReason } = await approvalOf(approvalId);
    assert.deepEqual([status, withdrawnReason], ['withdrawn', 'post_canceled']);
  });

  t('of many deciders at once one decides, and the others are told who', async () => {
    const { postId, approvalId } = await submit();
    const sent = ['approve', 'reject', 'request-changes', 'approve', 'reject'];
    const answers = await Promise.all(sent.map((decision) => decide(approvalId, decision, { comment: 'Mine.' })));
    const won = answers.filter(({ status }) => status === 200);
    assert.equal(won.length, 1);
    for (const lost of answers.filter(({ status }) => status !== 200)) {
      refused(lost, 409, 'approval_not_pending');
      assert.deepEqual(lost.body.decidedBy, won[0]?.data.decidedBy);
      assert.ok(lost.body.decidedAt);
    }
    const left = await postOf(postId);
    const expected = {
      approved: ['scheduled', 'pending', 'pending'],
      rejected: ['canceled', 'canceled', 'canceled'],
      changes_requested: ['draft'],
    };
    const status = String(won[0]?.data.status);
    assert.deepEqual([left.data.status, ...statuses(left)], expected[status as keyof typeof expected]);
  });

  t('a repeat of a keyed decision answers the same, also after the post has moved on', async () => {
    const { postId, approvalId } = await submit();
    const key = randomUUID();
    const first = await decide(approvalId, 'approve', {}, { key });
    await tester.post(`/posts/${postId}/revise`, { content: 'Moved on.' });
    const again = await decide(approvalId, 'approve', {}, { key });
    assert.deepEqual([again.status, again.data], [200, first.data], again.text);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
  });

  t(
    'with the rule `approvalLate: fail` a late target fails, and is retried only once the post is approved',
    async () => {
      const late = await composer(world, ['x', 'bluesky']);
      await tester.patch(`/clients/${late.clientId}`, { approvalRequired: true, rules: { approvalLate: 'fail' } });
      const due = { type: 'range', from: new Date().toISOString(), to: new Date(Date.now() + 3_600_000).toISOString() };
      const made = await tester.post('/posts', late.body({ schedule: due }));
      const first = (made.data.targets as { id: string; scheduledAt: string }[]).sort((a, b) =>
        a.scheduledAt < b.scheduledAt ? -1 : 1,
      )[0];
      const id = first?.id ?? '';
      const command = { type: 'LapseApproval', now: new Date().toISOString() } as const;
      const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
      const partitionKey = made.data.id;
      await execute(world.store, target, id, command, context, { partitionKey });
      refused(await tester.post(`/post-targets/${id}/retry`, {}), 409, 'target_not_retryable');
      assert.equal((await decide(String(made.data.approvalId), 'approve')).status, 200);
      const failed = await tester.get(`/post-targets/${id}`);
      assert.deepEqual(
        [failed.data.status, (failed.data.failure as { code: string }).code],
        ['failed', 'approval_too_late'],
      );
      const retried = await tester.post(`/post-targets/${id}/retry`, {});
      assert.deepEqual([retried.status, retried.data.status], [200, 'pending'], retried.text);
    },
  );

  t('a late target is not retried by the approval of a content that it does not have', async () => {
    const late = await composer(world, ['x', 'bluesky']);
    await tester.patch(`/clients/${late.clientId}`, { approvalRequired: true, rules: { approvalLate: 'fail' } });
    const made = await tester.post('/posts', late.body({ content: 'Nobody has approved this.' }));
    const [id] = (made.data.targets as { id: string; platform: string }[]).flatMap((one) =>
      one.platform === 'x' ? [one.id] : [],
    );
    const now = new Date(Date.now() + 2 * 86_400_000).toISOString();
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    await execute(world.store, target, id ?? '', { type: 'LapseApproval', now }, context, {
      partitionKey: made.data.id,
    });
    const account = `/accounts/${late.accounts.x}`;
    assert.equal((await tester.post(`${account}/disconnect`, {})).status, 200);
    const revised = await tester.post(`/posts/${made.data.id}/revise`, { content: 'This is approved.' });
    assert.deepEqual(
      (revised.data.revise as { skipped: { reason: string }[] }).skipped.map(({ reason }) => reason),
      ['account_disconnected'],
    );
    assert.equal((await decide(String(revised.data.approvalId), 'approve')).status, 200);
    const invite = await tester.post(`/clients/${late.clientId}/connect-invites`, { platforms: ['x'] });
    const form = new URLSearchParams({ platform: 'x', username: 'acme', timezone: '' });
    await fetch(String(invite.data.url), { method: 'POST', body: form });
    await world.settled();
    assert.equal((await tester.get(account)).data.status, 'connected');
    refused(await tester.post(`/post-targets/${id}/retry`, {}), 409, 'target_not_retryable');
  });

  t('If-Match guards a decision; an unknown and a foreign request are the same 404', async () => {
    const { approvalId } = await submit();
    refused(await decide(approvalId, 'approve', {}, { headers: { 'if-match': '"7"' } }), 412, 'revision_mismatch');
    refused(await decide(nowhere, 'approve'), 404, 'not_found');
    refused(await tester.get(`/approvals/${nowhere}`), 404, 'not_found');
    const stranger = await world.agency('Strangers');
    refused(await stranger.owner.get(`/approvals/${approvalId}`), 404, 'not_found');
    refused(await stranger.owner.post(`/approvals/${approvalId}/approve`, {}), 404, 'not_found');
    assert.equal((await approvalOf(approvalId)).status, 'pending');
  });

  t('a request that an accepted post asks for is never 404, though it is not written yet', async () => {
    const { pool } = world;
    await pool.query(`
      create function refuse_request() returns trigger language plpgsql as
        $$ begin raise exception 'no request today'; end $$;
      create trigger refuse_request before insert on es.event_rows for each row
        when (new.type = 'ApprovalRequested') execute function refuse_request()`);
    const asked = [];
    try {
      for (const _ of ['decided', 'linked', 'read']) asked.push((await submit()).approvalId);
      await world.settled();
      refused(await tester.get(`/approvals/${asked[2]}`), 503, 'unavailable');
      refused(await tester.get(`/approvals/${asked[2]}/links`), 503, 'unavailable');
      const stranger = await world.agency('Strangers of what is not written');
      refused(await stranger.owner.get(`/approvals/${asked[2]}`), 404, 'not_found');
      refused(await stranger.owner.post(`/approvals/${asked[2]}/approve`, {}), 404, 'not_found');
    } finally {
      await pool.query('drop trigger refuse_request on es.event_rows; drop function refuse_request()');
    }
    const approved = await decide(String(asked[0]), 'approve');
    assert.deepEqual([approved.status, approved.data.status], [200, 'approved'], approved.text);
    const link = await tester.post(`/approvals/${asked[1]}/links`, {});
    assert.equal(link.status, 200, link.text);
    assert.equal((await approvalOf(String(asked[1]))).status, 'pending');
  });

  t('the list: newest first, by status, client and post, page by page', async () => {
    const client = await composer(world, ['x', 'bluesky']);
    await tester.patch(`/clients/${client.clientId}`, { approvalRequired: true });
    const ids: string[] = [];
    const posts: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      const made = await tester.post('/posts', client.body());
      ids.unshift(String(made.data.approvalId));
      posts.unshift(made.data.id);
    }
    await decide(ids[1] ?? '', 'reject', { comment: 'No.' });
    const listed = async (query: string) => (await tester.get(`/approvals?clientId=${client.clientId}${query}`)).rows;
    const found = async (query: string) => (await listed(query)).map(({ id }) => id);
    assert.deepEqual(await found(''), ids);
    assert.deepEqual(await found('&status=pending'), [ids[0], ids[2]]);
    assert.deepEqual(await found('&status=pending,rejected'), ids);
    assert.deepEqual(await found(`&postId=${posts[1]}`), [ids[1]]);
    const first = await tester.get(`/approvals?clientId=${client.clientId}&limit=2`);
    assert.deepEqual(
      first.rows.map(({ id }) => id),
      ids.slice(0, 2),
    );
    assert.deepEqual(await found(`&limit=2&cursor=${first.body.page?.nextCursor}`), ids.slice(2));
    const { post: _post, shown: _shown, guestName: _guest, ...row } = await approvalOf(ids[0] ?? '');
    assert.deepEqual((await listed(''))[0], row);
  });
});
