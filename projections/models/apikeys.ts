import type { Pool } from 'pg';
import type { ApiKeyEvent, Scope } from '#schemas/apikey.ts';
import type { Mode, Role } from '#schemas/common.ts';
import { change, defineModel } from '../engine/model.ts';
import { toIso } from '../engine/rows.ts';
import { view } from '../shapes.ts';
import { apikeyPublisher } from '../webhooks/render/access.ts';
import { isWithdrawnSql } from './sql.ts';

/** API keys. They stay with the live workspace, whichever mode they act in. */

interface Own {
  readonly member_id: string;
  readonly name: string;
  readonly hash: string;
  readonly prefix: string;
  readonly scopes: readonly Scope[];
  readonly mode: Mode;
  readonly expires_at: string;
  /** Null: all clients of the workspace. */
  readonly client_ids: readonly string[] | null;
  readonly previous_hash: string | null;
  readonly previous_until: string | null;
  readonly revoked_at: string | null;
}

export const apiKeys = defineModel<Own, ApiKeyEvent>({
  name: 'api_keys',
  kind: 'apikey',
  publisher: apikeyPublisher,
  columns: {
    member_id: 'uuid',
    name: 'text',
    hash: 'text',
    prefix: 'text',
    scopes: 'text[]',
    mode: 'text',
    expires_at: 'timestamptz',
    client_ids: 'text[]',
    previous_hash: 'text',
    previous_until: 'timestamptz',
    revoked_at: 'timestamptz',
  },
  indexes: [
    { unique: true, on: '(hash)' },
    { on: '(previous_hash) where previous_hash is not null' },
    { on: '(workspace_id, created_at, id)' },
  ],
  on: {
    ApiKeyCreated: (_row, { memberId, name, hash, prefix, scopes, mode, expiresAt, clientIds }) => ({
      member_id: memberId,
      name,
      hash,
      prefix,
      scopes,
      mode,
      expires_at: expiresAt,
      client_ids: clientIds,
      previous_hash: null,
      previous_until: null,
      revoked_at: null,
    }),
    ApiKeyRotated: change((row, { hash, prefix, previousHash, previousUntil }) => ({
      ...row,
      hash,
      prefix,
      previous_hash: previousHash,
      previous_until: previousUntil,
    })),
    ApiKeyRevoked: change((row, _data, event) => ({ ...row, revoked_at: event.metadata.occurredAt })),
  },
});

/** Everything that the check of a credential needs, in one query. */
export interface FoundKey {
  readonly keyId: string;
  readonly memberId: string;
  /** Null when the member was removed: the key then has no power. */
  readonly role: Role | null;
  readonly scopes: readonly Scope[];
  readonly mode: Mode;
  readonly expiresAt: string;
  readonly revokedAt: string | null;
  /** Set when the hash belongs to the key before its rotation: that key works until then. */
  readonly previousUntil: string | null;
  readonly workspaceId: string;
  /** The clients to which it is limited; null: all clients of the workspace. */
  readonly clientIds: readonly string[] | null;
  /** Whether power may have been taken that this row does not show: the streams decide. */
  readonly isWithdrawn: boolean;
}

/**
 * The keys with these SHA-256 (hex), by hash. The caller judges expiry, revocation and the grace period by its own
 * clock, because it answers an expired key and an unknown one differently.
 */
export const findKeys = async (pool: Pool, hashes: readonly string[]): Promise<ReadonlyMap<string, FoundKey>> => {
  const { rows } = await pool.query({
    name: 'find-keys',
    text: `
      select k.asked, k.id, k.member_id, k.scopes, k.mode, k.expires_at, k.revoked_at,
        case when k.hash <> k.asked then k.previous_until end as previous_until,
        k.workspace_id, k.client_ids, w.members -> k.member_id::text ->> 'role' as role,
        ${isWithdrawnSql({ apikey: 'k.id', workspace: 'k.workspace_id' })} as is_withdrawn
      from (
        select hash as asked, * from ${view('api_keys')} as api_keys where hash = any($1::text[])
        union all
        select previous_hash as asked, * from ${view('api_keys')} as api_keys where previous_hash = any($1::text[])
      ) k
      join ${view('workspaces')} w on w.id = k.workspace_id`,
    values: [hashes],
  });
  return new Map(
    rows.map((row): [string, FoundKey] => [
      row.asked,
      {
        keyId: row.id,
        memberId: row.member_id,
        role: row.role,
        scopes: row.scopes,
        mode: row.mode,
        expiresAt: toIso(row.expires_at) ?? '',
        revokedAt: toIso(row.revoked_at),
        previousUntil: toIso(row.previous_until),
        workspaceId: row.workspace_id,
        clientIds: row.client_ids,
        isWithdrawn: row.is_withdrawn,
      },
    ]),
  );
};

/** A key as an operator sees it. */
export interface ListedKey {
  readonly keyId: string;
  readonly name: string;
  readonly mode: Mode;
  readonly prefix: string;
  readonly memberId: string;
  readonly scopeNames: readonly Scope[];
  /** The clients to which it is limited; null: all clients of the workspace. */
  readonly clientIds: readonly string[] | null;
  readonly createdAt: string;
  readonly expiresAt: string;
  /** Until when the key before its last rotation works; null: it was never rotated. */
  readonly previousUntil: string | null;
  readonly revokedAt: string | null;
}

const listed = `id::text, name, mode, prefix, member_id::text, scopes, to_jsonb(api_keys) -> 'client_ids' as client_ids,
  created_at, expires_at, previous_until, revoked_at`;

interface KeyRow {
  readonly id: string;
  readonly name: string;
  readonly mode: Mode;
  readonly prefix: string;
  readonly member_id: string;
  readonly scopes: readonly Scope[];
  readonly client_ids: readonly string[] | null;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly previous_until: Date | null;
  readonly revoked_at: Date | null;
}

const listedOf = (row: KeyRow): ListedKey => ({
  keyId: row.id,
  name: row.name,
  mode: row.mode,
  prefix: row.prefix,
  memberId: row.member_id,
  scopeNames: row.scopes,
  clientIds: row.client_ids,
  createdAt: toIso(row.created_at) ?? '',
  expiresAt: toIso(row.expires_at) ?? '',
  previousUntil: toIso(row.previous_until),
  revokedAt: toIso(row.revoked_at),
});

/** All keys of a workspace, also those that ended, oldest first. */
export const listApiKeys = async (pool: Pool, workspaceId: string): Promise<readonly ListedKey[]> => {
  const { rows } = await pool.query<KeyRow>(
    `select ${listed} from ${view('api_keys')} as api_keys where workspace_id = $1 order by created_at, id`,
    [workspaceId],
  );
  return rows.map(listedOf);
};

/** The most keys that the console shows. */
const maxShownKeys = 500;

/** The newest keys of a workspace that may still work, and those that ended after an instant; the newest first. */
export const recentApiKeys = async (
  pool: Pool,
  workspaceId: string,
  endedAfter: string,
): Promise<readonly ListedKey[]> => {
  const { rows } = await pool.query<KeyRow>(
    // Those with power first: no number of keys that were made and revoked hides one.
    `select ${listed} from (
       select * from ${view('api_keys')} as api_keys
       where workspace_id = $1 and expires_at > $2 and (revoked_at is null or revoked_at > $2)
       order by revoked_at is not null or expires_at <= now(), created_at desc, id desc limit $3
     ) api_keys order by api_keys.created_at desc, api_keys.id desc`,
    [workspaceId, endedAfter, maxShownKeys],
  );
  return rows.map(listedOf);
};
