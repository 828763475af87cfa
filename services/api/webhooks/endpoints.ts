import { liveSecrets, type WebhookState } from '#domain/webhook.ts';
import { rowOf } from '#projections/engine/model.ts';
import { getWebhook, type WebhookRow, webhooks } from '#projections/models/webhook-endpoints.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { webhookSecret } from '#runtime/identity/webhook-secrets.ts';
import type { Call } from '../operation.ts';
import { notFound } from '../refusal.ts';
import { ownStream, readRow, writtenRow } from '../rows.ts';

/** An endpoint as its owner sees it, and the one that a path names. */

const hintLength = 4;

/** @param now decides which secrets sign. */
export const renderWebhook = (row: WebhookRow, secrets: Secrets, now: string) => {
  const [newest] = row.secrets;
  return {
    id: row.id,
    object: 'webhook' as const,
    url: row.url,
    events: row.events,
    active: row.active,
    description: row.description,
    clientIds: row.client_ids ?? null,
    disabledReason: row.disabled_reason,
    secretHint: newest === undefined ? null : webhookSecret(secrets, row.id, newest).slice(-hintLength),
    secrets: liveSecrets(row.secrets, now).map(({ createdAt, expiresAt }) => ({ createdAt, expiresAt })),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    revision: row.revision,
  };
};

/** The row that these events make, from the first on. */
export const webhookOf = (events: readonly DecodedEvent[]): WebhookRow => writtenRow(rowOf(webhooks, events));

/** How long a repeat of the call that made a secret shows it, milliseconds. */
const shownMs = 24 * 3_600_000;

/**
 * The answer of the call that made the newest secret of these events. It shows the secret for a day, and only while the
 * secret still signs, which later events decide.
 */
export const withSecret = async (
  { deps, now }: Pick<Call, 'deps' | 'now'>,
  row: WebhookRow,
  later: () => Promise<WebhookState>,
) => {
  const [made] = row.secrets;
  // The endpoint as of the event that made the secret, so that a repeat gives the answer of the first call.
  const shown = renderWebhook(row, deps.secrets, row.updated_at);
  if (made === undefined || Date.parse(made.createdAt) + shownMs <= Date.parse(now)) return { ...shown, secret: null };
  const state = await later();
  const signs =
    state.status === 'live' && liveSecrets(state.secrets, now).some(({ generation }) => generation === made.generation);
  return { ...shown, secret: signs ? webhookSecret(deps.secrets, row.id, made) : null };
};

/** The live endpoint of the path, as the read model has it. @throws Refusal 404, also for a deleted endpoint */
export const readWebhook = async (
  call: Pick<Call<{ readonly id: string }>, 'deps' | 'workspaceId' | 'params' | 'behind'>,
): Promise<WebhookRow> => {
  const { deps, workspaceId } = call;
  const row = await readRow(call, 'webhook', ['webhooks'], (id) => getWebhook(deps.knex, workspaceId, id));
  if (row.deleted_at !== null) throw notFound('webhook');
  return row;
};

/** Guard: the endpoint is the caller's and live (else 404), and at the revision If-Match names. */
export const ownLive =
  (call: Pick<Call, 'workspaceId' | 'guard'>) =>
  (loaded: Loaded<WebhookState>): void => {
    if (loaded.state.status === 'deleted') throw notFound('webhook');
    ownStream(call, 'webhook')(loaded);
  };
