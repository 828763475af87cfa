import type { Pool } from 'pg';
import type { Scope } from '#schemas/apikey.ts';
import type { Mode, Role } from '#schemas/common.ts';
import type { GrantEnder, GrantEvent } from '#schemas/grant.ts';
import { change, defineModel } from '../engine/model.ts';
import { toIso } from '../engine/rows.ts';
import { view } from '../shapes.ts';
import { isWithdrawnSql } from './sql.ts';

/**
 * What persons gave apps. Grants stay with the live workspace, whichever mode they act in. They are written together
 * with workspaces and keys, because one stamp tells whether any credential may have changed.
 */

interface Own {
  /** Of the OAuth client, not of a client of the agency. */
  readonly client_id: string;
  readonly client_name: string;
  readonly person_id: string;
  readonly member_id: string;
  readonly mode: Mode;
  readonly scopes: readonly Scope[];
  readonly resource: string;
  readonly expires_at: string;
  readonly revoked_at: string | null;
  readonly revoked_by: GrantEnder | null;
}

export const grants = defineModel<Own, GrantEvent>({
  name: 'grants',
  kind: 'grant',
  columns: {
    client_id: 'text',
    client_name: 'text',
    person_id: 'uuid',
    member_id: 'uuid',
    mode: 'text',
    scopes: 'text[]',
    resource: 'text',
    expires_at: 'timestamptz',
    revoked_at: 'timestamptz',
    revoked_by: 'text',
  },
  indexes: [
    { on: '(workspace_id, created_at, id)' },
    { on: '(person_id, created_at, id)' },
    { on: '(member_id, created_at, id)' },
    { on: '(client_id, id) where revoked_at is null' },
    { on: '(id) where revoked_at is null' },
  ],
  on: {
    GrantGiven: (_row, { clientId, clientName, personId, memberId, mode, scopes, resource, expiresAt }) => ({
      client_id: clientId,
      client_name: clientName,
      person_id: personId,
      member_id: memberId,
      mode,
      scopes,
      resource,
      expires_at: expiresAt,
      revoked_at: null,
      revoked_by: null,
    }),
    GrantRevoked: change((row, { by }, { metadata }) => ({ ...row, revoked_at: metadata.occurredAt, revoked_by: by })),
  },
});

/** Everything that the check of an access token needs, in one query. */
export interface FoundGrant {
  readonly grantId: string;
  readonly personId: string;
  readonly memberId: string;
  /** Null when the member has left: the grant then has no power. */
  readonly role: Role | null;
  readonly scopes: readonly Scope[];
  readonly mode: Mode;
  /** The live workspace. */
  readonly workspaceId: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly resource: string;
  readonly expiresAt: string;
  readonly revokedAt: string | null;
  /** Whether power may have been taken that this row does not show: the streams decide. */
  readonly isWithdrawn: boolean;
}

const columns = `g.id::text, g.person_id::text, g.member_id::text, g.scopes, g.mode, g.workspace_id::text, g.client_id,
  g.client_name, g.resource, g.expires_at, g.revoked_at, g.created_at`;

interface Raw {
  readonly id: string;
  readonly person_id: string;
  readonly member_id: string;
  readonly scopes: readonly Scope[];
  readonly mode: Mode;
  readonly workspace_id: string;
  readonly client_id: string;
  readonly client_name: string;
  readonly resource: string;
  readonly expires_at: Date;
  readonly revoked_at: Date | null;
  readonly created_at: Date;
}

const grantOf = (row: Raw): Omit<FoundGrant, 'role' | 'isWithdrawn'> => ({
  grantId: row.id,
  personId: row.person_id,
  memberId: row.member_id,
  scopes: row.scopes,
  mode: row.mode,
  workspaceId: row.workspace_id,
  clientId: row.client_id,
  clientName: row.client_name,
  resource: row.resource,
  expiresAt: toIso(row.expires_at) ?? '',
  revokedAt: toIso(row.revoked_at),
});

/** The grants with these ids, by id. The caller judges expiry and revocation by its own clock. */
export const findGrants = async (pool: Pool, ids: readonly string[]): Promise<ReadonlyMap<string, FoundGrant>> => {
  const { rows } = await pool.query<Raw & { readonly role: Role | null; readonly is_withdrawn: boolean }>({
    name: 'find-grants',
    text: `select ${columns}, w.members -> g.member_id::text ->> 'role' as role,
        ${isWithdrawnSql({ grant: 'g.id', workspace: 'g.workspace_id' })} as is_withdrawn
      from ${view('grants')} g join ${view('workspaces')} w on w.id = g.workspace_id where g.id = any($1::uuid[])`,
    values: [ids],
  });
  return new Map(rows.map((row) => [row.id, { ...grantOf(row), role: row.role, isWithdrawn: row.is_withdrawn }]));
};

/** A grant as the page of connected apps shows it. */
export interface ListedGrant extends Omit<FoundGrant, 'role' | 'isWithdrawn'> {
  readonly givenAt: string;
  readonly revokedBy: GrantEnder | null;
}

/** The most grants that a list shows: the newest of those that have not ended, then the newest of the others. */
const maxListed = 500;

const list = async (pool: Pool, by: 'workspace_id' | 'person_id' | 'member_id', id: string) => {
  const { rows } = await pool.query<Raw & { readonly revoked_by: GrantEnder | null }>(
    // Those with power first: no number of grants that have ended hides one.
    `select ${columns}, g.revoked_by from (
       select * from ${view('grants')} as grants where ${by} = $1
       order by revoked_at is not null or expires_at <= now(), created_at desc, id limit $2
     ) g order by g.created_at desc, g.id`,
    [id, maxListed],
  );
  return rows.map(
    (row): ListedGrant => ({ ...grantOf(row), givenAt: toIso(row.created_at) ?? '', revokedBy: row.revoked_by }),
  );
};

/** The newest grants, also those that ended, the newest first. */
export const listGrants = (
  pool: Pool,
  of: { readonly workspaceId: string } | { readonly personId: string },
): Promise<readonly ListedGrant[]> =>
  'workspaceId' in of ? list(pool, 'workspace_id', of.workspaceId) : list(pool, 'person_id', of.personId);

export const grantsOfMember = (pool: Pool, memberId: string): Promise<readonly ListedGrant[]> =>
  list(pool, 'member_id', memberId);

/** A grant that nothing has revoked yet, and what could be a reason to do so. */
export interface OpenGrant {
  readonly grantId: string;
  readonly workspaceId: string;
  readonly clientId: string;
  readonly givenAt: string;
  readonly expiresAt: string;
  readonly isMember: boolean;
}

/** Grants without a revocation by id, after the given one. */
export const openGrants = async (pool: Pool, after: string, limit: number): Promise<readonly OpenGrant[]> => {
  const { rows } = await pool.query<
    Pick<Raw, 'id' | 'workspace_id' | 'client_id' | 'created_at' | 'expires_at'> & { member: boolean }
  >(
    `select g.id::text, g.workspace_id::text, g.client_id, g.created_at, g.expires_at,
       coalesce(w.members ? g.member_id::text, false) as member
     from ${view('grants')} g left join ${view('workspaces')} w on w.id = g.workspace_id
     where g.revoked_at is null and g.id > $1 order by g.id limit $2`,
    [after, limit],
  );
  return rows.map((row) => ({
    grantId: row.id,
    workspaceId: row.workspace_id,
    clientId: row.client_id,
    givenAt: toIso(row.created_at) ?? '',
    expiresAt: toIso(row.expires_at) ?? '',
    isMember: row.member,
  }));
};

/**
 * Ids of the grants of a person that may have power, in every workspace: those that the read model shows, and those that
 * it does not show yet but for which the authorization server has a row.
 * @param after the id before the page; null: from the first
 */
export const openGrantsOfPerson = async (
  pool: Pool,
  personId: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ id: string }>(
    `select id::text from (
       select id from ${view('grants')} as grants where person_id = $1 and revoked_at is null
       union
       select grant_id from auth.oauth_artifacts where model = 'Grant' and payload ->> 'accountId' = $1::text
     ) found where $2::uuid is null or id > $2 order by id limit $3`,
    [personId, after, limit],
  );
  return rows.map(({ id }) => id);
};
