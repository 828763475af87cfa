import type { TargetCommand, TargetIn } from '#domain/post-target/target.ts';
import { notShown } from '#domain/publish-failures.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { WorkContext } from './context.ts';
import { cleanFailure, cleanPresent } from './files.ts';
import { followUpsOf, reportLapsedAccount } from './outcome.ts';
import { ask } from './reconcile.ts';
import { askAfter, nextQuestionMs, unansweredRest } from './reconcile-schedule.ts';

/**
 * Follows a post that the network accepted until it shows or refuses it. A question changes nothing on the network: if
 * the worker dies before the append of its answer, the next one asks again, and of two workers that ask at once one
 * appends. What the network does not show proves nothing here: it has its time.
 */

/**
 * Asks the network once, when the question is due.
 * @returns `settled`, or the milliseconds until the next question
 */
export const settleProcessing = async (
  context: WorkContext,
  target: TargetIn<'processing'>,
): Promise<number | 'settled'> => {
  const { tools, leased } = context;
  const { accepted, boundary } = target;
  const { maxMs } = tools.processingRest;
  const first = Date.parse(accepted.askAt) - tools.now();
  // An instant that lies further ahead was written by a clock that is right again since.
  if (first > 0 && first <= maxMs) return first;
  const { outcome } = await ask(context, target, boundary);
  faultPoint('publisher:after-ask');
  const ended = (end: 'shown' | 'refused' | 'not_shown'): 'settled' => {
    const seconds = (tools.now() - Date.parse(accepted.acceptedAt)) / 1_000;
    tools.processing?.observe({ platform: target.common.platform, end }, Math.max(0, seconds));
    return 'settled';
  };
  if (outcome.kind === 'present') {
    const content = await context.streams.content(target);
    const now = leased.now();
    await leased.record({
      ...settle(now, { kind: 'published', ...cleanPresent(outcome, now) }),
      ...followUpsOf(target, content, now, outcome),
    });
    return ended('shown');
  }
  if (outcome.kind === 'failed') {
    await leased.record(settle(leased.now(), { kind: 'failed', failure: cleanFailure(outcome.failure) }));
    await reportLapsedAccount(context, target);
    return ended('refused');
  }
  const now = tools.now();
  const left = Date.parse(accepted.until) - now;
  if (left <= 0) {
    const reconcileAt = new Date(now + (tools.config.reconcileDelaysMs[0] ?? 0)).toISOString();
    await leased.record({ type: 'RecordNotShown', now: new Date(now).toISOString(), failure: notShown, reconcileAt });
    return ended('not_shown');
  }
  const since = Date.parse(accepted.acceptedAt);
  const rest =
    outcome.kind === 'processing'
      ? askAfter(outcome.askAt, now - tools.clockAheadMs(), tools.processingRest)
      : Math.min(
          nextQuestionMs(now, since, tools.config.reconcileDelaysMs, null) ?? maxMs,
          unansweredRest(now - since),
        );
  return Math.min(rest, maxMs, left);
};

type Outcome = Extract<TargetCommand, { type: 'Settle' }>['outcome'];
const settle = (now: string, outcome: Outcome) => ({ type: 'Settle', by: 'reconcile', now, outcome }) as const;
