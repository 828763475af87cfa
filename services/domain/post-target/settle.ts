import type { Failure, TargetEvent } from '#schemas/target.ts';
import { Rejection } from '../decider.ts';
import { publishUnanswered } from '../publish-failures.ts';
import { type FollowUps, followUpsOf, followUpsOfFound } from './after-steps.ts';
import { handedOver, managedAfterAbsence, settleHandedOver } from './native.ts';
import type { RetryPolicy } from './outcome.ts';
import { foundAccepted } from './processing.ts';
import { notBefore, requireUnknown, settledBy, type TargetIn, type TargetState } from './state.ts';
import { failureOfThread, segmentOut } from './thread.ts';

/** The network or a person settles an unknown outcome. */
export interface Settle extends FollowUps {
  readonly type: 'Settle';
  readonly now: string;
  readonly by: 'reconcile' | 'admin';
  /** The segment of a thread that the person settles. */
  readonly segment?: number;
  readonly outcome:
    | {
        readonly kind: 'published';
        readonly externalId: string | null;
        readonly permalink: string | null;
        readonly publishedAt: string;
      }
    | { readonly kind: 'failed'; readonly failure: Failure }
    /** The network's own scheduler has the post. */
    | { readonly kind: 'handed_over'; readonly nativeId: string }
    /** The network accepted the post and does not show it yet; instants as in TargetAcceptedByPlatform. */
    | { readonly kind: 'processing'; readonly handle: unknown; readonly askAt: string; readonly until: string }
    /**
     * `proof`: the network reports that this attempt can never appear; without proof the outcome stays unknown. `policy`:
     * the waits before the next attempts; absent: the next one starts at once.
     */
    | { readonly kind: 'absent'; readonly proof: boolean; readonly policy?: RetryPolicy };
}

/** Attempts after one that the network proved absent: it takes calls, and answers none of them. */
const maxProven = 3;

export const settle = (command: Settle, state: TargetState): readonly TargetEvent[] => {
  const { outcome, by, now } = command;
  if ((state.status === 'handed_to_platform' || state.status === 'processing') && by === 'reconcile') {
    const at = outcome.kind === 'published' ? outcome.publishedAt : null;
    const ended = (event: TargetEvent) =>
      state.status === 'processing' ? [event] : settleHandedOver(state, event, at);
    if (outcome.kind === 'published') {
      return [...ended(settledBy(by, publishedAs(outcome))), ...followUpsOf(command, outcome.externalId)];
    }
    if (outcome.kind === 'failed') {
      return ended(settledBy(by, { outcome: 'failed', failure: outcome.failure }));
    }
    return [];
  }
  const target = requireUnknown(state);
  if (by === 'admin') requireUnknownSegment(target, command);
  if (outcome.kind === 'handed_over') return handedOver(target, outcome);
  if (outcome.kind === 'processing') return foundAccepted(target, outcome);
  if (outcome.kind === 'absent') {
    // After a restore nothing that a network does not show proves anything: of calls in the time that was lost nothing is known.
    const isProof = outcome.proof && (by === 'admin' || !target.restored);
    return isProof ? absent(target, command, outcome.policy) : [];
  }
  if (outcome.kind === 'failed') {
    return [settledBy(by, { outcome: 'failed', failure: failureOfThread(target, outcome.failure) })];
  }
  const { externalId, permalink, publishedAt } = outcome;
  const published = (post: Omit<Extract<Settle['outcome'], { kind: 'published' }>, 'kind'>): readonly TargetEvent[] => [
    settledBy(by, { outcome: 'published', ...post }),
    ...(target.restored ? followUpsOfFound : followUpsOf)(command, post.externalId),
  ];
  const segment = target.boundary?.segment ?? null;
  if (segment === null) return published({ externalId, permalink, publishedAt });
  if (externalId === null) {
    throw new Rejection(
      'segment_id_required',
      'The next segment replies to this one: its id on the network is needed.',
    );
  }
  const { event, head } = segmentOut(target, segment, { externalId, permalink, publishedAt });
  if (head !== null) return [event, ...published(head)];
  return [event, { type: 'TargetRequeued', data: { by: 'schedule', dueAt: now } }];
};

/**
 * The network proved that the attempt published nothing: another one follows, each after a longer wait, and after three
 * the target fails. A person's word is followed at once, and limited by nothing.
 */
const absent = (
  target: TargetIn<'outcome_unknown'>,
  { by, now }: Settle,
  policy: RetryPolicy | undefined,
): readonly TargetEvent[] => {
  if (by === 'admin') return [settledBy(by, { outcome: 'absent' })];
  const { common } = target;
  const mayRepeat = common.provenAbsences < maxProven;
  const retryAt = mayRepeat ? notBefore(target, afterDelay(now, common.provenAbsences, policy)) : null;
  const managed = managedAfterAbsence(common, retryAt);
  if (managed !== null) return [settledBy(by, { outcome: 'absent' }), managed];
  if (retryAt === null)
    return [settledBy(by, { outcome: 'failed', failure: failureOfThread(target, publishUnanswered) })];
  return [settledBy(by, { outcome: 'absent', ...(retryAt === now ? {} : { retryAt }) })];
};

const afterDelay = (now: string, before: number, policy: RetryPolicy | undefined): string => {
  const delay = policy?.deferDelaysMs[before] ?? policy?.deferDelaysMs.at(-1) ?? 0;
  return new Date(Date.parse(now) + delay * (1 + (policy?.jitter ?? 0) / 10)).toISOString();
};

const publishedAs = ({ externalId, permalink, publishedAt }: Extract<Settle['outcome'], { kind: 'published' }>) =>
  ({ outcome: 'published', externalId, permalink, publishedAt }) as const;

/** A person settles one segment of a thread. When the command arrives, another segment may be the unknown one. */
const requireUnknownSegment = (
  { boundary, common }: TargetIn<'outcome_unknown'>,
  { segment, outcome }: Settle,
): void => {
  const unknown = boundary?.segment ?? null;
  if (unknown === null) {
    if (segment !== undefined) throw new Rejection('segment_out_of_turn', 'The target is no thread.');
    return;
  }
  if (segment !== unknown.index) {
    throw new Rejection('segment_out_of_turn', `Segment ${unknown.index + 1} of ${unknown.of} is the one not known.`);
  }
  const isTaken = common.publishedSegments.some(
    ({ externalId }) => outcome.kind === 'published' && externalId === outcome.externalId,
  );
  if (isTaken) throw new Rejection('segment_out_of_turn', 'That is the id of a segment before it.');
};
