import type { Pool } from 'pg';
import type { WebhookSecret } from '#domain/webhook.ts';

/**
 * The secrets of an endpoint as of its newest rotation. The rotation is a row before it is answered, and a sender reads
 * the rows of the endpoints of which it has claimed deliveries: the dispatcher folds the event a little later.
 */

export interface Rotation {
  readonly endpointId: string;
  /** Of the endpoint's stream, at the rotation. */
  readonly revision: number;
  readonly secrets: readonly WebhookSecret[];
}

/** A repeat and an older rotation change nothing. */
export const noteRotation = async (pool: Pool, { endpointId, revision, secrets }: Rotation): Promise<void> => {
  await pool.query(
    `insert into ops.webhook_rotations (endpoint_id, revision, secrets) values ($1, $2, $3)
     on conflict (endpoint_id) do update set revision = excluded.revision, secrets = excluded.secrets
     where webhook_rotations.revision < excluded.revision`,
    [endpointId, revision, JSON.stringify(secrets)],
  );
};

/** Of those among these endpoints that were ever rotated. */
export const rotationsOf = async (pool: Pool, endpointIds: readonly string[]): Promise<readonly Rotation[]> => {
  const { rows } = await pool.query<Rotation>({
    name: 'webhook-rotations',
    text: `select endpoint_id::text as "endpointId", revision, secrets from ops.webhook_rotations
           where endpoint_id = any($1::uuid[])`,
    values: [[...endpointIds]],
  });
  return rows;
};
