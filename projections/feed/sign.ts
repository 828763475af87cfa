import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto';
import type { Pool } from 'pg';
import { rootOf } from '#domain/tree.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { frontierAt } from './epochs.ts';

/**
 * What the installation signs of a feed: a checkpoint says how many events a workspace's feed has, and the root of the tree
 * over them. Its form is that of C2SP `tlog-checkpoint` and `signed-note`, which verifiers of other logs read too.
 * Source: c2sp.org/tlog-checkpoint and c2sp.org/signed-note, versions 1.0.0.
 */

/** Before the key's id in a note. */
const signer = 'postline';
const ed25519 = 1;

export interface FeedKey {
  /** 8 hexadecimal digits. */
  readonly id: string;
  /** As verifiers of signed notes take it: name, id, and the algorithm with the key in base64. */
  readonly verifier: string;
  readonly madeAt: string;
  /** Null: it signs. */
  readonly retiredAt: string | null;
}

export interface FeedCheckpoint {
  readonly epoch: number;
  readonly size: number;
  /** Base64. */
  readonly root: string;
  /** The last event that the restore kept which began the epoch; null: none did, or the workspace is younger. */
  readonly kept: number | null;
  readonly signedAt: string;
  readonly note: string;
}

type Queries = Pick<Pool, 'query'>;

interface KeyRow {
  readonly id: string;
  readonly public_key: Buffer;
  readonly sealed: string | null;
  readonly made_at: Date;
  readonly retired_at: Date | null;
}

const idOf = (publicKey: Buffer): string =>
  hash('sha256', Buffer.concat([Buffer.from(`${signer}\n`), Buffer.from([ed25519]), publicKey]), 'hex').slice(0, 8);

const shown = ({ id, public_key: key, made_at: madeAt, retired_at: retiredAt }: KeyRow): FeedKey => ({
  id,
  verifier: `${signer}+${id}+${Buffer.concat([Buffer.from([ed25519]), key]).toString('base64')}`,
  madeAt: madeAt.toISOString(),
  retiredAt: retiredAt?.toISOString() ?? null,
});

/** All that ever signed, the newest first: a note of a retired one is verified for ever. */
export const feedKeys = async (pool: Queries): Promise<readonly FeedKey[]> => {
  const { rows } = await pool.query<KeyRow>('select * from ops.feed_keys order by made_at desc, id');
  return rows.map(shown);
};

/** The last 32 bytes of the standard form are the key itself. */
const rawOf = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' }).subarray(-32);

const makeKey = async (pool: Queries, secrets: Secrets): Promise<void> => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = rawOf(publicKey);
  const sealed = secrets.encrypt('feed-keys', privateKey.export({ format: 'pem', type: 'pkcs8' }).toString());
  // Of two processes that make the first key at once one has it.
  await pool.query('insert into ops.feed_keys (id, public_key, sealed) values ($1, $2, $3) on conflict do nothing', [
    idOf(raw),
    raw,
    sealed,
  ]);
};

/** From now on another key signs; notes of the former one are verified as before. */
export const rotateFeedKey = async (pool: Pool, secrets: Secrets): Promise<readonly FeedKey[]> => {
  await pool.query('update ops.feed_keys set retired_at = now(), sealed = null where retired_at is null');
  await makeKey(pool, secrets);
  return feedKeys(pool);
};

interface Signer {
  readonly id: string;
  readonly key: KeyObject;
}

/** @throws Error where SECRET_KEY cannot open the key */
const signerOf = async (pool: Queries, secrets: Secrets): Promise<Signer> => {
  for (let asked = 0; asked < 3; asked += 1) {
    const { rows } = await pool.query<KeyRow>('select * from ops.feed_keys where retired_at is null');
    const [row] = rows;
    if (row === undefined) {
      await makeKey(pool, secrets);
      faultPoint('checkpoint:after-key');
      continue;
    }
    const pem = row.sealed === null ? null : secrets.decrypt('feed-keys', row.sealed);
    if (pem === null) throw new Error(`SECRET_KEY does not open the key ${row.id} that signs checkpoints`);
    const key = createPrivateKey(pem);
    if (idOf(rawOf(createPublicKey(key))) !== row.id) throw new Error(`the key ${row.id} is not the one it names`);
    return { id: row.id, key };
  }
  throw new Error('there is no key to sign checkpoints');
};

/** What a checkpoint says, line by line; the lines behind the root are ours. */
const bodyOf = (
  workspaceId: string,
  { epoch, size, root, kept, signedAt }: Omit<FeedCheckpoint, 'note'>,
  more: readonly string[],
): string => {
  const epochs = kept === null ? [`epoch ${epoch}`] : [`epoch ${epoch}`, `kept ${kept}`];
  return [`${signer}/${workspaceId}`, String(size), root, ...epochs, `signed ${signedAt}`, ...more]
    .map((line) => `${line}\n`)
    .join('');
};

const keptBy = async (pool: Queries, workspaceId: string, epoch: number): Promise<number | null> => {
  const { rows } = await pool.query<{ readonly sequence: string }>(
    'select sequence from ops.feed_kept where workspace_id = $1 and epoch = $2',
    [workspaceId, epoch],
  );
  return rows[0] === undefined ? null : Number(rows[0].sequence);
};

interface CheckpointRow {
  readonly epoch: number;
  readonly size: string;
  readonly signed_at: Date;
  readonly note: string;
}

const asCheckpoint = ({ epoch, size, signed_at: at, note }: CheckpointRow): FeedCheckpoint => {
  const [, kept] = /^kept (\d+)$/m.exec(note) ?? [];
  return {
    ...{ epoch, size: Number(size), signedAt: at.toISOString(), note },
    ...{ root: note.split('\n')[2] ?? '', kept: kept === undefined ? null : Number(kept) },
  };
};

/**
 * The checkpoint of that size in that epoch: the one that was signed before, or one signed now. Two for one size cannot be:
 * whoever comes second gets the first.
 * @param size not above that of the feed
 */
export const checkpointAt = async (
  pool: Queries,
  secrets: Secrets,
  {
    workspaceId,
    epoch,
    size,
    now,
  }: { readonly workspaceId: string; readonly epoch: number; readonly size: number; readonly now: number },
): Promise<FeedCheckpoint> => {
  const found = await knownAt(pool, { workspaceId, epoch, size });
  if (found !== null) return found;
  const root = rootOf(await frontierAt(pool, workspaceId, size)).toString('base64');
  return checkpointWith(pool, secrets, { workspaceId, epoch, size, root, now, more: [] });
};

interface CheckpointPlace {
  readonly workspaceId: string;
  readonly epoch: number;
  readonly size: number;
}

const knownAt = async (
  pool: Queries,
  { workspaceId, epoch, size }: CheckpointPlace,
): Promise<FeedCheckpoint | null> => {
  const { rows } = await pool.query<CheckpointRow>(
    'select epoch, size, signed_at, note from ops.feed_checkpoints where workspace_id = $1 and epoch = $2 and size = $3',
    [workspaceId, epoch, size],
  );
  return rows[0] === undefined ? null : asCheckpoint(rows[0]);
};

/**
 * Signs a root that the caller has found.
 * @param more lines behind those of every checkpoint
 */
export const checkpointWith = async (
  pool: Queries,
  secrets: Secrets,
  {
    root,
    now,
    more,
    ...place
  }: CheckpointPlace & { readonly root: string; readonly now: number; readonly more: readonly string[] },
): Promise<FeedCheckpoint> => {
  const { workspaceId, epoch, size } = place;
  const signedAt = new Date(now).toISOString();
  const kept = await keptBy(pool, workspaceId, epoch);
  const body = bodyOf(workspaceId, { epoch, size, root, kept, signedAt }, more);
  const note = await signedNote(pool, secrets, body);
  await pool.query(
    `insert into ops.feed_checkpoints (workspace_id, epoch, size, signed_at, note) values ($1, $2, $3, $4, $5)
     on conflict do nothing`,
    [workspaceId, epoch, size, signedAt, note],
  );
  return (await knownAt(pool, place)) as FeedCheckpoint;
};

/** @param body lines, each with its end */
const signedNote = async (pool: Queries, secrets: Secrets, body: string): Promise<string> => {
  const { id, key } = await signerOf(pool, secrets);
  const signature = Buffer.concat([Buffer.from(id, 'hex'), sign(null, Buffer.from(body), key)]).toString('base64');
  return `${body}\n\u2014 ${signer} ${signature}\n`;
};

/**
 * A statement about the feed as it is now, which is a checkpoint with further lines. It is not kept among the checkpoints.
 */
export const statementAbout = async (
  pool: Queries,
  secrets: Secrets,
  { workspaceId, epoch, size }: CheckpointPlace,
  now: number,
  more: readonly string[],
): Promise<string> => {
  const root = rootOf(await frontierAt(pool, workspaceId, size)).toString('base64');
  const signedAt = new Date(now).toISOString();
  const kept = await keptBy(pool, workspaceId, epoch);
  return signedNote(pool, secrets, bodyOf(workspaceId, { epoch, size, root, kept, signedAt }, more));
};

/** The checkpoints behind that one, the newest first. */
export const checkpointsOf = async (
  pool: Queries,
  workspaceId: string,
  {
    before,
    limit,
  }: { readonly before: { readonly epoch: number; readonly size: number } | null; readonly limit: number },
): Promise<readonly FeedCheckpoint[]> => {
  const { rows } = await pool.query<CheckpointRow>(
    `select epoch, size, signed_at, note from ops.feed_checkpoints
     where workspace_id = $1 and ($2::int4 is null or (epoch, size) < ($2, $3)) order by epoch desc, size desc limit $4`,
    [workspaceId, before?.epoch ?? null, before?.size ?? 0, limit],
  );
  return rows.map(asCheckpoint);
};
