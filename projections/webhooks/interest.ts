import type { Pool, PoolClient } from 'pg';
import { matches } from '#schemas/http/webhook-events.ts';

/**
 * Which endpoints subscribe to which events, in memory. The cache is never older than `maxAgeMs` when a batch begins.
 * So every member knows a committed interval when it takes a batch `maxAgeMs` later, and the batches it took before lie
 * below the head that the interval's catch-up takes after `settleMs`. Stale subscriptions are harmless: minting checks
 * the table again.
 */

export interface Interval {
  readonly endpointId: string;
  readonly workspaceId: string;
  /** Commit positions [from, to); to null: still open. */
  readonly from: bigint;
  readonly to: bigint | null;
  readonly events: readonly string[];
  /** The clients to whose events it is limited; null: all events of the workspace. */
  readonly clientIds: readonly string[] | null;
}

/** An endpoint that receives an event of a type, if the event belongs to one of these clients; null: any event. */
export interface Subscriber {
  readonly endpointId: string;
  readonly clientIds: readonly string[] | null;
}

/** Whether an endpoint with this limit gets an event of this client; null: of no client. */
export const isWithin = (clientIds: readonly string[] | null, clientId: string | null): boolean =>
  clientIds === null || (clientId !== null && clientIds.includes(clientId));

const maxAgeMs = 1_000;
/** After this a catch-up may trust that every member knows its interval. Well over `maxAgeMs`. */
export const settleMs = 3_000;

const columns =
  'endpoint_id, workspace_id, from_position::text, to_position::text, events, client_ids, version::text from ops.webhook_intervals';

interface Row {
  endpoint_id: string;
  workspace_id: string;
  from_position: string;
  to_position: string | null;
  events: string[];
  client_ids: string[] | null;
  version: string;
}

export class Interest {
  readonly #pool: Pick<Pool, 'query'>;
  /** Workspace → intervals, by `endpoint from`. */
  readonly #intervals = new Map<string, Map<string, Interval>>();
  /** Workspace → type → intervals that include it. */
  readonly #byType = new Map<string, Map<string, readonly Interval[]>>();
  #version = -1n;
  #asOf = Number.NEGATIVE_INFINITY;
  /** An answer read before this instant is outdated. */
  #outdatedAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;

  constructor(pool: Pick<Pool, 'query'>) {
    this.#pool = pool;
  }

  /** Reads these workspaces within a transaction, with its own changes. */
  static async within(tx: PoolClient, workspaceIds: readonly string[]): Promise<Interest> {
    const interest = new Interest(tx);
    const { rows } = await tx.query<Row>({
      name: 'webhook-interest-within',
      text: `select ${columns} where workspace_id = any($1::uuid[])`,
      values: [workspaceIds],
    });
    interest.#take(rows);
    return interest;
  }

  /** Workspaces that have, or had, an endpoint. */
  get size(): number {
    return this.#intervals.size;
  }

  /** At most `maxAgeMs` old when it resolves. */
  async fresh(): Promise<void> {
    while (this.#asOf < Math.max(this.#outdatedAt, performance.now() - maxAgeMs)) {
      this.#reading ??= this.#read().finally(() => {
        this.#reading = null;
      });
      await this.#reading;
    }
  }

  /**
   * This process changed endpoints just now: the next batch reads the tables again, and does not accept a read that
   * began before.
   */
  outdated(): void {
    this.#outdatedAt = performance.now();
  }

  knows(workspaceId: string): boolean {
    return this.#intervals.has(workspaceId);
  }

  /** Whether any interval of the workspace, open or closed, includes one of these types. */
  includesAny(workspaceId: string, types: readonly string[]): boolean {
    return this.knows(workspaceId) && types.some((type) => this.#of(workspaceId, type).length > 0);
  }

  /** Endpoints that receive an event of this type at this position; one may stand twice, with two limits. */
  at(workspaceId: string, type: string, position: bigint): readonly Subscriber[] {
    const found = this.#of(workspaceId, type);
    if (found.length === 0) return found;
    return found.filter(({ from, to }) => from <= position && (to === null || position < to));
  }

  #of(workspaceId: string, type: string): readonly Interval[] {
    const types = this.#byType.get(workspaceId) ?? new Map<string, readonly Interval[]>();
    const known = types.get(type);
    if (known !== undefined) return known;
    const intervals = this.#intervals.get(workspaceId);
    if (intervals === undefined) return [];
    const found = [...intervals.values()].filter(({ events }) => matches(events, type));
    types.set(type, found);
    this.#byType.set(workspaceId, types);
    return found;
  }

  async #read(): Promise<void> {
    const asOf = performance.now();
    const { rows } = await this.#pool.query<Row>({
      name: 'webhook-interest',
      text: `select ${columns} where version > $1::int8`,
      values: [this.#version],
    });
    this.#take(rows);
    this.#asOf = asOf;
  }

  #take(rows: readonly Row[]): void {
    for (const row of rows) {
      const of = this.#intervals.get(row.workspace_id) ?? new Map<string, Interval>();
      this.#intervals.set(row.workspace_id, of);
      of.set(`${row.endpoint_id} ${row.from_position}`, {
        endpointId: row.endpoint_id,
        workspaceId: row.workspace_id,
        from: BigInt(row.from_position),
        to: row.to_position === null ? null : BigInt(row.to_position),
        events: row.events,
        clientIds: row.client_ids,
      });
      this.#byType.delete(row.workspace_id);
      const version = BigInt(row.version);
      if (version > this.#version) this.#version = version;
    }
  }
}
