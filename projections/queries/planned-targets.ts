import type { Pool } from 'pg';
import type { Platform } from '#schemas/common.ts';
import type { TargetStatus } from '#schemas/target.ts';
import { toIso } from '../engine/rows.ts';
import { view } from '../shapes.ts';
import { callsSql } from './posting-rules.ts';

/** The targets of a client's accounts that are still to go out. */

export interface PlannedRow {
  readonly id: string;
  readonly postId: string;
  /** Client of the post. */
  readonly postClientId: string;
  /** Null: none. */
  readonly campaignId: string | null;
  readonly accountId: string;
  readonly platform: Platform;
  readonly status: TargetStatus;
  readonly dueAt: string;
  readonly retryAt: string | null;
  readonly scheduledLocal: string | null;
  readonly timezone: string;
  readonly jitterSeconds: number;
  readonly isNative: boolean;
  /** Whether its account keeps it waiting. */
  readonly waits: boolean;
  readonly deferredSince: string | null;
  readonly createdAt: string;
  readonly calls: number;
}

/** Its account keeps it waiting: `cadenceReached`. */
const waits = "t.failure ->> 'code' = 'cadence_reached'";

/**
 * Those that are due before an instant, the earliest first, at most `limit`; of the held ones those that are due from now
 * on: one that is late goes out when it is approved, whatever the plan says.
 */
export const plannedTargets = async (
  pool: Pool,
  asked: { readonly workspaceId: string; readonly clientId: string; readonly now: string; readonly before: string },
  limit: number,
): Promise<readonly PlannedRow[]> => {
  const { rows } = await pool.query<PlannedRow>({
    name: 'planned-targets',
    text: `
      select t.id::text as id, t.post_id::text as "postId", o.client_id::text as "postClientId",
        o.campaign_id::text as "campaignId", t.account_id::text as "accountId", t.platform, t.status,
        t.due_at as "dueAt", t.retry_at as "retryAt", t.scheduled_local as "scheduledLocal", t.timezone,
        t.jitter_seconds as "jitterSeconds", t.schedule_mode = 'native' as "isNative", coalesce(${waits}, false) as waits,
        t.deferred_since as "deferredSince", t.created_at as "createdAt", ${callsSql} as calls
      from ${view('post_targets')} t join ${view('posts')} o on o.id = t.post_id
      where t.client_id = $1 and t.workspace_id = $2 and t.due_at < $4
        and t.status in ('awaiting_approval', 'pending', 'rate_limited', 'handed_to_platform')
        and (t.status <> 'awaiting_approval' or t.due_at >= $3)
      order by t.due_at, t.id limit $5`,
    values: [asked.clientId, asked.workspaceId, asked.now, asked.before, limit],
  });
  return rows.map((row) => ({
    ...row,
    dueAt: toIso(row.dueAt) ?? '',
    retryAt: toIso(row.retryAt),
    deferredSince: toIso(row.deferredSince),
    createdAt: toIso(row.createdAt) ?? '',
    calls: Number(row.calls),
  }));
};
