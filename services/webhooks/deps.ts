import type { Pool } from 'pg';
import type { Registry } from 'prom-client';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import type { Config } from '#runtime/process/config.ts';
import type { Logger, Readiness } from '#runtime/process/telemetry.ts';
import type { ReceiverAnswer } from './delivery-decision.ts';

/** Sends a request and returns its result: `Exchange` of services/runtime/egress. */
export interface Poster {
  /** @throws only for faults of ours, never for what a receiver does */
  post(url: string, headers: Readonly<Record<string, string>>, body: Buffer): Promise<ReceiverAnswer>;
}

export type SenderConfig = Pick<
  Config,
  | 'webhookRetryDelaysMs'
  | 'webhookPerEndpoint'
  | 'webhookPerHost'
  | 'webhookHostFailures'
  | 'webhookPerTenant'
  | 'webhookConcurrency'
  | 'webhookLeaseMs'
  | 'webhookExchangeMs'
  | 'webhookBreakerFailures'
  | 'webhookBreakerMs'
  | 'webhookDisableAfterMs'
  | 'sweepIntervalMs'
>;

export interface SenderDeps {
  /** For a separate connection that listens for queued rows. */
  readonly databaseUrl: string;
  /** At least 4 connections. */
  readonly pool: Pool;
  readonly store: DomainStore;
  readonly secrets: Secrets;
  readonly exchange: Poster;
  readonly config: SenderConfig;
  readonly logger: Logger;
  readonly registry?: Registry;
  readonly readiness?: Readiness;
  /** Milliseconds since the epoch, by the database's clock, so that all processes have one time. Default `Date.now`. */
  readonly now?: () => number;
  /** While the clock has a fault, the sender claims nothing. Default: no fault. */
  readonly clock?: Pick<Clock, 'fault'>;
  /** 0–1. Default `Math.random`. */
  readonly random?: () => number;
  /** Milliseconds between two searches of the queue when no signal wakes the sender. Default 500. */
  readonly pollMs?: number;
}
