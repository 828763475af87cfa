import { hash, randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { Rejection } from '#domain/decider.ts';
import { session } from '#domain/session.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Mode } from '#schemas/common.ts';
import type { SessionEnd, SignInWay } from '#schemas/person.ts';
import { nowOf, type PeopleDeps, personContext } from './deps.ts';

/**
 * Sessions of persons in the console. Each request reads its row, so that a session that was ended has no power at the
 * next request, in every process. The row has the hash of the secret; the secret is in the cookie alone.
 */

export interface PersonSession {
  readonly id: string;
  readonly personId: string;
  /** The live workspace that the person looks at; null: not chosen yet. */
  readonly workspaceId: string | null;
  readonly mode: Mode;
  readonly device: string;
  readonly address: string;
  readonly createdAt: string;
  readonly lastUsedAt: string;
  readonly expiresAt: string;
}

const dayMs = 86_400_000;
/** A session ends after this time, used or not. */
export const sessionMs = 30 * dayMs;
/** A session that was not used for so long has ended. */
export const idleMs = 7 * dayMs;
/** The last use is written at most this often, because a write for each page would cost more than the page. */
const touchMs = 60_000;
/** Sessions that a person may have; the oldest ends for one more. */
const maxSessions = 50;

const hashOf = (secret: string): Buffer => hash('sha256', secret, 'buffer');

interface Row {
  readonly id: string;
  readonly person_id: string;
  readonly workspace_id: string | null;
  readonly mode: Mode;
  readonly device: string;
  readonly address: string;
  readonly created_at: Date;
  readonly last_used_at: Date;
  readonly expires_at: Date;
}

const columns =
  'id::text, person_id::text, workspace_id::text, mode, device, address, created_at, last_used_at, expires_at';

const read = (row: Row): PersonSession => ({
  id: row.id,
  personId: row.person_id,
  workspaceId: row.workspace_id,
  mode: row.mode,
  device: row.device,
  address: row.address,
  createdAt: row.created_at.toISOString(),
  lastUsedAt: row.last_used_at.toISOString(),
  expiresAt: row.expires_at.toISOString(),
});

export interface SessionStart {
  readonly personId: string;
  readonly by: SignInWay;
  /** What the browser says that it is, shortened. */
  readonly device: string;
  readonly address: string;
  readonly correlationId?: string;
  /** The era of the person in which the credential was right; absent: a link or an invitation signs in. */
  readonly era?: number;
}

/**
 * Each sign-in gets a new secret, so that a secret that was planted before is worth nothing. The event comes first: a
 * crash before the row leaves an event of a session that never existed; the reverse order could leave a session that
 * no auditor sees.
 * @throws Rejection where what signed in has ended since
 */
export const startSession = async (
  deps: PeopleDeps,
  { personId, by, device, address, correlationId, era }: SessionStart,
): Promise<{ readonly id: string; readonly secret: string; readonly expiresAt: string }> => {
  const id = uuidv7();
  const now = deps.clock();
  const expiresAt = new Date(now + sessionMs).toISOString();
  const context = personContext(deps, personId, correlationId);
  await execute(deps.store, session, id, { type: 'Start', personId, by, expiresAt }, context);
  faultPoint('session:after-start');
  const secret = randomBytes(32).toString('base64url');
  const at = new Date(now).toISOString();
  // The lock waits for a statement that ends older sessions: it finds this session, or this one finds another era.
  const { rowCount } = await deps.pool.query(
    `insert into auth.sessions (id, secret_hash, person_id, device, address, created_at, last_used_at, expires_at)
     select $1, $2, person_id, $4, $5, $6, $6, $7 from auth.people
     where person_id = $3 and era = coalesce($8, era) for share`,
    [id, hashOf(secret), personId, device.slice(0, 200), address.slice(0, 60), at, expiresAt, era ?? null],
  );
  if (rowCount !== 1) {
    await execute(deps.store, session, id, { type: 'End', reason: 'password_set' }, context);
    throw new Rejection('validation_failed', 'Your sign-in changed meanwhile: sign in again.');
  }
  await endOldest(deps, personId);
  return { id, secret, expiresAt };
};

const endOldest = async (deps: PeopleDeps, personId: string): Promise<void> => {
  const { rows } = await deps.pool.query<{ id: string }>(
    `select id::text from auth.sessions where person_id = $1 and ended_at is null
     order by created_at desc, id desc offset $2 limit 10`,
    [personId, maxSessions],
  );
  await endSessions(deps, personId, { ids: rows.map(({ id }) => id) }, 'revoked');
};

/** The session of the secret in a cookie; null for an unknown, ended or expired one. Notes the use. */
export const findSession = async (
  { pool, clock }: Pick<PeopleDeps, 'pool' | 'clock'>,
  secret: string,
): Promise<PersonSession | null> => {
  if (!/^[A-Za-z0-9_-]{43}$/.test(secret)) return null;
  const now = clock();
  const at = new Date(now).toISOString();
  const { rows } = await pool.query<Row>({
    name: 'find-session',
    text: `select ${columns} from auth.sessions
           where secret_hash = $1 and ended_at is null and expires_at > $2 and last_used_at > $3`,
    values: [hashOf(secret), at, new Date(now - idleMs).toISOString()],
  });
  const [row] = rows;
  if (row === undefined) return null;
  if (now - row.last_used_at.getTime() > touchMs) {
    await pool.query('update auth.sessions set last_used_at = $2 where id = $1 and last_used_at < $2', [row.id, at]);
  }
  return read(row);
};

/**
 * The era of the person of a session, in one statement with the session, because both end together; null: the session
 * has ended.
 */
export const eraOfSession = async (pool: Pool, id: string): Promise<number | null> => {
  const { rows } = await pool.query<{ era: number }>(
    `select p.era from auth.sessions s join auth.people p using (person_id) where s.id = $1 and s.ended_at is null`,
    [id],
  );
  return rows[0]?.era ?? null;
};

/** The person looks at another workspace, or at its sandbox. Who may do that is checked at each request. */
export const chooseWorkspace = async (
  pool: Pool,
  id: string,
  { workspaceId, mode }: { readonly workspaceId: string; readonly mode: Mode },
): Promise<void> => {
  await pool.query('update auth.sessions set workspace_id = $2, mode = $3 where id = $1', [id, workspaceId, mode]);
};

/** The sessions of a person that have not ended, the last used first. */
export const listSessions = async (deps: PeopleDeps, personId: string): Promise<readonly PersonSession[]> => {
  const now = deps.clock();
  const { rows } = await deps.pool.query<Row>(
    `select ${columns} from auth.sessions
     where person_id = $1 and ended_at is null and expires_at > $2 and last_used_at > $3
     order by last_used_at desc, id desc limit $4`,
    [personId, new Date(now).toISOString(), new Date(now - idleMs).toISOString(), maxSessions],
  );
  return rows.map(read);
};

/** Of one person: these, or all but one. */
export type WhichSessions = { readonly ids: readonly string[] } | { readonly allBut: string | null };

/**
 * Ends sessions of one person. The row comes first, because it is what has the power; the event follows. If we die in
 * between, `recordEnds` appends it later.
 */
export const endSessions = async (
  deps: PeopleDeps,
  personId: string,
  which: WhichSessions,
  reason: SessionEnd,
): Promise<readonly string[]> => {
  const byIds = 'ids' in which;
  if (byIds && which.ids.length === 0) return [];
  const { rows } = await deps.pool.query<{ id: string }>(
    `update auth.sessions set ended_at = $3, end_reason = $4
     where person_id = $1 and ended_at is null and ${byIds ? 'id = any($2::uuid[])' : 'id is distinct from $2::uuid'}
     returning id::text`,
    [personId, byIds ? which.ids : which.allBut, nowOf(deps), reason],
  );
  faultPoint('session:after-end');
  const ids = rows.map(({ id }) => id);
  await recordEndsOf(deps, personId, ids, reason);
  return ids;
};

/** Appends the ends of sessions of one person whose rows have ended. */
export const recordEndsOf = async (
  deps: PeopleDeps,
  personId: string,
  ids: readonly string[],
  reason: SessionEnd,
): Promise<void> => {
  for (const id of ids) await recordEnd(deps, id, personId, reason);
};

const recordEnd = async (deps: PeopleDeps, id: string, personId: string, reason: SessionEnd): Promise<void> => {
  await execute(deps.store, session, id, { type: 'End', reason }, personContext(deps, personId));
  await deps.pool.query('update auth.sessions set end_recorded = true where id = $1', [id]);
};

/** Appends the ends whose process died before it appended them. Returns how many. */
export const recordEnds = async (deps: PeopleDeps, most = 100): Promise<number> => {
  const { rows } = await deps.pool.query<{ id: string; person_id: string; end_reason: SessionEnd }>(
    `select id::text, person_id::text, end_reason from auth.sessions
     where ended_at is not null and not end_recorded and ended_at < $1 order by ended_at limit $2`,
    [new Date(deps.clock() - 5_000).toISOString(), most],
  );
  for (const { id, person_id, end_reason } of rows) await recordEnd(deps, id, person_id, end_reason);
  return rows.length;
};
