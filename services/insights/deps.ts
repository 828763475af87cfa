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
/** The adapter that is asked for the figures of an account; null where its network has none yet. */
export type SourceOf = (network: Network, platform: Platform) => InsightsSource | null;

export interface InsightsDeps {
  readonly log: Log;
  /** Where a lane is read on that the log lost. */
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
  /** While it has a fault nothing is claimed. Default: it has none. */
  readonly clock?: Pick<Clock, 'fault'>;
  /** Milliseconds between two looks for due work; a worker that has not looked for ten times that is not well. Default 1,000. */
  readonly pollMs?: number;
  /** Time that one call of a network may take, milliseconds. Default 60 s. */
  readonly callLimitMs?: number;
  /** Members that differ from the usual cadence. */
  readonly cadence?: Partial<Cadence>;
}
