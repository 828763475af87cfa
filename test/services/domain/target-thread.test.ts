import { deepEqual, equal, ok } from 'node:assert/strict';
import fc from 'fast-check';
import { Rejection } from '#domain/decider.ts';
import { isOpen, type TargetCommand, type TargetState, target } from '#domain/post-target/target.ts';
import type { Segment, TargetEvent } from '#schemas/target.ts';
import { deciding } from '#test/support/deciding.ts';
import { failure, planned } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(target);

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
const policy = { deferDelaysMs: [30_000], maxRateLimits: 1, jitter: 0 };
const claim = { attempt: 1, takeover: 0 };
const part = (index: number, of = 3): Segment => ({ index, of });
const post = (index: number) => ({
  externalId: `e${index}`,
  permalink: `https://x.test/${index}`,
  publishedAt: at(index),
});

const scheduled: TargetEvent = {
  type: 'TargetScheduled',
  data: {
    ...planned({ targetId: 't1', accountId: 'a1', clientId: 'c1', dueAt: at(0) }),
    postId: 'p1',
    postRevision: 3,
  },
};
const started = (attempt = 1): TargetEvent => ({ type: 'TargetPublishStarted', data: { attempt, takeover: 0 } });
const boundary = (index: number, of = 3): TargetEvent => ({
  type: 'TargetPublishCheckpointed',
  data: { ...claim, step: 'boundary', data: { key: `k${index}` }, deadline: at(30), segment: part(index, of) },
});
const out = (index: number, of = 3): TargetEvent => ({
  type: 'TargetSegmentPublished',
  data: { ...claim, segment: part(index, of), ...post(index) },
});
const published: TargetEvent = { type: 'TargetPublished', data: { ...claim, ...post(0) } };
const unknown: TargetEvent = { type: 'TargetOutcomeUnknown', data: { ...claim, failure, reconcileAt: at(31) } };
const failed = (message: string): TargetEvent => ({
  type: 'TargetFailed',
  data: { ...claim, failure: { ...failure, message } },
});
const oneOut = [scheduled, started(), boundary(0), out(0)];

const cross = (index: number): TargetCommand => ({
  ...claim,
  type: 'Checkpoint',
  step: 'boundary',
  data: { key: `k${index}` },
  deadline: at(30),
  segment: part(index),
});
const says = (index: number): TargetCommand => ({
  ...claim,
  type: 'RecordPublished',
  ...post(index),
  segment: part(index),
});
const settle = (
  outcome: Extract<TargetCommand, { type: 'Settle' }>['outcome'],
  by: 'reconcile' | 'admin' = 'reconcile',
): TargetCommand => ({ type: 'Settle', by, now: at(90), outcome });

suite('target that is a thread', (t) => {
  t('is published segment by segment, a boundary for each, and has the external id of its head', () => {
    given([scheduled, started()])
      .when(cross(0))
      .then([boundary(0)], { again: 'boundary_crossed' });
    given([scheduled, started(), boundary(0)])
      .when(says(0))
      .then([out(0)], { again: 'segment_out_of_turn' });
    given(oneOut)
      .when(cross(1))
      .then([boundary(1)], { again: 'boundary_crossed' });
    const last = [...oneOut, boundary(1), out(1), boundary(2)];
    given(last)
      .when(says(2))
      .then([out(2), published], { again: 'claim_lost' });
  });

  t('refuses the boundary and the outcome of a segment out of turn', () => {
    given([scheduled, started()]).when(cross(1)).refused('segment_out_of_turn');
    given(oneOut).when(cross(0)).refused('segment_out_of_turn');
    given(oneOut).when(cross(2)).refused('segment_out_of_turn');
    given([...oneOut, boundary(1)])
      .when(says(0))
      .refused('segment_out_of_turn');
    given([...oneOut, boundary(1)])
      .when(says(2))
      .refused('segment_out_of_turn');
    const whole: TargetCommand = { ...claim, type: 'RecordPublished', ...post(1) };
    given([...oneOut, boundary(1)])
      .when(whole)
      .refused('segment_out_of_turn');
  });

  t('a published segment stays published through every later attempt', () => {
    const limited: TargetEvent = { type: 'TargetRateLimited', data: { ...claim, retryAt: at(60), failure } };
    const requeued: TargetEvent = { type: 'TargetRequeued', data: { by: 'schedule', dueAt: at(60) } };
    const second = { attempt: 2, takeover: 0 };
    given([...oneOut, limited, requeued, started(2)])
      .when({ ...cross(1), ...second } as TargetCommand)
      .then([{ ...boundary(1), data: { ...boundary(1).data, ...second } } as TargetEvent], {
        again: 'boundary_crossed',
      });
    given([...oneOut, limited, requeued, started(2)])
      .when({ ...cross(0), ...second } as TargetCommand)
      .refused('segment_out_of_turn');
  });

  t('a failure names the published segments; a deferral between two segments is possible', () => {
    given(oneOut)
      .when({ ...claim, type: 'RecordFailed', failure })
      .then([failed(`Segment 1 of the thread is out; of segment 2: ${failure.message}`)], { again: 'claim_lost' });
    given([...oneOut, boundary(1), out(1)])
      .when({ ...claim, type: 'RecordFailed', failure })
      .then([failed(`Segments 1 to 2 of the thread are out; of segment 3: ${failure.message}`)], {
        again: 'claim_lost',
      });
    given(oneOut)
      .when({ ...claim, type: 'RecordFailed', failure, segmentIndex: 2 })
      .then([failed(`Segment 1 of the thread is out; of segment 3: ${failure.message}`)], { again: 'claim_lost' });
    given([scheduled, started()])
      .when({ ...claim, type: 'RecordFailed', failure, segmentIndex: 1 })
      .then([failed(`Nothing of the thread is out; of segment 2: ${failure.message}`)], { again: 'claim_lost' });
    given(oneOut)
      .when({ ...claim, type: 'RecordDeferred', now: at(1), failure, policy })
      .then([{ type: 'TargetPublishDeferred', data: { ...claim, retryAt: at(31), failure } }], { again: 'claim_lost' });
    given([...oneOut, boundary(1)])
      .when({ ...claim, type: 'RecordDeferred', now: at(1), failure, policy })
      .refused('boundary_crossed');
  });

  t('an unknown segment that is present lets the thread continue; the last one ends it', () => {
    const requeued: TargetEvent = { type: 'TargetRequeued', data: { by: 'schedule', dueAt: at(90) } };
    const open = [...oneOut, boundary(1), unknown];
    given(open)
      .when(settle({ kind: 'published', ...post(1) }))
      .then([out(1), requeued], { again: 'target_not_unknown' });
    const last = [...oneOut, boundary(1), out(1), boundary(2), unknown];
    const settled = { by: 'reconcile', outcome: 'published', failure: null, ...post(0) } as const;
    given(last)
      .when(settle({ kind: 'published', ...post(2) }))
      .then([out(2), { type: 'TargetOutcomeSettled', data: settled }], { again: 'target_not_unknown' });
    const person = (index: number, more: object = {}): TargetCommand => ({
      ...(settle({ kind: 'published', ...post(1), ...more }, 'admin') as Extract<TargetCommand, { type: 'Settle' }>),
      segment: index,
    });
    given(open)
      .when(person(1, { externalId: null }))
      .refused('segment_id_required');
    given(open)
      .when(person(1))
      .then([out(1), requeued], { again: 'target_not_unknown' });
    given(open).when(person(2)).refused('segment_out_of_turn', 'Segment 2 of 3 is the one not known.');
    given(open)
      .when(settle({ kind: 'failed', failure }, 'admin'))
      .refused('segment_out_of_turn');
    given([...oneOut, boundary(1), out(1), boundary(2), unknown])
      .when({ ...person(2), outcome: { kind: 'published', ...post(1) } } as TargetCommand)
      .refused('segment_out_of_turn');
    const absent = [...open, ...target.decide(settle({ kind: 'absent', proof: true }), state(open)), started(2)];
    const again = state(absent);
    ok(again.status === 'publishing' && again.boundary === null && again.common.publishedSegments.length === 1);
  });

  t('each segment has as many tries as a single post', () => {
    const takenOver: TargetEvent = { type: 'TargetPublishTakenOver', data: { attempt: 1, takeover: 1 } };
    const slow = state([scheduled, started(), takenOver, boundary(0), out(0)]);
    ok(slow.status === 'publishing');
    deepEqual([slow.takeover, slow.progressAt], [1, 1]);
    const later = state([scheduled, started(), takenOver, boundary(0), out(0), boundary(1)]);
    deepEqual(later.status === 'publishing' && later.progressAt, 1);
    const deferred: TargetEvent = { type: 'TargetPublishDeferred', data: { ...claim, retryAt: at(40), failure } };
    const limited: TargetEvent = { type: 'TargetRateLimited', data: { ...claim, retryAt: at(60), failure } };
    const requeued: TargetEvent = { type: 'TargetRequeued', data: { by: 'schedule', dueAt: at(60) } };
    const tried = [scheduled, started(), deferred, started(2), limited, requeued, started(3), boundary(0)];
    for (const end of [[out(0)], [unknown, out(0)]]) {
      const now = state([...tried, ...end]);
      deepEqual(
        now.status !== 'none' && [now.common.rateLimits, now.common.defers, now.common.publishedSegments.length],
        [0, 0, 1],
      );
    }
    const before = state([...tried, unknown]);
    ok(before.status === 'outcome_unknown');
    deepEqual(state([...tried, unknown, out(0)]), {
      ...before,
      boundary: null,
      common: { ...before.common, rateLimits: 0, defers: 0, unknownSince: null, publishedSegments: [post(0)] },
    });
    for (const by of ['reconcile', 'policy'] as const) {
      const nothing = { externalId: null, permalink: null, publishedAt: null, failure: null };
      const absent: TargetEvent = { type: 'TargetOutcomeSettled', data: { ...nothing, outcome: 'absent', by } };
      const now = state([...tried, unknown, absent, started(4), boundary(0), out(0)]);
      deepEqual(now.status !== 'none' && [now.common.provenAbsences, now.common.assumedAbsences], [0, 0]);
    }
  });

  t('the sentence about published segments fits the field of a failure, and cuts no character in two', () => {
    // The sentence is one character longer than the field, and its last one takes two places.
    const sentence = 'Segment 1 of the thread is out; of segment 2: ';
    const message = `${'m'.repeat(1_999 - sentence.length)}\u{1f600}`;
    given(oneOut)
      .when({ ...claim, type: 'RecordFailed', failure: { ...failure, message } })
      .then([failed(`${sentence}${'m'.repeat(1_999 - sentence.length)}\ufffd`)], { again: 'claim_lost' });
  });

  t('cannot be canceled or rescheduled once a segment is published', () => {
    const deferred: TargetEvent = { type: 'TargetPublishDeferred', data: { ...claim, retryAt: at(40), failure } };
    const waiting = [...oneOut, deferred];
    equal(isOpen(state(waiting)), false);
    given(waiting)
      .when({ type: 'Cancel', reason: 'requested', postRevision: null, now: '2026-01-01T00:00:00.000Z' })
      .refused('target_not_pending', 'a segment is out');
    // Not even before the call for its next segment, where the whole of a post could be handed to a network's scheduler.
    const native = { ...scheduled, data: { ...scheduled.data, scheduleMode: 'native' } } as TargetEvent;
    given([native, ...oneOut.slice(1)])
      .when({ type: 'Cancel', reason: 'requested', postRevision: null, now: '2026-01-01T00:00:00.000Z' })
      .refused('target_not_pending');
    const move = { commandId: 'c', dueAt: at(500), scheduledLocal: null, jitterSeconds: 0 };
    given(waiting)
      .when({ type: 'Reschedule', now: '2026-01-01T00:00:00.000Z', ...move })
      .refused('target_not_pending');
    const revision = { type: 'Revise', postRevision: 9, time: null, now: at(0) } as const;
    for (const events of [waiting, [...oneOut, failed('Segment 1 of the thread is out')]])
      given(events)
        .when(revision)
        .refused('target_not_pending', 'A target of which a segment is out cannot be revised.');
    given(waiting)
      .when({ type: 'RefuseAtClaim', failure })
      .then(
        [
          {
            type: 'TargetFailed',
            data: {
              attempt: 2,
              takeover: 0,
              failure: { ...failure, message: `Segment 1 of the thread is out; of segment 2: ${failure.message}` },
            },
          },
        ],
        { again: 'not_claimable' },
      );
  });

  t('any commands in any order: each segment once and in turn, never two boundaries open', () => {
    const { seed } = seeded('thread commands');
    const small = fc.integer({ min: 0, max: 3 });
    const ofClaim = fc.tuple(small, small, small, fc.nat(6)).map(([attempt, takeover, index, which]): TargetCommand => {
      const names = { attempt, takeover };
      const all: readonly TargetCommand[] = [
        { ...cross(index), ...names } as TargetCommand,
        { ...says(index), ...names } as TargetCommand,
        { type: 'TakeOver', ...names },
        { type: 'RecordFailed', ...names, failure },
        { type: 'RecordDeferred', ...names, now: at(0), failure, policy },
        { type: 'RecordUnknown', ...names, failure, reconcileAt: at(31) },
        { type: 'RecordRateLimited', ...names, retryAt: at(1), failure, policy },
      ];
      return all[which] ?? { type: 'TakeOver', ...names };
    });
    // What a worker would do next, so that threads also come to their end.
    const next = (now: TargetState): TargetCommand => {
      if (now.status === 'publishing') {
        const names = { attempt: now.common.attempts, takeover: now.takeover };
        const index = now.common.publishedSegments.length;
        return { ...(now.boundary === null ? cross(index) : says(index)), ...names } as TargetCommand;
      }
      return { type: 'Start', now: at(900) };
    };
    const asked = fc.oneof(
      { weight: 12, arbitrary: fc.constant('next' as const) },
      { weight: 2, arbitrary: ofClaim },
      fc.boolean().map((proof) => settle({ kind: 'absent', proof })),
      small.map((index) => settle({ kind: 'published', ...post(index) })),
      fc.constant<TargetCommand>({ type: 'Requeue', now: at(900) }),
      fc.constant<TargetCommand>({
        type: 'Cancel',
        reason: 'requested',
        postRevision: null,
        now: '2026-01-01T00:00:00.000Z',
      }),
      fc.uuid().map((commandId): TargetCommand => ({ type: 'Retry', commandId, now: at(100) })),
    );
    let whole = 0;
    fc.assert(
      fc.property(fc.array(asked, { minLength: 10, maxLength: 60 }), (commands) => {
        const events: TargetEvent[] = [scheduled];
        for (const one of commands) {
          const before = state(events);
          try {
            events.push(...target.decide(one === 'next' ? next(before) : one, before));
          } catch (error) {
            if (!(error instanceof Rejection)) throw error;
          }
        }
        const gone = events.flatMap((one) => (one.type === 'TargetSegmentPublished' ? [one.data.segment.index] : []));
        deepEqual(gone, [...gone.keys()]);
        let crossed: number | null = null;
        for (const one of events) {
          if (one.type === 'TargetPublishCheckpointed') {
            equal(crossed, null, 'a boundary while another is open');
            crossed = one.data.segment?.index ?? -1;
          } else if (one.type === 'TargetSegmentPublished') {
            equal(crossed ?? one.data.segment.index, one.data.segment.index);
            crossed = null;
          } else if (one.type === 'TargetPublishStarted') crossed = null;
        }
        const end = state(events);
        const said = events.some(({ type }) => type === 'TargetPublished' || type === 'TargetOutcomeSettled');
        if (end.status === 'published' && said) equal(gone.length, 3);
        if (end.status === 'published') whole += 1;
        if (end.status === 'canceled') equal(gone.length, 0);
      }),
      { seed, numRuns: 2_000 },
    );
    ok(whole > 100, `only ${whole} threads came to their end`);
  });
});
