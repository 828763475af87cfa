import type { Pool } from 'pg';
import type { NetworkNotice } from '#contracts/ports/network-inbox.ts';
import type { Platform } from '#schemas/common.ts';

/**
 * What networks said by themselves of people. The row is written before the network gets its answer, and a repeat finds it; a
 * worker carries it out. Nothing of a person stays in a row that is done.
 */

type Queries = Pick<Pool, 'query'>;

/** Of a post nothing is kept: who is told once too seldom asks a little later. */
export type KeptKind = Exclude<NetworkNotice['kind'], 'post_state'>;

interface Origin {
  readonly network: 'live' | 'sandbox';
  readonly platform: Platform;
}

export interface NewNotice extends Origin {
  /** The same for the same words of a network; nobody finds the person by it. */
  readonly id: Buffer;
  readonly notice: NetworkNotice & { readonly kind: KeptKind };
  /** Of the page that confirms it; null: the network asks for none. */
  readonly code: string | null;
}

/** Durable when it resolves. @returns the code that the notice had from the first time on */
export const keepNotice = async (pool: Queries, { id, network, platform, notice, code }: NewNotice) => {
  const { rows } = await pool.query<{ code: string | null }>(
    `insert into ops.network_notices as kept (id, network, platform, kind, person, said_at, code)
     values ($1, $2, $3, $4, $5, least($6::timestamptz, now()), $7) on conflict (id) do update set id = kept.id returning code`,
    [id, network, platform, notice.kind, notice.person, notice.at, code],
  );
  return rows[0]?.code ?? null;
};

export interface Deletion {
  readonly receivedAt: string;
  /** Null: it is under way. */
  readonly doneAt: string | null;
}

/** Null: there is no such deletion, or it was done long ago. */
export const deletionOf = async (pool: Queries, code: string): Promise<Deletion | null> => {
  const { rows } = await pool.query<{ received_at: Date; done_at: Date | null }>(
    'select received_at, done_at from ops.network_notices where code = $1',
    [code],
  );
  const [row] = rows;
  return row === undefined
    ? null
    : { receivedAt: row.received_at.toISOString(), doneAt: row.done_at?.toISOString() ?? null };
};

export interface DueNotice extends Origin {
  readonly id: Buffer;
  readonly kind: KeptKind;
  readonly person: string;
  readonly saidAt: string;
  /** Milliseconds since it came, by the database's clock. */
  readonly ageMs: number;
  readonly failures: number;
}

/** The next ones, those that have waited longest first. */
export const dueNotices = async (pool: Queries, limit: number): Promise<readonly DueNotice[]> => {
  const { rows } = await pool.query<Omit<DueNotice, 'saidAt'> & { readonly saidAt: Date }>(
    `select id, network, platform, kind, person, said_at as "saidAt", failures,
       extract(epoch from now() - received_at)::float8 * 1000 as "ageMs"
     from ops.network_notices where done_at is null and due_at <= now() order by due_at, id limit $1`,
    [limit],
  );
  return rows.map(({ saidAt, ...row }) => ({ ...row, saidAt: saidAt.toISOString() }));
};

export const finishNotice = async (pool: Queries, id: Buffer): Promise<void> => {
  await pool.query('update ops.network_notices set done_at = now(), person = null where id = $1 and done_at is null', [
    id,
  ]);
};

/** @param hasFailed whether this counts as a failure; else it waits for something */
export const postponeNotice = async (pool: Queries, id: Buffer, waitMs: number, hasFailed: boolean): Promise<void> => {
  await pool.query(
    `update ops.network_notices set due_at = now() + $2 * interval '1 millisecond', failures = failures + $3::int
     where id = $1 and done_at is null`,
    [id, waitMs, hasFailed ? 1 : 0],
  );
};

/** Days for which a page confirms a deletion that is done, and for which a repeat is known as one. */
export const noticeDays = 180;

export const dropOldNotices = async (pool: Queries): Promise<void> => {
  await pool.query("delete from ops.network_notices where done_at < now() - $1 * interval '1 day'", [noticeDays]);
};
