import type { Pool, PoolClient } from 'pg';
import { plainArray } from '#contracts/base/array-literals.ts';
import type { Leased } from '#projections/webhooks/handover.ts';
import { ensureFunctions } from '#runtime/postgres/migrate.ts';
import { functions, version } from './functions.sql.ts';

/** The sender's calls of the functions in functions.sql.ts, which work on the queue. */

/** Makes the functions of this build beside those of others. */
export const ensureSender = (pool: Pool): Promise<void> =>
  ensureFunctions(pool, `webhook_record_${version}`, functions);

/** The due deliveries of an endpoint, by lane. */
export interface Due {
  readonly endpointId: string;
  readonly first: boolean;
  readonly later: boolean;
  readonly replay: boolean;
  readonly asked: boolean;
  /** Its breaker is half-open: one delivery may pass. */
  readonly probe: boolean;
  /** Milliseconds for which the longest due delivery has waited. */
  readonly lagMs: number;
}

export const findDue = async (pool: Pool): Promise<readonly Due[]> => {
  const { rows } = await pool.query<Due>({
    name: 'webhook-due',
    text: `select endpoint_id as "endpointId", first, later, replay, asked, probe, lag as "lagMs"
           from ops.webhook_due_${version}()`,
  });
  return rows;
};

/** Lane of a claim that takes forced deliveries of any lane. */
export const askedLane = 3;

export interface ClaimRequest {
  readonly endpointId: string;
  /** 0 first tries, 1 retries, 2 replays, 3 forced ones. */
  readonly lane: number;
  readonly max: number;
}

/** A delivery that this process holds for the length of a lease. */
export interface Claimed extends Leased {
  /** 0 first tries, 1 retries, 2 replays. */
  readonly queueLane: number;
  /** A person requested it: it is sent although the endpoint is off. */
  readonly forced: boolean;
  /** The only delivery that passed the half-open breaker. */
  readonly probe: boolean;
}

interface ClaimRow {
  delivery_id: string;
  event_time: Date;
  endpoint_id: string;
  workspace_id: string;
  message_id: string;
  queue_lane: number;
  attempt: number;
  tries: number;
  trigger: Leased['trigger'];
  forced: boolean;
  body: Buffer | null;
  at_position: string;
  lane: string;
}

/**
 * Begins attempts. If the process dies afterwards, the leases lapse, and the next attempt of each delivery has a higher
 * number.
 * @param probes endpoints of which one delivery may pass a half-open breaker
 * @returns `without`: ids of deliveries whose message is missing; a fault, since a message is dropped after its
 * deliveries
 */
export const claim = async (
  pool: Pool,
  leaseMs: number,
  claimRequests: readonly ClaimRequest[],
  probes: readonly string[],
): Promise<{ readonly claimed: readonly Claimed[]; readonly without: readonly string[] }> => {
  const leaseEnds = performance.now() + leaseMs;
  const { rows } = await pool.query<ClaimRow>({
    name: 'webhook-claim',
    text: `select * from ops.webhook_claim_${version}($1, $2, $3, $4, $5)`,
    values: [
      leaseMs,
      plainArray(claimRequests.map(({ endpointId }) => endpointId)),
      plainArray(claimRequests.map(({ lane }) => lane)),
      plainArray(claimRequests.map(({ max }) => max)),
      plainArray(probes),
    ],
  });
  const probing = new Set(probes);
  const claimed: Claimed[] = [];
  const without: string[] = [];
  for (const row of rows) {
    if (row.body === null) {
      without.push(row.delivery_id);
      continue;
    }
    claimed.push({
      deliveryId: row.delivery_id,
      eventTime: row.event_time.toISOString(),
      endpointId: row.endpoint_id,
      workspaceId: row.workspace_id,
      messageId: row.message_id,
      body: row.body,
      position: BigInt(row.at_position),
      lane: row.lane,
      attempt: row.attempt,
      tries: row.tries,
      trigger: row.trigger,
      leaseEnds,
      queueLane: row.queue_lane,
      forced: row.forced,
      probe: probing.has(row.endpoint_id),
    });
  }
  return { claimed, without };
};

export const giveBack = async (
  pool: Pool,
  deliveries: readonly Pick<Leased, 'deliveryId' | 'attempt'>[],
  probes: readonly string[],
): Promise<void> => {
  await pool.query({
    name: 'webhook-give-back',
    text: `select ops.webhook_give_back_${version}($1, $2, $3)`,
    values: [
      plainArray(deliveries.map(({ deliveryId }) => deliveryId)),
      plainArray(deliveries.map(({ attempt }) => attempt)),
      plainArray(probes),
    ],
  });
};

export interface Outcome {
  readonly deliveryId: string;
  readonly eventTime: string;
  readonly attempt: number;
  readonly tries: number;
  readonly trigger: string;
  readonly outcome: 'delivered' | 'again' | 'failed';
  readonly waitMs: number;
  readonly entry: unknown;
}

/** @returns ids of the recorded deliveries; the others have a later attempt, or are gone */
export const record = async (
  db: Pool | PoolClient,
  outcomes: readonly Outcome[],
  well: readonly { readonly endpointId: string; readonly seenRevision: number }[],
): Promise<ReadonlySet<string>> => {
  const { rows } = await db.query<[string]>({
    name: 'webhook-record',
    text: `select * from ops.webhook_record_${version}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    values: [
      plainArray(outcomes.map(({ deliveryId }) => deliveryId)),
      plainArray(outcomes.map(({ eventTime }) => eventTime)),
      plainArray(outcomes.map(({ attempt }) => attempt)),
      plainArray(outcomes.map(({ tries }) => tries)),
      plainArray(outcomes.map(({ trigger }) => trigger)),
      plainArray(outcomes.map(({ outcome }) => outcome)),
      plainArray(outcomes.map(({ waitMs }) => waitMs)),
      JSON.stringify(outcomes.map(({ entry }) => entry)),
      plainArray(well.map(({ endpointId }) => endpointId)),
      plainArray(well.map(({ seenRevision }) => seenRevision)),
    ],
    rowMode: 'array',
  });
  return new Set(rows.map(([id]) => id));
};
