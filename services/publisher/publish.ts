import type { NativeScheduler, PlatformAdapter } from '#contracts/ports/platform.ts';
import { attemptAt, type TargetIn } from '#domain/post-target/target.ts';
import { mediaNotReady, noAdapter, publishingHeld } from '#domain/publish-failures.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { type CallOutcome, callAdapter } from './call.ts';
import {
  adapterOf,
  hasEndedVersion,
  heldBy,
  mediaReadiness,
  type OwnAttempt,
  schedulerOf,
  type WorkContext,
} from './context.ts';
import { adapterTimes } from './deps.ts';
import { factsGate } from './facts-gate.ts';
import { accountFault, contentFault, type Fault, interruption } from './faults.ts';
import type { MediaReadiness, TargetFiles } from './media-readiness.ts';
import { failBeforeCall, recordOutcome } from './outcome.ts';
import type { Conditions, Content } from './related-streams.ts';
import { accountOf, filesOf, nextSegment, requestOf } from './request.ts';
import { Steps } from './steps.ts';

/**
 * Publishes the next segment of a claimed target; a target that is no thread has one segment. A native target is handed to
 * the network's own scheduler instead, by a boundary call of the same kind.
 */
export const publish = async (
  context: WorkContext,
  target: TargetIn<'publishing'>,
  attempt: OwnAttempt,
): Promise<OwnAttempt> => {
  const { tools, leased } = context;
  const [conditions, content, readiness] = await Promise.all([
    context.conditions.current(target),
    context.streams.content(target),
    attempt.kind === 'prepared' ? ({ kind: 'ready', files: attempt.files } as const) : mediaReadiness(context, target),
  ]);
  const prepared = prepare(context, target, { conditions, content, readiness });
  if (prepared.kind === 'faulty') {
    await failBeforeCall(context, target, prepared.fault);
    return attempt;
  }
  const { adapter, scheduler, files } = prepared;
  const gate = factsGate(context, target, { conditions, content, files });
  const refused = await gate.check();
  if (refused !== null) {
    await recordOutcome(context, target, content, nextSegment(target, content), refused);
    return { kind: 'prepared', files };
  }
  const account = accountOf(target, conditions.account.state);
  const { boundaryDeadlineMs } = adapterTimes(adapter, target.common.platform, account, tools.config);
  const stop = AbortSignal.any([leased.lease.signal, context.draining]);
  const segment = nextSegment(target, content);
  const steps = new Steps(leased, stop, boundaryDeadlineMs, segment);
  const isNative = target.common.scheduleMode === 'native';
  if (!isNative && target.takeover === 0 && target.common.publishedSegments.length === 0) {
    tools.lateness?.observe(Math.max(0, tools.now() - Date.parse(attemptAt(target))) / 1_000);
  }
  const lent = tools.files.lend(filesOf(target, files), steps.signal);
  const request = requestOf(target, content, conditions.account.state, lent, leased.context().workspaceId);
  const { targetId, dueAt } = target.common;
  const call = (): Promise<CallOutcome> =>
    scheduler === null
      ? adapter.publish(request, gate.guard(steps))
      : scheduler.handOver({ ...request, dueAt }, gate.guard(steps));
  const result = await callAdapter(context, targetId, call, steps, lent);
  if (result.kind === 'held' || (await hasEndedVersion(context, result))) {
    if (result.kind !== 'held') faultPoint('publisher:after-call');
    const claim = { attempt: target.common.attempts, takeover: target.takeover };
    const failure = (await heldBy(context)) ?? publishingHeld;
    const nothingSent = result.kind === 'held' ? {} : { nothingSent: true as const };
    await leased.record({ ...claim, ...nothingSent, type: 'RecordHeld', now: leased.now(), failure });
  } else if (result.kind !== 'drained') {
    faultPoint('publisher:after-call');
    if (result.kind === 'handed_over') faultPoint('publisher:after-hand-over');
    await recordOutcome(context, target, content, segment, result);
    if (result.kind === 'handed_over') faultPoint('publisher:after-handed-over');
  }
  return { kind: 'prepared', files };
};

type Preparation =
  | {
      readonly kind: 'ready';
      readonly adapter: PlatformAdapter;
      /** Null: the adapter publishes the post itself. */
      readonly scheduler: NativeScheduler | null;
      readonly files: TargetFiles;
    }
  | { readonly kind: 'faulty'; readonly fault: Fault };

interface Readings {
  readonly conditions: Conditions;
  readonly content: Content;
  readonly readiness: MediaReadiness;
}

const prepare = (
  context: WorkContext,
  target: TargetIn<'publishing'>,
  { conditions, content, readiness }: Readings,
): Preparation => {
  const faulty = (fault: Fault): Preparation => ({ kind: 'faulty', fault });
  const stopped = accountFault(conditions.account.state) ?? interruption(target, conditions);
  if (stopped !== null) return faulty(stopped);
  if (readiness.kind === 'failed') return faulty(readiness);
  if (readiness.kind === 'waiting') {
    // The files were ready at the claim, and a rendition is never taken back. So an older backup of the store was
    // restored.
    const [{ mediaId, segmentIndex }] = readiness.waiting;
    return faulty({ failure: mediaNotReady(mediaId), segmentIndex });
  }
  const { files } = readiness;
  const refused = contentFault(target, content, files);
  if (refused !== null) return faulty(refused);
  const adapter = adapterOf(context, target, conditions);
  if (adapter === null) return faulty({ failure: noAdapter });
  const scheduler = schedulerOf(adapter, target);
  return scheduler === 'missing' ? faulty({ failure: noAdapter }) : { kind: 'ready', adapter, scheduler, files };
};
