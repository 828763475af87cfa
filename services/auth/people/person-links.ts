import { hash, randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import type { PeopleDeps } from './deps.ts';

/**
 * Links that work once and prove a mailbox, or the word of an operator: to set a new password, to confirm the address, or
 * to sign in. Their tokens are random; a row has the hash.
 */

export type LinkPurpose = 'reset' | 'sign_in' | 'confirm';

const lifeMs: Readonly<Record<LinkPurpose, number>> = {
  reset: 3_600_000,
  sign_in: 24 * 3_600_000,
  confirm: 24 * 3_600_000,
};
/**
 * Open links of one person for one purpose: a stranger who asks for one ends no link of another. A further one ends the
 * oldest, but none of the last hour, which may be on its way in a mail.
 */
const maxOpen = 5;

const hashOf = (token: string): Buffer => hash('sha256', token, 'buffer');

type LinkDeps = Pick<PeopleDeps, 'pool' | 'clock'>;

export interface MintedLink {
  readonly token: string;
  readonly expiresAt: string;
}

const mint = async (
  queries: Pick<Pool, 'query'>,
  { clock }: Pick<LinkDeps, 'clock'>,
  personId: string,
  purpose: LinkPurpose,
): Promise<MintedLink> => {
  const token = randomBytes(32).toString('base64url');
  const expiresAt = new Date(clock() + lifeMs[purpose]).toISOString();
  await queries.query(
    `with gone as (
       delete from auth.person_links where created_at < now() - interval '1 hour' and token_hash in (
         select token_hash from auth.person_links where person_id = $2 and purpose = $3
         order by created_at desc, token_hash offset $5)
     )
     insert into auth.person_links (token_hash, person_id, purpose, expires_at) values ($1, $2, $3, $4)`,
    [hashOf(token), personId, purpose, expiresAt, maxOpen - 1],
  );
  return { token, expiresAt };
};

/** For an operator, or for the person. */
export const mintPersonLink = (deps: LinkDeps, personId: string, purpose: LinkPurpose): Promise<MintedLink> =>
  mint(deps.pool, deps, personId, purpose);

/** Whether so many links that were made within the last hour still work. */
const isFull = async (
  queries: Pick<Pool, 'query'>,
  { clock }: Pick<LinkDeps, 'clock'>,
  personId: string,
  purpose: LinkPurpose,
): Promise<boolean> => {
  const { rows } = await queries.query<{ n: number }>(
    `select count(*)::int as n from auth.person_links
     where person_id = $1 and purpose = $2 and expires_at > $3 and created_at > now() - interval '1 hour'`,
    [personId, purpose, new Date(clock()).toISOString()],
  );
  return (rows[0]?.n ?? 0) >= maxOpen;
};

/**
 * For any caller, also a stranger. Null where five of the last hour still work: a further mail would say nothing
 * new. The row of the person is locked, so that many who ask at once get no more.
 */
export const mintAskedLink = async (
  deps: LinkDeps,
  personId: string,
  purpose: LinkPurpose,
): Promise<MintedLink | null> => {
  if (await isFull(deps.pool, deps, personId, purpose)) return null;
  return inTransaction(
    deps.pool,
    async (tx) => {
      await tx.query('select from auth.people where person_id = $1 for no key update', [personId]);
      if (await isFull(tx, deps, personId, purpose)) return { commit: false, result: null };
      return { commit: true, result: await mint(tx, deps, personId, purpose) };
    },
    'begin',
  );
};

/** The person of a link that still works; null for any other token. Changes nothing: scanners of mail open links. */
export const findPersonLink = async (
  { pool, clock }: Pick<PeopleDeps, 'pool' | 'clock'>,
  token: string,
  purpose: LinkPurpose,
): Promise<string | null> => {
  if (!/^[A-Za-z0-9_-]{43}$/.test(token)) return null;
  const { rows } = await pool.query<{ person_id: string }>(
    'select person_id::text from auth.person_links where token_hash = $1 and purpose = $2 and expires_at > $3',
    [hashOf(token), purpose, new Date(clock()).toISOString()],
  );
  return rows[0]?.person_id ?? null;
};

/** Takes the link: of several callers at once, one gets the person. */
export const takePersonLink = async (
  { pool, clock }: Pick<PeopleDeps, 'pool' | 'clock'>,
  token: string,
  purpose: LinkPurpose,
): Promise<string | null> => {
  const { rows } = await pool.query<{ person_id: string }>(
    `delete from auth.person_links where token_hash = $1 and purpose = $2 and expires_at > $3
     returning person_id::text`,
    [hashOf(token), purpose, new Date(clock()).toISOString()],
  );
  return rows[0]?.person_id ?? null;
};

/** Ends all links of a person, as a new password does. */
export const endPersonLinks = async ({ pool }: Pick<PeopleDeps, 'pool'>, personId: string): Promise<void> => {
  await pool.query('delete from auth.person_links where person_id = $1', [personId]);
};
