import type { Pool } from 'pg';
import type { Registry } from 'prom-client';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import type { AnalyticsReader } from '#projections/analytics/rollup.ts';
import type { EventCodec } from '#runtime/eventing/codec.ts';
import type { CommandContext, DomainStore, Loaded } from '#runtime/eventing/domain-store.ts';
import { causedByNewest, serviceContext } from '#runtime/eventing/service-context.ts';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import type { Config } from '#runtime/process/config.ts';
import type { Logger, Readiness } from '#runtime/process/telemetry.ts';

export interface ReportDeps {
  readonly log: Log;
  /** If the log has lost records, the consumers read them from this store. */
  readonly eventStore: EventStore;
  readonly store: DomainStore;
  readonly codec: EventCodec;
  /** At least 3 connections. */
  readonly pool: Pool;
  readonly blobs: BlobStore;
  readonly analytics: Pick<AnalyticsReader, 'overview' | 'client' | 'account' | 'top'>;
  readonly config: Pick<Config, 'leaseTtlMs' | 'reportWaitMs'>;
  readonly logger: Logger;
  readonly registry?: Registry;
  readonly readiness?: Readiness;
  /** Milliseconds since the epoch, by the database's clock, so that all processes have one time. Default `Date.now`. */
  readonly now?: () => number;
  /** While the clock has a fault, the worker takes no lease. Default: no fault. */
  readonly clock?: Pick<Clock, 'fault'>;
  /** Milliseconds between two searches for due work when no signal wakes the worker. Default 1,000. */
  readonly pollMs?: number;
  /** Wait after the first fault, doubled after each further one, milliseconds. Default 5,000. */
  readonly backOffMs?: number;
}

/** The context of a command on a report: its cause is the newest event that this process saw of the report. */
export const reportContext = (
  { events }: Pick<Loaded<unknown>, 'events'>,
  { reportId, workspaceId }: { readonly reportId: string; readonly workspaceId: string },
  now: () => number,
): CommandContext => serviceContext('reports', causedByNewest(events, workspaceId, reportId), now());
