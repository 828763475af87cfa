import type { Pool } from 'pg';
import { until } from './until.ts';

/**
 * Vacuums and analyzes a table until all its pages count as visible, so that a scan of an index alone reads none of them. One
 * vacuum leaves pages out while a snapshot from before their last change is held, and the server holds some itself: when
 * it analyzes a table of the database.
 */
export const vacuumed = (pool: Pool, table: string): Promise<boolean> =>
  until(`all pages of ${table} are visible`, async () => {
    await pool.query(`vacuum analyze ${table}`);
    const { rows } = await pool.query(
      'select relallvisible >= relpages as whole from pg_class where oid = $1::regclass',
      [table],
    );
    return rows[0].whole;
  });
