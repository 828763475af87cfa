import { deepEqual, equal } from 'node:assert/strict';
import { isReleasedFor, type LivePost, newestBody, post } from '#domain/post/post.ts';
import type { PostBody, PostEvent } from '#schemas/post.ts';
import { deciding } from '#test/support/deciding.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(post);

const body = (content: string, more: Partial<PostBody> = {}): PostBody => ({ ...postBody(), content, ...more });
const written = { clientId: 'c1', createdBy: { type: 'apikey', id: 'k1' } };
const plan = {
  number: 1,
  targets: ['a', 'b'].map((targetId) => planned({ targetId, accountId: `of-${targetId}`, clientId: 'c1' })),
};
const scheduled: PostEvent = { type: 'PostScheduled', data: { ...written, body: body('first'), plan } };
const held: PostEvent = { type: 'PostScheduled', data: { ...scheduled.data, held: true } };
const asking = (request: number, ...targetIds: readonly string[]): PostEvent => ({
  type: 'PostSubmittedForApproval',
  data: {
    approvalId: `r${request}`,
    request,
    hash: `h${request}`,
    submittedBy: { type: 'member', id: 'm' },
    targetIds: [...targetIds],
  },
});
const revised = (content: string, ...targetIds: readonly string[]): PostEvent => ({
  type: 'PostRevised',
  data: { body: body(content), changed: ['content'], targetIds: [...targetIds], times: null },
});
const decision = { decidedBy: { type: 'member', id: 'm' }, comment: null } as const;
const released = (request: number): PostEvent => ({
  type: 'PostReleased',
  data: { approvalId: `r${request}`, hash: `h${request}`, ...decision },
});
const rejected = (...targetIds: readonly string[]): PostEvent => ({
  type: 'PostTargetsChanged',
  data: { change: { kind: 'cancel', reason: 'approval_rejected' }, targetIds: [...targetIds] },
});
const settled = (targetId: string, outcome: 'published' | 'failed' | 'canceled'): PostEvent => ({
  type: 'PostTargetSettled',
  data: { targetId, targetRevision: 5, outcome, publishedAt: null },
});
const live = (...events: readonly PostEvent[]): LivePost => {
  const found = state(events);
  if (found.status !== 'live') throw new Error(`the post is ${found.status}`);
  return found;
};
const texts = ({ body: one, asked }: LivePost) => [one.content, asked?.body.content ?? null];
/** The plan is out on one target, and the other waits for the approval of a revise. */
const waiting = [scheduled, settled('b', 'published'), revised('second', 'a'), asking(1, 'a')];

suite('the bodies of a post', (t) => {
  t('a held revise stands beside the released body; one that is not held replaces it', () => {
    deepEqual(texts(live(scheduled, revised('second', 'a', 'b'))), ['second', null]);
    deepEqual(texts(live(...waiting)), ['first', 'second']);
    deepEqual(texts(live(...waiting, revised('third', 'a'), asking(2, 'a'))), ['first', 'third']);
    equal(newestBody(live(...waiting)).content, 'second');
    // A submission holds the revise right before it, and no other.
    const joined: PostEvent = { type: 'PostCampaignChanged', data: { campaignId: 'c9', previousCampaignId: null } };
    equal(live(scheduled, revised('second', 'a')).replaced?.body.content, 'first');
    equal(live(scheduled, revised('second', 'a'), joined).replaced, null);
    equal(live(scheduled, joined).replaced, null);
    equal(
      newestBody(live(...waiting.slice(0, -1))).content,
      'second',
      'as its targets read it, at the revision of the revise',
    );
  });

  t('a release makes it the released body, with the campaign that the post has by then', () => {
    const joined: PostEvent = { type: 'PostCampaignChanged', data: { campaignId: 'c9', previousCampaignId: null } };
    const alone = live(scheduled, joined);
    deepEqual([alone.body.campaignId, alone.asked], ['c9', null]);
    const { asked, body: before } = live(...waiting, joined);
    deepEqual([before.campaignId, asked?.body.campaignId], ['c9', 'c9']);
    const after = live(...waiting, joined, released(1));
    deepEqual([...texts(after), after.body.campaignId], ['second', null, 'c9']);
  });

  t('a rejection drops it, also where a target has failed before anybody approved it', () => {
    deepEqual(texts(live(...waiting, rejected('a'))), ['first', null]);
    const both = [scheduled, revised('second', 'a', 'b'), asking(1, 'a', 'b'), settled('b', 'failed')];
    deepEqual(texts(live(...both)), ['first', 'second']);
    deepEqual(texts(live(...both, rejected('a'))), ['first', null]);
  });

  t('it is dropped once none of its targets is left, and not by a cancel that comes too late', () => {
    const cancel: PostEvent = {
      type: 'PostTargetsChanged',
      data: { change: { kind: 'cancel', reason: 'post_canceled' }, targetIds: ['a'] },
    };
    const late: PostEvent = {
      type: 'PostTargetsSkipped',
      data: { intentRevision: 4, targetIds: ['a'], reason: 'failed' },
    };
    deepEqual(texts(live(...waiting, cancel)), ['first', 'second']);
    deepEqual(texts(live(...waiting, cancel, settled('a', 'canceled'))), ['first', null]);
    deepEqual(texts(live(...waiting, cancel, late, settled('a', 'failed'))), ['first', 'second']);
    const tooLate: PostEvent = {
      type: 'PostTargetsSkipped',
      data: { intentRevision: 2, targetIds: ['a'], reason: 'publishing' },
    };
    deepEqual(texts(live(...waiting, tooLate)), ['first', null], 'the revise reached nothing');
  });

  t('while nothing was released, the newest body is the only one, and the one of the draft that comes back', () => {
    const first = [held, asking(1, 'a', 'b')];
    const two = [...first, revised('second', 'a', 'b'), asking(2, 'a', 'b')];
    deepEqual([live(...first).released, ...texts(live(...two))], [false, 'second', null]);
    const returned = state([...two, { type: 'PostReturnedToDraft', data: { approvalId: 'r2', ...decision } }]);
    equal(returned.status === 'draft' && returned.body.content, 'second');
    deepEqual([live(...two, released(2)).released, ...texts(live(...two, released(2)))], [true, 'second', null]);
  });

  t('changes that are requested leave it, where a part of the post is out', () => {
    given(waiting)
      .when({ type: 'ReturnToDraft', approvalId: 'r1', decided: { by: decision.decidedBy, comment: null } })
      .then([]);
  });

  t('a held revise says so in its event; one without an approval does not', () => {
    const command = {
      ...({
        type: 'Revise',
        commandId: 'c',
        body: body('second'),
        changed: ['content'],
        targetIds: ['a'],
        times: null,
      } as const),
    };
    const submission = { postId: 'p1', hash: 'h1', submittedBy: { type: 'member', id: 'm' } } as const;
    const decided = post.decide({ ...command, submission }, state([scheduled]));
    deepEqual(decided[0], { type: 'PostRevised', data: { ...revised('second', 'a').data, held: true } });
    deepEqual(post.decide(command, state([scheduled])), [revised('second', 'a')]);
  });

  t('of a target, what needed no approval is released, and what was held once exactly that is approved', () => {
    const isReleased = (events: readonly PostEvent[], id: string, at: number) => isReleasedFor(live(...events), id, at);
    equal(isReleased(waiting, 'b', 0), true);
    equal(isReleased(waiting, 'a', 2), false);
    equal(isReleased([...waiting, released(1)], 'a', 2), true);
    equal(isReleased([...waiting, released(1)], 'b', 2), false, 'nobody was asked about it');
    // The target still has the former content, which was never approved.
    const next = [...waiting, revised('third', 'a'), asking(2, 'a'), released(2)];
    deepEqual([isReleased(next, 'a', 2), isReleased(next, 'a', 4)], [false, true]);
    const cancel: PostEvent = {
      type: 'PostTargetsChanged',
      data: { change: { kind: 'cancel', reason: 'post_canceled' }, targetIds: ['a'] },
    };
    equal(isReleased([...waiting, cancel], 'a', 2), false, 'a cancel is no release');
    const plans = [held, asking(1, 'a', 'b')];
    deepEqual([isReleased(plans, 'a', 0), isReleased([...plans, released(1)], 'a', 0)], [false, true]);
  });
});
