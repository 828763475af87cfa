import type { Pool, PoolClient } from 'pg';
import { beforeAll, workOnPage } from '#runtime/work/noted-work.ts';

/**
 * Looks at the reports of a workspace whose zone may have changed, and at those about a client that has ended, page by
 * page: nothing limits their number. Until its page comes a schedule is settled by the streams when it is due: by the
 * zone in force, and never for a client that has ended.
 */

/** The workspace, or the client. */
export interface Review {
  readonly id: string;
  readonly workspaceId: string;
  /** The exports of runs about the client are deleted. */
  readonly erased: boolean;
}

/** The walk begins again. */
const noteSql = `
insert into ops.report_reviews (id, workspace_id, erased) values ($1, $2, $3)
on conflict (id) do update set erased = report_reviews.erased or excluded.erased, after = null`;

/** NOTE: Call it before the transaction changes schedules: a page locks its row here, and then schedules. */
export const noteReviews = async (tx: PoolClient, reviews: readonly Review[]): Promise<void> => {
  for (const { id, workspaceId, erased } of reviews.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    await tx.query(noteSql, [id, workspaceId, erased]);
  }
};

const reportsAtOnce = 500;

interface NotedReview {
  readonly id: string;
  readonly workspace_id: string;
  readonly erased: boolean;
  readonly after: string | null;
}

const ofWorkspaceSql = `
select report_id as id from ops.report_schedules
where workspace_id = $1 and $2::uuid = $1 and report_id > $3 order by report_id limit $4`;
const ofClientSql = `
select report_id as id from ops.report_subjects
where workspace_id = $1 and client_id = $2 and report_id > $3 order by report_id limit $4`;
const lockSql = 'select 1 from ops.report_schedules where report_id = any($1::uuid[]) order by report_id for update';
/** The next runs of these schedules must be computed again. */
const resettleSql = `
update ops.report_schedules set due_at = null, version = gen_random_uuid(), look_at = now()
where report_id = any($1::uuid[])`;
const eraseSql = `
insert into ops.report_jobs (id, report_id, workspace_id) select id, id, $2 from unnest($1::uuid[]) id order by id
on conflict (id) do update set version = gen_random_uuid(), due_at = now()`;

const page = async (tx: PoolClient, { id, workspace_id, erased, after }: NotedReview): Promise<void> => {
  const sql = id === workspace_id ? ofWorkspaceSql : ofClientSql;
  const found = await tx.query<{ id: string }>(sql, [workspace_id, id, after ?? beforeAll, reportsAtOnce]);
  const ids = found.rows.map((one) => one.id);
  await tx.query(lockSql, [ids]);
  await tx.query(resettleSql, [ids]);
  if (erased) await tx.query(eraseSql, [ids, workspace_id]);
  if (ids.length < reportsAtOnce) await tx.query('delete from ops.report_reviews where id = $1', [id]);
  else await tx.query('update ops.report_reviews set after = $2 where id = $1', [id, ids.at(-1)]);
};

/** @returns whether there may be another page */
export const reviewPage = (pool: Pool): Promise<boolean> => workOnPage(pool, 'ops.report_reviews', page);
