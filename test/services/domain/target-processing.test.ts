import { deepEqual, equal } from 'node:assert/strict';
import { isCancelable, isOpen, neededTimes, type TargetCommand, target } from '#domain/post-target/target.ts';
import { notShown, restored } from '#domain/publish-failures.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { deciding, type Given } from '#test/support/deciding.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(target);
const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
const claim = { attempt: 1, takeover: 0 };
type Event = Given<TargetEvent>;

const planned = {
  platform: 'tiktok' as const,
  ...{ targetId: 't1', accountId: 'a1', clientId: 'c1', dueAt: at(100), scheduledLocal: null },
  ...{ timezone: 'UTC', jitterSeconds: 0, scheduleModeReason: null, postId: 'p1', postRevision: 3 },
} as const;
const scheduled: Event = { type: 'TargetScheduled', data: { ...planned, scheduleMode: 'managed' } };
const started: Event = { type: 'TargetPublishStarted', at: at(100), data: claim };
const boundaryOf = (more: object = {}): Event => ({
  type: 'TargetPublishCheckpointed',
  data: { ...claim, step: 'boundary', data: { key: 'k' }, deadline: at(130), ...more },
});
const crossed = [scheduled, started, boundaryOf()];
const said = { handle: { id: 'h1' }, askAt: at(140), until: at(700) };
const accepted: Event = { type: 'TargetAcceptedByPlatform', at: at(110), data: { ...claim, ...said } };
const processing = [...crossed, accepted];
const unknown: Event = {
  type: 'TargetOutcomeUnknown',
  at: at(131),
  data: { ...claim, failure, reconcileAt: at(131) },
};
const late: Event = {
  type: 'TargetOutcomeUnknown',
  at: at(701),
  data: { ...claim, failure: notShown, reconcileAt: at(702) },
};
const bare = ({ at: _at, ...event }: Event): TargetEvent => event as TargetEvent;
const accept: TargetCommand = { type: 'RecordAccepted', ...claim, ...said };
const settle = (outcome: Extract<TargetCommand, { type: 'Settle' }>['outcome'], more: object = {}): TargetCommand => ({
  ...{ type: 'Settle', now: at(200), by: 'reconcile', outcome },
  ...more,
});
const there = { externalId: 'e1', permalink: null, publishedAt: at(190) };
const nothing = { externalId: null, permalink: null, publishedAt: null, failure: null, by: 'reconcile' } as const;
const found: TargetEvent = { type: 'TargetOutcomeSettled', data: { ...nothing, ...there, outcome: 'published' } };

suite('a target that its network processes', (t) => {
  t('is accepted by the answer to its boundary call, and by no other', () => {
    given(crossed)
      .when(accept)
      .then([bare(accepted)], { again: 'claim_lost' });
    deepEqual(state(processing).status === 'processing' && { ...state(processing), common: null }, {
      status: 'processing',
      takeover: 0,
      boundary: { attempt: 1, step: 'boundary', data: { key: 'k' }, deadline: at(130), segment: null },
      accepted: { ...said, acceptedAt: at(110) },
      common: null,
    });
    given([scheduled, started]).when(accept).refused('no_boundary');
    given(crossed)
      .when({ ...accept, takeover: 1 } as TargetCommand)
      .refused('claim_lost');
    const segment = { index: 0, of: 2 };
    given([scheduled, started, boundaryOf({ segment })])
      .when(accept)
      .refused('no_boundary');
    const native: Event = {
      type: 'TargetScheduled',
      data: { ...planned, platform: 'facebook', scheduleMode: 'native' },
    };
    given([native, started, boundaryOf()]).when(accept).refused('no_boundary');
  });

  t('an acceptance changes nothing of a target without a boundary, nor of one that waits or has ended', () => {
    const ended: Event = { type: 'TargetPublished', at: at(115), data: { ...claim, ...there } };
    for (const before of [[scheduled], [scheduled, started], [...crossed, ended]]) {
      deepEqual(state([...before, accepted]), state(before));
    }
    const afterUnknown = state([...crossed, unknown, accepted]);
    equal(afterUnknown.status, 'processing', 'its answer came late');
  });

  t('ends by the word of its network: shown with the first comment, or refused', () => {
    given(processing)
      .when(settle({ kind: 'published', ...there }))
      .then([found], { again: 'target_not_unknown' });
    given(processing)
      .when(settle({ kind: 'published', ...there }, { commentDueAt: at(200) }))
      .then([found, { type: 'TargetFirstCommentScheduled', data: { try: 1, dueAt: at(200), refusal: null } }], {
        again: 'target_not_unknown',
      });
    given(processing)
      .when(settle({ kind: 'failed', failure }))
      .then([{ type: 'TargetOutcomeSettled', data: { ...nothing, failure, outcome: 'failed' } }], {
        again: 'target_not_unknown',
      });
    // It has its time: that the network does not show it proves nothing, and a person decides only what is unknown.
    given(processing)
      .when(settle({ kind: 'absent', proof: true }))
      .then([]);
    given(processing)
      .when(settle({ kind: 'processing', ...said, askAt: at(500) }))
      .then([]);
    given(processing)
      .when(settle({ kind: 'published', ...there }, { by: 'admin' }))
      .refused('target_not_unknown');
  });

  t('is unknown from the limit of its network on, and not before', () => {
    const lapse = (now: string): TargetCommand => ({
      ...{ type: 'RecordNotShown', now, failure: notShown, reconcileAt: at(702) },
    });
    given(processing).when(lapse('2026-01-01T00:11:39.999Z')).then([]);
    given(processing)
      .when(lapse(at(700)))
      .then([bare(late)]);
    const then = state([...processing, late]);
    deepEqual(then.status === 'outcome_unknown' && [then.accepted?.handle, then.askedFrom, then.common.unknownSince], [
      said.handle,
      at(701),
      at(701),
    ]);
    // What the network said once it does not say again; the post itself may still come.
    given([...processing, late])
      .when(settle({ kind: 'processing', ...said, until: at(9_000) }))
      .then([]);
    given([...processing, late])
      .when(settle({ kind: 'published', ...there }))
      .then([found], { again: 'target_not_unknown' });
  });

  t('is found after a lost answer: the network says that it has it', () => {
    given([...crossed, unknown])
      .when(settle({ kind: 'processing', ...said }))
      .then([bare(accepted)]);
    const then = state([...crossed, unknown, accepted]);
    deepEqual([then.status, then.status === 'processing' && then.boundary.data], ['processing', { key: 'k' }]);
    given([scheduled, started, boundaryOf({ segment: { index: 1, of: 2 } }), unknown])
      .when(settle({ kind: 'processing', ...said }))
      .then([]);
  });

  t('stands as one under way: nobody cancels, moves, revises, retries or takes it', () => {
    const now = at(150);
    const again: readonly (readonly [TargetCommand, string])[] = [
      [{ type: 'Cancel', reason: 'requested', postRevision: null, now }, 'target_not_pending'],
      [
        { type: 'Reschedule', commandId: 'c', now, dueAt: at(900), scheduledLocal: null, jitterSeconds: 0 },
        'target_not_pending',
      ],
      [{ type: 'Revise', postRevision: 9, time: null, now }, 'target_not_pending'],
      [{ type: 'Retry', commandId: 'c', now }, 'target_not_retryable'],
      [{ type: 'Start', now }, 'not_claimable'],
      [{ type: 'TakeOver', ...claim }, 'claim_lost'],
    ];
    for (const [command, code] of again) given(processing).when(command).refused(code);
    const open = state(processing);
    deepEqual([isOpen(open), isCancelable(open, now)], [false, false]);
    deepEqual(neededTimes(open), [at(100)], 'it keeps its place of the quota');
    given(processing)
      .when({ type: 'RecordOverdue', now: at(100_000) })
      .then([]);
    given(processing).when({ type: 'LapsePlace' }).then([]);
  });

  t('of an older copy is unknown after a restore, and stays so whatever the network processes', () => {
    const lost: Event = {
      type: 'TargetOutcomeUnknown',
      at: at(1_001),
      data: { ...claim, failure: restored, reconcileAt: at(1_001), reason: 'restored' },
    };
    const command: TargetCommand = { type: 'RecordRestored', restoredAt: at(1_000), reconcileAt: at(1_001) };
    given(processing)
      .when(command)
      .then([bare(lost)]);
    const since = [scheduled, { ...started, at: at(1_002) } as Event, boundaryOf(), accepted];
    given(since).when(command).then([]);
    for (const before of [processing, [...crossed, unknown]]) {
      given([...before, lost])
        .when(settle({ kind: 'processing', ...said, until: at(9_000) }))
        .then([]);
    }
    const then = state([...processing, lost]);
    equal(then.status === 'outcome_unknown' && then.accepted?.handle, said.handle);
  });
});
