import type { Pool } from 'pg';
import type { Role } from '#schemas/common.ts';
import type { TeamInviteEvent } from '#schemas/teaminvite.ts';
import { change, defineModel, type Row } from '../engine/model.ts';
import { toIso } from '../engine/rows.ts';
import { view } from '../shapes.ts';

/** Invitations to the team. The address and the name are in the event alone; the token is derived and never stored. */

interface Own {
  readonly member_id: string;
  readonly role: Role;
  readonly expires_at: string;
  /** Version of the secret key from which the token is derived. */
  readonly key_version: string;
  readonly accepted_at: string | null;
  readonly revoked_at: string | null;
}
export type TeamInviteRow = Row<Own>;

export const teamInvites = defineModel<Own, TeamInviteEvent>({
  name: 'team_invites',
  kind: 'teaminvite',
  columns: {
    member_id: 'uuid',
    role: 'text',
    expires_at: 'timestamptz',
    key_version: 'text',
    accepted_at: 'timestamptz',
    revoked_at: 'timestamptz',
  },
  indexes: [
    { on: '(workspace_id, created_at, id)' },
    { on: '(key_version, expires_at) where accepted_at is null and revoked_at is null' },
  ],
  on: {
    TeamInviteCreated: (_row, { memberId, role, expiresAt, keyVersion }) => ({
      member_id: memberId,
      role,
      expires_at: expiresAt,
      key_version: keyVersion,
      accepted_at: null,
      revoked_at: null,
    }),
    TeamInviteAccepted: change((row, _data, event) => ({ ...row, accepted_at: event.metadata.occurredAt })),
    TeamInviteRevoked: change((row, _data, event) => ({ ...row, revoked_at: event.metadata.occurredAt })),
  },
});

export interface OpenTeamInvite {
  readonly id: string;
  readonly memberId: string;
  readonly role: Role;
  readonly createdAt: string;
  readonly expiresAt: string;
}

/** Most open invitations that a workspace shows, and may have. */
export const maxOpenInvites = 200;

/** The open invitations of a workspace, newest first. @param now ISO 8601 */
export const openTeamInvites = async (
  pool: Pool,
  workspaceId: string,
  now: string,
): Promise<readonly OpenTeamInvite[]> => {
  const { rows } = await pool.query(
    `select id::text, member_id::text, role, created_at, expires_at from ${view('team_invites')} as team_invites
     where workspace_id = $1 and accepted_at is null and revoked_at is null and expires_at > $2
     order by created_at desc, id desc limit $3`,
    [workspaceId, now, maxOpenInvites],
  );
  return rows.map((row) => ({
    id: row.id,
    memberId: row.member_id,
    role: row.role,
    createdAt: toIso(row.created_at) ?? '',
    expiresAt: toIso(row.expires_at) ?? '',
  }));
};

/** How many open invitations are derived from each version of the secret key. @param now ISO 8601 */
export const teamInviteKeyVersions = async (pool: Pool, now: string): Promise<ReadonlyMap<string, number>> => {
  const { rows } = await pool.query<{ key_version: string; n: number }>(
    `select key_version, count(*)::int as n from ${view('team_invites')} as team_invites
     where accepted_at is null and revoked_at is null and expires_at > $1 group by 1`,
    [now],
  );
  return new Map(rows.map((row) => [row.key_version, row.n]));
};
