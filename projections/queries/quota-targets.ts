import type { Pool } from 'pg';
import type { Platform } from '#schemas/common.ts';
import { toIso } from '../engine/rows.ts';
import { view } from '../shapes.ts';

/** The targets that count against the quota of a workspace. */

/** Failed and canceled targets give their places back. */
const counted = "status <> all('{failed,canceled}'::text[])";

interface QuotaTarget {
  readonly id: string;
  readonly postId: string;
  readonly dueAt: string;
}

/** The next targets that are due from this instant on, in the order of their due times: at most 500 behind one. */
export const countedTargets = async (
  pool: Pool,
  workspaceId: string,
  from: string,
  after: QuotaTarget | null,
): Promise<readonly QuotaTarget[]> => {
  const { rows } = await pool.query<QuotaTarget & { readonly dueAt: unknown }>(
    `select id::text as id, post_id::text as "postId", due_at as "dueAt" from ${view('post_targets')} as post_targets
     where workspace_id = $1 and (due_at, id) > ($2::timestamptz, $3::uuid) and ${counted}
     order by due_at, id limit 500`,
    after === null
      ? [workspaceId, new Date(Date.parse(from) - 1).toISOString(), 'ffffffff-ffff-ffff-ffff-ffffffffffff']
      : [workspaceId, after.dueAt, after.id],
  );
  return rows.map(({ id, postId, dueAt }) => ({ id, postId, dueAt: toIso(dueAt) ?? from }));
};

export interface UsedOnPlatform {
  readonly platform: Platform;
  /** Targets that are published, or on their way. */
  readonly used: number;
  /** Targets that will go out. */
  readonly scheduled: number;
}

/** A count beyond this is not exact. */
const maxCounted = 1_000_000;

/** Of the targets that are due in [from, to), by network. */
export const usedPlaces = async (
  pool: Pool,
  workspaceId: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<readonly UsedOnPlatform[]> => {
  const { rows } = await pool.query<UsedOnPlatform>({
    name: 'quota-used',
    text: `select platform, (count(*) filter (where is_out))::int as used, (count(*) filter (where not is_out))::int as scheduled
           from (select platform, status in ('published', 'publishing', 'processing', 'outcome_unknown') as is_out
                 from ${view('post_targets')} as post_targets
                 where workspace_id = $1 and due_at >= $2 and due_at < $3 and ${counted} limit ${maxCounted}) t
           group by platform order by platform`,
    values: [workspaceId, from, to],
  });
  return rows;
};
