import type { Rejection } from '#domain/decider.ts';
import { quotaExceeded } from '#domain/quota.ts';
import { monthAfter, monthBegin, monthOf } from '#domain/zones.ts';
import { type PostingRules, postingRulesOf, readPostingRules } from '#projections/queries/posting-rules.ts';
import { usedPlaces } from '#projections/queries/quota-targets.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { byMonth, resetsAtOf } from '#services/workflows/quota/reserve.ts';
import type { Call } from '../operation.ts';

/** The quota of a workspace as its targets take it. */

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'now'>;

const usedIn = async ({ deps, workspaceId }: Asking, { timezone, quota }: PostingRules, month: string) => {
  const period = { from: monthBegin(month, timezone), to: monthBegin(monthAfter(month, 1), timezone) };
  const perPlatform = await usedPlaces(deps.pool, workspaceId, period);
  const used = perPlatform.reduce((sum, one) => sum + one.used, 0);
  const scheduled = perPlatform.reduce((sum, one) => sum + one.scheduled, 0);
  const remaining = quota === null ? null : Math.max(0, quota - used - scheduled);
  return { period, limit: quota, used, scheduled, remaining, resetsAt: period.to, perPlatform };
};

export const showQuota = async (call: Asking) => {
  const rules = await readPostingRules(call.deps.pool, call.workspaceId);
  return { object: 'quota' as const, ...(await usedIn(call, rules, monthOf(call.now, rules.timezone))) };
};

export interface PreviewedQuota {
  readonly shown: { readonly limit: number | null; readonly remaining: number | null; readonly needed: number };
  /** Why the post would be refused; null: there is room. */
  readonly refusal: Rejection | null;
}

/** What the plan of a post would take. Of several months, the one with the least room behind it is shown. */
export const previewQuota = async (call: Asking, targets: readonly PlannedTarget[]): Promise<PreviewedQuota> => {
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
