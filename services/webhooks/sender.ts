import type { Pool } from 'pg';
import type { Handover, Leased } from '#projections/webhooks/handover.ts';
import { encodeToken } from '#runtime/eventing/consistency.ts';
import { deliveryHeaders } from '#runtime/identity/webhook-signature.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { type BackOff, backOff } from '#runtime/work/back-off.ts';
import { Liveness } from '#runtime/work/liveness.ts';
import { WakeSignal } from '#runtime/work/wake-signal.ts';
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
 * Sends what the dispatcher has minted: claims due rows or is handed them, lets them go as far as their endpoint, their
 * tenant and the process have places, and records what came of it.
 *
 * If we die between a claim and its record, the lease lapses and the next attempt has a higher number. A record names the
 * attempt it is of, so whoever slept through the end of his lease records nothing over the one who took over.
 */

/** A loop that has not looked at the queue for so long is not well, milliseconds. */
const staleAfterMs = 10_000;
/** A look that takes longer than this is followed by a rest of nine times as long: looks are a tenth of the time. */
const cheapLookMs = 5;
/** Poll intervals between two looks of a sender that finds nothing. A retry is late by at most that. */
const maxPolls = 4;
/** Longest rest after a look: a look that waited for a busy database says nothing about the cost of looks. */
const maxRestMs = 4_000;
/** Between two looks that failed. */
const lookAgain: BackOff = { firstMs: 50, maxMs: 5_000 };
/** Longest wait for the database at the end, milliseconds; what is not recorded then is sent again. */
const closingMs = 10_000;
/** Tokens kept: the deliveries of one event to several endpoints carry the same one. */
const maxTokens = 1_024;

export class Sender implements Handover {
  readonly leaseMs: number;
  readonly #deps: SenderDeps;
  readonly #pool: Pool;
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #pollMs: number;
  readonly #endpoints: Endpoints;
  readonly #places: ConcurrencyLimiter<Claimed>;
  readonly #recorder: Recorder;
  readonly #metrics: SenderMetrics | null;
  readonly #wakeSignal = new WakeSignal();
  readonly #backlog = new Backlog();
  readonly #tokens = new Map<string, string>();
  #returning: Promise<void> = Promise.resolve();
  #disabling: Promise<void> | null = null;
  #sweptAt = Number.NEGATIVE_INFINITY;
  #woken = true;
  #draining = false;
  #wakingSoon = false;
  readonly #liveness = new Liveness(staleAfterMs);
  #restUntil = 0;
  /** Until the next look where nothing wakes it: doubled with each that found nothing. */
  #waitMs = 0;

  constructor(deps: SenderDeps) {
    const { config, pool, secrets, logger } = deps;
    if (config.webhookLeaseMs <= 2 * config.webhookExchangeMs) {
      throw new Error('WEBHOOK_LEASE_MS must be more than twice WEBHOOK_EXCHANGE_MS');
    }
    this.leaseMs = config.webhookLeaseMs;
    this.#deps = deps;
    this.#pool = pool;
    this.#now = deps.now ?? Date.now;
    this.#random = deps.random ?? Math.random;
    this.#pollMs = deps.pollMs ?? 500;
    this.#waitMs = this.#pollMs;
    this.#endpoints = new Endpoints(pool, secrets, config.webhookBreakerFailures);
    const limits = {
      endpoint: config.webhookPerEndpoint,
      host: config.webhookPerHost,
      tenant: config.webhookPerTenant,
      total: config.webhookConcurrency,
      failuresPerSecond: config.webhookHostFailures,
    };
    this.#places = new ConcurrencyLimiter(limits, (endpointId) => this.#endpoints.get(endpointId)?.host ?? '');
    this.#recorder = new Recorder({
      pool,
      rules: { failures: config.webhookBreakerFailures, openMs: config.webhookBreakerMs },
      logger,
      onRecorded: (results, unwell) => this.#recorded(results, unwell),
    });
    const gauges = { open: () => this.#endpoints.open, underWay: () => this.#places.underWay };
    this.#metrics = deps.registry === undefined ? null : senderMetrics(deps.registry, gauges);
    deps.readiness?.add('webhooks', async () => this.#liveness.check(`${this.#places.underWay} under way`));
  }

  reserve(endpointId: string, workspaceId: string, wanted: number): number {
    const endpoint = this.#endpoints.get(endpointId);
    if (this.#mayNotClaim() || endpoint === undefined || !this.#endpoints.isOpenFor(endpoint, false)) return 0;
    // What is queued was there first and moves on: but each that is claimed costs more than one that is handed over, so
    // a sender that is behind would fall behind further if it only claimed.
    const most = this.#backlog.hasFirst(endpointId) ? this.#places.room(endpointId, workspaceId).all >> 1 : wanted;
    return this.#places.reserve(endpointId, workspaceId, Math.min(wanted, most));
  }

  giveBack(endpointId: string, workspaceId: string, count: number): void {
    this.#places.unreserve(endpointId, workspaceId, count);
    this.#wakeSignal.wake();
  }

  send(deliveries: readonly Leased[]): void {
    for (const { endpointId, workspaceId } of deliveries) this.#places.unreserve(endpointId, workspaceId, 1);
    this.#admit(deliveries.map((one) => ({ ...one, queueLane: 0, forced: false, probe: false })));
  }

  wake(): void {
    this.#waitMs = this.#pollMs;
    this.#woken = true;
    this.#wakeSignal.wake();
  }

  /** Runs until the signal aborts and everything that was begun is recorded or given back. */
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
          await this.#wakeSignal.waitUntil(backOff(failures, lookAgain), () => signal.aborted);
        }
      }
      this.#return(this.#places.withdraw(() => false));
      await this.#wakeSignal.waitUntil(this.#deps.config.webhookExchangeMs * 2, () => this.#places.underWay === 0);
    } finally {
      signal.removeEventListener('abort', stop);
      await this.#recorder.close(closingMs);
      await this.#disabling;
      await this.#returning;
      listener.close();
    }
  }

  /** Does what is to be done now. Returns for how long there is nothing to do, milliseconds. */
  async #work(): Promise<number> {
    if (this.#lookAt() <= performance.now()) await this.#look();
    while (await this.#claim());
    return Math.max(0, this.#lookAt() - performance.now());
  }

  #lookAt(): number {
    return Math.max(this.#woken ? 0 : this.#liveness.lookedAt + this.#waitMs, this.#restUntil);
  }

  #isWorkDue(): boolean {
    return this.#lookAt() <= performance.now() || this.#claimRequests().claimRequests.length > 0;
  }

  /** Finds which endpoints have something due. What was found before and is not any more was sent by somebody else. */
  async #look(): Promise<void> {
    this.#woken = false;
    const begun = performance.now();
    await this.#endpoints.refresh();
    const found = await findDue(this.#pool);
    this.#backlog.found(found);
    const quiet = found.length === 0 && this.#places.underWay === 0;
    this.#waitMs = quiet ? Math.min(2 * this.#waitMs, maxPolls * this.#pollMs) : this.#pollMs;
    this.#metrics?.lag(found.reduce((most, { lagMs }) => Math.max(most, lagMs), 0) / 1_000);
    // A line may have become idle in the meantime: turned off, behind a breaker, or too late for its lease.
    this.#return(this.#places.withdraw((one) => this.#mayBegin(one) !== null));
    // What waits for a host's credit begins when it is there: nothing else may come to an end meanwhile.
    this.#start();
    this.#sweep();
    this.#liveness.looked();
    const { lookedAt } = this.#liveness;
    const took = lookedAt - begun;
    this.#restUntil = took > cheapLookMs ? lookedAt + Math.min(9 * took, maxRestMs) : 0;
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
    const held = new PendingCounts();
    return this.#backlog.claimRequests((endpointId) => {
      const endpoint = this.#endpoints.get(endpointId);
      if (endpoint === undefined) return null;
      const { workspaceId } = endpoint;
      const open = this.#endpoints.isOpenFor(endpoint, false);
      const take = (count: number): void => this.#places.hold(held, endpointId, workspaceId, count);
      return { ...this.#places.room(endpointId, workspaceId, held), open, take };
    });
  }

  #mayNotClaim(): boolean {
    return this.#draining || (this.#deps.clock !== undefined && this.#deps.clock.fault() !== null);
  }

  /** Claims once. False when there was nothing to claim or no room for it. */
  async #claim(): Promise<boolean> {
    const { claimRequests, probes } = this.#claimRequests();
    if (claimRequests.length === 0) return false;
    const { claimed, without } = await claim(this.#pool, this.leaseMs, claimRequests, probes);
    faultPoint('sender:claimed');
    if (without.length > 0) this.#deps.logger.error({ deliveries: without }, 'queued deliveries have no message');
    this.#backlog.claimed(claimRequests, claimed);
    this.#admit(claimed);
    return true;
  }

  #admit(deliveries: readonly Claimed[]): void {
    if (this.#draining) {
      this.#return(deliveries);
      return;
    }
    for (const one of deliveries) this.#places.add(one);
    this.#start();
  }

  #start(): void {
    const refused: Claimed[] = [];
    this.#places.start((one) => this.#begin(one) || refused.push(one) < 0);
    this.#return(refused);
  }

  /** The endpoint it may be sent to now; null when it may not, or when an answer might come after the lease. */
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
      // A fault of ours (a key that is gone, say): it is tried again by the schedule, and never at once.
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
    // If we die between the answer and its record, the lease lapses and it is sent again: same id, higher attempt.
    faultPoint('sender:answered');
    const tookMs = performance.now() - begun;
    const config = { delays: this.#deps.config.webhookRetryDelaysMs, now: this.#now(), random: this.#random() };
    const verdict = judge(answer, delivery, config);
    this.#places.ended(delivery, tookMs, verdict.endpoint === 'well');
    this.#endpoints.heard(endpoint.id, verdict);
    this.#metrics?.attempted(resultOf(answer.status, answer.error));
    const attempt = attemptOf(delivery, startedAt, answer);
    this.#recorder.add({ delivery, verdict, attempt, seenRevision: endpoint.changedRevision });
    this.#start();
    if (this.#backlog.size > 0 || this.#draining) this.#wakeSoon();
  }

  /** Once for all that end in the same turn: who waits looks at every endpoint that has something due. */
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
    for (const { delivery, verdict } of results) {
      if (verdict.endpoint === 'well') this.#endpoints.unbar(delivery.endpointId);
      if (verdict.outcome === 'again') continue;
      this.#metrics?.over(verdict.outcome);
      if (verdict.outcome === 'delivered') {
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
    if (unwell.length > 0) this.#return(this.#places.withdraw((one) => this.#mayBegin(one) !== null));
  }

  /** Others may have them. What cannot be given back lapses. */
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
