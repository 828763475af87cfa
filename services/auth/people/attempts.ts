import { hash } from 'node:crypto';
import type { Pool } from 'pg';
import { Rejection } from '#domain/decider.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';

/**
 * Back-off of attempts at a secret, for all processes: by account, whether it exists or not, and by address. An attempt
 * is counted before the secret is checked, so that many at once gain nothing.
 */

export interface Attempted {
  /** What is guessed at, or who guesses: `account <mac>`, `address 192.0.2.1`. */
  readonly what: string;
  /** Failures in a row that cost nothing. */
  readonly free: number;
}

export const ofAccount = (mac: Buffer, device: string | null): Attempted => ({
  what: `account ${mac.toString('hex')} ${device ?? ''}`,
  free: 5,
});
export const ofAddress = (address: string): Attempted => ({ what: `address ${address}`, free: 20 });

/** Longest wait, in seconds. */
const maxWait = 900;
/** Failures older than this are forgotten. */
const forgotten = '1 day';

const keyOf = ({ what }: Attempted): Buffer => hash('sha256', what, 'buffer');

/** Seconds from the last failure until the next attempt: 1 after the free ones, then twice as long each time. */
const waitSql = (failures: string, free: string): string =>
  `make_interval(secs => case when ${failures} < ${free} then 0 else least(${maxWait}, 2 ^ least(20, ${failures} - ${free})) end)`;

export class TooManyAttempts extends Rejection {
  readonly seconds: number;

  constructor(seconds: number) {
    super('rate_limited', `Too many attempts. Try again in ${seconds} s.`);
    this.seconds = seconds;
  }
}

/** Counts an attempt that may fail. @throws TooManyAttempts before its time, without counting it */
export const beginAttempt = async (pool: Pool, attempted: Attempted, rounds = 5): Promise<void> => {
  const key = keyOf(attempted);
  const { rows } = await pool.query<{ failures: number; wait: number | null }>(
    `with counted as (
       insert into auth.attempts as a (key, failures, last_at) values ($1, 1, now())
       on conflict (key) do update set
         failures = case when a.last_at < now() - interval '${forgotten}' then 1 else a.failures + 1 end,
         last_at = now()
       -- Free attempts at once do not wait for each other: the row may be newer than this statement.
       where a.failures < $2::int or a.last_at + ${waitSql('a.failures', '$2::int')} <= now()
       returning failures
     )
     select failures, null::float8 as wait from counted
     union all
     select failures, extract(epoch from last_at + ${waitSql('failures', '$2::int')} - now())::float8 as wait
     from auth.attempts where key = $1 and not exists (select 1 from counted)`,
    [key, attempted.free],
  );
  const [row] = rows;
  // Another attempt made the row after this statement began: the statement refused, and sees no row yet.
  if (row === undefined) {
    if (rounds <= 1) throw new TooManyAttempts(1);
    return beginAttempt(pool, attempted, rounds - 1);
  }
  if (row.wait === null) return;
  throw new TooManyAttempts(Math.max(1, Math.ceil(row.wait)));
};

/** The attempt succeeded: the count of failures begins anew. */
export const forgetAttempts = async (pool: Pool, attempted: Attempted): Promise<void> => {
  await pool.query('delete from auth.attempts where key = $1', [keyOf(attempted)]);
};

/** Takes back an attempt that says nothing about a secret. */
export const takeBackAttempt = async (pool: Pool, attempted: Attempted): Promise<void> => {
  await pool.query('update auth.attempts set failures = greatest(0, failures - 1) where key = $1', [keyOf(attempted)]);
};

/**
 * Checks a secret whose attempts were counted. Where too many wait for a check, no secret was checked: the attempts are
 * taken back, or a flood of others would make the person wait once it is over.
 */
export const takenBackUnchecked = async <T>(
  pool: Pool,
  counted: readonly Attempted[],
  check: () => Promise<T>,
): Promise<T> => {
  try {
    return await check();
  } catch (error) {
    if (error instanceof Unavailable) for (const one of counted) await takeBackAttempt(pool, one);
    throw error;
  }
};
