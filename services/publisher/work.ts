import type { PlatformAdapter, PublishOutcome, ReconcileOutcome } from '#contracts/ports/platform.ts';
import { account } from '#domain/account.ts';
import { media } from '#domain/media.ts';
import {
  adapterFailed,
  interrupted,
  mediaNotReady,
  noAdapter,
  outcomeUnknown,
  outcomeUnreadable,
  threadInterrupted,
} from '#domain/publish-failures.ts';
import type { TargetCommand, TargetState } from '#domain/target.ts';
import { InvalidEvent } from '#runtime/eventing/codec.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { wellFormedInstant, wellFormedText } from '#runtime/eventing/well-formed.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { within } from '#runtime/process/within.ts';
import type { Failure, Segment } from '#schemas/target.ts';
import { type Claim, ClaimLost } from './claim.ts';
import { cleanFailure, cleanPresent, isId } from './clean.ts';
import type { Tools } from './deps.ts';
import type { Lent } from './files.ts';
import { type MediaReadiness, noFiles, readinessOf, type SegmentFiles } from './media.ts';
import { nextQuestionMs, provableAt, reconcileLimitMs, reconcileResultOf, restMs, timesOf } from './reconcile.ts';
import { BoundaryMissed, Steps } from './steps.ts';
import {
  accountFault,
  type Conditions,
  type Content,
  contentFault,
  type Fault,
  filesOf,
  interruption,
  type LiveTarget,
  nextSegment,
  requestOf,
  type Subjects,
} from './subject.ts';
import { pause } from './time.ts';

/** Conditions older than this are read anew at the claim, milliseconds. */
const conditionsAgeMs = 2_000;
/** Rest of a target whose files are still being made, milliseconds. */
const mediaRestMs = 500;
/** Workers that may die one after the other in an attempt that never reaches its next boundary. */
const maxTakeovers = 10;
/** A call that ignores its signal is left to itself this long after its deadline, milliseconds. */
const graceMs = 500;

type In<Status extends TargetState['status']> = Extract<TargetState, { status: Status }>;

/** How long nobody need look at the target again, milliseconds; null = as soon as the read model says. */
export type Rest = number | null;
/** `next turn`: there is more to publish, when it is this workspace's turn again. */
export type Pause = Rest | 'next turn';

/**
 * Brings one leased target as far as it can go now. Each turn of the loop is one durable step, so a worker that dies
 * anywhere leaves a state from which the next one goes on in the same loop.
 */
export class Work {
  readonly #tools: Tools;
  readonly #subjects: Subjects;
  readonly #claim: Claim;
  readonly #draining: AbortSignal;
  #conditions: Conditions | null;
  /** True once this worker has claimed or taken over the attempt that is under way. */
  #mine = false;
  /** Of the attempt that is under way: what was made of a file is not taken back. */
  #ready: Extract<MediaReadiness, { kind: 'ready' }> | null = null;

  constructor(tools: Tools, subjects: Subjects, claim: Claim, conditions: Conditions | null, draining: AbortSignal) {
    this.#tools = tools;
    this.#subjects = subjects;
    this.#claim = claim;
    this.#conditions = conditions;
    this.#draining = draining;
  }

  /** To be called again, by the same worker, after `next turn`. */
  async run(): Promise<Pause> {
    while (!this.#draining.aborted && this.#claim.lease.isHeld()) {
      const { state } = this.#claim;
      switch (state.status) {
        case 'rate_limited':
          if (!this.#isDue(state.retryAt)) return null;
          await this.#claim.record({ type: 'Requeue', now: this.#claim.now() });
          faultPoint('publisher:after-requeue');
          continue;
        case 'pending':
          if (!this.#isDue(state.dueAt)) return null;
          // The target was leased ahead of its time, and a clock may have been set since.
          if (this.#tools.clock.fault() !== null) return null;
          if ((await this.#start(state)) === 'waits') return mediaRestMs;
          continue;
        case 'publishing':
          if (!this.#mine) await this.#takeOver(state);
          else if (state.boundary === null) {
            await this.#publish(state);
            if (this.#mine) return 'next turn';
          }
          // This worker's own attempt ends by an outcome, or goes on with the next segment of its thread; with a boundary
          // and no outcome it was interrupted by a drain.
          else return null;
          continue;
        case 'outcome_unknown': {
          const rest = await this.#ask(state);
          if (rest !== 'settled') return rest;
          if (this.#claim.state.status === 'pending') return 'next turn';
          continue;
        }
        default:
          return null;
      }
    }
    return null;
  }

  #isDue(instant: string): boolean {
    return Date.parse(instant) <= this.#tools.now();
  }

  async #fresh(target: LiveTarget): Promise<Conditions> {
    const known = this.#conditions;
    if (known !== null && performance.now() - known.asOf < conditionsAgeMs) return known;
    this.#conditions = await this.#subjects.conditions(target);
    return this.#conditions;
  }

  /** `waits`: for files that are still being made; nothing is claimed before they are there. */
  async #start(target: In<'pending'>): Promise<'waits' | 'went on'> {
    const { account: itsAccount, client } = await this.#fresh(target);
    if (client.state.status !== 'live') {
      await this.#claim.record(
        target.segments.length === 0
          ? { type: 'Cancel', reason: 'client_archived', postRevision: null }
          : { type: 'RefuseAtClaim', failure: threadInterrupted },
      );
      return 'went on';
    }
    const standing = await this.#standing(target);
    const fault = accountFault(itsAccount.state) ?? (await this.#mediaFault(target, standing));
    if (fault !== null) {
      await this.#claim.record({ type: 'RefuseAtClaim', ...fault });
      return 'went on';
    }
    if (standing.kind === 'waiting') return 'waits';
    faultPoint('publisher:before-claim');
    await this.#claim.record({ type: 'Start', now: this.#claim.now() });
    this.#mine = true;
    faultPoint('publisher:after-claim');
    return 'went on';
  }

  /** How its files stand, those of segments that are out left out; of a post without any nothing is read. */
  async #standing(target: LiveTarget): Promise<MediaReadiness> {
    if (target.status === 'publishing' && this.#ready !== null) return this.#ready;
    const content = await this.#subjects.content(target);
    if (content.body === null) return noFiles;
    const from = target.segments.length;
    const assets = await this.#subjects.media(content, from);
    const { workspaceId } = this.#claim.context();
    const standing = readinessOf({ ...content, body: content.body }, from, target.platform, workspaceId, assets);
    this.#ready = standing.kind === 'ready' ? standing : null;
    return standing;
  }

  /**
   * Asks for what nobody has asked for yet, and waits for it for a while: the asset's decider takes each need once. If we
   * die between two of them, the next worker asks for the rest. What is late because nobody was there to ask, or because
   * we were not, still has all of its time.
   */
  async #mediaFault(target: In<'pending'>, standing: MediaReadiness): Promise<Fault | null> {
    if (standing.kind !== 'waiting') return standing.kind === 'failed' ? standing : null;
    const { now, mediaLimitMs, startedAt, store } = this.#tools;
    for (const { loaded, mediaId, needs } of standing.missing) {
      const asked = { type: 'RequestRenditions', needs, for: { kind: 'target', id: target.targetId } } as const;
      await execute(store, media, mediaId, asked, this.#claim.context(), { loaded });
    }
    if (standing.missing.length > 0) return null;
    const since = Math.max(Date.parse(target.dueAt), startedAt);
    const late = standing.waiting.find(({ askedAt }) => now() > Math.max(since, askedAt ?? since) + mediaLimitMs);
    return late === undefined ? null : { failure: mediaNotReady(late.mediaId), part: late.part };
  }

  /** Begins with an append, so that whatever the worker before us still wants to write loses. */
  async #takeOver(target: In<'publishing'>): Promise<void> {
    await this.#claim.record({ type: 'TakeOver', attempt: target.attempts, takeover: target.takeover });
    this.#mine = true;
    faultPoint('publisher:after-takeover');
    const now = this.#claim.state;
    if (now.status !== 'publishing') return;
    if (now.boundary === null) {
      if (now.takeover - now.progressAt > maxTakeovers) await this.#fail(now, { failure: interrupted });
      return;
    }
    const { said } = await this.#reconcile(now);
    const { segment } = now.boundary;
    if (said.kind === 'present') await this.#end(now, segment, { ...said, kind: 'published' }, null);
    else if (said.kind === 'failed') await this.#end(now, segment, said, null);
    else await this.#end(now, segment, { kind: 'unknown', failure: outcomeUnknown }, null);
  }

  async #publish(target: In<'publishing'>): Promise<void> {
    const [conditions, content, standing] = await Promise.all([
      this.#fresh(target),
      this.#subjects.content(target),
      this.#standing(target),
    ]);
    const stopped = accountFault(conditions.account.state) ?? interruption(target, conditions);
    if (stopped !== null) return this.#fail(target, stopped);
    if (standing.kind !== 'ready') {
      // They were there at the claim, and what was made of a file is not taken back: the store was put back.
      if (standing.kind === 'failed') return this.#fail(target, standing);
      const [{ mediaId, part }] = standing.waiting;
      return this.#fail(target, { failure: mediaNotReady(mediaId), part });
    }
    const refusal = contentFault(target, content, standing.files);
    if (refusal !== null) return this.#fail(target, refusal);
    const adapter = this.#adapterOf(target, conditions);
    if (adapter === null) return this.#fail(target, { failure: noAdapter });
    const times = timesOf(adapter, target.platform, this.#tools.config);
    const stop = AbortSignal.any([this.#claim.lease.signal, this.#draining]);
    const segment = nextSegment(target, content);
    const steps = new Steps(this.#claim, stop, times.boundaryDeadlineMs, segment);
    if (target.takeover === 0 && target.segments.length === 0) {
      this.#tools.lateness?.observe(Math.max(0, this.#tools.now() - Date.parse(target.dueAt)) / 1_000);
    }
    const outcome = await this.#call(adapter, target, conditions, content, filesOf(target, standing.files), steps);
    if (outcome === null) return;
    faultPoint('publisher:after-call');
    await this.#end(target, segment, outcome, steps);
  }

  /** The adapter's answer, corrected: after the boundary `deferred` becomes `unknown`; before it, the reverse. Null: dropped. */
  async #call(
    adapter: PlatformAdapter,
    target: In<'publishing'>,
    conditions: Conditions,
    content: Content,
    files: SegmentFiles,
    steps: Steps,
  ): Promise<PublishOutcome | null> {
    const lent = this.#tools.files.lend(files, steps.signal);
    const request = requestOf(target, content, conditions.account.state, lent);
    const ended = new AbortController();
    try {
      const call = adapter.publish(request, steps);
      // When the call itself has ended, not when we have stopped waiting for it.
      void call.then(lent.close, lent.close);
      const outcome = await Promise.race([call, this.#limit(steps, lent, ended.signal)]);
      const { crossed } = steps;
      if (outcome.kind === 'unknown' && !crossed) return { kind: 'deferred', failure: outcome.failure };
      if (outcome.kind === 'deferred' && crossed) return { kind: 'unknown', failure: outcome.failure };
      return outcome;
    } catch (error) {
      // Nothing was called, and the claim is ours: that is a known outcome, which a retry can better.
      if (error instanceof BoundaryMissed) return { kind: 'failed', failure: interrupted };
      if (error instanceof ClaimLost || !this.#claim.lease.isHeld()) throw error;
      if (steps.crossed) {
        this.#tools.logger.error({ err: error, targetId: target.targetId }, 'a publish call ended with an error');
        return { kind: 'unknown', failure: outcomeUnknown };
      }
      // Left as it stands: whoever takes it over goes on in this attempt from its checkpoints.
      if (this.#draining.aborted) return null;
      this.#tools.logger.error({ err: error, targetId: target.targetId }, 'preparing a post ended with an error');
      return { kind: 'deferred', failure: adapterFailed };
    } finally {
      ended.abort();
      steps.deadline?.clear();
      this.#claim.close();
    }
  }

  /** Ends an adapter that does not end by itself: before the boundary after its limits, after it with the deadline. */
  async #limit(steps: Steps, lent: Lent, ended: AbortSignal): Promise<PublishOutcome> {
    const { preparationLimitMs, preparationIdleMs } = this.#tools;
    const begun = performance.now();
    while (!ended.aborted) {
      if (steps.deadline === null) steps.fetched(await lent.bytes());
      const { deadline } = steps;
      const now = performance.now();
      const left =
        deadline === null
          ? Math.min(begun + preparationLimitMs, steps.movedAt + preparationIdleMs) - now
          : deadline.leftMs() + graceMs;
      if (left <= 0) break;
      // While no boundary is there its coming has to be noticed; a stop before it is given the same grace.
      if (deadline === null && steps.signal.aborted) {
        await pause(graceMs, ended);
        if (steps.deadline === null) throw steps.signal.reason;
      }
      await pause(Math.min(left, 1_000), ended);
    }
    if (steps.crossed) return { kind: 'unknown', failure: outcomeUnknown };
    steps.stop();
    return { kind: 'deferred', failure: adapterFailed };
  }

  /** Nothing was called. */
  async #fail(target: In<'publishing'>, fault: Fault): Promise<void> {
    const { attempts: attempt, takeover } = target;
    const failure = cleanFailure(fault.failure);
    await this.#claim.record({ type: 'RecordFailed', attempt, takeover, failure, part: fault.part });
    this.#mine = false;
    await this.#tellAccount(target);
  }

  /**
   * Records how the attempt ended. A token that died is then said in the account's stream too; if we die in between,
   * the account stays connected and its next target fails the same way and says it.
   */
  async #end(
    target: In<'publishing'>,
    segment: Segment | null,
    outcome: PublishOutcome,
    steps: Steps | null,
  ): Promise<void> {
    this.#claim.open();
    const command = this.#commandOf(target, segment, outcome);
    const { signal } = this.#claim.lease;
    try {
      await this.#claim.recordForSure(command, signal);
    } catch (error) {
      if (!(error instanceof InvalidEvent)) throw error;
      // What the network said does not fit our language; what is known without its words still has to be recorded.
      this.#tools.logger.error({ err: error, targetId: target.targetId }, 'an outcome could not be recorded as it was');
      const crossed = target.boundary !== null || steps?.crossed === true;
      await this.#claim.recordForSure(
        this.#commandOf(target, segment, { kind: crossed ? 'unknown' : 'failed', failure: outcomeUnreadable }),
        signal,
      );
    }
    faultPoint('publisher:after-outcome');
    // A thread that is not at its end stays with the worker that has its claim.
    this.#mine = this.#claim.state.status === 'publishing';
    await this.#tellAccount(target);
  }

  #commandOf(target: In<'publishing'>, segment: Segment | null, outcome: PublishOutcome): TargetCommand {
    const claim = { attempt: target.attempts, takeover: target.takeover };
    const now = this.#claim.now();
    const { config, random } = this.#tools;
    const policy = {
      deferDelaysMs: config.deferDelaysMs,
      maxRateLimits: config.maxRateLimits,
      jitter: random(),
    };
    switch (outcome.kind) {
      case 'published':
        // The next segment could reply to nothing.
        if (segment !== null && segment.index + 1 < segment.of && !isId(outcome.externalId)) {
          return this.#commandOf(target, segment, { kind: 'unknown', failure: outcomeUnreadable });
        }
        return { ...claim, type: 'RecordPublished', ...cleanPresent(outcome, now), segment };
      case 'failed':
        return { ...claim, type: 'RecordFailed', failure: cleanFailure(outcome.failure) };
      case 'rate_limited': {
        const named = Math.max(Date.parse(wellFormedInstant(outcome.retryAt) ?? now), Date.parse(now));
        const retryAt = new Date(named).toISOString();
        return { ...claim, type: 'RecordRateLimited', retryAt, failure: cleanFailure(outcome.failure), policy };
      }
      case 'deferred':
        return { ...claim, type: 'RecordDeferred', now, failure: cleanFailure(outcome.failure), policy };
      case 'unknown': {
        const reconcileAt = new Date(Date.parse(now) + (config.reconcileDelaysMs[0] ?? 0)).toISOString();
        return { ...claim, type: 'RecordUnknown', failure: cleanFailure(outcome.failure), reconcileAt };
      }
    }
  }

  /** One question about an unknown outcome. Answers how long to rest until the next, or that it is settled. */
  async #ask(target: In<'outcome_unknown'>): Promise<Rest | 'settled'> {
    const { now, config } = this.#tools;
    const since = Date.parse(target.unknownSince);
    const elapsed = now() - since;
    if (nextQuestionMs(now(), since, config.reconcileDelaysMs, null) === null) return restMs;
    const first = config.reconcileDelaysMs[0] ?? 0;
    if (elapsed < first) return first - elapsed;
    const { said, provenAbsent, provable } = await this.#reconcile(target);
    const settle = (outcome: Extract<TargetCommand, { type: 'Settle' }>['outcome']) =>
      this.#claim.record({ type: 'Settle', by: 'reconcile', now: this.#claim.now(), outcome });
    const part = target.boundary?.segment ?? null;
    const goesOn = part !== null && part.index + 1 < part.of;
    if (said.kind === 'present' && (!goesOn || isId(said.externalId))) {
      await settle({ kind: 'published', ...cleanPresent(said, this.#claim.now()) });
    } else if (said.kind === 'failed') {
      await settle({ kind: 'failed', failure: cleanFailure(said.failure) });
      await this.#tellAccount(target);
    } else if (provenAbsent) {
      await settle({ kind: 'absent', proof: true });
    } else return nextQuestionMs(now(), since, config.reconcileDelaysMs, provable) ?? restMs;
    return 'settled';
  }

  async #reconcile(target: In<'publishing'> | In<'outcome_unknown'>) {
    const [conditions, content, standing] = await Promise.all([
      this.#fresh(target),
      this.#subjects.content(target),
      this.#standing(target),
    ]);
    const adapter = this.#adapterOf(target, conditions);
    const { boundary } = target;
    if (adapter === null || boundary === null) {
      return { ...reconcileResultOf({ kind: 'undecided' }, 0, null), provable: null };
    }
    const { settleWindowMs } = timesOf(adapter, target.platform, this.#tools.config);
    const provable = provableAt(boundary, settleWindowMs, adapter.absenceIsProof(target.platform));
    const files = standing.kind === 'ready' ? standing.files : noFiles.files;
    const lent = this.#tools.files.lend(filesOf(target, files), this.#claim.lease.signal);
    const request = requestOf(target, content, conditions.account.state, lent);
    const crossed = request.checkpoints.findLast((one) => one.step === 'boundary' && one.attempt === boundary.attempt);
    const askedAt = this.#tools.now();
    const undecided = (): ReconcileOutcome => ({ kind: 'undecided' });
    const said =
      crossed === undefined
        ? undecided()
        : await within(
            reconcileLimitMs,
            adapter
              .reconcile(request, crossed)
              .catch((error: unknown) => {
                this.#tools.logger.error({ err: error, targetId: target.targetId }, 'a reconcile ended with an error');
                return undecided();
              })
              .finally(lent.close),
            undecided,
          );
    return { ...reconcileResultOf(said, askedAt, provable), provable };
  }

  #adapterOf(target: LiveTarget, { account: itsAccount }: Conditions): PlatformAdapter | null {
    const { state } = itsAccount;
    return state.status === 'none' ? null : this.#tools.adapterOf(state.network, target.platform);
  }

  /** Minted once per lapse by the account's decider; not at all when it was connected anew since we read it. */
  async #tellAccount(target: LiveTarget): Promise<void> {
    const failure = failureOf(this.#claim.state);
    const known = this.#conditions;
    if (failure?.category !== 'reauth_required' || known === null) return;
    const renewed = (events: readonly { readonly type: string; readonly revision: number }[]): boolean =>
      events.some((one) => one.type === 'AccountReauthorized' && one.revision > known.account.revision);
    try {
      await execute(
        this.#tools.store,
        account,
        target.accountId,
        { type: 'RequireReauth', reason: wellFormedText(failure.platformMessage ?? failure.message, 500) },
        this.#claim.context(),
        {
          guard: ({ events }) => {
            if (renewed(events)) throw new Renewed();
          },
        },
      );
    } catch (error) {
      if (!(error instanceof Renewed)) throw error;
    }
  }
}

class Renewed extends Error {}

const failureOf = (state: TargetState): Failure | null => (state.status === 'failed' ? state.failure : null);
