import {
  attemptAt,
  type FollowUps,
  type RetryPolicy,
  type ScheduledTarget,
  type TargetCommand,
  type TargetState,
} from '#domain/post-target/target.ts';
import { nativePostLate } from '#domain/publish-failures.ts';
import type { Segment } from '#schemas/target.ts';
import { failure } from '#test/support/samples.ts';

/** The commands that callers and workers send to a target, made to fit the state that the sender sees. */

export const minuteMs = 60_000;
export const instantOf = (ms: number): string => new Date(ms).toISOString();

export const policy: RetryPolicy = { deferDelaysMs: [minuteMs, 2 * minuteMs], jitter: 0, maxRateLimits: 2 };
const looks = { looks: 3, gapMs: minuteMs };

/** What the sender of a command knows beside the state. */
export interface Sender {
  readonly now: number;
  readonly commandId: string;
  /** Segments of the thread; null: the target is no thread. */
  readonly segments: number | null;
  readonly wantsComment: boolean;
  /** How far the takeover that the sender knows is from the present one; 0: it holds the claim. */
  readonly behind?: number;
  /** Minutes from now to the time that a caller wishes. */
  readonly aheadMinutes?: number;
}

type Make = (state: ScheduledTarget, sender: Sender) => TargetCommand;
type Settled = Extract<TargetCommand, { type: 'Settle' }>['outcome'];

const claimOf = (state: ScheduledTarget, { behind = 0 }: Sender) => ({
  attempt: state.common.attempts,
  takeover: ('takeover' in state ? state.takeover : 0) + behind,
});
const segmentOf = (state: ScheduledTarget, { segments }: Sender): Segment | null => {
  if (segments === null) return null;
  const crossed = 'boundary' in state ? state.boundary?.segment : null;
  return crossed ?? { index: Math.min(state.common.publishedSegments.length, segments - 1), of: segments };
};
const later = ({ now }: Sender, minutes: number): string => instantOf(now + minutes * minuteMs);
const found = (state: ScheduledTarget, { now }: Sender) => ({
  externalId: `e${state.common.attempts}.${state.common.publishedSegments.length}`,
  permalink: null,
  publishedAt: instantOf(now),
});
const acceptance = (sender: Sender) => ({
  ...{ handle: { id: 'h1' }, askAt: later(sender, 1), until: later(sender, 10) },
});
const followUps = ({ wantsComment, now }: Sender): FollowUps =>
  wantsComment
    ? { commentDueAt: instantOf(now), afterSteps: [{ step: 'cover', dueAt: instantOf(now) }] }
    : { commentDueAt: null };

const settle =
  (outcome: (state: ScheduledTarget, sender: Sender) => Settled, by: 'reconcile' | 'admin' = 'reconcile'): Make =>
  (state, sender) => {
    const segment = by === 'admin' ? segmentOf(state, sender) : null;
    const named = segment === null ? {} : { segment: segment.index };
    const now = instantOf(sender.now);
    return { type: 'Settle', by, now, ...named, ...followUps(sender), outcome: outcome(state, sender) };
  };
const triesOf = (state: ScheduledTarget): number =>
  state.status === 'published' && state.firstComment !== null ? state.firstComment.try : 1;
const stepTriesOf = (state: ScheduledTarget): number =>
  (state.status === 'published' ? state.afterSteps[0]?.try : undefined) ?? 1;
const move: Make = (_, sender) => ({
  type: 'Reschedule',
  commandId: sender.commandId,
  now: instantOf(sender.now),
  dueAt: later(sender, sender.aheadMinutes ?? 90),
  scheduledLocal: null,
  jitterSeconds: 0,
});

/** Named for what they say. */
export const makers = {
  cancel: (_, { now }) => ({ type: 'Cancel', reason: 'requested', postRevision: null, now: instantOf(now) }),
  reschedule: move,
  retry: (_, { commandId, now }) => ({ type: 'Retry', commandId, now: instantOf(now) }),
  revise: ({ common }, { now }) => ({
    type: 'Revise',
    postRevision: common.appliedRevision + 1,
    time: null,
    now: instantOf(now),
  }),
  start: (_, { now }) => ({ type: 'Start', now: instantOf(now) }),
  'lapse approval': (_, { now }) => ({ type: 'LapseApproval', now: instantOf(now) }),
  'refuse at claim': () => ({ type: 'RefuseAtClaim', failure }),
  'defer at claim': (_, sender) => ({ type: 'DeferAtClaim', retryAt: later(sender, 5), failure }),
  'fall back': (_, { now }) => ({ type: 'FallBack', now: instantOf(now) }),
  requeue: (_, { now }) => ({ type: 'Requeue', now: instantOf(now) }),
  'take over': (state, sender) => ({ type: 'TakeOver', ...claimOf(state, sender) }),
  upload: (state, sender) => ({
    ...{ type: 'Checkpoint', ...claimOf(state, sender), step: 'upload', data: { id: 'u1' }, deadline: null },
    segment: segmentOf(state, sender),
  }),
  boundary: (state, sender) => ({
    ...{ type: 'Checkpoint', ...claimOf(state, sender), step: 'boundary', data: null, deadline: later(sender, 1) },
    segment: segmentOf(state, sender),
  }),
  published: (state, sender) => ({
    ...{ type: 'RecordPublished', ...claimOf(state, sender), ...found(state, sender) },
    ...{ segment: segmentOf(state, sender), ...followUps(sender) },
  }),
  failed: (state, sender) => ({ type: 'RecordFailed', ...claimOf(state, sender), failure }),
  'rate limited': (state, sender) => ({
    ...{ type: 'RecordRateLimited', ...claimOf(state, sender), retryAt: later(sender, 5), failure, policy },
  }),
  deferred: (state, sender) => ({
    ...{ type: 'RecordDeferred', ...claimOf(state, sender), now: instantOf(sender.now), failure, policy },
  }),
  unknown: (state, sender) => ({
    ...{ type: 'RecordUnknown', ...claimOf(state, sender), failure, reconcileAt: later(sender, 1) },
  }),
  accepted: (state, sender) => ({ type: 'RecordAccepted', ...claimOf(state, sender), ...acceptance(sender) }),
  'not shown': (_, sender) => ({
    ...{ type: 'RecordNotShown', now: instantOf(sender.now), failure, reconcileAt: later(sender, 1) },
  }),
  'outside window': (state, sender) => ({
    ...{ type: 'RecordOutsideWindow', ...claimOf(state, sender), now: instantOf(sender.now), failure },
  }),
  'handed over': (state, sender) => ({ type: 'RecordHandedOver', ...claimOf(state, sender), nativeId: 'n1' }),
  'native unknown': (_, sender) => ({
    ...{ type: 'RecordNativeUnknown', failure: nativePostLate, reconcileAt: later(sender, 1) },
  }),
  undone: (_, { now }) => ({ type: 'RecordUndone', now: instantOf(now) }),
  'time changed': (state) => ({
    type: 'RecordTimeChanged',
    dueAt: ('undo' in state && state.undo?.then === 'reschedule' ? state.undo : state.common).dueAt,
  }),
  'revised at network': (state) => ({
    type: 'RecordRevised',
    ...('undo' in state && state.undo?.then === 'revise'
      ? { postRevision: state.undo.postRevision, dueAt: state.undo.dueAt }
      : { postRevision: state.common.postRevision, dueAt: state.common.dueAt }),
  }),
  'undo failed': () => ({ type: 'RecordUndoFailed', failure }),
  'settle published': settle((state, sender) => ({ kind: 'published', ...found(state, sender) })),
  'settle published by hand': settle((state, sender) => ({ kind: 'published', ...found(state, sender) }), 'admin'),
  'settle failed': settle(() => ({ kind: 'failed', failure })),
  'settle handed over': settle(() => ({ kind: 'handed_over', nativeId: 'n1' })),
  'settle processing': settle((_, sender) => ({ kind: 'processing', ...acceptance(sender) })),
  'settle absent': settle(() => ({ kind: 'absent', proof: true })),
  'settle silent': settle(() => ({ kind: 'absent', proof: false })),
  look: (_, { now }) => ({ type: 'ObserveAbsence', askedAt: instantOf(now), policy: looks }),
  'start comment': (_, sender) => ({
    ...{ type: 'StartFirstComment', now: instantOf(sender.now), deadline: later(sender, 1) },
  }),
  'refuse comment': () => ({ type: 'RefuseFirstComment', issue: failure }),
  commented: (state) => ({
    ...{ type: 'EndFirstComment', try: triesOf(state), outcome: { kind: 'posted', externalId: 'c1' } },
  }),
  'comment refused': (state, sender) => ({
    type: 'EndFirstComment',
    try: triesOf(state),
    outcome: { kind: 'refused', issue: failure, retryAt: later(sender, 1) },
  }),
  'comment unknown': (state) => ({ type: 'EndFirstComment', try: triesOf(state), outcome: { kind: 'unknown' } }),
  'lapse comment': (_, { now }) => ({ type: 'LapseFirstComment', now: instantOf(now) }),
  'start step': (_, sender) => ({
    ...{ type: 'StartAfterStep', step: 'cover', now: instantOf(sender.now), deadline: later(sender, 1) },
  }),
  'refuse step': () => ({ type: 'RefuseAfterStep', step: 'cover', issue: failure }),
  'step done': (state, { now }) => ({
    ...{ type: 'EndAfterStep', step: 'cover', try: stepTriesOf(state), now: instantOf(now), outcome: { kind: 'done' } },
  }),
  'step refused': (state, sender) => ({
    ...{ type: 'EndAfterStep', step: 'cover', try: stepTriesOf(state), now: instantOf(sender.now) },
    outcome: { kind: 'refused', issue: failure, retryAt: later(sender, 1) },
  }),
  removed: (_, { now }) => ({ type: 'RecordRemoved', observedAt: instantOf(now) }),
  'lapse place': () => ({ type: 'LapsePlace' }),
  overdue: (_, { now }) => ({ type: 'RecordOverdue', now: instantOf(now) }),
} as const satisfies Readonly<Record<string, Make>>;
export type CommandName = keyof typeof makers;
export const commandNames = Object.keys(makers) as readonly CommandName[];

/** Whether anybody sends the command about this target: what a worker says follows from what it did. */
export const isSent = (name: CommandName, state: ScheduledTarget, { now, segments }: Sender): boolean => {
  const isNative = state.common.scheduleMode === 'native';
  switch (name) {
    case 'refuse at claim':
    case 'defer at claim':
      return state.status === 'pending' && attemptAt(state) <= instantOf(now);
    case 'handed over':
    case 'outside window':
      return isNative;
    case 'settle handed over':
      return isNative && state.status === 'outcome_unknown' && state.nativeId === null;
    case 'settle absent':
      return state.status !== 'outcome_unknown' || state.nativeId === null;
    case 'look':
      return !isNative;
    case 'published':
      return state.status !== 'publishing' || state.boundary !== null;
    case 'settle published':
    case 'settle published by hand':
      return segments === null || state.status !== 'outcome_unknown' || state.boundary !== null;
    default:
      return true;
  }
};

/** What workers do with a target in its state; the first is what they do when all goes well. */
export const workOn = (state: TargetState, now: number): readonly CommandName[] => {
  switch (state.status) {
    case 'pending':
      return state.common.scheduleMode === 'native' ? ['start', 'fall back'] : ['start'];
    case 'publishing': {
      const isNative = state.common.scheduleMode === 'native';
      if (state.boundary === null) return ['boundary', 'upload', 'deferred', 'failed', 'rate limited', 'take over'];
      const rare = ['unknown', 'take over', 'failed', 'rate limited'] as const;
      return isNative ? ['handed over', ...rare, 'outside window', 'published'] : ['published', ...rare, 'accepted'];
    }
    case 'processing':
      return ['settle published', 'settle failed', 'not shown', 'settle silent'];
    case 'rate_limited':
      return ['requeue'];
    case 'outcome_unknown': {
      const isHanded = state.common.scheduleMode === 'native' && state.nativeId === null;
      const found = isHanded ? (['settle handed over'] as const) : [];
      const settled = ['settle published', 'settle failed', 'settle absent', 'settle published by hand'] as const;
      return [...found, ...settled, 'look', 'settle processing', 'settle silent'];
    }
    case 'handed_to_platform':
      if (state.undo !== null) {
        return ['undone', 'time changed', 'revised at network', 'undo failed', 'settle published', 'native unknown'];
      }
      return Date.parse(state.common.dueAt) <= now ? ['settle published', 'native unknown', 'settle failed'] : [];
    case 'published':
      if (state.firstComment === null && state.afterSteps.length === 0) return ['removed'];
      if (state.firstComment === null) {
        return state.afterSteps[0]?.status === 'due' ? ['start step', 'refuse step'] : ['step done', 'step refused'];
      }
      if (state.firstComment.status === 'due') return ['start comment', 'refuse comment'];
      return ['commented', 'comment refused', 'comment unknown', 'lapse comment'];
    default:
      return [];
  }
};
