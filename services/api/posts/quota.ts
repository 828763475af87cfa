import type { Rejection } from '#domain/decider.ts';
import type { PostCommand } from '#domain/post/post.ts';
import { type TargetCommand, type TargetState, target } from '#domain/post-target/target.ts';
import { quotaExceeded } from '#domain/quota.ts';
import { monthAfter, monthBegin, monthOf } from '#domain/zones.ts';
import { type PostingRules, postingRulesOf, readPostingRules } from '#projections/queries/posting-rules.ts';
import { usedPlaces } from '#projections/queries/quota-targets.ts';
import type { CommandContext, Loaded } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { oftenRejection } from '#services/workflows/cadence/check.ts';
import { faultOfMove } from '#services/workflows/cadence/move.ts';
import { tendPlaces } from '#services/workflows/quota/give-back.ts';
import {
  byMonth,
  type Placed,
  type Reserving,
  reserveForTarget,
  reservePlaces,
  resetsAtOf,
} from '#services/workflows/quota/reserve.ts';
import type { Call } from '../call/operation.ts';
import { readingOwnWrites } from './checks.ts';

/** The places that the posts of a call take, and give back, of the quota of its workspace, and the times that targets may move to. */

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'context'>;

export const reservingOf = async (call: Asking, context: CommandContext = call.context): Promise<Reserving> => ({
  store: call.deps.store,
  pool: call.deps.pool,
  context,
  rules: await postingRulesOf(call.deps.pool, call.workspaceId),
});

/** Takes the places of a plan right before its append behind this revision. @throws Rejection `quota_exceeded` */
export const reservePlan = async (
  call: Asking,
  postId: string,
  command: PostCommand,
  revision: number,
): Promise<void> => {
  if (command.type !== 'Schedule') return;
  await reserveBehind(call, postId, revision, command.plan.targets);
};

/** @throws Rejection `quota_exceeded` */
export const reserveBehind = async (
  call: Asking,
  postId: string,
  revision: number,
  targets: readonly Placed[],
): Promise<void> => {
  const by = await reservingOf(call);
  await reservePlaces(by, { postId, awaits: { stream: 'post', revision }, targets });
};

/**
 * Refuses to move a target to a time at which its account would publish too often.
 * @throws Rejection `cadence_exceeded`
 */
export const requireCadence = async (
  call: Pick<Call, 'deps' | 'workspaceId' | 'behind'>,
  state: TargetState,
  command: TargetCommand,
): Promise<void> => {
  if (state.status === 'none') return;
  const { accountId, platform, targetId } = state.common;
  const source = await readingOwnWrites(call);
  const message = await faultOfMove(call.deps.store, source, state, command, new Set([targetId]));
  if (message !== null) throw oftenRejection([{ path: '', code: 'cadence_exceeded', message, accountId, platform }]);
};

/** Checks the new time of a target, and takes the place that it needs. @throws Rejection `cadence_exceeded`, `quota_exceeded` */
export const reserveFor = async (
  call: Asking & Pick<Call, 'behind'>,
  loaded: Loaded<TargetState>,
  command: TargetCommand,
): Promise<void> => {
  await requireCadence(call, loaded.state, command);
  const by = await reservingOf(call);
  if (by.rules.quota !== null) await reserveForTarget(by, loaded, target.decide(command, loaded.state));
};

/**
 * Gives back the places that these targets of one post no longer need. If we die before this, or it fails, the consumer
 * of outcomes does the same for each target.
 */
export const giveBackOrLeave = async (
  call: Asking & Pick<Call, 'correlationId'>,
  postId: string,
  targetIds: readonly string[],
): Promise<void> => {
  const { deps, workspaceId, context, correlationId } = call;
  try {
    const rules = await postingRulesOf(deps.pool, workspaceId);
    if (rules.quotaRevision === null) return;
    faultPoint('quota:before-give-back');
    await tendPlaces({ store: deps.store, context, rules }, postId, targetIds);
  } catch (error) {
    deps.logger.warn({ err: error, postId, correlationId }, 'the places of these targets are left to the outcomes');
  }
};

type Counting = Pick<Call, 'deps' | 'workspaceId' | 'now'>;

const usedIn = async ({ deps, workspaceId }: Counting, { timezone, quota }: PostingRules, month: string) => {
  const period = { from: monthBegin(month, timezone), to: monthBegin(monthAfter(month, 1), timezone) };
  const perPlatform = await usedPlaces(deps.pool, workspaceId, period);
  const used = perPlatform.reduce((sum, one) => sum + one.used, 0);
  const scheduled = perPlatform.reduce((sum, one) => sum + one.scheduled, 0);
  const remaining = quota === null ? null : Math.max(0, quota - used - scheduled);
  return { period, limit: quota, used, scheduled, remaining, resetsAt: period.to, perPlatform };
};

/** The quota of a workspace as its targets take it. */
export const showQuota = async (call: Counting) => {
  const rules = await readPostingRules(call.deps.pool, call.workspaceId);
  return { object: 'quota' as const, ...(await usedIn(call, rules, monthOf(call.now, rules.timezone))) };
};

interface PreviewedQuota {
  readonly shown: { readonly limit: number | null; readonly remaining: number | null; readonly needed: number };
  /** Why the post would be refused; null: there is room. */
  readonly refusal: Rejection | null;
}

/** What the plan of a post would take. Of several months, the one with the least room behind it is shown. */
export const previewQuota = async (call: Counting, targets: readonly PlannedTarget[]): Promise<PreviewedQuota> => {
  const needed = targets.length;
  const rules = await postingRulesOf(call.deps.pool, call.workspaceId);
  const { quota: limit, timezone } = rules;
  if (limit === null) return { shown: { limit, remaining: null, needed }, refusal: null };
  const planned = byMonth(targets, timezone);
  const months = planned.size === 0 ? new Map([[monthOf(call.now, timezone), []]]) : planned;
  let tightest: { readonly left: number; readonly remaining: number } | null = null;
  let refusal: Rejection | null = null;
  for (const [month, ids] of [...months].toSorted()) {
    const { remaining } = await usedIn(call, rules, month);
    const room = remaining ?? 0;
    const left = room - ids.length;
    if (tightest === null || left < tightest.left) tightest = { left, remaining: room };
    if (left < 0) refusal ??= quotaExceeded(month, limit, resetsAtOf(month, timezone));
  }
  return { shown: { limit, remaining: tightest?.remaining ?? 0, needed }, refusal };
};

/** The quota of the workspace, as the contract shows it. */
export const exampleQuota = {
  object: 'quota',
  period: { from: '2026-01-31T23:00:00.000Z', to: '2026-02-28T23:00:00.000Z' },
  limit: 500,
  used: 12,
  scheduled: 30,
  remaining: 458,
  resetsAt: '2026-02-28T23:00:00.000Z',
  perPlatform: [
    { platform: 'bluesky', used: 5, scheduled: 10 },
    { platform: 'x', used: 7, scheduled: 20 },
  ],
};
