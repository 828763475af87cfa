import type { Pool } from 'pg';
import type { TargetStatus } from '#schemas/target.ts';
import { view } from '../shapes.ts';

/** Targets of the posts of a campaign, and campaigns with a shift that is not completed. */

export interface CampaignTarget {
  readonly id: string;
  readonly status: TargetStatus;
}

/**
 * `$1`: workspace, `$2`: campaign, `$5`: clients whose targets are meant; null: those of all. Of the plan in force alone.
 */
const targets = `${view('posts')} p join ${view('post_targets')} t on t.post_id = p.id and t.post_revision >= p.plan_revision
  where p.workspace_id = $1 and p.campaign_id = $2 and p.status <> 'discarded'
    and ($5::uuid[] is null or t.client_id = any($5))`;

/** At most `limit` in these statuses, the earliest due first. */
export const targetsIn = async (
  pool: Pool,
  workspaceId: string,
  campaignId: string,
  statuses: readonly TargetStatus[],
  limit: number,
  clientIds: readonly string[] | null = null,
): Promise<readonly CampaignTarget[]> => {
  const { rows } = await pool.query<CampaignTarget>(
    `select t.id::text as id, t.status from ${targets} and t.status = any($3) order by t.due_at, t.id limit $4`,
    [workspaceId, campaignId, [...statuses], limit, clientIds === null ? null : [...clientIds]],
  );
  return rows;
};

/** A count beyond this is not exact. */
const maxCounted = 100_000;

/** The others: their number, and at most `limit` of them, those first that may still be published. */
export const targetsNotIn = async (
  pool: Pool,
  workspaceId: string,
  campaignId: string,
  statuses: readonly TargetStatus[],
  limit: number,
  clientIds: readonly string[] | null = null,
): Promise<{ readonly count: number; readonly rows: readonly CampaignTarget[] }> => {
  const { rows } = await pool.query<CampaignTarget & { readonly count: number }>(
    `with others as (
       select t.id, t.status, t.due_at from ${targets} and t.status <> all($3) limit ${maxCounted})
     select id::text as id, status, (select count(*)::int from others) as count from others
     order by status in ('published', 'failed', 'canceled'), due_at, id limit $4`,
    [workspaceId, campaignId, [...statuses], limit, clientIds === null ? null : [...clientIds]],
  );
  return { count: rows[0]?.count ?? 0, rows: rows.map(({ id, status }) => ({ id, status })) };
};

/** At most `limit` posts whose targets lag behind their plan: they may have targets that no row shows. */
export const postsBehindOf = async (
  pool: Pool,
  workspaceId: string,
  campaignId: string,
  limit: number,
): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ id: string }>(
    `select id::text as id from ${view('posts')} p where p.fan_out_behind and p.workspace_id = $1 and p.campaign_id = $2
     limit $3`,
    [workspaceId, campaignId, limit],
  );
  return rows.map(({ id }) => id);
};

/** A campaign with an open shift, with the instant of its first one as Postgres writes it. */
export interface ShiftingCampaign {
  readonly id: string;
  readonly since: string;
}

export const beforeAllCampaigns: ShiftingCampaign = {
  id: '00000000-0000-0000-0000-000000000000',
  since: '-infinity',
};

/** The next of those that have been shifting since before an instant, the longest first. */
export const shiftingBefore = async (
  pool: Pool,
  before: Date,
  after: ShiftingCampaign,
): Promise<readonly ShiftingCampaign[]> => {
  const { rows } = await pool.query<ShiftingCampaign>(
    `select id::text as id, shifting_since::text as since from ${view('campaigns')} as campaigns
     where shifting_since is not null and shifting_since < $1
       and (shifting_since, id) > ($2::timestamptz, $3::uuid)
     order by shifting_since, id limit 100`,
    [before, after.since, after.id],
  );
  return rows;
};
