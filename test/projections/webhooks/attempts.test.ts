/** One count of attempts: the target's row, its stream and the public events of it never disagree. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { Rejection } from '#domain/decider.ts';
import { type TargetCommand, type TargetState, target } from '#domain/post-target/target.ts';
import { rowOf } from '#projections/engine/model.ts';
import { postTargets } from '#projections/models/targets.ts';
import { publicTypesOf, render } from '#projections/webhooks/types.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { subjectAt } from '#test/support/payloads.ts';
import { failure } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
const far = at(1_000_000);
const id = randomUUID();
const planned = {
  ...{ targetId: id, accountId: randomUUID(), clientId: randomUUID(), platform: 'x' as const, dueAt: at(0) },
  ...{ scheduledLocal: null, timezone: 'UTC', jitterSeconds: 0, scheduleModeReason: null },
  scheduleMode: 'managed' as const,
};
const policy = { deferDelaysMs: [30_000, 120_000], maxRateLimits: 2, jitter: 0.5 };

type Ask = (now: TargetState, segment: { readonly index: number; readonly of: number } | null) => TargetCommand;

const claimOf = (now: TargetState) =>
  now.status === 'publishing' ? { attempt: now.common.attempts, takeover: now.takeover } : { attempt: 1, takeover: 0 };
const post = (now: TargetState) => ({
  externalId: `e${now.status === 'none' ? 0 : now.common.publishedSegments.length}`,
  permalink: null,
  publishedAt: at(9),
});

/** What a worker, a network or a person may ask next. */
const asks: Readonly<Record<string, Ask>> = {
  start: () => ({ type: 'Start', now: far }),
  step: (now, segment) => ({
    ...{ type: 'Checkpoint', ...claimOf(now), step: 'container', data: {}, deadline: null },
    segment,
  }),
  cross: (now, segment) => ({
    ...{ type: 'Checkpoint', ...claimOf(now), step: 'boundary', data: {}, deadline: far },
    segment,
  }),
  publish: (now, segment) => ({ type: 'RecordPublished', ...claimOf(now), ...post(now), segment }),
  takeOver: (now) => ({ type: 'TakeOver', ...claimOf(now) }),
  fail: (now) => ({ type: 'RecordFailed', ...claimOf(now), failure }),
  refuse: () => ({ type: 'RefuseAtClaim', failure }),
  limit: (now) => ({ type: 'RecordRateLimited', ...claimOf(now), retryAt: at(5), failure, policy }),
  defer: (now) => ({ type: 'RecordDeferred', ...claimOf(now), now: at(0), failure, policy }),
  lose: (now) => ({ type: 'RecordUnknown', ...claimOf(now), failure, reconcileAt: at(31) }),
  accept: (now) => ({
    ...{ type: 'RecordAccepted', ...claimOf(now), handle: { id: 'h' }, askAt: at(31), until: far },
  }),
  prove: () => ({ type: 'Settle', now: far, by: 'reconcile', outcome: { kind: 'absent', proof: true } }),
  find: (now) => ({ type: 'Settle', now: far, by: 'reconcile', outcome: { kind: 'published', ...post(now) } }),
  giveUp: () => ({ type: 'Settle', now: far, by: 'reconcile', outcome: { kind: 'failed', failure } }),
  requeue: () => ({ type: 'Requeue', now: far }),
  retry: () => ({ type: 'Retry', commandId: randomUUID(), now: at(1) }),
  move: (now) => ({
    ...{
      type: 'Reschedule',
      now: '2026-01-01T00:00:00.000Z',
      commandId: randomUUID(),
      dueAt: at(now.status === 'none' ? 0 : now.common.attempts + 1),
    },
    ...{ scheduledLocal: null, jitterSeconds: 0 },
  }),
  cancel: () => ({ type: 'Cancel', reason: 'requested', postRevision: null, now: '2026-01-01T00:00:00.000Z' }),
  remove: () => ({ type: 'RecordRemoved', observedAt: far }),
};
/** What is likely next, so that histories are long. */
const likely = (now: TargetState): readonly string[] => {
  if (now.status === 'publishing') {
    return now.boundary === null
      ? ['cross', 'defer', 'limit', 'takeOver', 'step']
      : ['publish', 'lose', 'takeOver', 'accept'];
  }
  if (now.status === 'processing') return ['find', 'giveUp'];
  if (now.status === 'outcome_unknown') return ['prove', 'find', 'giveUp'];
  if (now.status === 'rate_limited') return ['requeue', 'retry', 'move'];
  if (now.status === 'failed') return ['retry'];
  return ['start', 'start', 'refuse'];
};

const decodedOf = (event: TargetEvent, revision: number): DecodedEvent =>
  ({
    ...{
      id: randomUUID(),
      stream: `target-${id}`,
      type: event.type,
      data: event.data,
      revision,
      position: BigInt(revision),
    },
    metadata: { workspaceId: randomUUID(), occurredAt: far, commandId: 'c', partitionKey: id },
  }) as unknown as DecodedEvent;

suite('attempts of a target', (t) => {
  t('the row, the stream and each public event have the same number after every history', () => {
    const { seed } = seeded('histories of a target');
    const step = fc.oneof({ weight: 6, arbitrary: fc.nat(59) }, fc.constantFrom(...Object.keys(asks)));
    const seen = new Map<string, number>();
    let most = 0;
    fc.assert(
      fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), fc.boolean(), (steps, thread) => {
        const events: DecodedEvent[] = [];
        let state = target.initial;
        let before = 0;
        const append = (made: readonly TargetEvent[]): void => {
          for (const event of made) {
            const decoded = decodedOf(event, events.length);
            events.push(decoded);
            const fact = { eventId: decoded.id, revision: decoded.revision, commandId: 'c', occurredAt: far };
            state = target.evolve(state, event, fact);
            const attempts = state.status === 'none' ? 0 : state.common.attempts;
            equal(rowOf(postTargets, events)?.attempts, attempts, `row after ${event.type}`);
            for (const type of publicTypesOf(decoded, 'target')) {
              const data = render(type, decoded, subjectAt(events)) as { readonly attempts?: number };
              if (data.attempts === undefined) continue;
              equal(data.attempts, attempts, `${type} of ${event.type}`);
              seen.set(type, (seen.get(type) ?? 0) + 1);
            }
            // An attempt that is refused before it begins counts as one; what happens within one does not.
            const isRefused = event.type === 'TargetFailed' && before < attempts;
            equal(attempts - before, event.type === 'TargetPublishStarted' || isRefused ? 1 : 0, event.type);
            before = attempts;
          }
        };
        append(target.decide({ type: 'Schedule', planned, postId: randomUUID(), postRevision: 0 }, state));
        for (const one of steps) {
          const names = likely(state);
          const name = typeof one === 'string' ? one : (names[one % names.length] ?? '');
          const out = state.status === 'none' ? 0 : state.common.publishedSegments.length;
          const command = asks[name]?.(state, thread ? { index: out, of: 3 } : null);
          try {
            if (command !== undefined) append(target.decide(command, state));
          } catch (error) {
            if (!(error instanceof Rejection)) throw error;
          }
        }
        most = Math.max(most, before);
      }),
      { seed, numRuns: 500 },
    );
    deepEqual(
      [...seen.keys()].sort(),
      [
        ...[
          'deferred',
          'failed',
          'outcome_unknown',
          'processing',
          'published',
          'publishing',
          'rate_limited',
          'requeued',
        ],
      ].map((name) => `target.${name}`),
    );
    ok(most >= 4, `at most ${most} attempts were made`);
  });
});
