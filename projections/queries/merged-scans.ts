import type { Knex } from 'knex';

/**
 * Pages of a list by several filters. An index that begins with the filtered columns yields the rows of one value of
 * each in order; a list of several values, or of all of a column that the filter leaves out, is merged from the first
 * rows of each such scan. It passes at most a page of each, where a walk along one index that filters by the others
 * passes all that does not match.
 */

/** A leading column of an index, and the values that are asked for. */
export interface Lead {
  readonly column: string;
  readonly type: 'uuid' | 'text';
  readonly values: readonly string[];
}

export const uuids = (column: string, values: readonly string[]): Lead => ({ column, type: 'uuid', values });

/**
 * Whether a scan must filter by the column itself. NOTE: it must not name a leading column twice: Postgres would expect
 * few rows and choose another index.
 */
export const isUnled = (leads: readonly Lead[], column: string): boolean =>
  leads.every((lead) => lead.column !== column);

/** Scans that one page may be merged from. */
const mostScans = 1_000;
/** So many scans read a page each; where there are more, the last instant of the page is found first. */
const fewScans = 8;

const scansOf = (leads: readonly Lead[]): number => leads.reduce((product, { values }) => product * values.length, 1);

/** Whether a page may be merged from these. */
export const isMergeable = (leads: readonly Lead[]): boolean => leads.length > 0 && scansOf(leads) <= mostScans;

interface Page {
  /** The instant that the list is in order of; the id follows it. */
  readonly by: string;
  readonly order: 'asc' | 'desc';
  readonly limit: number;
}

/**
 * The ids of the rows of a page.
 * @param scan one scan: filters on other columns than the leading ones, and the cursor
 */
export const merged = (
  knex: Knex,
  scan: Knex.QueryBuilder,
  leads: readonly Lead[],
  { by, order, limit }: Page,
): Knex.Raw => {
  const sources = leads.map(({ type }, at) => `unnest(?::${type}[]) as l${at} (value)`).join(' cross join ');
  const values = leads.map((lead) => [...lead.values]);
  const inOrder = (alias: string): string => `order by ${alias}.${by} ${order}, ${alias}.id ${order}`;
  const first = (rows: number): Knex.QueryBuilder => {
    const one = scan
      .clone()
      .select([by, 'id'])
      .orderBy([by, 'id'].map((column) => ({ column, order })))
      .limit(rows);
    leads.forEach(({ column }, at) => void one.whereRaw(`${column} = l${at}.value`));
    return one;
  };
  const whole = first(limit);
  const scans = scansOf(leads);
  if (scans > fewScans) {
    // The rows that a few of each scan make a page of end no earlier than the page does: no scan need read further.
    const last = knex.raw(
      `select s.${by} from ${sources} cross join lateral (?) s ${inOrder('s')} offset ${limit - 1} limit 1`,
      [...values, first(Math.ceil(limit / scans) + 3)],
    );
    const [within, end] = order === 'asc' ? ['<=', 'infinity'] : ['>=', '-infinity'];
    whole.whereRaw(`${by} ${within} coalesce((?), '${end}')`, [last]);
  }
  return knex.raw(`array(select s.id from ${sources} cross join lateral (?) s ${inOrder('s')} limit ${limit})`, [
    ...values,
    whole,
  ]);
};
