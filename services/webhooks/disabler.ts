import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { webhook } from '#domain/webhook.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { serviceContext } from '#runtime/eventing/service-context.ts';
import type { Logger } from '#runtime/process/telemetry.ts';

/**
 * Turns off endpoints that asked for it or have had no success for days. The health table names them. The endpoint's
 * stream records the decision once, however many senders try, and never against a newer decision of a person. If the
 * process dies between the record of the answer and the append, the next sweep of any sender appends the decision.
 */

export interface DisablerDeps {
  readonly pool: Pool;
  readonly store: DomainStore;
  readonly config: { readonly webhookDisableAfterMs: number };
  readonly logger: Logger;
  readonly now?: () => number;
}

/**
 * The endpoint must also have failed again after a tenth of that time: one failure before days without deliveries does
 * not prove that it is broken.
 */
const dueSql = `
select h.endpoint_id as id, e.workspace_id as "workspaceId", h.seen_revision as "seenRevision",
  coalesce(h.disable, 'failing') as reason
from ops.webhook_health h join ops.webhook_endpoints e on e.id = h.endpoint_id
where e.active and (e.state ->> 'changedRevision')::int = h.seen_revision
  and (h.disable is not null or (
    h.failing_since <= clock_timestamp() - $1::float8 * interval '1 millisecond'
    and h.failed_at >= h.failing_since + $1::float8 / 10 * interval '1 millisecond'))
order by h.endpoint_id limit $2`;

/** Health from before a newer decision is void, and so is health of an endpoint that is off. */
const mootSql = `
delete from ops.webhook_health h using ops.webhook_endpoints e
where e.id = h.endpoint_id and (not e.active or (e.state ->> 'changedRevision')::int > h.seen_revision)`;

interface DueRow {
  readonly id: string;
  readonly workspaceId: string;
  readonly seenRevision: number;
  readonly reason: 'gone' | 'receiver' | 'failing';
}

/** Endpoints of one sweep; the next sweep takes the others. */
const maxAtOnce = 100;

/** Turns off every endpoint that must be off now. @returns ids of those that this process turned off */
export const disableDue = async (deps: DisablerDeps): Promise<readonly string[]> => {
  const { pool, store, config, logger, now = Date.now } = deps;
  await pool.query(mootSql);
  const { rows } = await pool.query<DueRow>(dueSql, [config.webhookDisableAfterMs, maxAtOnce]);
  const disabled: string[] = [];
  for (const { id, workspaceId, seenRevision, reason } of rows) {
    const cause = randomUUID();
    const context = serviceContext('webhooks', { workspaceId, correlationId: cause, causationId: cause }, now());
    const { appended } = await execute(store, webhook, id, { type: 'Disable', reason, seenRevision }, context);
    if (appended.length === 0) continue;
    disabled.push(id);
    logger.info({ webhookId: id, reason }, 'an endpoint was turned off');
  }
  return disabled;
};
