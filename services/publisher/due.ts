import type { Pool } from 'pg';

/** A target whose next step is due, as the read model has it. The stream decides; this only says where to look. */
export interface DueRow {
  readonly id: string;
  readonly workspaceId: string;
  readonly revision: number;
}

/**
 * In the order of their time, those that nobody holds and that may be looked at. NOTE: `not in` over a subquery is
 * always hashed; an anti join is planned by the lease table's statistics, which never keep up, and becomes quadratic.
 */
const dueSql = `
select t.id::text as id, t.workspace_id::text as "workspaceId", t.revision
from read.post_targets t
where t.next_action_at <= $1
  and t.id::text not in (
    select l.id from ops.work_leases l where l.kind = $2 and (l.until > now() or l.not_before > now()))
order by t.next_action_at, t.id
limit $3`;

export const findDue = async (
  pool: Pool,
  options: {
    readonly kind: string;
    /** Instant up to which rows are looked for. */
    readonly before: Date;
    /** Target → revision at which this process left it. A row below it still shows what was done already. */
    readonly left: ReadonlyMap<string, { readonly revision: number }>;
    readonly limit: number;
  },
): Promise<readonly DueRow[]> => {
  const { kind, before, left, limit } = options;
  const { rows } = await pool.query<DueRow>({
    name: 'publisher-due',
    text: dueSql,
    values: [before, kind, limit + left.size],
  });
  return rows.filter(({ id, revision }) => revision >= (left.get(id)?.revision ?? 0)).slice(0, limit);
};
