import { deepEqual } from 'node:assert/strict';
import { isKnownSince, isListed, type ScheduledTarget, target, wasDueBefore } from '#domain/post-target/target.ts';
import { firstCommentUnknown, restored } from '#domain/publish-failures.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { deciding, type Given } from '#test/support/deciding.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(target);
const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
const restoredAt = at(1_000);
const claim = { attempt: 1, takeover: 0 };

type Event = Given<TargetEvent>;
const scheduled = (dueAt: string, bornAt = at(0), scheduleMode: 'managed' | 'native' = 'managed'): Event => ({
  type: 'TargetScheduled',
  at: bornAt,
  data: {
    ...{ targetId: 't1', accountId: 'a1', clientId: 'c1', platform: 'facebook', dueAt, scheduledLocal: null },
    ...{ timezone: 'UTC', jitterSeconds: 0, scheduleMode, scheduleModeReason: null, postId: 'p1', postRevision: 3 },
  },
});
const started = (when = at(100)): Event => ({ type: 'TargetPublishStarted', at: when, data: claim });
const boundary: Event = {
  type: 'TargetPublishCheckpointed',
  at: at(100),
  data: { ...claim, step: 'boundary', data: {}, deadline: at(130) },
};
const asked = { ...claim, failure, reconcileAt: at(131) };
const unknown: Event = { type: 'TargetOutcomeUnknown', at: at(131), data: asked };
const lost: Event = {
  type: 'TargetOutcomeUnknown',
  at: at(1_001),
  data: { ...claim, failure: restored, reconcileAt: at(1_001), reason: 'restored' },
};
const command = { type: 'RecordRestored', restoredAt, reconcileAt: at(1_001) } as const;
const bare = ({ at: _at, ...event }: Event): TargetEvent => event as TargetEvent;

suite('a target after a restore', (t) => {
  t('was due before it, however long ago: an attempt that nobody remembers, with an unknown outcome', () => {
    const limited: Event = { type: 'TargetRateLimited', at: at(100), data: { ...claim, retryAt: at(900), failure } };
    const deferred: Event = {
      type: 'TargetPublishDeferred',
      at: at(100),
      data: { ...claim, retryAt: at(900), failure },
    };
    for (const before of [
      [scheduled(at(1_000))],
      [scheduled(at(-40_000_000))],
      [scheduled(at(9_000_000), at(0), 'native')],
    ]) {
      given(before)
        .when(command)
        .then([bare(started()), bare(lost)]);
    }
    const second = { attempt: 2, takeover: 0 };
    for (const last of [limited, deferred]) {
      given([scheduled(at(50)), started(), last])
        .when(command)
        .then([
          { type: 'TargetPublishStarted', data: second },
          {
            type: 'TargetOutcomeUnknown',
            data: { ...second, failure: restored, reconcileAt: at(1_001), reason: 'restored' },
          },
        ]);
    }
  });

  t('was claimed, or unknown already: what the network does not show proves nothing any more', () => {
    for (const before of [
      [scheduled(at(50)), started()],
      [scheduled(at(50)), started(), boundary],
      [scheduled(at(50)), started(), boundary, unknown],
    ]) {
      given(before)
        .when(command)
        .then([bare(lost)]);
    }
    const after = [scheduled(at(50)), started(), boundary, unknown, lost];
    const seen: Event = { type: 'TargetAbsenceObserved', at: at(900), data: { ...claim, observedAt: at(900) } };
    deepEqual(state([...after.slice(0, -1), seen, lost]), { ...state(after), absences: [] });
    given(after)
      .when({ type: 'Settle', by: 'reconcile', now: at(2_000), outcome: { kind: 'absent', proof: true } })
      .then([]);
    given(after)
      .when({ type: 'ObserveAbsence', askedAt: at(2_000), policy: { looks: 1, gapMs: 0 } } as never)
      .then([]);
  });

  t('is tried again once a person has looked at the account and it is not there', () => {
    const retry = { type: 'Retry', commandId: 'r1', now: at(2_000) } as const;
    const after = [scheduled(at(50)), started(), boundary, unknown, lost];
    given(after)
      .when({ ...retry, isNotOut: true })
      .then([
        {
          type: 'TargetOutcomeSettled',
          data: {
            ...{ outcome: 'absent', by: 'admin', failure: null },
            ...{ externalId: null, permalink: null, publishedAt: null },
          },
        },
        { type: 'TargetRequeued', data: { by: 'retry', dueAt: at(2_000) } },
      ]);
    given(after)
      .when({ ...retry, isNotOut: false })
      .refused('target_not_retryable', 'A outcome_unknown target cannot be retried.');
    given(after).when(retry).refused('target_not_retryable');
    given(after.slice(0, -1))
      .when({ ...retry, isNotOut: true })
      .refused('target_not_retryable');
  });

  t('is due later, is held, failed, or known since: nothing is recorded', () => {
    const failed: Event = { type: 'TargetFailed', at: at(100), data: { ...claim, failure } };
    for (const before of [
      [scheduled(at(1_001))],
      [scheduled(at(50)), { type: 'TargetHeld', data: { postRevision: 3 } } as Event],
      [scheduled(at(50)), started(), failed],
      [scheduled(at(50)), started(at(1_001))],
      [scheduled(at(50), at(1_001))],
    ]) {
      given(before).when(command).then([]);
    }
    given([]).when(command).then([]);
    given([])
      .when({ ...command, evenLater: true })
      .then([]);
    for (const before of [
      [scheduled(at(50)), { type: 'TargetHeld', data: { postRevision: 3 } } as Event],
      [scheduled(at(50)), started(), failed],
    ]) {
      given(before)
        .when({ ...command, evenLater: true })
        .then([]);
    }
  });

  t('is due later, and its network has it or cannot be asked: its outcome is unknown too', () => {
    given([scheduled(at(5_000))])
      .when({ ...command, evenLater: true })
      .then([bare(started()), bare(lost)]);
  });

  t('a first comment that was due may be there, and is not made again; a later one is', () => {
    const published: Event = {
      type: 'TargetPublished',
      at: at(120),
      data: { ...claim, externalId: 'e1', permalink: null, publishedAt: at(120) },
    };
    const comment = (dueAt: string): Event => ({
      type: 'TargetFirstCommentScheduled',
      at: at(120),
      data: { try: 1, dueAt, refusal: null },
    });
    const { code, message, platformCode } = firstCommentUnknown;
    given([scheduled(at(50)), started(), published, comment(at(900))])
      .when(command)
      .then([{ type: 'TargetFirstCommentFailed', data: { code, message, platformCode } }]);
    given([scheduled(at(50)), started(), published, comment(at(1_001))])
      .when(command)
      .then([]);
    given([scheduled(at(50)), started(), published])
      .when(command)
      .then([]);
    // A call that was under way.
    const calling = (deadline: string): Event => ({
      type: 'TargetFirstCommentStarted',
      at: at(120),
      data: { try: 1, deadline },
    });
    given([scheduled(at(50)), started(), published, comment(at(900)), calling(at(1_000))])
      .when(command)
      .then([{ type: 'TargetFirstCommentFailed', data: { code, message, platformCode } }]);
    given([scheduled(at(50)), started(), published, comment(at(900)), calling(at(1_001))])
      .when(command)
      .then([]);
  });

  t('can be asked about where its network lists its posts, and one post with a text is the whole of it', () => {
    const listed = (platform: 'facebook' | 'telegram', ...texts: readonly [string, ...string[]]) => {
      const [head, ...others] = texts.map((content) => ({ content, mediaIds: [] }));
      return head !== undefined && isListed({ platform, externalId: '1' }, { segments: [head, ...others] });
    };
    deepEqual(
      [listed('facebook', 'a'), listed('telegram', 'a'), listed('facebook', 'a', 'b'), listed('facebook', ' ')],
      [true, false, false, false],
    );
  });

  t('a post that is found after it may have its first comment: none is made', () => {
    const { code, message, platformCode } = firstCommentUnknown;
    const outcome = { kind: 'published', externalId: 'n1', permalink: null, publishedAt: at(60) } as const;
    const settled = {
      type: 'TargetOutcomeSettled',
      data: {
        outcome: 'published',
        by: 'reconcile',
        externalId: 'n1',
        permalink: null,
        publishedAt: at(60),
        failure: null,
      },
    } as const;
    const settle = { type: 'Settle', by: 'reconcile', now: at(1_100), outcome, commentDueAt: at(1_100) } as const;
    given([scheduled(at(50)), started(), lost])
      .when(settle)
      .then([settled, { type: 'TargetFirstCommentFailed', data: { code, message, platformCode } }], {
        again: 'target_not_unknown',
      });
    given([scheduled(at(50)), started(), lost])
      .when({ ...settle, commentDueAt: null })
      .then([settled], { again: 'target_not_unknown' });
  });

  t('a claim or the word of a person since then is what is known', () => {
    const restore = { restoredAt, storeAsOf: at(0) };
    const settled: Event = {
      type: 'TargetOutcomeSettled',
      at: at(1_100),
      data: { outcome: 'failed', externalId: null, permalink: null, publishedAt: null, failure, by: 'admin' },
    };
    const known = (events: readonly Event[]) => isKnownSince(state(events) as ScheduledTarget, restore);
    deepEqual(
      [[scheduled(at(50))], [scheduled(at(50)), started()], [scheduled(at(50)), started(at(1_001))]].map(known),
      [false, false, true],
    );
    deepEqual(known([scheduled(at(50)), started(), boundary, unknown, lost, settled]), true);
    deepEqual(known([scheduled(at(50)), started(restoredAt)]), false);
    const wasDue = (events: readonly Event[]) => wasDueBefore(state(events) as ScheduledTarget, restore);
    const failed: Event = { type: 'TargetFailed', at: at(100), data: { ...claim, failure } };
    deepEqual([[scheduled(at(50))], [scheduled(at(50)), started(), failed]].map(wasDue), [true, false]);
  });
});
