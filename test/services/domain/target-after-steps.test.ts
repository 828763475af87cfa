import { deepEqual, equal } from 'node:assert/strict';
import { wantedAfter } from '#domain/post/content.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import type { FollowUpIssue, TargetEvent } from '#schemas/target.ts';
import { deciding } from '#test/support/deciding.ts';
import { failure, planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(target);

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
const claim = { attempt: 1, takeover: 0 };
const there = { externalId: 'e1', permalink: null, publishedAt: at(101) };
const plan = planned({ targetId: 't1', accountId: 'a1', clientId: 'c1', dueAt: at(0) });

const scheduled: TargetEvent = { type: 'TargetScheduled', data: { ...plan, postId: 'p1', postRevision: 3 } };
const started: TargetEvent = { type: 'TargetPublishStarted', data: claim };
const boundary: TargetEvent = {
  type: 'TargetPublishCheckpointed',
  data: { ...claim, step: 'boundary', data: null, deadline: at(130) },
};
const published: TargetEvent = { type: 'TargetPublished', data: { ...claim, ...there } };
const unknown = (reason?: 'restored'): TargetEvent => ({
  type: 'TargetOutcomeUnknown',
  data: { ...claim, failure, reconcileAt: at(131), ...(reason === undefined ? {} : { reason }) },
});
const step = 'cover';
const due = (tried = 1, dueAt = at(110), refusal: FollowUpIssue | null = null): TargetEvent => ({
  type: 'TargetAfterStepScheduled',
  data: { step, try: tried, dueAt, refusal },
});
const calling = (tried = 1, deadline = at(120)): TargetEvent => ({
  type: 'TargetAfterStepStarted',
  data: { step, try: tried, deadline },
});
const done: TargetEvent = { type: 'TargetAfterStepCompleted', data: { step } };
const issue: FollowUpIssue = { code: 'cover_not_permitted', message: 'No.', platformCode: '403' };
const failed: TargetEvent = { type: 'TargetAfterStepFailed', data: { step, ...issue } };
const comment: TargetEvent = {
  type: 'TargetFirstCommentScheduled',
  data: { try: 1, dueAt: at(110), refusal: null },
};

const crossed = [scheduled, started, boundary];
const out = [...crossed, published];
const waiting = [...out, due()];
const called = [...waiting, calling()];

type End = Extract<TargetCommand, { type: 'EndAfterStep' }>;
const end = (outcome: End['outcome'], more: Partial<End> = {}): End => ({
  ...{ type: 'EndAfterStep', step, try: 1, now: at(115), outcome },
  ...more,
});
const start: TargetCommand = { type: 'StartAfterStep', step, now: at(110), deadline: at(120) };
const wanted = { afterSteps: [{ step, dueAt: at(110) }] } as const;
const stepsOf = (events: readonly TargetEvent[]) => {
  const now = state(events);
  return now.status === 'published' ? now.afterSteps : null;
};

suite('what follows a published target', (t) => {
  t('is due with the publication, in the same append, beside a comment', () => {
    given(crossed)
      .when({ type: 'RecordPublished', ...claim, ...there, commentDueAt: at(110), ...wanted })
      .then([published, comment, due()], { again: 'claim_lost' });
    for (const by of ['reconcile', 'admin'] as const) {
      const settled = {
        type: 'Settle',
        by,
        now: at(140),
        outcome: { kind: 'published', ...there },
        ...wanted,
      } as const;
      const [first, second] = target.decide(settled, state([...crossed, unknown()]));
      deepEqual([first?.type, second], ['TargetOutcomeSettled', due()]);
    }
  });

  t('has its issue with the publication where the network shows it to fewer people, and nothing is due of it', () => {
    const narrowed: FollowUpIssue = { code: 'visibility_reduced', message: 'Private.', platformCode: 'private' };
    const issueOf: TargetEvent = { type: 'TargetAfterStepFailed', data: { step: 'privacy', ...narrowed } };
    given(crossed)
      .when({ type: 'RecordPublished', ...claim, ...there, ...wanted, narrowed })
      .then([published, due(), issueOf], { again: 'claim_lost' });
    deepEqual(stepsOf([...waiting, issueOf]), stepsOf(waiting), 'the cover is set all the same');
    const settled = { type: 'Settle', by: 'reconcile', now: at(140), narrowed } as const;
    const [, ...then] = target.decide(
      { ...settled, outcome: { kind: 'published', ...there } },
      state([...crossed, unknown()]),
    );
    deepEqual(then, [issueOf]);
  });

  t('is due also where a post was found after a restore, and its comment is not', () => {
    const settle: TargetCommand = {
      ...{ type: 'Settle', by: 'reconcile', now: at(140), outcome: { kind: 'published', ...there } },
      ...{ ...wanted, commentDueAt: at(110) },
    };
    const events = target.decide(settle, state([...crossed, unknown('restored')]));
    deepEqual(
      events.map(({ type }) => type),
      ['TargetOutcomeSettled', 'TargetFirstCommentFailed', 'TargetAfterStepScheduled'],
    );
    const lost = target.decide(
      { type: 'RecordRestored', restoredAt: at(300), reconcileAt: at(300) },
      state([...waiting, comment]),
    );
    deepEqual(
      lost.map(({ type }) => type),
      ['TargetFirstCommentFailed'],
      'a step that was due before the restore is made again',
    );
  });

  t('cannot follow a post whose id nobody knows', () => {
    const outcome = { kind: 'published', ...there, externalId: null } as const;
    const [, second] = target.decide(
      { type: 'Settle', by: 'admin', now: at(140), outcome, ...wanted },
      state([...crossed, unknown()]),
    );
    equal(second?.type, 'TargetAfterStepFailed');
    equal((second?.data as FollowUpIssue | undefined)?.code, 'after_step_post_unknown');
  });

  t('is called once its try is recorded, and no earlier than it is due', () => {
    deepEqual(target.decide(start, state(waiting)), [calling()]);
    given(waiting)
      .when({ ...start, now: at(109) })
      .refused('not_due', `The step cover is due at ${at(110)}.`);
    for (const events of [[scheduled], [...crossed, unknown()], out, called, [...called, done], [...called, failed]]) {
      given(events).when(start).refused('claim_lost');
      given(events).when({ type: 'RefuseAfterStep', step, issue }).refused('claim_lost');
    }
    for (const events of [out, waiting, [...called, done]]) {
      given(events)
        .when(end({ kind: 'done' }))
        .refused('claim_lost');
    }
    given(called)
      .when(end({ kind: 'done' }, { try: 2 }))
      .refused('claim_lost', 'Try 1 is the one under way.');
  });

  t('ends done, refused for good, or due again: never with another post, and the target stays published', () => {
    given(called)
      .when(end({ kind: 'done' }))
      .then([done], { again: 'claim_lost' });
    given(waiting).when({ type: 'RefuseAfterStep', step, issue }).then([failed], { again: 'claim_lost' });
    given(called)
      .when(end({ kind: 'refused', issue, retryAt: null }))
      .then([failed], { again: 'claim_lost' });
    given(called)
      .when(end({ kind: 'refused', issue, retryAt: at(150) }))
      .then([due(2, at(150), issue)], { again: 'claim_lost' });
    const sixth = [...out, due(6), calling(6)];
    given(sixth)
      .when(end({ kind: 'refused', issue, retryAt: at(150) }, { try: 6 }))
      .then([failed], {
        again: 'claim_lost',
      });
    for (const events of [waiting, called, [...called, done], [...called, failed]]) {
      equal(state(events).status, 'published');
    }
    deepEqual(stepsOf([...called, done]), []);
    deepEqual(stepsOf([...called, failed]), []);
    deepEqual(stepsOf(called), [{ step, status: 'calling', try: 1, deadline: at(120) }]);
  });

  t('is tried again where its worker is gone, behind the deadline alone', () => {
    const lapse = (now: string) => end({ kind: 'refused', issue, retryAt: now }, { now, isLapsed: true });
    deepEqual(target.decide(lapse(at(120)), state(called)), [due(2, at(120), issue)]);
    given(called)
      .when(lapse(at(119)))
      .refused('not_due', `The call may run until ${at(120)}.`);
  });

  t('is wanted where a post has a cover of its own and the network takes it once the video is out', () => {
    const body = postBody({ coverMediaId: 'm1' });
    const steps = (...[platform, overrides, of]: Parameters<typeof wantedAfter>) =>
      wantedAfter(platform, overrides, of, at(1)).afterSteps;
    deepEqual(steps('youtube', {}, body, ''), [{ step, dueAt: at(1) }]);
    deepEqual(steps('facebook', { contentType: 'reel' }, body, ''), [{ step, dueAt: at(1) }]);
    for (const [platform, overrides, of] of [
      ['youtube', {}, postBody({ coverMediaId: null })],
      ['youtube', {}, null],
      ['facebook', {}, body],
      ['facebook', { contentType: 'story' }, body],
      ['instagram', { contentType: 'reel' }, body],
      ['x', {}, body],
    ] as const) {
      deepEqual(steps(platform, overrides, of, ''), [], platform);
    }
  });
});
