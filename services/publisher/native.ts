import { within } from '#contracts/base/pause.ts';
import type {
  NativeScheduler,
  PublishMedia,
  PublishRequest,
  UndoNotDone,
  UndoOutcome,
} from '#contracts/ports/platform.ts';
import { timeReason, undoClosesMs } from '#domain/post/scheduling.ts';
import type { FollowUps, TargetCommand, TargetIn } from '#domain/post-target/target.ts';
import { nativePostGone, nativePostLate, outcomeUnknown } from '#domain/publish-failures.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { PublishingHeld } from '#runtime/work/publishing-wall.ts';
import { adapterOf, isHeld, mediaReadiness, schedulerOf, type WorkContext } from './context.ts';
import { adapterTimes } from './deps.ts';
import { cleanFailure, cleanPresent } from './files.ts';
import { noFiles } from './media-readiness.ts';
import { followUpsOf, reportLapse, reportLapsedAccount } from './outcome.ts';
import { ask, unasked } from './reconcile.ts';
import { nextQuestionMs, publishedBy, unansweredRest } from './reconcile-schedule.ts';
import type { Conditions } from './related-streams.ts';
import { accountOf, filesOf, requestOf } from './request.ts';

/**
 * Follows a target that the network's own scheduler has: takes it back, or gives it its new time or content, where somebody wants
 * that, and finds out at its time what became of it. Only the network's word ends it: an undo without an answer is asked after,
 * and what the network published meanwhile is published. Every question, every undo and every change may be repeated, so a crash
 * anywhere here leaves a target that the next worker follows in the same way.
 */

type Handed = TargetIn<'handed_to_platform'>;
type Question = Awaited<ReturnType<typeof ask>>;

/** Milliseconds that a network has to answer an undo. */
const undoLimitMs = 30_000;
/** Milliseconds until an undo that is days old is tried again. */
const undoRestMs = 3_600_000;
/** Milliseconds until the next look at whether publishing is still held. */
const heldRestMs = 5_000;

/** @returns `settled`, or milliseconds in which no worker needs the target; null: until its next time */
export const followHandedOver = async (context: WorkContext, target: Handed): Promise<number | null | 'settled'> => {
  if (target.undo !== null) return takeBack(context, target);
  if (Date.parse(target.common.dueAt) > context.tools.now()) return null;
  return settleDue(context, target, await verify(context, target));
};

/** Due times at which the network may publish the post. */
const timesOf = ({ common, otherTimes }: Handed): readonly string[] => [common.dueAt, ...otherTimes];

const lastOf = (target: Handed): number => Math.max(...timesOf(target).map(Date.parse));

const verify = async (context: WorkContext, target: Handed): Promise<Question> => {
  const { boundary } = target;
  return boundary === null ? unasked(context) : ask(context, target, boundary);
};

/** Milliseconds after its time in which the network may still publish a post. */
const settleWindowOf = async (context: WorkContext, target: Handed): Promise<number> => {
  const conditions = await context.conditions.current(target);
  const adapter = adapterOf(context, target, conditions);
  if (adapter === null) return 0;
  const account = accountOf(target, conditions.account.state);
  return adapterTimes(adapter, target.common.platform, account, context.tools.config).settleWindowMs;
};

const settleDue = async (context: WorkContext, target: Handed, question: Question): Promise<number | 'settled'> => {
  const { tools, leased } = context;
  const { outcome, askedAt } = question;
  if (await settled(context, target, outcome)) return 'settled';
  const due = Date.parse(target.common.dueAt);
  const until = lastOf(target) + (await settleWindowOf(context, target));
  // In between a network may show the post neither as scheduled nor as published.
  if (askedAt < until) {
    const now = tools.now();
    return now < until ? (nextQuestionMs(now, due, tools.config.reconcileDelaysMs, until) ?? 1) : 1;
  }
  if (outcome.kind === 'absent') await leased.record(settle(context, { kind: 'failed', failure: nativePostGone }));
  else await leased.record(unknown(context));
  return 'settled';
};

const settle = (
  context: WorkContext,
  outcome: Extract<TargetCommand, { type: 'Settle' }>['outcome'],
  follows: FollowUps = {},
): TargetCommand => ({
  type: 'Settle',
  by: 'reconcile',
  now: context.leased.now(),
  ...follows,
  outcome,
});

const unknown = ({ tools }: Pick<WorkContext, 'tools'>): TargetCommand => {
  const reconcileAt = new Date(tools.now() + (tools.config.reconcileDelaysMs[0] ?? 0)).toISOString();
  return { type: 'RecordNativeUnknown', failure: nativePostLate, reconcileAt };
};

/** Records a final word of the network. False: it has not said one. */
const settled = async (context: WorkContext, target: Handed, outcome: Question['outcome']): Promise<boolean> => {
  const { leased } = context;
  if (outcome.kind === 'present') {
    const content = await context.streams.content(target);
    const follows = followUpsOf(target, content, leased.now(), outcome);
    await leased.record(settle(context, { kind: 'published', ...cleanPresent(outcome, leased.now()) }, follows));
  } else if (outcome.kind === 'failed') {
    await leased.record(settle(context, { kind: 'failed', failure: cleanFailure(outcome.failure) }));
    await reportLapsedAccount(context, target);
  } else return false;
  return true;
};

/**
 * Deletes the scheduled post, or has the network take the new time or content for it, and records what becomes of the target. If
 * the worker dies after the call, the next one calls again: a network that has no such post any more says so, and the worker asks
 * for its state; one that has the new time or content takes it once more. The network may allow later what it refuses long before the
 * time: the undo goes on, ever less often, until the time is near.
 */
const takeBack = async (context: WorkContext, target: Handed): Promise<number | 'settled'> => {
  const { tools, leased } = context;
  const leftMs = Math.min(...timesOf(target).map(Date.parse)) - tools.now();
  // Once the time has come, the network is asked all the same: it has published the post, whether or not an undo was allowed.
  if (leftMs > 0 && (await isHeld(context))) return Math.min(leftMs, heldRestMs);
  const answer = await changeAtNetwork(context, target);
  if (answer.kind === 'rescheduled') {
    await leased.record({ type: 'RecordTimeChanged', dueAt: answer.dueAt });
    faultPoint('publisher:after-time-change');
    return 'settled';
  }
  if (answer.kind === 'revised') {
    const { postRevision, dueAt } = answer;
    await leased.record({ type: 'RecordRevised', postRevision, dueAt });
    faultPoint('publisher:after-content-change');
    return 'settled';
  }
  const record = async (): Promise<'settled'> => {
    await leased.record({ type: 'RecordUndone', now: leased.now() });
    faultPoint('publisher:after-undone');
    return 'settled';
  };
  if (answer.kind === 'undone') return record();
  await reportLapse(context, target, answer.failure);
  const question = await verify(context, target);
  const { outcome } = question;
  const settleWindowMs = await settleWindowOf(context, target);
  // The network had the post under this id, and has it no longer. Around its due time it may be on its way out instead.
  const isGone = timesOf(target).every((dueAt) => publishedBy(dueAt, settleWindowMs, question) === null);
  if (outcome.kind === 'absent' && isGone) return record();
  // It is out, and the network has not said with which content: it is asked for that once more.
  const isOpen = target.undo?.then === 'revise' && answer.kind === 'unknown' && outcome.kind === 'present';
  if (isOpen && tools.now() < lastOf(target) + settleWindowMs)
    return restOrEnd(context, target, answer, settleWindowMs);
  if (await settled(context, target, outcome)) return 'settled';
  return restOrEnd(context, target, answer, settleWindowMs);
};

/** The undo had no effect so far, and the network has not published the post. */
const restOrEnd = async (
  { tools, leased }: WorkContext,
  target: Handed,
  { kind, failure }: UndoNotDone,
  settleWindowMs: number,
): Promise<number | 'settled'> => {
  const now = tools.now();
  const last = lastOf(target);
  const closes = last - undoClosesMs;
  if (kind === 'too_late' && now >= closes) {
    await leased.record({ type: 'RecordUndoFailed', failure: cleanFailure(failure) });
    return 'settled';
  }
  const until = last + settleWindowMs;
  if (now >= until) {
    await leased.record(unknown({ tools }));
    return 'settled';
  }
  const times = timesOf(target).map(Date.parse);
  const asked = Date.parse(target.undo?.requestedAt ?? target.common.dueAt);
  const since = Math.max(asked, ...times.filter((at) => at <= now));
  const counts = now < closes ? closes : until;
  const rest = nextQuestionMs(now, since, tools.config.reconcileDelaysMs, counts) ?? undoRestMs;
  const most = kind === 'too_late' ? undoRestMs : unansweredRest(now - since);
  const next = times.filter((at) => at > now);
  return Math.min(rest, most, ...[counts, ...next].map((at) => Math.max(1, at - now)));
};

type Change =
  | UndoOutcome
  | { readonly kind: 'rescheduled'; readonly dueAt: string }
  | { readonly kind: 'revised'; readonly postRevision: number; readonly dueAt: string };

const noAnswer = (): UndoNotDone => ({ kind: 'unknown', failure: outcomeUnknown });

/** The request of a target, as it is or as it is wanted, and the end of its files. */
const requestFor = async (context: WorkContext, target: Handed, { account: { state } }: Conditions) => {
  const { tools, leased } = context;
  const [content, readiness] = await Promise.all([context.streams.content(target), mediaReadiness(context, target)]);
  // Which call a network takes may depend on the files, also where none is sent.
  const files = readiness.kind === 'ready' ? readiness.files : noFiles.files;
  const lent = tools.files.lend(filesOf(target, files), leased.lease.signal);
  const request = requestOf(target, content, state, lent, leased.context().workspaceId);
  return { request, isReady: readiness.kind === 'ready', close: () => lent.close() };
};

/** What of a post is a file, which no network changes of a scheduled one. */
const filesIn = ({ media, cover, coverFrameMs }: PublishRequest) => {
  const of = ({ mediaId, use, sha256, altText }: PublishMedia) => [mediaId, use, sha256, altText];
  return JSON.stringify([media.map(of), cover === null ? null : of(cover), coverFrameMs]);
};

/** An undo; or a change of time or content, where that is what is wanted, and the network has it and takes it. */
const changeAtNetwork = async (context: WorkContext, target: Handed): Promise<Change> => {
  const { tools, leased } = context;
  const { common, undo, nativeId } = target;
  const conditions = await context.conditions.current(target);
  const adapter = adapterOf(context, target, conditions);
  const scheduler = adapter === null ? null : schedulerOf(adapter, target);
  if (scheduler === null || scheduler === 'missing') return noAnswer();
  const { request, close } = await requestFor(context, target, conditions);
  const answerOf: AnswerOf = async <Answer>(asked: Promise<Answer>) => {
    const caught = asked.catch((error: unknown) => {
      if (error instanceof PublishingHeld) return noAnswer();
      const what = 'the adapter threw while taking a post back or moving it; it is asked again';
      tools.logger.error({ err: error, targetId: request.targetId }, what);
      return noAnswer();
    });
    return within<Answer | UndoNotDone>(undoLimitMs, caught, noAnswer);
  };
  try {
    // What the network does not take as a change it may take as another post, or we publish it.
    const revised = await reviseAtNetwork(context, target, { scheduler, conditions, former: request, answerOf });
    if (revised !== null) return revised;
    const reschedule = scheduler.reschedule?.bind(scheduler);
    const dueAt = undo?.then === 'reschedule' ? undo.dueAt : null;
    if (dueAt !== null && reschedule !== undefined && timeReason(common.platform, dueAt, leased.now()) === null) {
      faultPoint('publisher:before-reschedule');
      const answer = await answerOf(reschedule({ ...request, dueAt }, nativeId));
      faultPoint('publisher:after-reschedule');
      if (answer.kind === 'rescheduled') return { kind: 'rescheduled', dueAt };
      if (answer.kind !== 'outside_window') return answer;
    }
    faultPoint('publisher:before-undo');
    const answer = await answerOf(scheduler.undo({ ...request, dueAt: common.dueAt }, nativeId));
    faultPoint('publisher:after-undo');
    return answer;
  } finally {
    await close();
  }
};

type AnswerOf = <Answer>(asked: Promise<Answer>) => Promise<Answer | UndoNotDone>;

interface Revising {
  readonly scheduler: NativeScheduler;
  readonly conditions: Conditions;
  /** What the network has, with all of its files. */
  readonly former: PublishRequest;
  readonly answerOf: AnswerOf;
}

/** Null: no change of content is wanted, or only another post has it. */
const reviseAtNetwork = async (
  context: WorkContext,
  target: Handed,
  { scheduler, conditions, former, answerOf }: Revising,
): Promise<Change | null> => {
  const { common, undo, nativeId } = target;
  const revise = scheduler.revise?.bind(scheduler);
  if (undo?.then !== 'revise' || undo.scheduleMode !== 'native' || revise === undefined) return null;
  const { postRevision, dueAt } = undo;
  const reason = timeReason(common.platform, dueAt, context.leased.now());
  // The network has this time already, or it is over: a post that is out may have gone out so.
  const isInTime = reason === null || reason === 'due_now' || dueAt === common.dueAt;
  if (!isInTime) return null;
  const wanted = await requestFor(context, { ...target, common: { ...common, postRevision } }, conditions);
  try {
    if (!wanted.isReady || filesIn(wanted.request) !== filesIn(former)) return null;
    faultPoint('publisher:before-revise');
    const answer = await answerOf(revise({ ...wanted.request, dueAt }, nativeId, former));
    faultPoint('publisher:after-revise');
    if (answer.kind === 'revised') return { kind: 'revised', postRevision, dueAt };
    return answer.kind === 'outside_window' || answer.kind === 'other_post' ? null : answer;
  } finally {
    await wanted.close();
  }
};
