import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Platform } from '#schemas/common.ts';
import type { InviteEvent } from '#schemas/invite.ts';
import { change, defineModel, type Row } from '../engine/model.ts';
import { type NewestFirst, newestFirst, type Page, type PageOf } from '../engine/rows.ts';
import { view } from '../shapes.ts';
import { invitePublisher } from '../webhooks/render/access.ts';

/**
 * Connect links. The recipient's e-mail is in the event alone. The token is derived from the secret key and never
 * stored.
 */

interface Own {
  readonly client_id: string;
  readonly platforms: readonly Platform[];
  readonly expires_at: string;
  /** Version of the secret key from which the token is derived. */
  readonly key_version: string;
  readonly revoked_at: string | null;
  /** Accounts connected through the invite, in order. */
  readonly used: readonly string[];
}

export const invites = defineModel<Own, InviteEvent>({
  name: 'invites',
  kind: 'invite',
  publisher: invitePublisher,
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

/** Links of a client, newest first. */
export const invitesOfClient = (
  knex: Knex,
  workspaceId: string,
  clientId: string,
  page: PageOf<NewestFirst>,
): Promise<Page<Row<Own>>> =>
  newestFirst(
    knex(`${view('invites')} as invites`).where({ workspace_id: workspaceId, client_id: clientId }),
    invites,
    page,
  );

/** For the administrator: how many open invites are derived from each version of the secret key. */
export const inviteKeyVersions = async (pool: Pool, now: string): Promise<ReadonlyMap<string, number>> => {
  const { rows } = await pool.query<{ key_version: string; n: number }>(
    `select key_version, count(*)::int as n from ${view('invites')} as invites where revoked_at is null and expires_at > $1 group by 1`,
    [now],
  );
  return new Map(rows.map((row) => [row.key_version, row.n]));
};
