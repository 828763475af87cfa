/** SQL for finding due rows of a table. A kind of work declares its table; the table's own laws stay with the kind. */

/** NOTE: `where` and `due` are written as the table's index has them, or a look reads the whole table. */
export interface WorkTable {
  readonly name: string;
  /** Column that leases are named by. */
  readonly id: string;
  /** From when on a row may be worked on. */
  readonly due: string;
  /** Rows that are looked at. */
  readonly where: string;
  /** What is answered of a row `j`. */
  readonly columns: string;
}

/**
 * Rows that nobody holds and that do not rest. NOTE: `not in` over a subquery is always hashed; Postgres would plan an
 * anti join by the statistics of the lease table, which never keep up.
 * @param kind placeholder of the lease kind
 */
export const notLeased = (id: string, kind: string): string => `${id}::text not in (
  select l.id from ops.work_leases l where l.kind = ${kind} and (l.until > now() or l.not_before > now()))`;

/**
 * A recursive query named `keys` that steps from one value of a column to the next by an index: it costs two searches of
 * the index for each value, however many rows a value has. The last row is null.
 * @param after placeholder of the value to start behind
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
 * The longest due rows of each workspace: `$2` of each and `$3` of all. The first of each come before the second of any,
 * so a workspace with a million rows costs no more than any other and fills no answer. `$1`: lease kind.
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
