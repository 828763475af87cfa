import type { Pool, PoolClient } from 'pg';
import type { EventStore, ReadStart, RecordedEvent, WorkspacePage } from '#contracts/ports/event-store.ts';
import type { Lane, Log } from '#contracts/ports/log.ts';
import type { WebhookState } from '#domain/webhook.ts';
import { hostKey } from '#runtime/egress/host-key.ts';
import type { DecodedEvent, EventCodec } from '#runtime/eventing/codec.ts';
import { matches } from '#schemas/http/webhook-events.ts';
import { kindOf } from '#schemas/topics.ts';
import { dispatcher } from '../engine/positions.ts';
import type { Handover } from './handover.ts';
import { type Interest, settleMs } from './interest.ts';
import { disorderMs, positionBefore } from './marks.ts';
import { mint } from './mint.ts';
import { mintReserved, plan } from './plan.ts';
import type { Subjects } from './subjects.ts';
import { typesOfKind } from './types.ts';

/** One step of a job: reads a bounded page of the store and mints its deliveries in the caller's transaction. */

export interface StepDeps {
  readonly log: Log;
  readonly eventStore: EventStore;
  readonly codec: EventCodec;
  readonly pool: Pool;
  readonly handover: Handover;
  readonly interest: Interest;
  readonly subjects: Subjects;
  /** The lane that carries all topics; null where there are several. */
  readonly onlyLane: Lane | null;
  readonly replayRate?: number;
}

export interface Job {
  readonly id: string;
  readonly kind: 'catch_up' | 'replay' | 'purge';
  readonly endpoint_id: string;
  readonly workspace_id: string;
  readonly cursor: string | null;
  /** The first event to read, until the first page is read; null where the job reads on behind the cursor. */
  readonly from_inclusive: string | null;
  readonly from_time: Date | null;
  readonly to_time: Date | null;
  readonly types: string[] | null;
  /** The head to read up to, taken when every member knows the interval; null before. */
  readonly last_position: string | null;
  /** Milliseconds until the head may be taken; null before the first step. */
  readonly settles_in: number | null;
  /** See `ops.webhook_jobs`. */
  readonly known_epoch: string | null;
  readonly state: WebhookState | null;
}

/** The result of a step: `next` is the delay to the next step, milliseconds; null when the job is over. */
export interface Step {
  readonly next: number | null;
  readonly committed?: () => void;
  readonly rolledBack?: () => void;
}

const pageEvents = 500;
/** How often a replay checks for room again. */
const restMs = 500;
const defaultReplayRate = 200;
/** Deliveries of replays that may wait for one host: above this a replay pauses. */
const maxWaiting = 1_000;
const purgedAtOnce = 1_000;

export class JobSteps {
  readonly #deps: StepDeps;

  constructor(deps: StepDeps) {
    this.#deps = deps;
  }

  step(tx: PoolClient, job: Job): Promise<Step> {
    if (job.kind === 'purge') return this.#purge(tx, job);
    return job.kind === 'replay' ? this.#replay(tx, job) : this.#catchUp(tx, job);
  }

  /**
   * Reads to the present head; and again, when every member knows the interval, to the head of that time. It never
   * reads beyond the head.
   */
  async #catchUp(tx: PoolClient, job: Job): Promise<Step> {
    const { pool, eventStore, interest, handover } = this.#deps;
    const isLast = job.last_position !== null || (job.settles_in !== null && job.settles_in <= 0);
    if (job.last_position === null && (await this.#hasMissedNothing(tx, job))) {
      await this.#move(tx, job, { events: [], next: null }, undefined, 0);
      return { next: isLast ? null : (job.settles_in ?? settleMs) };
    }
    const head = job.last_position === null ? ((await eventStore.head()) ?? 0n) : BigInt(job.last_position);
    const options = { ...startOf(job), limit: pageEvents, until: head };
    const page = await eventStore.readWorkspace(job.workspace_id, options);
    interest.outdated();
    await interest.fresh();
    const events = await this.#decoded(page.events);
    const planned = await plan(events, {
      subjects: this.#deps.subjects,
      partitions: this.#deps.log.partitions,
      subscribers: ({ metadata, position }, type) =>
        interest.at(metadata.workspaceId, type, position).filter(({ endpointId }) => endpointId === job.endpoint_id),
    });
    await this.#move(tx, job, page, events.at(-1), 0);
    if (isLast) await tx.query('update ops.webhook_jobs set last_position = $2 where id = $1', [job.id, head]);
    const next = !page.isEnd ? 0 : isLast ? null : Math.max(0, job.settles_in ?? settleMs);
    if (planned.length === 0) return { next };
    const { committed, rolledBack } = await mintReserved(handover, planned, async (messages) => {
      const made = await mint(pool, tx, messages, handover.leaseMs);
      await this.#count(tx, job, made.size);
      return made;
    });
    return { next, committed, rolledBack };
  }

  /**
   * True for an interval that begins at its own event and was committed by the owner of the only lane: while the lane's
   * epoch is the same, that owner has judged every later event with the interval, and no other member has judged any.
   */
  async #hasMissedNothing(tx: PoolClient, { known_epoch }: Job): Promise<boolean> {
    const { onlyLane } = this.#deps;
    if (onlyLane === null || known_epoch === null) return false;
    const { rowCount } = await tx.query(
      'select 1 from ops.consumer_positions where consumer_group = $1 and lane = $2 and epoch = $3::int8',
      [dispatcher.group, onlyLane, known_epoch],
    );
    return rowCount === 1;
  }

  async #replay(tx: PoolClient, job: Job): Promise<Step> {
    const { pool, eventStore, replayRate = defaultReplayRate } = this.#deps;
    const { from_time: from, to_time: to, state } = job;
    if (from === null || to === null || state === null || state.status !== 'live') return { next: null };
    const { hasRoom, sharers } = await this.#shareOfHost(tx, job, state.url);
    if (!hasRoom) return { next: restMs };
    const after = job.cursor === null ? await positionBefore(pool, from.getTime()) : BigInt(job.cursor);
    const page = await eventStore.readWorkspace(job.workspace_id, { after, limit: pageEvents });
    const filter = job.types ?? state.events;
    const events = (await this.#decoded(page.events)).filter(({ metadata }) => {
      const at = Date.parse(metadata.occurredAt);
      return at >= from.getTime() && at < to.getTime();
    });
    const planned = await plan(events, {
      subjects: this.#deps.subjects,
      partitions: this.#deps.log.partitions,
      subscribers: (_event, type) =>
        matches(filter, type) ? [{ endpointId: job.endpoint_id, clientIds: state.clientIds }] : [],
      replayId: job.id,
    });
    const minted = planned.length === 0 ? 0 : (await mint(pool, tx, planned, 0)).size;
    await this.#move(tx, job, page, events.at(-1), minted);
    // Past the end of the store, or so far past the end of the range that no event of it can follow.
    const over = page.isEnd || (page.events.at(-1)?.created.getTime() ?? 0) > to.getTime() + disorderMs;
    return { next: over ? null : (minted * 1_000 * sharers) / replayRate };
  }

  /** All endpoints of a tenant on one host share the rate of its replays. */
  async #shareOfHost(
    tx: PoolClient,
    { workspace_id, endpoint_id }: Job,
    url: string,
  ): Promise<{ readonly hasRoom: boolean; readonly sharers: number }> {
    const host = hostKey(url);
    const { rows } = await tx.query<{ id: string; url: string }>(
      `select id, state ->> 'url' as url from ops.webhook_endpoints where workspace_id = $1 and active`,
      [workspace_id],
    );
    const there = new Set([endpoint_id, ...rows.filter((one) => hostKey(one.url) === host).map(({ id }) => id)]);
    const found = await tx.query<{ waiting: number; sharers: number }>(
      `select
         (select count(*)::int from (
            select from ops.webhook_queue where endpoint_id = any($2::uuid[]) and lane = 2 limit $3) w) as waiting,
         (select count(*)::int from ops.webhook_jobs
          where workspace_id = $1 and kind = 'replay' and status = 'running' and endpoint_id = any($2::uuid[])) as sharers`,
      [workspace_id, [...there], maxWaiting],
    );
    const { waiting = 0, sharers = 1 } = found.rows[0] ?? {};
    return { hasRoom: waiting < maxWaiting, sharers };
  }

  /**
   * Deletes what a deleted endpoint leaves, piece by piece. The queue first: a row without its delivery would keep the
   * week of its event for ever.
   */
  async #purge(tx: PoolClient, job: Job): Promise<Step> {
    const queued = await tx.query(
      `delete from ops.webhook_queue where delivery_id = any(array(
         select delivery_id from ops.webhook_queue where endpoint_id = $1 limit $2))`,
      [job.endpoint_id, purgedAtOnce],
    );
    if (queued.rowCount === purgedAtOnce) return { next: 0 };
    const { rowCount } = await tx.query(
      `delete from ops.webhook_deliveries d using (
         select event_time, id from ops.webhook_deliveries where endpoint_id = $1 limit $2
       ) gone where d.event_time = gone.event_time and d.id = gone.id`,
      [job.endpoint_id, purgedAtOnce],
    );
    if (rowCount === purgedAtOnce) return { next: 0 };
    await tx.query('delete from ops.webhook_intervals where endpoint_id = $1', [job.endpoint_id]);
    return { next: null };
  }

  #decoded(events: readonly RecordedEvent[]): Promise<DecodedEvent[]> {
    return this.#deps.codec.decodeAll(events.filter(({ stream }) => typesOfKind(kindOf(stream)).length > 0));
  }

  async #move(
    tx: PoolClient,
    job: Job,
    { events, next }: Pick<WorkspacePage, 'events' | 'next'>,
    newest: DecodedEvent | undefined,
    minted: number,
  ): Promise<void> {
    await tx.query(
      `update ops.webhook_jobs set cursor = coalesce($2::int8, cursor), minted = minted + $3,
         from_inclusive = case when $2::int8 is null then from_inclusive end,
         read_to = greatest(read_to, $4::timestamptz),
         settle_at = coalesce(settle_at, clock_timestamp() + $5 * interval '1 millisecond')
       where id = $1`,
      [job.id, next, minted, newest?.metadata.occurredAt ?? events.at(-1)?.created ?? null, settleMs],
    );
  }

  async #count(tx: PoolClient, job: Job, minted: number): Promise<void> {
    if (minted > 0) await tx.query('update ops.webhook_jobs set minted = minted + $2 where id = $1', [job.id, minted]);
  }
}

const startOf = ({ cursor, from_inclusive }: Job): ReadStart => {
  if (from_inclusive !== null) return { from: BigInt(from_inclusive) };
  return { after: cursor === null ? null : BigInt(cursor) };
};
