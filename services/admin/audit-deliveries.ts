import { isWithin } from '#projections/webhooks/interest.ts';
import type { Minted } from '#projections/webhooks/mint.ts';
import { plan } from '#projections/webhooks/plan.ts';
import { Subjects } from '#projections/webhooks/subjects.ts';
import { kindsPublished } from '#projections/webhooks/types.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { matches } from '#schemas/http/webhook-events.ts';
import { kindOf } from '#schemas/topics.ts';
import type { ChecksOptions } from './audit-findings.ts';
import type { Admin } from './context.ts';

/** Deliveries are events × subscriptions: each event of the time for which deliveries are kept has its own, and no other is there. */

/** Deliveries are dropped by weeks, when they are 30 days old: a day less, so that none is dropped while we look. */
const keptMs = 29 * 86_400_000;
const batch = 500;
const maxNamed = 20;

interface Interval {
  readonly endpoint_id: string;
  readonly from_position: string;
  readonly to_position: string | null;
  readonly events: readonly string[];
  readonly client_ids: readonly string[] | null;
}

interface Wanted {
  readonly id: string;
  readonly at: string;
  readonly named: string;
}

export class DeliveryChecks {
  readonly #admin: Admin;
  readonly #options: ChecksOptions;
  readonly #intervals: readonly Interval[];
  readonly #since: string;
  readonly #subjects: Subjects;
  readonly #kinds = new Set(kindsPublished);
  #wanted: Wanted[] = [];

  private constructor(admin: Admin, options: ChecksOptions, intervals: readonly Interval[]) {
    this.#admin = admin;
    this.#options = options;
    this.#intervals = intervals;
    this.#since = new Date(admin.operator.clock() - keptMs).toISOString();
    this.#subjects = new Subjects(admin.store);
  }

  /** Endpoints that a job reads for have deliveries still to come, or to go: they are left out. */
  static async begin(admin: Admin, options: ChecksOptions): Promise<DeliveryChecks> {
    const { rows } = await admin.pool.query<Interval>(
      `select i.endpoint_id, i.from_position, i.to_position, i.events, i.client_ids from ops.webhook_intervals i
       where i.workspace_id = $1 and exists (select from ops.webhook_endpoints e where e.id = i.endpoint_id)
         and not exists (select from ops.webhook_jobs j
           where j.endpoint_id = i.endpoint_id and (j.kind = 'purge' or (j.kind = 'catch_up' and j.status = 'running')))`,
      [options.workspaceId],
    );
    return new DeliveryChecks(admin, options, rows);
  }

  covers(kind: string): boolean {
    return this.#intervals.length > 0 && this.#kinds.has(kind);
  }

  /** @param events a whole stream */
  async add(events: readonly DecodedEvent[]): Promise<void> {
    const stream = events.at(-1)?.stream;
    const young = events.filter(({ metadata }) => metadata.occurredAt >= this.#since);
    if (stream === undefined || young.length === 0 || !this.covers(kindOf(stream))) return;
    const planned = await plan(events, {
      subjects: this.#subjects,
      partitions: this.#admin.log.partitions,
      subscribers: (event, type) =>
        event.metadata.occurredAt < this.#since
          ? []
          : this.#at(event, type).map((one) => ({ endpointId: one.endpoint_id, clientIds: one.client_ids })),
    });
    for (const message of planned) this.#want(message);
    if (this.#wanted.length >= batch) await this.flush();
  }

  #at({ position }: DecodedEvent, type: string): readonly Interval[] {
    return this.#intervals.filter(
      ({ from_position: from, to_position: to, events }) =>
        BigInt(from) <= position && (to === null || position < BigInt(to)) && matches(events, type),
    );
  }

  #want({ eventTime, type, position, clientId, deliveries }: Minted): void {
    for (const { id, endpointId } of deliveries) {
      const isOpen = this.#intervals.some(
        (one) => one.endpoint_id === endpointId && isWithin(one.client_ids, clientId),
      );
      if (isOpen) this.#wanted.push({ id, at: eventTime, named: `${type} at ${position} to webhook ${endpointId}` });
    }
  }

  async flush(): Promise<void> {
    const wanted = this.#wanted;
    this.#wanted = [];
    const { counted, say } = this.#options;
    counted.deliveries = (counted.deliveries ?? 0) + wanted.length;
    if (wanted.length === 0) return;
    const { rows } = await this.#admin.pool.query<{ readonly id: string }>(
      `select w.id from unnest($1::uuid[], $2::timestamptz[]) as w (id, at) where not exists (
         select from ops.webhook_deliveries d where d.id = w.id and d.event_time = w.at)`,
      [wanted.map(({ id }) => id), wanted.map(({ at }) => at)],
    );
    const named = new Map(wanted.map((one) => [one.id, one.named]));
    for (const { id } of rows) say(`the delivery ${id} is missing: ${named.get(id)}`);
  }

  /** What was delivered, and no event of the feed asked for. Replays and tests are asked for by a person. */
  async end(): Promise<void> {
    const { rows } = await this.#admin.pool.query<{ readonly id: string; readonly type: string; endpoint_id: string }>(
      `select d.id, d.type, d.endpoint_id from ops.webhook_deliveries d
       where d.workspace_id = $1 and d.event_time >= $2 and d.replay_id is null and d.type <> 'webhook.test'
         and d.position <= (select max(position) from ops.feed_events where workspace_id = $1 and sequence <= $3)
         and not exists (select from ops.feed_events f where f.workspace_id = $1 and f.position = d.position)
       limit ${maxNamed}`,
      [this.#options.workspaceId, this.#since, this.#options.size],
    );
    for (const { id, type, endpoint_id: to } of rows)
      this.#options.say(`no event asked for the delivery ${id}: ${type} to webhook ${to}`);
  }
}
