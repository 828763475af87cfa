import { deepEqual, equal } from 'node:assert/strict';
import { approvalIdOf } from '#domain/ids.ts';
import { isApprovedFor, isBeyondApproval, type LivePost, type PostState, post, statusOf } from '#domain/post/post.ts';
import type { Actor } from '#schemas/common.ts';
import type { PostBody, PostEvent } from '#schemas/post.ts';
import { deciding, type Given } from '#test/support/deciding.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(post);

const postId = '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001';
const author: Actor = { type: 'member', id: 'm1' };
const approver: Actor = { type: 'member', id: 'm2' };
const body = (content: string): PostBody => ({ ...postBody(), content });
const written = { clientId: 'c1', createdBy: author, body: body('first') };
const plan = (number = 1) => ({
  number,
  targets: ['a', 'b'].map((targetId) => planned({ targetId, accountId: `of-${targetId}`, clientId: 'c1' })),
});
const scheduled: PostEvent = { type: 'PostScheduled', data: { ...written, plan: plan() } };
const held: PostEvent = { type: 'PostScheduled', data: { ...scheduled.data, held: true } };
const submission = (hash: string) => ({ postId, hash, submittedBy: author });
const asked = (request: number, ...targetIds: readonly string[]): PostEvent => ({
  type: 'PostSubmittedForApproval',
  data: {
    approvalId: approvalIdOf(postId, request),
    request,
    hash: `h${request}`,
    submittedBy: author,
    targetIds: [...targetIds],
  },
});
const revise = (over: object = {}) =>
  ({
    ...({ type: 'Revise', commandId: 'r', body: body('second'), changed: ['content'], targetIds: ['a'] } as const),
    ...{ times: null, ...over },
  }) as const;
const revised = (...targetIds: readonly string[]): Given<Extract<PostEvent, { type: 'PostRevised' }>> => ({
  type: 'PostRevised',
  commandId: 'r',
  data: { body: body('second'), changed: ['content'], targetIds: [...targetIds], times: null },
});
const settled = (targetId: string, outcome: 'published' | 'failed' | 'canceled'): PostEvent => ({
  type: 'PostTargetSettled',
  data: { targetId, targetRevision: 5, outcome, publishedAt: null },
});
const decided = { by: approver, comment: 'Good.' };
const said = { decidedBy: approver, comment: 'Good.' };
const release = (request: number, hash = `h${request}`) =>
  ({ type: 'Release', approvalId: approvalIdOf(postId, request), hash, decided }) as const;
const released = (request: number): PostEvent => ({
  type: 'PostReleased',
  data: { approvalId: approvalIdOf(postId, request), hash: `h${request}`, ...said },
});
const reject = (request: number) => ({ type: 'Reject', approvalId: approvalIdOf(postId, request) }) as const;
const canceling = (
  reason: 'approval_rejected' | 'post_canceled',
  ...targetIds: readonly string[]
): Extract<PostEvent, { type: 'PostTargetsChanged' }> => ({
  type: 'PostTargetsChanged',
  data: { change: { kind: 'cancel', reason }, targetIds: [...targetIds] },
});
const sendBack = (request: number) =>
  ({ type: 'ReturnToDraft', approvalId: approvalIdOf(postId, request), decided }) as const;
const sentBack = (request: number): PostEvent => ({
  type: 'PostReturnedToDraft',
  data: { approvalId: approvalIdOf(postId, request), ...said },
});
const skipped = (intentRevision: number, ...targetIds: readonly string[]): PostEvent => ({
  type: 'PostTargetsSkipped',
  data: { intentRevision, targetIds: [...targetIds], reason: 'publishing' },
});
const live = (...events: readonly Given<PostEvent>[]): LivePost => {
  const found: PostState = state(events);
  if (found.status !== 'live') throw new Error(`the post is ${found.status}`);
  return found;
};
const gone = 'approval_superseded';
/** The whole post waits for its first approval. */
const whole = [held, asked(1, 'a', 'b')];
/** One target is out, the other waits for the approval of a revise. */
const part = [scheduled, settled('b', 'published'), revised('a'), asked(1, 'a')];

suite('the approval of a post', (t) => {
  t('is asked for with the plan, for all of its targets; a further plan asks with the next number', () => {
    const command = {
      type: 'Schedule',
      commandId: 'p',
      ...written,
      plan: plan(),
      submission: submission('h1'),
    } as const;
    given([]).when(command).then(whole);
    given([...whole, sentBack(1)])
      .when({ ...command, plan: plan(2), submission: submission('h2') })
      .then([{ type: 'PostScheduled', data: { ...written, plan: plan(2), held: true } }, asked(2, 'a', 'b')]);
    given([{ type: 'PostDrafted', data: written }])
      .when(command)
      .then(whole);
    equal(statusOf(state(whole)), 'pending_approval');
    equal(statusOf(state([...whole, released(1)])), 'scheduled');
    equal(statusOf(state([...whole, canceling('approval_rejected', 'a', 'b')])), 'pending_approval');
    equal(statusOf(state([scheduled])), 'scheduled');
  });

  t('releases the post once, with exactly the content that was asked for', () => {
    given(whole)
      .when(release(1))
      .then([released(1)]);
    given(whole).when(release(1, 'h9')).refused(gone, 'changed or canceled after');
    given(whole).when(release(2)).refused(gone);
    given([scheduled]).when(release(1)).refused(gone);
    given([]).when(release(1)).refused('not_found');
    given([{ type: 'PostDrafted', data: written }])
      .when(release(1))
      .refused(gone);
    given([...whole, canceling('approval_rejected', 'a', 'b')])
      .when(release(1))
      .refused(gone);
    given([...whole, canceling('post_canceled', 'a', 'b')])
      .when(release(1))
      .refused(gone);
    given([...whole, canceling('post_canceled', 'a')])
      .when(release(1))
      .then([released(1)]);
    // The cancel of a rejection came too late for a target.
    given([...whole, canceling('approval_rejected', 'a', 'b'), skipped(2, 'a')])
      .when(release(1))
      .refused(gone);
    const { approval, intents } = live(...whole, { ...released(1), at: '2026-01-01T00:00:07.000Z' });
    deepEqual(approval, {
      ...{ id: approvalIdOf(postId, 1), request: 1, hash: 'h1', status: 'released', targetIds: ['a', 'b'] },
      isWhole: true,
    });
    deepEqual(intents, [
      {
        ...{ kind: 'release', revision: 2, eventId: 'event-2', targetIds: ['a', 'b'], skipped: [] },
        decidedAt: '2026-01-01T00:00:07.000Z',
      },
    ]);
  });

  t('is rejected once: of a plan that was never released every open target is canceled, else those that wait', () => {
    const all = canceling('approval_rejected', 'a', 'b');
    given(whole).when(reject(1)).then([all]);
    given([...whole, canceling('post_canceled', 'b')])
      .when(reject(1))
      .then([canceling('approval_rejected', 'a')]);
    given([...whole, canceling('post_canceled', 'a', 'b')])
      .when(reject(1))
      .refused(gone);
    given([...whole, released(1)])
      .when(reject(1))
      .refused(gone);
    // The first request was about both, the second about one.
    given([...whole, revised('a'), asked(2, 'a')])
      .when(reject(2))
      .then([all]);
    given([...whole, revised('a'), asked(2, 'a')])
      .when(reject(1))
      .refused(gone);
    for (const before of [
      [scheduled, revised('a'), asked(1, 'a')],
      [scheduled, revised('b'), asked(1, 'b'), revised('a'), asked(2, 'a')],
    ]) {
      given(before)
        .when(reject(before.length === 3 ? 1 : 2))
        .then([canceling('approval_rejected', 'a')]);
    }
    equal(live(...whole, all).approval?.status, 'rejected');
    equal(live(...whole, canceling('post_canceled', 'a')).approval?.status, 'pending');
    equal(live(scheduled, canceling('approval_rejected', 'a')).approval, null);
  });

  t('may send the post back to its author, as a whole and only before anything was released', () => {
    given(whole)
      .when(sendBack(1))
      .then([sentBack(1)], { again: gone });
    given([...whole, released(1)])
      .when(sendBack(1))
      .refused(gone);
    given([...whole, canceling('post_canceled', 'a', 'b')])
      .when(sendBack(1))
      .refused(gone);
    given([...whole, revised('a'), asked(2, 'a')])
      .when(sendBack(2))
      .then([sentBack(2)], { again: gone });
    given(part).when(sendBack(1)).then([]);
    given([...whole, released(1), revised('a'), asked(2, 'a')])
      .when(sendBack(2))
      .then([]);
  });

  t('is asked for anew by a revise, unless exactly this content was approved for each of its targets', () => {
    const approved = [...whole, released(1)];
    const data = { body: body('second'), changed: ['content'], targetIds: ['a'], times: null };
    const anew: readonly PostEvent[] = [{ type: 'PostRevised', data: { ...data, held: true } }];
    given(approved)
      .when(revise({ submission: submission('h1') }))
      .then([{ type: 'PostRevised', data }]);
    given(approved)
      .when(revise({ submission: submission('h2') }))
      .then([...anew, asked(2, 'a')]);
    given([...approved, { ...revised('a'), commandId: 'before' }, asked(2, 'a'), released(2)])
      .when(revise({ submission: submission('h2'), targetIds: ['a', 'b'] }))
      .then([
        { type: 'PostRevised', data: { ...data, targetIds: ['a', 'b'], held: true } },
        { ...asked(3, 'a', 'b'), data: { ...asked(3, 'a', 'b').data, hash: 'h2' } } as PostEvent,
      ]);
    // One that still waits asks anew: its approver must see the times too.
    given(whole)
      .when(revise({ submission: submission('h1') }))
      .then([...anew, { ...asked(2, 'a'), data: { ...asked(2, 'a').data, hash: 'h1' } } as PostEvent]);
    given([scheduled])
      .when(revise({ submission: submission('h1') }))
      .then([...anew, asked(1, 'a')]);
  });

  t('waits no longer for a target that the revise which asked did not reach', () => {
    const both = [scheduled, revised('a', 'b'), asked(1, 'a', 'b')];
    deepEqual(live(...both, skipped(1, 'b')).approval?.targetIds, ['a']);
    // Another intent came too late: the request stays as it is.
    deepEqual(live(...both, canceling('post_canceled', 'b'), skipped(3, 'b')).approval?.targetIds, ['a', 'b']);
    equal(live(scheduled, revised('a'), skipped(1, 'a')).approval, null);
    deepEqual(live(...whole, canceling('post_canceled', 'b'), skipped(2, 'b')).approval?.targetIds, ['a', 'b']);
    const later = [...both, released(1), { ...revised('a'), commandId: 'r2' }];
    deepEqual(live(...later, skipped(4, 'a')).approval?.targetIds, ['a', 'b'], 'it asked for nothing');
    equal(statusOf(state([scheduled, revised('a'), asked(1, 'a'), skipped(1, 'a')])), 'scheduled');
  });

  t('is beyond a decision once none of its targets is left, or the post is no plan', () => {
    equal(isBeyondApproval(state([])), true);
    equal(isBeyondApproval(state([scheduled])), false);
    equal(isBeyondApproval(state(whole)), false);
    equal(isBeyondApproval(state([...whole, settled('a', 'failed')])), false);
    equal(isBeyondApproval(state([...whole, settled('a', 'failed'), canceling('post_canceled', 'b')])), true);
    equal(isBeyondApproval(state([...whole, sentBack(1)])), true);
  });

  t('of a target holds for the account whose approver was asked, and for what needed none', () => {
    const of = (events: readonly Given<PostEvent>[]) => {
      const found = live(...events);
      return ['a', 'b'].map((id) => isApprovedFor(found, id));
    };
    deepEqual(of([scheduled]), [true, true]);
    deepEqual(of(whole), [false, false]);
    deepEqual(of([...whole, released(1)]), [true, true]);
    const next = [...whole, released(1), revised('a'), asked(2, 'a')];
    deepEqual(of(next), [true, true], 'the released body is the former one');
    deepEqual(of([...next, released(2)]), [true, false]);
    // Times alone changed: the approval of the content before holds.
    deepEqual(of([...whole, released(1), revised('a')]), [true, true]);
  });
});
