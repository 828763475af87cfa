import type { Pool, PoolClient } from 'pg';
import { plainArray } from '#contracts/base/array-literals.ts';
import { type BackOff, backOff } from '#contracts/base/back-off.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import type { Attempt, DeliveryDecision } from './delivery-decision.ts';
import type { BarrierRow } from './endpoints.ts';
import { after, type BreakerRules, type Findings, find, type Health, isAllWell, nothingFound } from './health.ts';
import { type Claimed, type Outcome, record } from './statements.ts';

/**
 * Records the outcomes of attempts, many in one statement, and tries until they are written. If the process dies
 * before, the lease lapses, and the delivery is sent again with a higher attempt number.
 */

export interface Result {
  readonly delivery: Claimed;
  readonly decision: DeliveryDecision;
  readonly attempt: Attempt;
  /** `changedRevision` of the endpoint at the request. */
  readonly seenRevision: number;
}

/** The written health of an endpoint that is not well. */
export interface HealthRow extends BarrierRow {
  /** Milliseconds since the first failure in a row of failures. */
  readonly failingMs: number | null;
}

export interface RecorderOptions {
  readonly pool: Pool;
  readonly rules: BreakerRules;
  readonly logger: Logger;
  /** Called after the commit, without attempts that were no longer the latest of their delivery. */
  readonly onRecorded: (results: readonly Result[], unwell: readonly HealthRow[]) => void;
}

/** Longest wait of a result for others, milliseconds. */
const lingerMs = 10;
/** Most results of one statement. */
const maxAtOnce = 200;
/** Between two tries to record a batch. */
const recordAgain: BackOff = { firstMs: 50, maxMs: 2_000 };
/** Batches under way: the next one gathers while the database works on others. */
const maxUnderWay = 3;

export class Recorder {
  readonly #options: RecorderOptions;
  #waiting: Result[] = [];
  #underWay = 0;
  #timer: NodeJS.Timeout | null = null;
  #closing: PromiseWithResolvers<void> | null = null;
  #abandoned = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** Results and batches that are not written yet. */
  get size(): number {
    return this.#waiting.length + this.#underWay;
  }

  add(result: Result): void {
    this.#waiting.push(result);
    if (this.#waiting.length >= maxAtOnce) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), lingerMs);
  }

  /** Resolves when everything is written, or after `limitMs`: another sender then sends the rest again. */
  async close(limitMs: number): Promise<void> {
    this.#closing ??= Promise.withResolvers<void>();
    this.#flush();
    const { promise, resolve } = this.#closing;
    const timer = setTimeout(() => {
      this.#abandoned = true;
      resolve();
    }, limitMs);
    await promise;
    clearTimeout(timer);
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    while (this.#waiting.length > 0 && this.#underWay < maxUnderWay) {
      const batch = this.#waiting.splice(0, maxAtOnce);
      this.#underWay += 1;
      void this.#write(batch);
    }
    if (this.#underWay === 0 && this.#waiting.length === 0) this.#closing?.resolve();
  }

  async #write(batch: readonly Result[]): Promise<void> {
    const { logger, onRecorded } = this.#options;
    let withBodies = true;
    for (let failures = 0; !this.#abandoned; failures += 1) {
      try {
        const { recorded, unwell } = await this.#record(batch, withBodies);
        onRecorded(
          batch.filter(({ delivery }) => recorded.has(delivery.deliveryId)),
          unwell,
        );
        break;
      } catch (error) {
        logger.warn({ err: error, deliveries: batch.length }, 'results could not be recorded; trying again');
        // If the database refused a batch for ever, its deliveries would be sent for ever. Only the bodies come from
        // outside, so the next try leaves them out.
        if (!isInfrastructureFault(error)) withBodies = false;
        await new Promise((resolve) => setTimeout(resolve, backOff(failures, recordAgain)));
      }
    }
    this.#underWay -= 1;
    this.#flush();
  }

  async #record(
    batch: readonly Result[],
    withBodies: boolean,
  ): Promise<{ readonly recorded: ReadonlySet<string>; readonly unwell: readonly HealthRow[] }> {
    const { pool } = this.#options;
    // Writes in the order of the ids, so that two writers of the same rows never deadlock.
    const outcomes = [...batch]
      .sort((a, b) => (a.delivery.deliveryId < b.delivery.deliveryId ? -1 : 1))
      .map((result) => outcomeOf(result, withBodies));
    const found = findingsOf(batch);
    if ([...found.values()].every(isAllWell)) {
      const well = [...found].map(([endpointId, { seenRevision }]) => ({ endpointId, seenRevision }));
      return { recorded: await record(pool, outcomes, well), unwell: [] };
    }
    return inTransaction(pool, async (tx) => {
      const recorded = await record(tx, outcomes, []);
      // A result that came too late does not count for the endpoint.
      const ours = findingsOf(batch.filter(({ delivery }) => recorded.has(delivery.deliveryId)));
      return { commit: true, result: { recorded, unwell: await this.#writeHealth(tx, ours) } };
    });
  }

  /** Runs in the transaction of the results, so that the breaker counts every failure that the deliveries show. */
  async #writeHealth(tx: PoolClient, found: ReadonlyMap<string, Findings>): Promise<readonly HealthRow[]> {
    const unwell = [...found].filter(([, one]) => !isAllWell(one)).sort(([a], [b]) => (a < b ? -1 : 1));
    if (found.size === 0) return [];
    await tx.query(makeSql, [
      plainArray(unwell.map(([id]) => id)),
      plainArray(unwell.map(([, { seenRevision }]) => seenRevision)),
    ]);
    const { rows } = await tx.query<Health & { readonly id: string; readonly now: number }>(lockSql, [
      plainArray([...found.keys()]),
    ]);
    const written = rows.flatMap((row) => {
      const findings = found.get(row.id);
      const health = findings === undefined ? null : after(row, findings, row.now, this.#options.rules);
      return health === null ? [] : [{ id: row.id, now: row.now, health }];
    });
    await tx.query(writeSql, [JSON.stringify(written.map(({ id, health }) => ({ id, ...health })))]);
    return written.map(({ id, now, health }) => ({
      endpointId: id,
      seenRevision: health.seenRevision,
      opened: health.opened,
      openMs: health.openUntil === null ? null : health.openUntil - now,
      disable: health.disable,
      failingMs: health.failingSince === null ? null : now - health.failingSince,
    }));
  }
}

const ms = (column: string): string => `extract(epoch from ${column})::float8 * 1000`;

const makeSql = `
insert into ops.webhook_health (endpoint_id, seen_revision)
select f.id, f.seen from unnest($1::uuid[], $2::int4[]) f (id, seen) order by f.id
on conflict do nothing`;
/** An endpoint that never failed has no row, and a success makes none. */
const lockSql = `
select h.endpoint_id as id, h.seen_revision as "seenRevision", ${ms('h.failing_since')} as "failingSince",
  ${ms('h.failed_at')} as "failedAt", h.consecutive, ${ms('h.open_until')} as "openUntil", h.opened, h.disable,
  ${ms('clock_timestamp()')} as now
from ops.webhook_health h where h.endpoint_id = any($1::uuid[]) order by h.endpoint_id for update`;

const instant = (member: string): string => `to_timestamp((f.health ->> '${member}')::float8 / 1000)`;
const writeSql = `
update ops.webhook_health h
set seen_revision = (f.health ->> 'seenRevision')::int, failing_since = ${instant('failingSince')},
  failed_at = ${instant('failedAt')}, consecutive = (f.health ->> 'consecutive')::int,
  open_until = ${instant('openUntil')}, opened = (f.health ->> 'opened')::int, disable = f.health ->> 'disable'
from jsonb_array_elements($1::jsonb) f (health)
where h.endpoint_id = (f.health ->> 'id')::uuid`;

const outcomeOf = ({ delivery, decision, attempt }: Result, withBody: boolean): Outcome => ({
  deliveryId: delivery.deliveryId,
  eventTime: delivery.eventTime,
  attempt: delivery.attempt,
  tries: delivery.tries,
  trigger: delivery.trigger,
  outcome: decision.outcome,
  waitMs: decision.waitMs,
  entry: withBody ? attempt : { ...attempt, responseBody: null },
});

/**
 * By endpoint: the summary of its answers, in their order. Answers to an older revision of the endpoint are left out.
 */
const findingsOf = (batch: readonly Result[]): Map<string, Findings> => {
  const found = new Map<string, Findings>();
  for (const { delivery, decision, seenRevision } of batch) {
    let one = found.get(delivery.endpointId);
    if (one === undefined || one.seenRevision < seenRevision) {
      one = nothingFound(seenRevision);
      found.set(delivery.endpointId, one);
    }
    if (one.seenRevision === seenRevision) find(one, decision, delivery.probe);
  }
  return found;
};
