import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { batchesOf } from '#contracts/base/batches.ts';
import { rotated, type WebhookSecret } from '#domain/webhook.ts';
import type { DisableReason, WebhookEvent } from '#schemas/webhook.ts';
import { change, defineModel, type Row, unchanged } from '../engine/model.ts';
import { asRow, type NewestFirst, newestFirst, type Page, type PageOf } from '../engine/rows.ts';
import { view } from '../shapes.ts';
import { webhookPublisher } from '../webhooks/render/agency.ts';

/**
 * Webhook endpoints as their owners see them. Secrets are derived from the secret key: a row holds which generations
 * sign, and until when.
 */

interface Own {
  readonly url: string;
  readonly events: readonly string[];
  readonly description: string | null;
  /** Null: all events of the workspace. */
  readonly client_ids: readonly string[] | null;
  readonly active: boolean;
  /** Why the endpoint is off; null while it is on. */
  readonly disabled_reason: DisableReason | null;
  /** Newest first; secrets that expired before the last rotation are dropped. */
  readonly secrets: readonly WebhookSecret[];
  readonly deleted_at: string | null;
}
export type WebhookRow = Row<Own>;

export const webhooks = defineModel<Own, WebhookEvent>({
  name: 'webhooks',
  kind: 'webhook',
  publisher: webhookPublisher,
  columns: {
    url: 'text',
    events: 'text[]',
    description: 'text',
    active: 'bool',
    disabled_reason: 'text',
    secrets: 'jsonb',
    deleted_at: 'timestamptz',
    client_ids: 'text[]',
  },
  indexes: [{ on: '(workspace_id, created_at, id) where deleted_at is null' }],
  on: {
    WebhookRegistered: (_row, { url, events, description, clientIds, keyVersion }, { metadata }) => ({
      url,
      events,
      description,
      client_ids: clientIds,
      active: true,
      disabled_reason: null,
      secrets: [{ generation: 1, keyVersion, createdAt: metadata.occurredAt, expiresAt: null }],
      deleted_at: null,
    }),
    WebhookUpdated: change((row, { clientIds, ...changes }) => ({
      ...row,
      ...changes,
      ...(clientIds === undefined ? {} : { client_ids: clientIds }),
    })),
    WebhookSecretRotated: change((row, data, { metadata }) => ({
      ...row,
      secrets: rotated(row.secrets, data, metadata.occurredAt),
    })),
    WebhookDisabled: change((row, { reason }) => ({ ...row, active: false, disabled_reason: reason })),
    WebhookEnabled: change((row) => ({ ...row, active: true, disabled_reason: null })),
    // The secrets of a deleted endpoint sign nothing any more.
    WebhookDeleted: change((row, _data, { metadata }) => ({
      ...row,
      active: false,
      secrets: [],
      deleted_at: metadata.occurredAt,
    })),
    WebhookTestRequested: unchanged,
    WebhookResendRequested: unchanged,
    WebhookReplayRequested: unchanged,
    WebhookReplayCanceled: unchanged,
  },
});

const webhooksById = batchesOf(async (knex: Knex, ids): Promise<ReadonlyMap<string, WebhookRow>> => {
  const found = await knex
    .raw(`select * from ${view('webhooks')} as webhooks where id = any(?::uuid[])`, [[...ids]])
    .options({ name: 'webhooks-by-id' });
  return new Map(found.rows.map((row: Record<string, unknown>) => [row.id, asRow(webhooks, row)]));
});

/** Returns a deleted endpoint too; its `deleted_at` is set. */
export const getWebhook = async (knex: Knex, workspaceId: string, id: string): Promise<WebhookRow | null> => {
  const row = await webhooksById(knex, id);
  return row?.workspace_id === workspaceId ? row : null;
};

/** Newest first, without the deleted ones. */
export const listWebhooks = async (
  knex: Knex,
  workspaceId: string,
  page: PageOf<NewestFirst>,
): Promise<Page<WebhookRow>> =>
  newestFirst(
    knex(`${view('webhooks')} as webhooks`)
      .where({ workspace_id: workspaceId })
      .whereNull('deleted_at'),
    webhooks,
    page,
  );

/** For the administrator: how many signing secrets are derived from each version of the secret key. */
export const webhookKeyVersions = async (pool: Pool, now: string): Promise<ReadonlyMap<string, number>> => {
  const { rows } = await pool.query<{ version: string; n: number }>(
    `select one ->> 'keyVersion' as version, count(*)::int as n
     from ${view('webhooks')} w cross join jsonb_array_elements(w.secrets) as one
     where w.deleted_at is null
       and (one ->> 'expiresAt' is null or (one ->> 'expiresAt')::timestamptz > $1::timestamptz)
     group by 1`,
    [now],
  );
  return new Map(rows.map((row) => [row.version, row.n]));
};
