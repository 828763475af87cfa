import { hash } from 'node:crypto';
import type { Pool } from 'pg';

/**
 * The end of sessions that are sealed in their tokens, so that no row can be deleted. Those of one member end together:
 * a row says which of them are over, by the latest end that such a session can have, and goes once all have expired.
 */

const keyOf = (memberId: string): Buffer => hash('sha256', `sealed sessions of ${memberId}`, 'buffer');

/** @param until ISO 8601 instant: sessions of the member that expire by then have no power any more */
export const endSealedSessions = async (pool: Pool, memberId: string, until: string): Promise<void> => {
  await pool.query(
    `insert into auth.spent as known (hash, expires_at) values ($1, $2)
     on conflict (hash) do update set expires_at = greatest(known.expires_at, excluded.expires_at)`,
    [keyOf(memberId), until],
  );
};

/** @param expiresAt ISO 8601 instant at which the session expires */
export const isSealedSessionEnded = async (pool: Pool, memberId: string, expiresAt: string): Promise<boolean> => {
  const { rows } = await pool.query({
    name: 'sealed-session-ended',
    text: 'select 1 from auth.spent where hash = $1 and expires_at >= $2',
    values: [keyOf(memberId), expiresAt],
  });
  return rows.length > 0;
};
