import { deepEqual, equal } from 'node:assert/strict';
import fc from 'fast-check';
import { Rejection } from '#domain/decider.ts';
import { isOpen, type TargetCommand, type TargetState, target } from '#domain/post-target/target.ts';
import type { FollowUpIssue, TargetEvent } from '#schemas/target.ts';
import { deciding } from '#test/support/deciding.ts';
import { failure, planned } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
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
const unknown: TargetEvent = { type: 'TargetOutcomeUnknown', data: { ...claim, failure, reconcileAt: at(131) } };
const published: TargetEvent = { type: 'TargetPublished', data: { ...claim, ...there } };
const settledBy = (by: 'reconcile' | 'admin', externalId: string | null = 'e1'): TargetEvent => ({
  type: 'TargetOutcomeSettled',
  data: { outcome: 'published', ...there, externalId, failure: null, by },
});
const due = (tried = 1, dueAt = at(110), refusal: FollowUpIssue | null = null): TargetEvent => ({
  type: 'TargetFirstCommentScheduled',
  data: { try: tried, dueAt, refusal },
});
const calling = (tried = 1, deadline = at(120)): TargetEvent => ({
  type: 'TargetFirstCommentStarted',
  data: { try: tried, deadline },
});
const posted: TargetEvent = { type: 'TargetFirstCommentPosted', data: { externalId: 'c1' } };
const issue: FollowUpIssue = { code: 'content_rejected', message: 'No.', platformCode: '400' };
const failed: TargetEvent = { type: 'TargetFirstCommentFailed', data: issue };
const failedAs = (code: string, message: string): TargetEvent => ({
  type: 'TargetFirstCommentFailed',
  data: { code, message, platformCode: null },
});
const lost = failedAs(
  'first_comment_unknown',
  'The network was called to comment, and the service does not know whether it did. The comment is not repeated.',
);
const nameless = failedAs(
  'first_comment_post_unknown',
  'Nobody knows the id of the published post, so the service cannot comment on it.',
);

const crossed = [scheduled, started, boundary];
const out = [...crossed, published];
const waiting = [...out, due()];
const called = [...waiting, calling()];
/** In these no try may begin, and none may end. */
const without: readonly (readonly TargetEvent[])[] = [
  [],
  [scheduled],
  [scheduled, started],
  [...crossed, unknown],
  out,
  [...called, posted],
  [...called, failed],
];

const start: TargetCommand = { type: 'StartFirstComment', now: at(110), deadline: at(120) };
const refuse: TargetCommand = { type: 'RefuseFirstComment', issue };
const lapse: TargetCommand = { type: 'LapseFirstComment', now: at(120) };
type End = Extract<TargetCommand, { type: 'EndFirstComment' }>;
const end = (outcome: End['outcome'], tried = 1): End => ({ type: 'EndFirstComment', try: tried, outcome });
const commentOf = (events: readonly TargetEvent[]) => {
  const now = state(events);
  return now.status === 'published' ? now.firstComment : 'not published';
};

suite('first comment of a target', (t) => {
  t('is due with the publication, in the same append, where one is wanted', () => {
    const record = { type: 'RecordPublished', ...claim, ...there } as const;
    const again = { again: 'claim_lost' };
    given(crossed)
      .when({ ...record, commentDueAt: at(110) })
      .then([published, due()], again);
    given(crossed)
      .when({ ...record, commentDueAt: null })
      .then([published], again);
    given(crossed).when(record).then([published], again);
  });

  t('follows a publication that was found out later, by the network or a person', () => {
    const open = [...crossed, unknown];
    const again = { again: 'target_not_unknown' };
    for (const by of ['reconcile', 'admin'] as const) {
      const settle = (externalId: string | null, commentDueAt?: string | null): TargetCommand => ({
        ...{ type: 'Settle', now: at(140), by, outcome: { kind: 'published', ...there, externalId } },
        ...(commentDueAt === undefined ? {} : { commentDueAt }),
      });
      given(open)
        .when(settle('e1', at(110)))
        .then([settledBy(by), due()], again);
      given(open)
        .when(settle('e1', null))
        .then([settledBy(by)], again);
      given(open)
        .when(settle('e1'))
        .then([settledBy(by)], again);
      given(open)
        .when(settle(null, at(110)))
        .then([settledBy(by, null), nameless], again);
      given(open)
        .when(settle(null, null))
        .then([settledBy(by, null)], again);
    }
    const failing = { type: 'Settle', now: at(140), by: 'admin', outcome: { kind: 'failed', failure } } as const;
    given(open)
      .when({ ...failing, commentDueAt: at(110) })
      .then(
        [
          {
            type: 'TargetOutcomeSettled',
            data: { outcome: 'failed', externalId: null, permalink: null, publishedAt: null, failure, by: 'admin' },
          },
        ],
        again,
      );
  });

  t('follows the last segment of a thread, not one before it', () => {
    const segment = (index: number) => ({ index, of: 2 });
    const crossing = (index: number): TargetEvent => ({
      type: 'TargetPublishCheckpointed',
      data: { ...claim, step: 'boundary', data: null, deadline: at(130), segment: segment(index) },
    });
    const segmentOut = (index: number): TargetEvent => ({
      type: 'TargetSegmentPublished',
      data: { ...claim, segment: segment(index), ...there, externalId: `e${index + 1}` },
    });
    const record = (index: number): TargetCommand => ({
      ...{ type: 'RecordPublished', ...claim, ...there, externalId: `e${index + 1}` },
      ...{ segment: segment(index), commentDueAt: at(110) },
    });
    given([scheduled, started, crossing(0)])
      .when(record(0))
      .then([segmentOut(0)], { again: 'segment_out_of_turn' });
    const before = [scheduled, started, crossing(0), segmentOut(0), crossing(1)];
    given(before)
      .when(record(1))
      .then([segmentOut(1), published, due()], { again: 'claim_lost' });
    const settle = { type: 'Settle', now: at(140), by: 'reconcile', commentDueAt: at(110) } as const;
    given([...before, unknown])
      .when({ ...settle, outcome: { kind: 'published', ...there, externalId: 'e2' } })
      .then([segmentOut(1), settledBy('reconcile'), due()], { again: 'target_not_unknown' });
    given([...before.slice(0, 3), unknown])
      .when({ ...settle, outcome: { kind: 'published', ...there } })
      .then([segmentOut(0), { type: 'TargetRequeued', data: { by: 'schedule', dueAt: at(140) } }], {
        again: 'target_not_unknown',
      });
  });

  t('a try begins when it is due, not a millisecond before, and once', () => {
    given(waiting).when(start).then([calling()], { again: 'claim_lost' });
    given(waiting)
      .when({ ...start, now: '2026-01-01T00:01:49.999Z' })
      .refused('not_due', 'The first comment is due at 2026-01-01T00:01:50.000Z.');
    given([...called, due(2, at(150), issue)])
      .when({ ...start, now: at(150), deadline: at(160) })
      .then([calling(2, at(160))], { again: 'claim_lost' });
    for (const events of without) given(events).when(start).refused('claim_lost', 'The first comment is not due.');
    given(called).when(start).refused('claim_lost');
  });

  t('is given up without a call where none can succeed', () => {
    given(waiting).when(refuse).then([failed], { again: 'claim_lost' });
    given(called).when(refuse).refused('claim_lost');
    for (const events of without) given(events).when(refuse).refused('claim_lost');
  });

  t('ends with the comment, with a refusal for good, or unknown', () => {
    const again = { again: 'claim_lost' };
    given(called)
      .when(end({ kind: 'posted', externalId: 'c1' }))
      .then([posted], again);
    given(called)
      .when(end({ kind: 'refused', issue, retryAt: null }))
      .then([failed], again);
    given(called)
      .when(end({ kind: 'unknown' }))
      .then([lost], again);
    for (const events of [...without, waiting]) {
      given(events)
        .when(end({ kind: 'unknown' }))
        .refused('claim_lost', 'The first comment is not calling.');
    }
    for (const tried of [0, 2]) {
      given(called)
        .when(end({ kind: 'posted', externalId: 'c1' }, tried))
        .refused('claim_lost', 'Try 1 is the one under way.');
    }
  });

  t('is tried three times, each after a refusal that may pass', () => {
    let events: readonly TargetEvent[] = waiting;
    for (const tried of [1, 2]) {
      events = [...events, calling(tried)];
      const next = due(tried + 1, at(200 + tried), issue);
      given(events)
        .when(end({ kind: 'refused', issue: { ...issue }, retryAt: at(200 + tried) }, tried))
        .then([next], { again: 'claim_lost' });
      events = [...events, next];
    }
    given([...events, calling(3)])
      .when(end({ kind: 'refused', issue, retryAt: at(300) }, 3))
      .then([failed], { again: 'claim_lost' });
  });

  t('an issue is recorded without further members', () => {
    const more = { ...issue, category: 'permission' };
    given(called)
      .when(end({ kind: 'refused', issue: more, retryAt: null }))
      .then([failed], { again: 'claim_lost' });
    given(called)
      .when(end({ kind: 'refused', issue: more, retryAt: at(200) }))
      .then([due(2, at(200), issue)], { again: 'claim_lost' });
  });

  t('a call that nobody ends is unknown from its deadline on, and is not repeated', () => {
    given(called).when(lapse).then([lost], { again: 'claim_lost' });
    given(called)
      .when({ ...lapse, now: '2026-01-01T00:01:59.999Z' })
      .refused('not_due', 'The call may run until 2026-01-01T00:02:00.000Z.');
    for (const events of [...without, waiting]) given(events).when(lapse).refused('claim_lost');
    given([...called, lost])
      .when(start)
      .refused('claim_lost');
  });

  t('never changes the status of its target', () => {
    equal(commentOf(out), null);
    deepEqual(commentOf(waiting), { status: 'due', try: 1, dueAt: at(110) });
    deepEqual(commentOf(called), { status: 'calling', try: 1, deadline: at(120) });
    for (const last of [posted, failed]) deepEqual(state([...called, last]), state(out));
    deepEqual(commentOf([...crossed, unknown, settledBy('admin'), due()]), { status: 'due', try: 1, dueAt: at(110) });
    const ofComments: readonly TargetEvent[] = [due(), calling(), posted, failed];
    const broken: TargetEvent = { type: 'TargetFailed', data: { ...claim, failure } };
    for (const events of [[], [scheduled], crossed, [...crossed, unknown], [...crossed, broken]]) {
      for (const late of ofComments) deepEqual(state([...events, late]), state(events));
    }
    const removed: TargetEvent = { type: 'TargetRemovedOnPlatform', data: { observedAt: at(115) } };
    deepEqual(commentOf([...waiting, removed]), { status: 'due', try: 1, dueAt: at(110) });
    const gone = state([...out, removed, due(), calling()]);
    equal(gone.status === 'published' && gone.removedAt, at(115));
    equal(isOpen(state(waiting)), false);
  });

  t('after any history there is at most one comment, no call after a lost one, and three calls in all', () => {
    const outcomes = fc.oneof(
      { weight: 1, arbitrary: fc.constant<End['outcome']>({ kind: 'posted', externalId: 'c1' }) },
      { weight: 1, arbitrary: fc.constant<End['outcome']>({ kind: 'unknown' }) },
      { weight: 9, arbitrary: fc.constant<End['outcome']>({ kind: 'refused', issue, retryAt: at(110) }) },
      { weight: 1, arbitrary: fc.constant<End['outcome']>({ kind: 'refused', issue, retryAt: null }) },
    );
    const rare = fc.constantFrom<TargetCommand>(
      refuse,
      lapse,
      { ...lapse, now: at(119) },
      { type: 'RecordRemoved', observedAt: at(115) },
      { type: 'Retry', commandId: 'r', now: at(150) },
      { type: 'Cancel', reason: 'requested', postRevision: null, now: '2026-01-01T00:00:00.000Z' },
    );
    const commands = fc.oneof(
      { weight: 6, arbitrary: fc.constant(start) },
      {
        weight: 6,
        arbitrary: fc.tuple(outcomes, fc.integer({ min: 1, max: 4 })).map(([one, tried]) => end(one, tried)),
      },
      { weight: 1, arbitrary: rare },
    );
    const longest = { calls: 0 };
    fc.assert(
      fc.property(fc.array(commands, { minLength: 20, maxLength: 60 }), (all) => {
        let events: readonly TargetEvent[] = waiting;
        for (const command of all) {
          let decided: readonly TargetEvent[] = [];
          try {
            decided = target.decide(command, state(events) as TargetState);
          } catch (error) {
            if (!(error instanceof Rejection)) throw error;
          }
          events = [...events, ...decided];
        }
        const count = (type: TargetEvent['type']) => events.filter((one) => one.type === type).length;
        const calls = count('TargetFirstCommentStarted');
        longest.calls = Math.max(longest.calls, calls);
        equal(state(events).status, 'published');
        equal(count('TargetFirstCommentPosted') + count('TargetFirstCommentFailed') <= 1, true);
        equal(calls <= 3, true);
        equal(count('TargetFirstCommentScheduled') <= 3, true);
        const ends = events.findIndex(
          ({ type }) => type === 'TargetFirstCommentFailed' || type === 'TargetFirstCommentPosted',
        );
        if (ends !== -1) {
          deepEqual(
            events.slice(ends + 1).filter(({ type }) => type !== 'TargetRemovedOnPlatform'),
            [],
          );
        }
      }),
      { seed: seeded('first comments').seed, numRuns: 1_000 },
    );
    equal(longest.calls, 3, 'some history used all tries');
  });
});
