import type { Pool } from 'pg';

/** Who read what of a feed: it is kept beside the feed and never a part of it. */

export interface FeedUse {
  readonly workspaceId: string;
  /** `apikey <id>` or `session <id>`. */
  readonly credential: string;
  /** What was asked for: the operation and its filters. */
  readonly asked: string;
  /** The first and the last sequence that the caller gets; null: none. */
  readonly range: readonly [first: number, last: number] | null;
}

/** Different things that one credential may ask in an hour and have a row of their own; those beyond share one. */
const maxAsked = 200;
const others = 'others';

/** One row for a credential, what it asks and an hour: a caller that polls adds no row at each poll. */
export const noteFeedUse = async (
  pool: Pick<Pool, 'query'>,
  { workspaceId, credential, asked, range }: FeedUse,
): Promise<void> => {
  await pool.query({
    name: 'feed-use',
    text: `with mine as (
        select asked from ops.audit_reads
        where workspace_id = $1 and hour = date_trunc('hour', now()) and credential = $2 limit ${maxAsked + 1}
      )
      insert into ops.audit_reads as r (workspace_id, hour, credential, asked, first_sequence, last_sequence)
      select $1, date_trunc('hour', now()), $2,
        case when (select count(*) from mine) < ${maxAsked} or $3 in (select asked from mine) then $3 else '${others}' end,
        $4::int8, $5::int8
      on conflict (workspace_id, hour, credential, asked) do update set times = r.times + 1,
        first_sequence = least(r.first_sequence, excluded.first_sequence),
        last_sequence = greatest(r.last_sequence, excluded.last_sequence)`,
    values: [workspaceId, credential, asked, range?.[0] ?? null, range?.[1] ?? null],
  });
};

export interface NotedUse extends FeedUse {
  readonly hour: string;
  readonly times: number;
}

/** The newest hours first. */
export const feedUses = async (
  pool: Pick<Pool, 'query'>,
  workspaceId: string,
  limit: number,
): Promise<readonly NotedUse[]> => {
  const { rows } = await pool.query<{
    hour: Date;
    credential: string;
    asked: string;
    first_sequence: string | null;
    last_sequence: string | null;
    times: string;
  }>(
    `select hour, credential, asked, first_sequence, last_sequence, times from ops.audit_reads
     where workspace_id = $1 order by hour desc, credential, asked limit $2`,
    [workspaceId, limit],
  );
  return rows.map(({ hour, first_sequence: first, last_sequence: last, times, ...row }) => ({
    ...{ ...row, workspaceId, hour: hour.toISOString(), times: Number(times) },
    range: first === null || last === null ? null : [Number(first), Number(last)],
  }));
};
