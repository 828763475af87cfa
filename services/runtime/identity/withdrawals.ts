import type { Pool } from 'pg';

/**
 * Rows that say of what power was taken: of a key, of an app's grant, or of members of a workspace. Who takes power
 * commits the row before the event. While the row stands, credentials are judged by their streams, so that a read model
 * that stands still gives no power back.
 */

type Queries = Pick<Pool, 'query'>;

/** Names the row that counts every withdrawal: it moves whenever another row does. */
const all = '00000000-0000-0000-0000-000000000000';
/** A row stands for so long: an append that began with it has ended by then, and read models have applied its event. */
const keptHours = 1;
const maxDropped = 1_000;

/**
 * Commits the row of the key, grant or live workspace. Call it before the append that takes the power. If we die in
 * between, the streams still show the power, and the row costs nothing but reads of them.
 */
export const noteWithdrawal = async (pool: Queries, subject: string): Promise<void> => {
  // One statement, with the row of all first: two withdrawals at once wait for each other and never deadlock.
  await pool.query({
    name: 'note-withdrawal',
    text: `insert into auth.withdrawals as known (subject, times, noted_at)
      select subject, 1, now() from unnest(array['${all}'::uuid, $1::uuid]) as subject
      on conflict (subject) do update set times = known.times + 1, noted_at = excluded.noted_at`,
    values: [subject],
  });
};

/** Withdrawals so far: it changes with every commit of one. */
export const countWithdrawals = async (pool: Queries): Promise<string> => {
  const { rows } = await pool.query<{ times: string }>({
    name: 'count-withdrawals',
    text: `select times::text from auth.withdrawals where subject = '${all}'`,
  });
  return rows[0]?.times ?? '0';
};

/** Deletes old rows. Call it only while the read models are not behind. @returns how many */
export const dropWithdrawals = async (pool: Queries): Promise<number> => {
  const { rowCount } = await pool.query(
    `delete from auth.withdrawals where subject in (
       select subject from auth.withdrawals
       where noted_at < now() - interval '${keptHours} hour' and subject <> '${all}' limit ${maxDropped})`,
  );
  return rowCount ?? 0;
};
