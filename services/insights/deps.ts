import type { Pool } from 'pg';
import type { Registry } from 'prom-client';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import type { InsightsSource } from '#contracts/ports/platform-insights.ts';
import type { EventCodec } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import type { Config } from '#runtime/process/config.ts';
import type { Logger, Readiness } from '#runtime/process/telemetry.ts';
import type { Platform } from '#schemas/common.ts';
import type { Cadence } from './schedule.ts';

export type Network = 'live' | 'sandbox';
/** The adapter that fetches the figures of an account; null where its network has no adapter yet. */
export type SourceOf = (network: Network, platform: Platform) => InsightsSource | null;

export interface InsightsDeps {
  readonly log: Log;
  /** If the log has lost records, the consumers read them from this store. */
  readonly eventStore: EventStore;
  readonly store: DomainStore;
  readonly codec: EventCodec;
  /** At least 3 connections. */
  readonly pool: Pool;
  readonly sourceOf: SourceOf;
  readonly config: Pick<Config, 'leaseTtlMs' | 'insightsConcurrency' | 'insightsYoungDelaysMs'>;
  readonly logger: Logger;
  readonly registry?: Registry;
  readonly readiness?: Readiness;
  /** While the clock has a fault, the worker takes no lease. Default: no fault. */
  readonly clock?: Pick<Clock, 'fault'>;
  /**
   * Milliseconds between two searches for due work; a worker without a search for ten times that is not ready. Default
   * 1,000.
   */
  readonly pollMs?: number;
  /** Milliseconds that one call of a network may take. Default 60,000. */
  readonly callLimitMs?: number;
  /** Members that differ from the usual cadence. */
  readonly cadence?: Partial<Cadence>;
}
