import type { Pool } from 'pg';
import type { Platform } from '#schemas/common.ts';
import { isAskedSql } from '../models/sql.ts';
import { view } from '../shapes.ts';

/** What the work after a restore reads of targets. */

/** Which of these posts of an account are known by another target. The index on an account’s published posts finds them. */
export const takenPosts = async (
  pool: Pool,
  accountId: string,
  exceptTargetId: string,
  externalIds: readonly string[],
): Promise<ReadonlySet<string>> => {
  if (externalIds.length === 0) return new Set();
  const { rows } = await pool.query<{ id: string }>(
    `select external_id as id from ${view('post_targets')} as post_targets
     where account_id = $1 and external_id = any($2::text[]) and id <> $3`,
    [accountId, externalIds, exceptTargetId],
  );
  return new Set(rows.map(({ id }) => id));
};

/** The ids after which the next page begins; null: the first. */
export type PageAfter = { readonly at: string; readonly id: string } | null;

const pageRows = 500;

/**
 * Targets with work before this instant, in pages: those of a platform, or those of which a network is asked, each by
 * its index.
 * @returns the page, and where the next one begins; null: there are no more
 */
export const targetsWithWorkBefore = async (
  pool: Pool,
  before: string,
  of: Platform | 'asked',
  after: PageAfter,
): Promise<{ readonly ids: readonly string[]; readonly next: PageAfter }> => {
  const which = of === 'asked' ? isAskedSql() : `platform = $5 and not ${isAskedSql()}`;
  const { rows } = await pool.query<NonNullable<PageAfter>>(
    `select id::text, next_action_at::text as at from ${view('post_targets')} as post_targets
     where next_action_at is not null and ${which} and next_action_at <= $1
       and ($2::timestamptz is null or (next_action_at, id) > ($2::timestamptz, $3::uuid))
     order by next_action_at, id limit $4`,
    [before, after?.at ?? null, after?.id ?? null, pageRows, ...(of === 'asked' ? [] : [of])],
  );
  return { ids: rows.map(({ id }) => id), next: rows.length < pageRows ? null : (rows.at(-1) ?? null) };
};
