import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { composer, refused, tomorrow } from '#test/support/composing.ts';
import type { Answered } from '#test/support/http.ts';
import { connect, failed, mcpWorld, worked } from '#test/support/mcp.ts';
import { afterFile, suite } from '#test/support/suite.ts';

/** What an approver decided reaches the author: on the post, in lists, over MCP, and before the same goes out again. */

const world = await mcpWorld();
afterFile(world.close);
const { tester } = world;
const own = await composer(world, ['x', 'bluesky'], { name: 'Acme' });
await tester.patch(`/clients/${own.clientId}`, { approvalRequired: true });
const mcp = await connect(world, world.testKey.secret);
afterFile(mcp.close);
await world.settled();

interface Decision {
  readonly approvalId: string;
  readonly status: string;
  readonly decidedBy: { readonly type: string };
  readonly decidedAt: string;
  readonly comment: string | null;
}

const decisionOf = ({ data }: Pick<Answered, 'data'>): Decision | null | undefined =>
  data.lastDecision as Decision | null | undefined;

suite('the last decision about a post', (t) => {
  const submit = async (more: Record<string, unknown> = {}) => {
    const made = await tester.post('/posts', own.body(more));
    assert.equal(made.status, 200, made.text);
    assert.equal(decisionOf(made), null);
    return { postId: made.data.id, approvalId: String(made.data.approvalId) };
  };
  const decide = async (id: string, decision: string, comment?: string) => {
    const answer = await tester.post(`/approvals/${id}/${decision}`, comment === undefined ? {} : { comment });
    assert.equal(answer.status, 200, answer.text);
    return answer.data;
  };
  const shown = async (postId: string) => {
    await world.settled();
    const one = await tester.get(`/posts/${postId}`);
    const rows = (await tester.get(`/posts?clientId=${own.clientId}&limit=100`)).rows;
    const row = rows.find(({ id }) => id === postId) as unknown as Answered['data'];
    assert.deepEqual(row.lastDecision, one.data.lastDecision, 'the list says the same');
    return one;
  };
  const sentBack = async (more: Record<string, unknown> = {}, comment = 'Shorter, "please".') => {
    const made = await submit(more);
    await decide(made.approvalId, 'request-changes', comment);
    await world.settled();
    return made;
  };
  /** Other warnings are about texts that are alike in this file. */
  /** Other warnings are about texts that are alike in this file. */
  const codes = ({ body }: Answered) => {
    const { warnings = [] } = body.meta as { readonly warnings?: readonly { readonly code: string }[] };
    return warnings.flatMap(({ code }) => (code === 'changes_requested' ? [code] : []));
  };

  t('stands on it with who, when and the comment: in GET, in lists, and in answers to commands', async () => {
    const { postId, approvalId } = await submit();
    assert.equal(decisionOf(await shown(postId)), null);
    const { decidedBy, decidedAt } = await decide(approvalId, 'request-changes', 'Shorter.');
    const wanted = { approvalId, status: 'changes_requested', decidedBy, decidedAt, comment: 'Shorter.' };
    assert.deepEqual(decisionOf(await shown(postId)), wanted);
    const { clientId: _client, ...replaced } = own.body({ content: 'Short.' });
    const patched = await tester.patch(`/posts/${postId}`, replaced);
    assert.deepEqual(decisionOf(patched), wanted);
    const key = randomUUID();
    const published = await tester.post(`/posts/${postId}/publish`, {}, { key });
    assert.deepEqual([published.data.status, decisionOf(published)], ['pending_approval', wanted], published.text);
    assert.deepEqual(codes(published), [], 'the content has changed');
    assert.deepEqual(decisionOf(await shown(postId)), wanted, 'until the next decision');
    const next = String(published.data.approvalId);
    const approved = await decide(next, 'approve', 'Lovely.');
    assert.deepEqual(decisionOf(await shown(postId)), {
      ...{ approvalId: next, status: 'approved', comment: 'Lovely.' },
      ...{ decidedBy: approved.decidedBy, decidedAt: approved.decidedAt },
    });
    const again = await tester.post(`/posts/${postId}/publish`, {}, { key });
    assert.deepEqual(again.data, published.data, 'a repeat answers the same');
    const revised = await tester.post(`/posts/${postId}/revise`, { content: 'Other.' });
    assert.equal(decisionOf(revised)?.status, 'approved', 'of the former content, as its approvalId says');
    assert.notEqual(decisionOf(revised)?.approvalId, revised.data.approvalId);
    const removed = await tester.delete(`/posts/${postId}`);
    assert.equal(decisionOf(removed)?.status, 'approved');
  });

  t(
    'is told of a rejection, of a guest, and of changes that are wanted of a post of which a part may be out',
    async () => {
      const rejected = await submit();
      await decide(rejected.approvalId, 'reject', 'Off brand.');
      const after = decisionOf(await shown(rejected.postId));
      assert.deepEqual([after?.status, after?.comment], ['rejected', 'Off brand.']);

      const byGuest = await submit();
      const link = await tester.post(`/approvals/${byGuest.approvalId}/links`, {});
      const form = new URLSearchParams({ decision: 'request_changes', name: 'Zoë', comment: 'Warmer.' });
      await fetch(String(link.data.url), { method: 'POST', body: form, redirect: 'manual' });
      const guest = await shown(byGuest.postId);
      assert.deepEqual(decisionOf(guest)?.decidedBy, { type: 'guest', id: link.data.linkId });
      assert.ok(!guest.text.includes('Zoë'), 'the name of a guest stays in the stream of the request');

      // The post itself does not change by it, so that only the decision renews what was shown before.
      const { postId, approvalId } = await submit();
      await decide(approvalId, 'approve');
      const revised = await tester.post(`/posts/${postId}/revise`, { content: 'Changed.' });
      const before = await shown(postId);
      assert.equal(decisionOf(before)?.status, 'approved');
      await decide(String(revised.data.approvalId), 'request-changes', 'No.');
      const now = await shown(postId);
      assert.equal(now.data.revision, before.data.revision);
      assert.deepEqual([decisionOf(now)?.status, decisionOf(now)?.comment], ['changes_requested', 'No.']);
      const schedule = { type: 'at', scheduledAt: new Date(Date.now() + 50 * 3_600_000).toISOString() };
      const moved = await tester.post(`/posts/${postId}/revise`, { schedule });
      assert.ok(codes(moved).includes('changes_requested'), moved.text);
      const changed = await tester.post(`/posts/${postId}/revise`, { content: 'Better.' });
      assert.ok(!codes(changed).includes('changes_requested'), changed.text);
    },
  );

  t('the unchanged content, sent out again, carries a warning; a caller may have it refused', async () => {
    const { postId, approvalId } = await sentBack();
    const before = await world.head();
    const answer = await tester.post(`/posts/${postId}/publish`, { acknowledgeDecision: false });
    refused(answer, 409, 'changes_requested');
    assert.equal(answer.body.approvalId, approvalId);
    assert.match(String(answer.body.detail), /The comment: "Shorter, \\"please\\"\."/);
    assert.equal(await world.head(), before, 'nothing is stored');
    const key = randomUUID();
    const schedule = { type: 'at', scheduledAt: new Date(Date.now() + 60 * 3_600_000).toISOString() };
    const again = await tester.post(`/posts/${postId}/publish`, { schedule }, { key });
    assert.deepEqual([again.status, again.data.status, codes(again)], [200, 'pending_approval', ['changes_requested']]);
    await decide(String(again.data.approvalId), 'approve');
    const repeated = await tester.post(`/posts/${postId}/publish`, { schedule }, { key });
    assert.deepEqual(codes(repeated), ['changes_requested'], 'a repeat warns of the same');
  });

  t('also where nobody has to approve it any more; other accounts are another content', async () => {
    const { postId } = await sentBack();
    const other = await sentBack();
    const acknowledged = await sentBack();
    await tester.patch(`/clients/${own.clientId}`, { approvalRequired: false });
    await world.settled();
    refused(await tester.post(`/posts/${postId}/publish`, { acknowledgeDecision: false }), 409, 'changes_requested');
    const out = await tester.post(`/posts/${postId}/publish`, {});
    assert.deepEqual([out.data.status, codes(out)], ['scheduled', ['changes_requested']]);
    assert.equal(decisionOf(await shown(postId))?.status, 'changes_requested');
    const targets = { mode: 'selection', clientId: own.clientId, accountIds: [own.accounts.x] };
    const { clientId: _client, ...replaced } = own.body({ targets });
    assert.equal((await tester.patch(`/posts/${other.postId}`, replaced)).status, 200);
    const elsewhere = await tester.post(`/posts/${other.postId}/publish`, { acknowledgeDecision: false });
    assert.deepEqual([elsewhere.status, codes(elsewhere)], [200, []], elsewhere.text);
    const meant = await tester.post(`/posts/${acknowledged.postId}/publish`, { acknowledgeDecision: true });
    assert.deepEqual(codes(meant), ['changes_requested']);
    await tester.patch(`/clients/${own.clientId}`, { approvalRequired: true });
    await world.settled();
  });

  t('over MCP: post_status tells it, and publish_draft wants it acknowledged', async () => {
    const { postId, approvalId } = await sentBack();
    const status = await mcp.call('post_status', { postId });
    const { lastDecision } = worked(status) as { lastDecision: Decision };
    assert.deepEqual(
      [lastDecision.approvalId, lastDecision.status, lastDecision.comment],
      [approvalId, 'changes_requested', 'Shorter, "please".'],
    );
    assert.match(status.text, /changes_requested by apikey .*: "Shorter, \\"please\\"\."/);
    assert.match(String(status.data.nextStep), /approver asked for changes.*revise_post/);
    assert.doesNotMatch(String(status.data.nextStep), /sends it out/);
    const { posts } = worked(await mcp.call('find_posts', { clientId: own.clientId, statuses: ['draft'] })) as {
      posts: { postId: string; lastDecision: Decision | null }[];
    };
    assert.equal(posts.find((one) => one.postId === postId)?.lastDecision?.comment, 'Shorter, "please".');
    const args = { postId, action: 'schedule', scheduledAt: tomorrow() };
    const words = failed(await mcp.call('publish_draft', args), 'changes_requested');
    assert.match(words, /acknowledgeDecision/);
    assert.match(words, /Shorter/);
    const out = await mcp.call('publish_draft', { ...args, acknowledgeDecision: true });
    assert.equal(worked(out).status, 'pending_approval');
    assert.match(out.text, /\(changes_requested\)/);
    const changed = await sentBack();
    worked(await mcp.call('revise_post', { postId: changed.postId, content: 'Short.' }));
    worked(await mcp.call('publish_draft', { ...args, postId: changed.postId }));
    const rejected = await submit();
    await decide(rejected.approvalId, 'reject', 'Off brand.');
    await world.settled();
    const over = await mcp.call('post_status', { postId: rejected.postId });
    assert.match(over.text, /rejected by .*"Off brand\."/);
  });
});
