import type { Json, PlatformAdapter, ReconcileOutcome, VerifyOutcome } from '#contracts/ports/platform.ts';
import { retriesWhenAbsent } from '#domain/client.ts';
import {
  mayAssumeAbsence,
  nextLookAt,
  type TargetCheckpoint,
  type TargetCommand,
  type TargetIn,
} from '#domain/post-target/target.ts';
import { nativePostGone, outcomeUnknown } from '#domain/publish-failures.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { CallOutcome } from './call.ts';
import { schedulerOf, type WorkContext } from './context.ts';
import { adapterTimes } from './deps.ts';
import { cleanFailure, cleanPresent, isId } from './files.ts';
import { acceptance, followUpsOf, recordOutcome, reportLapsedAccount, retryPolicy } from './outcome.ts';
import { questionOf } from './question.ts';
import { type Moment, nextQuestionMs, publishedBy, restMs, windowEndsAt } from './reconcile-schedule.ts';
import type { Conditions } from './related-streams.ts';
import { accountOf, isUnreadable } from './request.ts';
import { findLost } from './restored.ts';

/** What the network has: the post, or the scheduled post of a hand-over. */
type Found = ReconcileOutcome | Extract<VerifyOutcome, { readonly kind: 'scheduled' }>;

interface Answer extends Moment {
  readonly outcome: Found;
  readonly absence: Absence;
}

/** What the answer `absent` is worth. */
type Absence =
  | { readonly kind: 'nothing' }
  /** The attempt can no longer create the post (`proof`), or the rules of the client count it (`look`). */
  | {
      readonly kind: 'proof' | 'look';
      /** Milliseconds since the epoch from which it is worth that. */
      readonly from: number;
    };

const nothing: Absence = { kind: 'nothing' };
const undecided = (): Found => ({ kind: 'undecided' });

/** Nobody was asked. */
export const unasked = ({ tools }: WorkContext): Answer => {
  const now = tools.now();
  return { outcome: undecided(), askedAt: now, answeredAt: now, absence: nothing };
};

/**
 * Asks the network for the result of an attempt that a worker left after its boundary. No answer: the outcome is
 * unknown.
 */
export const settleInterrupted = async (
  context: WorkContext,
  target: TargetIn<'publishing'>,
  boundary: TargetCheckpoint,
): Promise<void> => {
  const content = await context.streams.content(target);
  const { outcome } = await ask(context, target, boundary);
  const record = (said: CallOutcome) => recordOutcome(context, target, content, boundary.segment, said);
  if (outcome.kind === 'present') await record({ ...outcome, kind: 'published' });
  else if (outcome.kind === 'scheduled') await record({ ...outcome, kind: 'handed_over' });
  else if (outcome.kind === 'processing') await record({ ...outcome, kind: 'accepted' });
  else if (outcome.kind === 'failed') await record(outcome);
  else await record({ kind: 'unknown', failure: outcomeUnknown });
};

/**
 * Asks the network once about an unknown outcome, when the question is due.
 * @returns `settled`, or the milliseconds until the next question
 */
export const settleUnknown = async (
  context: WorkContext,
  target: TargetIn<'outcome_unknown'>,
): Promise<number | 'settled'> => {
  const { tools, leased } = context;
  const delays = tools.config.reconcileDelaysMs;
  const since = Date.parse(target.askedFrom);
  const elapsed = tools.now() - since;
  if (nextQuestionMs(tools.now(), since, delays, null) === null) return restMs;
  const first = delays[0] ?? 0;
  if (elapsed >= 0 && elapsed < first) return first - elapsed;
  // Nobody is asked, and least of all by another call that publishes: a person settles it.
  if (isUnreadable(target, (await context.conditions.current(target)).account.state)) return restMs;
  const { boundary } = target;
  const answer = target.restored ? await askRestored(context, target) : await askAbout(context, target);
  const { outcome } = answer;
  const content = await context.streams.content(target);
  const settle = (settled: Extract<TargetCommand, { type: 'Settle' }>['outcome']) => {
    const now = leased.now();
    return leased.record({
      ...{ type: 'Settle', by: 'reconcile', now, outcome: settled },
      ...followUpsOf(target, content, now, outcome.kind === 'present' ? outcome : {}),
    });
  };
  const segment = boundary?.segment ?? null;
  const goesOn = segment !== null && segment.index + 1 < segment.of;
  // The next segment of the thread cannot reply to a post without a usable id.
  if (outcome.kind === 'present' && (!goesOn || isId(outcome.externalId))) {
    await settle({ kind: 'published', ...cleanPresent(outcome, leased.now()) });
  } else if (outcome.kind === 'failed') {
    await settle({ kind: 'failed', failure: cleanFailure(outcome.failure) });
    await reportLapsedAccount(context, target);
  } else if (outcome.kind === 'scheduled' && target.nativeId === null && isId(outcome.nativeId)) {
    await settle({ kind: 'handed_over', nativeId: outcome.nativeId });
  } else if (outcome.kind === 'absent' && target.nativeId !== null) {
    await settle({ kind: 'failed', failure: nativePostGone });
  } else if (outcome.kind === 'processing') {
    const accepted = acceptance(context, target, boundary, outcome);
    if (accepted !== null) await settle({ kind: 'processing', ...accepted });
    if (leased.state.status === 'outcome_unknown') return nextQuestion(context, target, answer);
  } else return (await settleAbsent(context, answer)) ?? nextQuestion(context, target, answer);
  return 'settled';
};

const askAbout = async (context: WorkContext, target: TargetIn<'outcome_unknown'>): Promise<Answer> =>
  target.boundary === null ? unasked(context) : ask(context, target, target.boundary);

/** What is not there proves nothing: of calls in the time that was lost nothing is known. */
const askRestored = async (context: WorkContext, target: TargetIn<'outcome_unknown'>): Promise<Answer> => {
  const answer = await askAbout(context, target);
  const { outcome } = answer;
  if (outcome.kind === 'present' || outcome.kind === 'scheduled' || outcome.kind === 'failed') return answer;
  const restore = await context.tools.restores.newest();
  const lost = restore === null ? { kind: 'undecided' as const } : await findLost(context, target, restore);
  return {
    ...answer,
    outcome: lost.kind === 'found' ? { ...lost.post, kind: 'present' } : undecided(),
    absence: nothing,
  };
};

/**
 * Uses the answer `absent` as far as it is worth something. A look is recorded before the next one is planned: if the
 * worker dies before the append, the next worker looks again, and if it dies after it, the look is in the stream.
 * @returns null: the outcome is still unknown
 */
const settleAbsent = async ({ tools, leased }: WorkContext, answer: Answer): Promise<'settled' | null> => {
  const { outcome, askedAt, absence } = answer;
  if (outcome.kind !== 'absent' || absence.kind === 'nothing' || askedAt < absence.from) return null;
  if (absence.kind === 'proof') {
    await leased.record({
      type: 'Settle',
      by: 'reconcile',
      now: leased.now(),
      outcome: { kind: 'absent', proof: true, policy: retryPolicy(tools) },
    });
  } else {
    const policy = tools.absencePolicy;
    await leased.record({ type: 'ObserveAbsence', askedAt: new Date(askedAt).toISOString(), policy });
    faultPoint('publisher:after-absence');
  }
  return leased.state.status === 'outcome_unknown' ? null : 'settled';
};

const nextQuestion = (
  { tools, leased: { state } }: WorkContext,
  target: TargetIn<'outcome_unknown'>,
  { absence }: Answer,
): number => {
  const looked = state.status === 'outcome_unknown' ? nextLookAt(state.absences, tools.absencePolicy) : null;
  const from = absence.kind === 'nothing' ? null : Math.max(absence.from, looked ?? absence.from);
  const since = Date.parse(target.askedFrom);
  return nextQuestionMs(tools.now(), since, tools.config.reconcileDelaysMs, from) ?? restMs;
};

/**
 * The rules of the client never turn a network's silence into proof where its list of posts is not complete; a post that
 * waits in the network's own scheduler is on no such list.
 */
const absenceOf = (
  { tools }: WorkContext,
  target: Asked,
  boundary: TargetCheckpoint,
  adapter: PlatformAdapter,
  { account: { state }, client }: Conditions,
  moment: Moment,
): Absence => {
  const { platform, scheduleMode, dueAt } = target.common;
  const account = accountOf(target, state);
  const { settleWindowMs } = adapterTimes(adapter, platform, account, tools.config);
  const ends = windowEndsAt(boundary, settleWindowMs, tools.clockAheadMs());
  if (ends === null) return nothing;
  const gapEnds = scheduleMode === 'native' ? publishedBy(dueAt, settleWindowMs, moment) : null;
  const from = Math.max(ends, gapEnds ?? ends);
  if (adapter.absenceIsProof(platform, account)) return { kind: 'proof', from };
  const isCounted = scheduleMode !== 'native' && adapter.listsOwnPosts(platform, account);
  if (target.status !== 'outcome_unknown' || !isCounted || !retriesWhenAbsent(client.state)) return nothing;
  if (!mayAssumeAbsence(target)) return nothing;
  return { kind: 'look', from: Math.max(from, nextLookAt(target.absences, tools.absencePolicy)) };
};

type Asked = TargetIn<'publishing' | 'processing' | 'outcome_unknown' | 'handed_to_platform'>;

/** Asks the network about the call of this boundary. */
export const ask = async (context: WorkContext, target: Asked, boundary: TargetCheckpoint): Promise<Answer> => {
  const { tools } = context;
  const question = await questionOf(context, target);
  const scheduler = question === null ? null : schedulerOf(question.adapter, target);
  if (question === null || scheduler === 'missing') return unasked(context);
  const { adapter, conditions } = question;
  const askedAt = tools.now();
  const { attempt, step, data, deadline } = boundary;
  const crossed = { attempt, step, data: data as Json, deadline };
  const { dueAt } = target.common;
  const nativeId = 'nativeId' in target ? target.nativeId : null;
  const handle = 'accepted' in target ? target.accepted?.handle : undefined;
  const outcome = await question.put<Found>((request) =>
    scheduler === null
      ? adapter.reconcile(request, crossed, handle as Json | undefined)
      : scheduler.verify({ ...request, dueAt }, { boundary: crossed, nativeId }).then(presentAs),
  );
  const moment = { askedAt, answeredAt: tools.now() };
  const absence = absenceOf(context, target, boundary, adapter, conditions, moment);
  return { ...moment, outcome, absence };
};

const presentAs = (outcome: VerifyOutcome): Found =>
  outcome.kind === 'published' ? { ...outcome, kind: 'present' } : outcome;
