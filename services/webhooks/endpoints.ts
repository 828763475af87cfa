import type { Pool } from 'pg';
import type { WebhookSecret } from '#domain/webhook.ts';
import { rotationsOf } from '#projections/webhooks/rotations.ts';
import { hostKey } from '#runtime/egress/host-key.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { webhookSecret } from '#runtime/identity/webhook-secrets.ts';
import { type SigningKey, signingKey } from '#runtime/identity/webhook-signature.ts';
import type { DeliveryDecision } from './delivery-decision.ts';

/**
 * The endpoints as the dispatcher has folded them, and which of them wait behind a breaker; in memory, because each
 * send needs them. They are at most a second old, or as old as the last wake: so long an endpoint that was turned off
 * may still get deliveries. Rotated secrets are read with each claim.
 */

export interface Endpoint {
  readonly id: string;
  readonly workspaceId: string;
  readonly url: string;
  /** The tenant's endpoints at a host share its budget. */
  readonly host: string;
  readonly active: boolean;
  /** Its answers count under this revision; see `Health`. */
  readonly changedRevision: number;
  secrets: readonly WebhookSecret[];
  /** Revision of the stream as of which the secrets are known. */
  secretsRevision: number;
  keys: readonly { readonly key: SigningKey; readonly expiresAt: number }[] | null;
}

/** Keeps deliveries from an endpoint that is on. */
interface Barrier {
  readonly seenRevision: number;
  /** Monotonic milliseconds; infinite while it waits to be turned off. */
  readonly until: number;
  /** After `until` one delivery may be sent, and only through a claim. */
  readonly halfOpen: boolean;
}

interface EndpointRow {
  id: string;
  workspace_id: string;
  live: boolean;
  url: string;
  active: boolean;
  revision: number;
  changed: number;
  secrets: readonly WebhookSecret[];
  version: string;
}

/** Versions of SECRET_KEY that signing secrets use: a missing one must show at the start and not at a send. */
export const keyVersionsInUse = async (pool: Pool): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ version: string }>(
    `select distinct one ->> 'keyVersion' as version
     from ops.webhook_endpoints e, jsonb_array_elements(e.state -> 'secrets') one
     where e.state ->> 'status' = 'live'
       and (one ->> 'expiresAt' is null or (one ->> 'expiresAt')::timestamptz > clock_timestamp())`,
  );
  return rows.map(({ version }) => version);
};

export interface BarrierRow {
  readonly endpointId: string;
  readonly seenRevision: number;
  readonly opened: number;
  /** Milliseconds from now; null when it is not set. */
  readonly openMs: number | null;
  readonly disable: string | null;
}

export class Endpoints {
  readonly #pool: Pool;
  readonly #secrets: Secrets;
  readonly #known = new Map<string, Endpoint>();
  readonly #maxDown: number;
  #barriers = new Map<string, Barrier>();
  /** By endpoint: unrecorded `down` answers in a row; infinite when it asked for time or to be turned off. */
  readonly #unrecorded = new Map<string, number>();
  #version = '-1';

  /** @param maxDown `down` answers in a row that open the breaker */
  constructor(pool: Pool, secrets: Secrets, maxDown: number) {
    this.#pool = pool;
    this.#secrets = secrets;
    this.#maxDown = maxDown;
  }

  get(id: string): Endpoint | undefined {
    return this.#known.get(id);
  }

  /** How many breakers are not closed. */
  get open(): number {
    let count = 0;
    for (const [id, { halfOpen, seenRevision }] of this.#barriers) {
      if (halfOpen && this.#known.get(id)?.changedRevision === seenRevision) count += 1;
    }
    return count;
  }

  /**
   * Whether deliveries that no person requested may be sent to the endpoint. Only the delivery that a claim let through
   * passes a half-open breaker.
   */
  isOpenFor(endpoint: Endpoint, probe: boolean): boolean {
    if (!endpoint.active) return false;
    if (!probe && (this.#unrecorded.get(endpoint.id) ?? 0) >= this.#maxDown) return false;
    const barrier = this.#barriers.get(endpoint.id);
    if (barrier === undefined || barrier.seenRevision !== endpoint.changedRevision) return true;
    if (barrier.until === Number.POSITIVE_INFINITY) return false;
    return probe || (!barrier.halfOpen && performance.now() >= barrier.until);
  }

  /**
   * Keys that sign at this instant (milliseconds since 1970), newest first.
   * @throws when SECRET_KEY lacks a version that is in use.
   */
  keysOf(endpoint: Endpoint, now: number): readonly SigningKey[] {
    endpoint.keys ??= endpoint.secrets.map((one) => ({
      key: signingKey(webhookSecret(this.#secrets, endpoint.id, one)),
      expiresAt: one.expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(one.expiresAt),
    }));
    const live: SigningKey[] = [];
    for (const { key, expiresAt } of endpoint.keys) if (expiresAt > now) live.push(key);
    return live;
  }

  /**
   * Reads changed endpoints and barriers. NOTE: one row's lock makes versions visible in their order, so none is
   * skipped.
   */
  async refresh(): Promise<void> {
    const [changed, barriers] = await Promise.all([
      this.#pool.query<EndpointRow>({
        name: 'webhook-endpoints',
        text: `select id, workspace_id, revision, state ->> 'status' = 'live' as live, state ->> 'url' as url, active,
                 (state ->> 'changedRevision')::int as changed, state -> 'secrets' as secrets, version::text
               from ops.webhook_endpoints where version > $1::int8 order by version`,
        values: [this.#version],
      }),
      this.#pool.query<BarrierRow>({ name: 'webhook-barriers', text: `${barrierSql} where ${standsSql}` }),
    ]);
    for (const row of changed.rows) {
      this.#version = row.version;
      if (!row.live) this.#known.delete(row.id);
      else {
        const known = this.#known.get(row.id);
        // The dispatcher may have folded an older event of an endpoint whose rotation is known.
        const isNewer = known === undefined || row.revision >= known.secretsRevision;
        this.#known.set(row.id, {
          id: row.id,
          workspaceId: row.workspace_id,
          url: row.url,
          host: hostKey(row.url),
          active: row.active,
          changedRevision: row.changed,
          secrets: isNewer ? row.secrets : known.secrets,
          secretsRevision: isNewer ? row.revision : known.secretsRevision,
          keys: null,
        });
      }
    }
    this.#unrecorded.clear();
    this.#barriers = new Map();
    for (const row of barriers.rows) this.bar(row);
  }

  /** Reads rotations of these endpoints: what is claimed before a call of this is signed with every secret noted by then. */
  async readRotations(ids: Iterable<string>): Promise<void> {
    for (const { endpointId, revision, secrets } of await rotationsOf(this.#pool, [...new Set(ids)])) {
      const known = this.#known.get(endpointId);
      if (known === undefined || known.secretsRevision >= revision) continue;
      Object.assign(known, { secrets, secretsRevision: revision, keys: null });
    }
  }

  /** Takes over health that was just read or written. */
  bar({ endpointId, seenRevision, opened, openMs, disable }: BarrierRow): void {
    this.#unrecorded.delete(endpointId);
    const until =
      disable !== null ? Number.POSITIVE_INFINITY : openMs === null ? 0 : Math.max(0, performance.now() + openMs);
    if (opened === 0 && until === 0) this.#barriers.delete(endpointId);
    else this.#barriers.set(endpointId, { seenRevision, until, halfOpen: opened > 0 });
  }

  /** Counts an answer before it is recorded: failures that will open the breaker stop the next delivery at once. */
  answered(endpointId: string, { endpoint, pauseMs, disable }: DeliveryDecision): void {
    const known = this.#unrecorded.get(endpointId);
    if (disable !== null || pauseMs > 0) this.#unrecorded.set(endpointId, Number.POSITIVE_INFINITY);
    else if (endpoint === 'down') this.#unrecorded.set(endpointId, (known ?? 0) + 1);
    else if (known !== undefined && known !== Number.POSITIVE_INFINITY) this.#unrecorded.delete(endpointId);
  }

  /** Closes the breaker in memory after a success, unless the endpoint asked for time or to be turned off. */
  unbar(endpointId: string): void {
    const barrier = this.#barriers.get(endpointId);
    if (barrier?.halfOpen === true && barrier.until !== Number.POSITIVE_INFINITY) this.#barriers.delete(endpointId);
  }
}

const barrierSql = `
select endpoint_id as "endpointId", seen_revision as "seenRevision", opened,
  extract(epoch from open_until - clock_timestamp())::float8 * 1000 as "openMs", disable
from ops.webhook_health`;
const standsSql = 'opened > 0 or open_until > clock_timestamp() or disable is not null';
