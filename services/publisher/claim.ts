import type { AccountState } from '#domain/account.ts';
import { cadenceOf, callsOfContent, isLimited, reachOf } from '#domain/cadence.ts';
import { type CadenceDecision, decideCadence, graceMs, type TakenSlot } from '#domain/cadence-decision.ts';
import type { ClientState } from '#domain/client.ts';
import { media } from '#domain/media.ts';
import { attemptAt, type TargetIn } from '#domain/post-target/target.ts';
import {
  cadenceNeverFits,
  cadenceReached,
  disconnected,
  mediaNotReady,
  threadInterrupted,
} from '#domain/publish-failures.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Failure } from '#schemas/target.ts';
import type { Taking } from './account-slots.ts';
import { mediaReadiness, type WorkContext } from './context.ts';
import type { Tools } from './deps.ts';
import { accountFault, type Fault } from './faults.ts';
import type { AwaitedFile, MediaReadiness, TargetFiles } from './media-readiness.ts';

/**
 * How often an account publishes, at the claim of its targets. An attempt that began keeps its place however late its call comes:
 * until then it holds back the others of its account, and they count from the publication. One that began before anything limited
 * the account took no place, and goes out.
 */

/** Milliseconds after which a target is looked at again for whose account other processes decide now. */
const busyMs = 500;

/** Milliseconds since its last step for which an attempt is looked for; longer than publishers are ever down. */
const underWayMs = 86_400_000;

/**
 * Whether the target goes out now. It has its slot when this returns: the present one, or the one that it waits for. Its
 * place in the network’s own scheduler was checked when it was composed. A thread that has begun to go out waits for no
 * count of ours: a half thread is worse than a call that the network refuses, and the network names the time of the next
 * one. An account that nothing limits costs no query.
 *
 * If we die between the slot and the claim or deferral that it is for, the next worker of the target takes the slot
 * again, since a target’s own slot never stands in its way.
 */
const takeSlot = async (context: WorkContext, target: TargetIn<'pending'>): Promise<CadenceDecision> => {
  const { tools, leased, conditions } = context;
  const { accountId, platform, targetId, scheduleMode, publishedSegments, deferredSince } = target.common;
  const { state } = conditions.latest.account;
  if (state.status === 'none' || scheduleMode === 'native') return { kind: 'go' };
  const { workspaceId } = leased.context();
  const cadence = cadenceOf(state, (await tools.cadence.rules(workspaceId)) ?? []);
  if (!isLimited(cadence)) return { kind: 'go' };
  const isBegun = publishedSegments.length > 0;
  const calls = callsOfContent(await context.streams.content(target), platform);
  const wanted = {
    ...{ targetId, calls: calls - publishedSegments.length, dueAt: Date.parse(attemptAt(target)) },
    deferredSince: deferredSince === null ? null : Date.parse(deferredSince),
  };
  const [now, reach] = [tools.now(), reachOf(cadence)];
  const asked = {
    ...{ workspaceId, accountId, waitingFrom: now - graceMs },
    out: { from: now - reach - underWayMs, to: now + reach },
  };
  const clock = { now: tools.now, reachMs: reach };
  const decision = await tools.cadence.slots.take(asked, clock, ({ entries, rows }): Taking<CadenceDecision> => {
    const at = tools.now();
    const unshown = new Set(entries.map((one) => one.targetId));
    const taken: readonly TakenSlot[] = [...entries, ...rows.filter((one) => !unshown.has(one.targetId))];
    const result: CadenceDecision = isBegun ? { kind: 'go' } : decideCadence(cadence, taken, { ...wanted, now: at });
    const of = { targetId, calls, revision: leased.revision };
    if (result.kind === 'go') return { result, entry: { ...of, at, state: 'under_way' } };
    if (result.kind === 'wait' && result.holds) return { result, entry: { ...of, at: result.until, state: 'waiting' } };
    return { result, entry: null };
  });
  return decision ?? (isBegun ? { kind: 'go' } : { kind: 'rest', ms: busyMs });
};

type ClaimResult =
  | { readonly kind: 'claimed'; readonly files: TargetFiles }
  /** The target is canceled, failed or deferred; its stream says why. */
  | { readonly kind: 'refused' }
  /** The target stays unclaimed until its files are ready; it is looked at again after so many milliseconds. */
  | { readonly kind: 'waiting_for_files'; readonly ms: number }
  /** The target stays unclaimed for so many milliseconds: others of its account come first. */
  | { readonly kind: 'waiting_for_slot'; readonly ms: number };

/** Claims a due target if its client, account and files allow publishing. */
export const claim = async (context: WorkContext, target: TargetIn<'pending'>): Promise<ClaimResult> => {
  const { leased } = context;
  const { account, client } = await context.conditions.current(target);
  const ended = endOf(account.state, client.state);
  if (ended !== null) {
    await leased.record(
      target.common.publishedSegments.length === 0
        ? { type: 'Cancel', reason: ended.reason, postRevision: null, now: leased.now() }
        : { type: 'RefuseAtClaim', failure: ended.failure },
    );
    return { kind: 'refused' };
  }
  const readiness = await mediaReadiness(context, target);
  const fault = accountFault(account.state) ?? (await mediaFault(context, target, readiness));
  if (fault !== null) {
    await leased.record({ type: 'RefuseAtClaim', ...fault });
    return { kind: 'refused' };
  }
  if (readiness.kind === 'waiting') return { kind: 'waiting_for_files', ms: restOf(context, target, readiness) };
  if (readiness.kind !== 'ready') return { kind: 'refused' };
  let decision = await takeSlot(context, target);
  if (decision.kind === 'never') {
    // Somebody may have had the limit raised and retried just now: nothing fails on a reading from before.
    await context.conditions.now(target);
    decision = await takeSlot(context, target);
  }
  if (decision.kind === 'rest') return { kind: 'waiting_for_slot', ms: decision.ms };
  if (decision.kind === 'never') {
    await leased.record({ type: 'RefuseAtClaim', failure: cadenceNeverFits });
    return { kind: 'refused' };
  }
  context.tools.waitingFiles.delete(target.common.targetId);
  faultPoint('publisher:before-claim');
  if (decision.kind === 'wait') {
    const retryAt = new Date(decision.until).toISOString();
    await leased.record({ type: 'DeferAtClaim', retryAt, failure: cadenceReached });
    return { kind: 'refused' };
  }
  await leased.record({ type: 'Start', now: leased.now() });
  faultPoint('publisher:after-claim');
  return { kind: 'claimed', files: readiness.files };
};

/**
 * Why the target is over: a caller archived its client or disconnected its account, and the clean-up has not come to it
 * yet. It ends as the clean-up would end it, however late that is; a thread of which a segment is out fails.
 */
const endOf = (
  account: AccountState,
  client: ClientState,
): { readonly reason: 'client_archived' | 'account_disconnected'; readonly failure: Failure } | null => {
  if (client.status !== 'live') return { reason: 'client_archived', failure: threadInterrupted };
  return account.status === 'disconnected' ? { reason: 'account_disconnected', failure: disconnected } : null;
};

/**
 * Requests missing renditions, and lets the target wait for them up to a limit. The asset's decider accepts each need
 * once, so if this worker dies between two requests, the next worker requests the rest. The limit counts from the
 * latest of the attempt's time, the target's, the request and this publisher's start, so that an outage of the publishers
 * does not shorten it.
 */
const mediaFault = async (
  { tools, leased }: WorkContext,
  target: TargetIn<'pending'>,
  readiness: MediaReadiness,
): Promise<Fault | null> => {
  if (readiness.kind === 'ready') return null;
  if (readiness.kind === 'failed') return readiness;
  for (const { loaded, mediaId, needs } of readiness.missing) {
    const request = { type: 'RequestRenditions', needs, for: { kind: 'target', id: target.common.targetId } } as const;
    await execute(tools.store, media, mediaId, request, leased.context(), { loaded });
  }
  if (readiness.missing.length > 0) return null;
  const late = readiness.waiting.find((file) => tools.now() > givenUpAt(tools, target, file));
  return late === undefined ? null : { failure: mediaNotReady(late.mediaId), segmentIndex: late.segmentIndex };
};

/** Milliseconds since the epoch from which nobody waits for the file. */
const givenUpAt = (
  { mediaLimitMs, startedAt, sinceMove }: Tools,
  target: TargetIn<'pending'>,
  { askedAt }: AwaitedFile,
): number => {
  const since = Math.max(Date.parse(attemptAt(target)), Date.parse(target.common.dueAt), startedAt, sinceMove());
  return Math.max(since, askedAt ?? since) + mediaLimitMs;
};

/** No longer than until a file is given up. */
const restOf = (
  { tools }: WorkContext,
  target: TargetIn<'pending'>,
  { waiting }: Extract<MediaReadiness, { kind: 'waiting' }>,
): number => {
  const restMs = tools.waitingFiles.add(target.common.targetId, waiting);
  const leftMs = Math.min(...waiting.map((file) => givenUpAt(tools, target, file) - tools.now()));
  return Math.max(1, Math.min(restMs, leftMs + 1));
};
