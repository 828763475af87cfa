import type { Pool } from 'pg';
import { type BackOff, backOff } from '#contracts/base/back-off.ts';
import type { Handover, Leased } from '#projections/webhooks/handover.ts';
import { encodeToken } from '#runtime/eventing/consistency.ts';
import { deliveryHeaders } from '#runtime/identity/webhook-signature.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { Liveness } from '#runtime/work/liveness.ts';
import { Rest, WakeSignal } from '#runtime/work/wake-signal.ts';
import { Backlog, type ClaimRequests } from './backlog.ts';
import { ConcurrencyLimiter } from './concurrency-limiter.ts';
import { PendingCounts } from './counts.ts';
import { attemptOf, judge, type ReceiverAnswer } from './delivery-decision.ts';
import type { SenderDeps } from './deps.ts';
import { disableDue } from './disabler.ts';
import { type Endpoint, Endpoints } from './endpoints.ts';
import { Listener } from './listener.ts';
import { resultOf, type SenderMetrics, senderMetrics } from './metrics.ts';
import { type HealthRow, Recorder, type Result } from './recorder.ts';
import { type Claimed, claim, findDue, giveBack } from './statements.ts';

/**
 * Sends minted deliveries: it claims due rows, or the dispatcher hands them over; it begins as many as the limits of
 * endpoint, tenant and process allow, and records each outcome.
 *
 * If the process dies between a claim and its record, the lease lapses and the next attempt has a higher number. A
 * record names its attempt, so a sender that slept past the end of its lease never overwrites its successor's record.
 */

/** Time without a search after which the sender is not ready, milliseconds. */
const staleAfterMs = 10_000;
/**
 * After a search that takes longer, the sender rests nine times as long: so searches take a tenth of the time.
 * Milliseconds.
 */
const cheapSearchMs = 5;
/**
 * Longest rest after a search, milliseconds: one that waited for a busy database does not show the cost of searches.
 */
const maxRestMs = 4_000;
/** Between two searches that failed. */
const searchAgain: BackOff = { firstMs: 50, maxMs: 5_000 };
/**
 * Longest wait for the database at the end, milliseconds; unrecorded deliveries are then sent again by another sender.
 */
const closingMs = 10_000;
/** Tokens in the cache: the deliveries of one event to several endpoints share one. */
const maxTokens = 1_024;

export class Sender implements Handover {
  readonly leaseMs: number;
  readonly #deps: SenderDeps;
  readonly #pool: Pool;
  readonly #now: () => number;
  readonly #random: () => number;
  /** Rest between two searches that find nothing: a retry is late by at most the longest rest. */
  readonly #idle: Rest;
  readonly #endpoints: Endpoints;
  readonly #limiter: ConcurrencyLimiter<Claimed>;
  readonly #recorder: Recorder;
  readonly #metrics: SenderMetrics | null;
  readonly #wakeSignal = new WakeSignal();
  readonly #backlog = new Backlog();
  readonly #tokens = new Map<string, string>();
  /** Deliveries that were handed over and have not begun. */
  readonly #admitting = new Set<Promise<void>>();
  #returning: Promise<void> = Promise.resolve();
  #disabling: Promise<void> | null = null;
  #sweptAt = Number.NEGATIVE_INFINITY;
  #woken = true;
  #draining = false;
  #wakingSoon = false;
  readonly #liveness = new Liveness(staleAfterMs);
  #restUntil = 0;

  constructor(deps: SenderDeps) {
    const { config, pool, secrets, logger } = deps;
    if (config.webhookLeaseMs <= 2 * config.webhookExchangeMs) {
      throw new Error('webhookLeaseMs must be more than twice webhookExchangeMs');
    }
    this.leaseMs = config.webhookLeaseMs;
    this.#deps = deps;
    this.#pool = pool;
    this.#now = deps.now ?? Date.now;
    this.#random = deps.random ?? Math.random;
    this.#idle = new Rest(deps.pollMs ?? 500);
    this.#endpoints = new Endpoints(pool, secrets, config.webhookBreakerFailures);
    const limits = {
      endpoint: config.webhookPerEndpoint,
      host: config.webhookPerHost,
      tenant: config.webhookPerTenant,
      total: config.webhookConcurrency,
      failuresPerSecond: config.webhookHostFailures,
    };
    this.#limiter = new ConcurrencyLimiter(limits, (endpointId) => this.#endpoints.get(endpointId)?.host ?? '');
    this.#recorder = new Recorder({
      pool,
      rules: { failures: config.webhookBreakerFailures, openMs: config.webhookBreakerMs },
      logger,
      onRecorded: (results, unwell) => this.#recorded(results, unwell),
    });
    const gauges = { open: () => this.#endpoints.open, underWay: () => this.#limiter.underWay };
    this.#metrics = deps.registry === undefined ? null : senderMetrics(deps.registry, gauges);
    deps.readiness?.add('webhooks', async () => this.#liveness.check(`${this.#limiter.underWay} under way`));
  }

  reserve(endpointId: string, workspaceId: string, wanted: number): number {
    const endpoint = this.#endpoints.get(endpointId);
    if (this.#mayNotClaim() || endpoint === undefined || !this.#endpoints.isOpenFor(endpoint, false)) return 0;
    // Queued deliveries came first. But a claim costs more than a hand-over, so a sender that is behind would fall
    // further behind if it only claimed.
    const max = this.#backlog.hasFirst(endpointId) ? this.#limiter.room(endpointId, workspaceId).all >> 1 : wanted;
    return this.#limiter.reserve(endpointId, workspaceId, Math.min(wanted, max));
  }

  giveBack(endpointId: string, workspaceId: string, count: number): void {
    this.#limiter.unreserve(endpointId, workspaceId, count);
    this.#wakeSignal.wake();
  }

  send(deliveries: readonly Leased[]): void {
    const admitted = this.#admit(
      deliveries.map((one) => ({ ...one, queueLane: 0, forced: false, probe: false })),
      () => {
        for (const { endpointId, workspaceId } of deliveries) this.#limiter.unreserve(endpointId, workspaceId, 1);
      },
    ).finally(() => this.#admitting.delete(admitted));
    this.#admitting.add(admitted);
  }

  wake(): void {
    this.#idle.reset();
    this.#woken = true;
    this.#wakeSignal.wake();
  }

  /** Runs until the signal aborts and every begun delivery is recorded or given back. */
  async run(signal: AbortSignal): Promise<void> {
    const { logger } = this.#deps;
    const stop = (): void => {
      this.#draining = true;
      this.#wakeSignal.wake();
    };
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
    const listener = new Listener(this.#deps.databaseUrl, () => this.wake());
    try {
      for (let failures = 0; !signal.aborted; ) {
        try {
          await listener.ensure();
          await this.#wakeSignal.waitUntil(await this.#work(), () => signal.aborted || this.#isWorkDue());
          failures = 0;
        } catch (error) {
          failures += 1;
          logger.warn({ err: error }, 'looking for webhook deliveries failed');
          await this.#wakeSignal.waitUntil(backOff(failures, searchAgain), () => signal.aborted);
        }
      }
      await Promise.all(this.#admitting);
      this.#return(this.#limiter.withdraw(() => false));
      await this.#wakeSignal.waitUntil(this.#deps.config.webhookExchangeMs * 2, () => this.#limiter.underWay === 0);
    } finally {
      signal.removeEventListener('abort', stop);
      await this.#recorder.close(closingMs);
      await this.#disabling;
      await this.#returning;
      listener.close();
    }
  }

  /** Does everything that is due now. @returns milliseconds until the next search */
  async #work(): Promise<number> {
    if (this.#searchAt() <= performance.now()) await this.#search();
    while (await this.#claim());
    return Math.max(0, this.#searchAt() - performance.now());
  }

  #searchAt(): number {
    return Math.max(this.#woken ? 0 : this.#liveness.searchedAt + this.#idle.ms, this.#restUntil);
  }

  #isWorkDue(): boolean {
    return this.#searchAt() <= performance.now() || this.#claimRequests().claimRequests.length > 0;
  }

  /** Finds the endpoints with due deliveries. */
  async #search(): Promise<void> {
    this.#woken = false;
    const begun = performance.now();
    await this.#endpoints.refresh();
    const found = await findDue(this.#pool);
    this.#backlog.found(found);
    const quiet = found.length === 0 && this.#limiter.underWay === 0;
    this.#idle.after(!quiet);
    this.#metrics?.lag(found.reduce((max, { lagMs }) => Math.max(max, lagMs), 0) / 1_000);
    // An endpoint may have been turned off or barred by its breaker meanwhile, and leases may be nearly over.
    this.#return(this.#limiter.withdraw((one) => this.#mayBegin(one) !== null));
    // Deliveries that wait for a host's credit begin here, because no end of a request may wake them.
    this.#start();
    this.#sweep();
    this.#liveness.searched();
    const { searchedAt } = this.#liveness;
    const took = searchedAt - begun;
    this.#restUntil = took > cheapSearchMs ? searchedAt + Math.min(9 * took, maxRestMs) : 0;
  }

  #sweep(): void {
    if (performance.now() - this.#sweptAt < this.#deps.config.sweepIntervalMs) return;
    this.#sweptAt = performance.now();
    this.#disable();
  }

  #disable(): void {
    this.#disabling ??= disableDue(this.#deps)
      .then(
        (disabled) => {
          if (disabled.length > 0) this.wake();
        },
        (error: unknown) => this.#deps.logger.warn({ err: error }, 'endpoints could not be turned off yet'),
      )
      .finally(() => {
        this.#disabling = null;
      });
  }

  #claimRequests(): ClaimRequests {
    if (this.#mayNotClaim()) return { claimRequests: [], probes: [] };
    const pending = new PendingCounts();
    return this.#backlog.claimRequests((endpointId) => {
      const endpoint = this.#endpoints.get(endpointId);
      if (endpoint === undefined) return null;
      const { workspaceId } = endpoint;
      const open = this.#endpoints.isOpenFor(endpoint, false);
      const take = (count: number): void => this.#limiter.hold(pending, endpointId, workspaceId, count);
      return { ...this.#limiter.room(endpointId, workspaceId, pending), open, take };
    });
  }

  #mayNotClaim(): boolean {
    return this.#draining || (this.#deps.clock !== undefined && this.#deps.clock.fault() !== null);
  }

  /** Claims once. False when there was nothing to claim or no room. */
  async #claim(): Promise<boolean> {
    const { claimRequests, probes } = this.#claimRequests();
    if (claimRequests.length === 0) return false;
    const { claimed, without } = await claim(this.#pool, this.leaseMs, claimRequests, probes);
    faultPoint('sender:claimed');
    if (without.length > 0) this.#deps.logger.error({ deliveries: without }, 'queued deliveries have no message');
    this.#backlog.claimed(claimRequests, claimed);
    await this.#admit(claimed);
    return true;
  }

  /**
   * Begins deliveries that were just claimed, with the secrets of the newest rotations. Never rejects.
   * @param before what to do in the turn in which they begin
   */
  async #admit(deliveries: readonly Claimed[], before: () => void = () => undefined): Promise<void> {
    let isRead = true;
    try {
      await this.#endpoints.readRotations(deliveries.map(({ endpointId }) => endpointId));
    } catch (error) {
      isRead = false;
      this.#deps.logger.warn({ err: error }, 'rotations could not be read; what was claimed goes back');
    }
    before();
    if (this.#draining || !isRead) {
      this.#return(deliveries);
      return;
    }
    for (const one of deliveries) this.#limiter.add(one);
    this.#start();
  }

  #start(): void {
    const refused: Claimed[] = [];
    this.#limiter.start((one) => this.#begin(one) || refused.push(one) < 0);
    this.#return(refused);
  }

  /**
   * The endpoint, if the delivery may be sent now; null where it may not, or where its answer could come after the
   * lease.
   */
  #mayBegin(delivery: Claimed): Endpoint | null {
    const endpoint = this.#endpoints.get(delivery.endpointId);
    if (endpoint === undefined) return null;
    if (performance.now() >= delivery.leaseEnds - this.#deps.config.webhookExchangeMs) return null;
    return delivery.forced || this.#endpoints.isOpenFor(endpoint, delivery.probe) ? endpoint : null;
  }

  #begin(delivery: Claimed): boolean {
    const endpoint = this.#mayBegin(delivery);
    if (endpoint === null) return false;
    const startedAt = this.#now();
    const begun = performance.now();
    const over = (answer: ReceiverAnswer): void => this.#ended(delivery, endpoint, startedAt, begun, answer);
    this.#post(endpoint, delivery, startedAt).then(over, (error: unknown) => {
      // A fault on this side, such as a missing key: the schedule retries the delivery, and never at once.
      this.#deps.logger.error({ err: error, deliveryId: delivery.deliveryId }, 'a delivery could not be sent');
      over({ status: null, error: 'connection_failed', headers: {}, bodyStart: nothing, durationMs: 0 });
    });
    return true;
  }

  async #post(endpoint: Endpoint, delivery: Claimed, startedAt: number): Promise<ReceiverAnswer> {
    const headers = deliveryHeaders(this.#endpoints.keysOf(endpoint, startedAt), {
      id: delivery.messageId,
      body: delivery.body,
      attempt: delivery.attempt,
      timestamp: Math.floor(startedAt / 1_000),
      consistencyToken: this.#tokenOf(delivery),
    });
    return this.#deps.exchange.post(endpoint.url, headers, delivery.body);
  }

  #ended(delivery: Claimed, endpoint: Endpoint, startedAt: number, begun: number, answer: ReceiverAnswer): void {
    // If the process dies between the answer and its record, the lease lapses, and the delivery is sent again with the
    // same id and a higher attempt number.
    faultPoint('sender:answered');
    const tookMs = performance.now() - begun;
    const config = { delays: this.#deps.config.webhookRetryDelaysMs, now: this.#now(), random: this.#random() };
    const decision = judge(answer, delivery, config);
    this.#limiter.ended(delivery, tookMs, decision.endpoint === 'well');
    this.#endpoints.answered(endpoint.id, decision);
    this.#metrics?.attempted(resultOf(answer.status, answer.error));
    const attempt = attemptOf(delivery, startedAt, answer);
    this.#recorder.add({ delivery, decision, attempt, seenRevision: endpoint.changedRevision });
    this.#start();
    if (this.#backlog.size > 0 || this.#draining) this.#wakeSoon();
  }

  /** Wakes once for all requests that end in one turn of the event loop: each wake goes through every due endpoint. */
  #wakeSoon(): void {
    if (this.#wakingSoon) return;
    this.#wakingSoon = true;
    setImmediate(() => {
      this.#wakingSoon = false;
      this.#wakeSignal.wake();
    });
  }

  #recorded(results: readonly Result[], unwell: readonly HealthRow[]): void {
    faultPoint('sender:recorded');
    for (const { delivery, decision } of results) {
      if (decision.endpoint === 'well') this.#endpoints.unbar(delivery.endpointId);
      if (decision.outcome === 'again') continue;
      this.#metrics?.over(decision.outcome);
      if (decision.outcome === 'delivered') {
        this.#metrics?.delivered((this.#now() - Date.parse(delivery.eventTime)) / 1_000);
      }
    }
    const { webhookDisableAfterMs } = this.#deps.config;
    let disable = false;
    for (const row of unwell) {
      this.#endpoints.bar(row);
      disable ||= row.disable !== null || (row.failingMs ?? 0) >= webhookDisableAfterMs;
    }
    if (disable) this.#disable();
    if (unwell.length > 0) this.#return(this.#limiter.withdraw((one) => this.#mayBegin(one) !== null));
  }

  /** Gives deliveries back to the queue. If that fails, their leases lapse. */
  #return(deliveries: readonly Claimed[]): void {
    if (deliveries.length === 0) return;
    const probes = deliveries.filter(({ probe }) => probe).map(({ endpointId }) => endpointId);
    const given = giveBack(this.#pool, deliveries, probes).catch((error: unknown) =>
      this.#deps.logger.warn({ err: error, deliveries: deliveries.length }, 'deliveries lapse: not given back'),
    );
    this.#returning = Promise.all([this.#returning, given]).then(() => undefined);
  }

  #tokenOf({ lane, position }: Claimed): string {
    const name = `${lane}=${position}`;
    const known = this.#tokens.get(name);
    if (known !== undefined) return known;
    if (this.#tokens.size >= maxTokens) this.#tokens.clear();
    const token = encodeToken(this.#deps.secrets, new Map([[lane, position]]));
    this.#tokens.set(name, token);
    return token;
  }
}

const nothing = Buffer.alloc(0);
