import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Platform } from '#schemas/common.ts';
import type { InviteEvent } from '#schemas/invite.ts';
import { change, defineModel, type Row } from './model.ts';
import { asRow } from './rows.ts';

/** Connect links. The recipient's e-mail is in the event alone; the token is derived and kept nowhere. */

interface Own {
  readonly client_id: string;
  readonly platforms: readonly Platform[];
  readonly expires_at: string;
  /** Version of the secret key that derives its token. */
  readonly key_version: string;
  readonly revoked_at: string | null;
  /** Accounts connected through it, in order. */
  readonly used: readonly string[];
}
export type InviteRow = Row<Own>;

export const invites = defineModel<Own, InviteEvent>({
  name: 'invites',
  kind: 'invite',
  columns: {
    client_id: 'uuid',
    platforms: 'text[]',
    expires_at: 'timestamptz',
    key_version: 'text',
    revoked_at: 'timestamptz',
    used: 'text[]',
  },
  indexes: [{ on: '(client_id, created_at, id)' }],
  on: {
    ConnectInviteCreated: (_row, { clientId, platforms, expiresAt, keyVersion }) => ({
      client_id: clientId,
      platforms,
      expires_at: expiresAt,
      key_version: keyVersion,
      revoked_at: null,
      used: [],
    }),
    ConnectInviteUsed: change((row, { accountId }) =>
      row.used.includes(accountId) ? row : { ...row, used: [...row.used, accountId] },
    ),
    ConnectInviteRevoked: change((row, _data, event) => ({ ...row, revoked_at: event.metadata.occurredAt })),
  },
});

export const getInvite = async (knex: Knex, workspaceId: string, id: string): Promise<InviteRow | null> => {
  const row = await knex('read.invites').where({ id, workspace_id: workspaceId }).first();
  return row === undefined ? null : asRow(invites, row);
};

/** Invites of a client that were not revoked, oldest first: what an archive has to revoke. */
export const openInvitesOf = async (
  knex: Knex,
  workspaceId: string,
  clientId: string,
): Promise<readonly InviteRow[]> => {
  const rows: Record<string, unknown>[] = await knex('read.invites')
    .where({ workspace_id: workspaceId, client_id: clientId })
    .whereNull('revoked_at')
    .orderBy(['created_at', 'id']);
  return rows.map((row) => asRow(invites, row));
};

/** For the administrator: how many invites that still open are derived under each version of the secret key. */
export const inviteKeyVersions = async (pool: Pool, now: string): Promise<ReadonlyMap<string, number>> => {
  const { rows } = await pool.query<{ key_version: string; n: number }>(
    'select key_version, count(*)::int as n from read.invites where revoked_at is null and expires_at > $1 group by 1',
    [now],
  );
  return new Map(rows.map((row) => [row.key_version, row.n]));
};
