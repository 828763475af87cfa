import { setTimeout as delay } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { type EventStore, EventStoreError, type ReadStart, type RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import type { WebhookState } from '#domain/webhook.ts';
import type { DecodedEvent, EventCodec } from '#runtime/codec.ts';
import { faultPoint } from '#runtime/fault-point.ts';
import { isInfrastructureFault } from '#runtime/faults.ts';
import type { Logger } from '#runtime/telemetry.ts';
import { inTransaction } from '#runtime/transactions.ts';
import { matches } from '#schemas/http/webhook-events.ts';
import { kindOf } from '#schemas/topics.ts';
import type { Handover } from './handover.ts';
import { type Interest, settleMs } from './interest.ts';
import { disorderMs, positionBefore } from './marks.ts';
import { mint } from './mint.ts';
import { mintReserved, plan, workspaceOf } from './plan.ts';
import type { Subjects } from './subjects.ts';
import { typesOfKind } from './types.ts';

/**
 * Stretches of the store that are read once more for one endpoint: the catch-up behind every interval, replays, and the
 * deletion of what a deleted endpoint had. A step reads a page, mints it and moves the job's cursor in one transaction
 * that holds the job's row: whoever dies leaves the step undone, and nobody does it twice.
 */

export interface JobsDeps {
  readonly log: Log;
  readonly eventStore: EventStore;
  readonly codec: EventCodec;
  readonly pool: Pool;
  readonly handover: Handover;
  readonly logger: Logger;
  readonly interest: Interest;
  readonly subjects: Subjects;
  readonly replayRate?: number;
}

interface Job {
  readonly id: string;
  readonly kind: 'catch_up' | 'replay' | 'purge';
  readonly endpoint_id: string;
  readonly workspace_id: string;
  readonly cursor: string | null;
  /** The first event it reads, until its first page is read; null where it reads on behind the cursor. */
  readonly from_inclusive: string | null;
  readonly from_time: Date | null;
  readonly to_time: Date | null;
  readonly types: string[] | null;
  /** The head it reads to, taken when every member knows its interval; null before. */
  readonly last_position: string | null;
  /** Milliseconds until that head may be taken; null before the first step. */
  readonly settles_in: number | null;
  readonly state: WebhookState | null;
}

const pageEvents = 500;
/** Between two looks for a job: what another process made or failed at is found by the next one. */
const minRestMs = 250;
const maxRestMs = 3_000;
/** After a step that failed: the others go on. */
const failedRestMs = 1_000;
/** How often a replay looks whether there is room again. */
const restMs = 500;
const defaultReplayRate = 200;
/** Deliveries of replays that may wait for one endpoint: a replay goes on when they are fewer. */
const mostWaiting = 1_000;
const purgedAtOnce = 1_000;
/** How long a job that failed lets the others pass. */
const passMs = 2_000;
const brokenPassMs = 5_000;

/** What a step did: when somebody is to go on with it, milliseconds; null when it is over. */
interface Step {
  readonly next: number | null;
  readonly committed?: () => void;
  readonly rolledBack?: () => void;
}

export class Jobs {
  readonly #deps: JobsDeps;
  #wake: (() => void) | null = null;
  #woken = false;
  #restMs = minRestMs;

  constructor(deps: JobsDeps) {
    this.#deps = deps;
  }

  /** There is a new one. */
  wake(): void {
    this.#woken = true;
    this.#wake?.();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { logger } = this.#deps;
    while (!signal.aborted) {
      try {
        if (await this.#step()) continue;
      } catch (error) {
        if (signal.aborted) return;
        const log = isInfrastructureFault(error) ? logger.warn : logger.error;
        log.call(logger, { err: error }, 'a webhook job could not go on');
        this.#woken = false;
        this.#restMs = failedRestMs;
      }
      await this.#rest(signal);
    }
  }

  async #rest(signal: AbortSignal): Promise<void> {
    if (!this.#woken) {
      const over = new AbortController();
      const until = AbortSignal.any([signal, over.signal]);
      this.#wake = () => over.abort();
      await delay(this.#restMs, undefined, { signal: until }).catch(() => undefined);
      this.#wake = null;
    }
    this.#woken = false;
  }

  /** One step of the job that has waited longest; false when none is due. */
  async #step(): Promise<boolean> {
    const { pool } = this.#deps;
    if (!(await this.#isDue())) return false;
    let step: Step | null = null;
    let job: Job | null = null;
    try {
      const found = await inTransaction(pool, async (tx) => {
        job = await this.#next(tx);
        if (job === null) return { commit: false, result: false };
        step = await this.#work(tx, job);
        await tx.query(
          `update ops.webhook_jobs set
             not_before = clock_timestamp() + coalesce($2::float8, 0) * interval '1 millisecond',
             status = case when $2::float8 is null then 'completed' else status end,
             completed_at = case when $2::float8 is null then clock_timestamp() end,
             updated_at = clock_timestamp()
           where id = $1`,
          [job.id, step.next],
        );
        faultPoint('webhook-jobs:before-commit');
        return { commit: true, result: true };
      });
      asStep(step)?.committed?.();
      return found;
    } catch (error) {
      asStep(step)?.rolledBack?.();
      await this.#giveUp(asJob(job), error);
      throw error;
    }
  }

  /**
   * Whatever the reason, the job goes behind the others: else the job that has waited longest would keep all others from
   * running. A replay ends at an event that cannot be read; a catch-up and a deletion were promised, and are tried again.
   */
  async #giveUp(job: Job | null, error: unknown): Promise<void> {
    if (job === null) return;
    const { pool } = this.#deps;
    const why = error instanceof Error ? error.message : String(error);
    const isBroken = !isInfrastructureFault(error);
    // A process of the former release wrote this row.
    const countsBack = error instanceof EventStoreError && error.code === 'invalid_position' && isCountedBack(job);
    await pool
      .query(
        `update ops.webhook_jobs set
           not_before = clock_timestamp() + $2::float8 * interval '1 millisecond', updated_at = clock_timestamp(),
           status = case when $3::bool and kind = 'replay' then 'failed' else status end,
           failure = case when $3 then $4::text else failure end,
           from_inclusive = case when $5::bool then cursor + 1 else from_inclusive end
         where id = $1 and status = 'running'`,
        [job.id, countsBack ? 0 : isBroken ? brokenPassMs : passMs, isBroken && !countsBack, why, countsBack],
      )
      .catch(() => undefined);
  }

  /** Asked without end: one statement instead of the three of a transaction. Rests until the next one that is known. */
  async #isDue(): Promise<boolean> {
    const { rows } = await this.#deps.pool.query<{ ms: number | null }>(
      `select extract(epoch from min(not_before) - clock_timestamp())::float8 * 1000 as ms
       from ops.webhook_jobs where status = 'running'`,
    );
    const ms = rows[0]?.ms ?? maxRestMs;
    this.#restMs = Math.min(Math.max(ms, minRestMs), maxRestMs);
    return ms <= 0;
  }

  async #next(tx: PoolClient): Promise<Job | null> {
    const { rows } = await tx.query<Job>(
      `select j.id, j.kind, j.endpoint_id, j.workspace_id, j.cursor::text, j.from_inclusive::text, j.from_time, j.to_time, j.types,
         j.last_position::text, extract(epoch from j.settle_at - clock_timestamp())::float8 * 1000 as settles_in,
         (select e.state from ops.webhook_endpoints e where e.id = j.endpoint_id) as state
       from ops.webhook_jobs j
       where j.status = 'running' and j.not_before <= clock_timestamp()
       order by j.not_before limit 1 for update skip locked`,
    );
    return rows[0] ?? null;
  }

  #work(tx: PoolClient, job: Job): Promise<Step> {
    if (job.kind === 'purge') return this.#purge(tx, job);
    return job.kind === 'replay' ? this.#replay(tx, job) : this.#catchUp(tx, job);
  }

  async #catchUp(tx: PoolClient, job: Job): Promise<Step> {
    const { pool, eventStore, interest, handover } = this.#deps;
    // Reads to the head of now; and once more, when every member knows, to the head of then. It never runs after the head.
    const head = job.last_position === null ? ((await eventStore.head()) ?? 0n) : BigInt(job.last_position);
    const isLast = job.last_position !== null || (job.settles_in !== null && job.settles_in <= 0);
    const page = await eventStore.readAll({ ...startOf(job), limit: pageEvents });
    interest.outdated();
    await interest.fresh();
    const events = await this.#decoded(page, job);
    const planned = await plan(events, {
      subjects: this.#deps.subjects,
      partitions: this.#deps.log.partitions,
      hearing: ({ metadata, position }, type) =>
        interest.at(metadata.workspaceId, type, position).filter((id) => id === job.endpoint_id),
    });
    const last = page.at(-1);
    await this.#move(tx, job, last, events.at(-1), 0);
    if (isLast) await tx.query('update ops.webhook_jobs set last_position = $2 where id = $1', [job.id, head]);
    const atHead = last === undefined || last.position >= head;
    const next = !atHead ? 0 : isLast ? null : Math.max(0, job.settles_in ?? settleMs);
    if (planned.length === 0) return { next };
    const { committed, rolledBack } = await mintReserved(handover, planned, async (messages) => {
      const made = await mint(pool, tx, messages, handover.leaseMs);
      await this.#count(tx, job, made.size);
      return made;
    });
    return { next, committed, rolledBack };
  }

  async #replay(tx: PoolClient, job: Job): Promise<Step> {
    const { pool, eventStore, replayRate = defaultReplayRate } = this.#deps;
    const { from_time: from, to_time: to, state } = job;
    if (from === null || to === null || state === null || state.status !== 'live') return { next: null };
    const waiting = await tx.query('select 1 from ops.webhook_queue where endpoint_id = $1 and lane = 2 limit $2', [
      job.endpoint_id,
      mostWaiting,
    ]);
    if ((waiting.rowCount ?? 0) >= mostWaiting) return { next: restMs };
    const after = job.cursor === null ? await positionBefore(pool, from.getTime()) : BigInt(job.cursor);
    const page = await eventStore.readAll({ after, limit: pageEvents });
    const filter = job.types ?? state.events;
    const events = (await this.#decoded(page, job)).filter(({ metadata }) => {
      const at = Date.parse(metadata.occurredAt);
      return at >= from.getTime() && at < to.getTime();
    });
    const planned = await plan(events, {
      subjects: this.#deps.subjects,
      partitions: this.#deps.log.partitions,
      hearing: (_event, type) => (matches(filter, type) ? [job.endpoint_id] : []),
      replayId: job.id,
    });
    const minted = planned.length === 0 ? 0 : (await mint(pool, tx, planned, 0)).size;
    const last = page.at(-1);
    await this.#move(tx, job, last, events.at(-1), minted);
    // Past the end of the store, or so far past the end of the stretch that nothing of it can follow.
    const over = last === undefined || last.created.getTime() > to.getTime() + disorderMs;
    return { next: over ? null : (minted * 1_000) / replayRate };
  }

  /** The deliveries of a deleted endpoint, piece by piece. */
  async #purge(tx: PoolClient, job: Job): Promise<Step> {
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

  #decoded(page: readonly RecordedEvent[], job: Job): Promise<DecodedEvent[]> {
    const mine = page.filter(
      (one) => typesOfKind(kindOf(one.stream)).length > 0 && workspaceOf(one.metadata) === job.workspace_id,
    );
    return this.#deps.codec.decodeAll(mine);
  }

  async #move(
    tx: PoolClient,
    job: Job,
    last: RecordedEvent | undefined,
    newest: DecodedEvent | undefined,
    minted: number,
  ): Promise<void> {
    await tx.query(
      `update ops.webhook_jobs set cursor = coalesce($2::int8, cursor), minted = minted + $3,
         from_inclusive = case when $2::int8 is null then from_inclusive end,
         read_to = greatest(read_to, $4::timestamptz),
         settle_at = coalesce(settle_at, clock_timestamp() + $5 * interval '1 millisecond')
       where id = $1`,
      [job.id, last?.position ?? null, minted, newest?.metadata.occurredAt ?? last?.created ?? null, settleMs],
    );
  }

  async #count(tx: PoolClient, job: Job, minted: number): Promise<void> {
    if (minted > 0) await tx.query('update ops.webhook_jobs set minted = minted + $2 where id = $1', [job.id, minted]);
  }
}

/** A catch-up that has not begun and has only a cursor: the former release stored the position before the event it meant. */
const isCountedBack = ({ kind, cursor, from_inclusive, settles_in }: Job): boolean =>
  kind === 'catch_up' && cursor !== null && from_inclusive === null && settles_in === null;

const startOf = ({ cursor, from_inclusive }: Job): ReadStart => {
  if (from_inclusive !== null) return { from: BigInt(from_inclusive) };
  return { after: cursor === null ? null : BigInt(cursor) };
};

/** tsc does not see that the transaction assigned them. */
const asStep = (step: Step | null): Step | null => step;
const asJob = (job: Job | null): Job | null => job;
