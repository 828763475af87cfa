/** SQL for finding due rows of a table. A kind of work declares its table; the table's own laws stay with the kind. */

/** NOTE: `where` and `due` must repeat the expressions of the table's index, or a search reads the whole table. */
export interface WorkTable {
  readonly name: string;
  /** Column whose value is the lease id. */
  readonly id: string;
  /** SQL of the instant from which a row is due. */
  readonly due: string;
  /** SQL condition of the rows that wait for work. */
  readonly where: string;
  /** SQL of the columns to return for a row `j`. */
  readonly columns: string;
}

/**
 * Condition of rows that no worker holds and that do not rest. NOTE: Postgres always hashes `not in` over a subquery.
 * It would plan an anti join by the statistics of the lease table, which are always out of date.
 * @param kind placeholder of the lease kind
 */
export const notLeased = (id: string, kind: string): string => `${id}::text not in (
  select l.id from ops.work_leases l where l.kind = ${kind} and (l.until > now() or l.not_before > now()))`;

/**
 * A recursive query named `keys` that steps through the distinct values of a column by an index: two index searches for
 * each value, however many rows have it. The last row is null.
 * @param after placeholder of the value after which the scan starts
 */
export const skipScan = (
  { name, where }: Pick<WorkTable, 'name' | 'where'>,
  column: string,
  after?: string,
): string => `keys (key) as (
  (select t.${column} from ${name} t
   where ${where} ${after === undefined ? '' : `and t.${column} > ${after}`} order by t.${column} limit 1)
  union all
  select (select t.${column} from ${name} t where ${where} and t.${column} > k.key order by t.${column} limit 1)
  from keys k where k.key is not null
)`;

/**
 * The longest due rows: at most `$2` of each workspace and `$3` in all. The first row of each workspace comes before
 * the second of any, so that a workspace with a million rows neither slows the search nor fills the result. `$1`: lease
 * kind.
 */
export const dueSql = ({ name, id, due, where, columns }: WorkTable): string => `
with recursive ${skipScan({ name, where }, 'workspace_id')}
select ${columns}
from keys, lateral (
  select one.*, row_number() over (order by one.since) as turn from (
    select t.*, ${due} as since from ${name} t
    where t.workspace_id = keys.key and ${due} <= now() and ${where} and ${notLeased(id, '$1')}
    order by ${due} limit $2
  ) one
) j
order by j.turn, j.since limit $3`;
