import type { Pool } from 'pg';
import type { Registry } from 'prom-client';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import type { Transcoder } from '#contracts/ports/transcoder.ts';
import type { EventCodec } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import type { Config } from '#runtime/process/config.ts';
import type { Logger, Readiness } from '#runtime/process/telemetry.ts';
import type { WorkFolder } from '#runtime/process/work-folder.ts';
import type { ImportUrls } from '#services/workflows/import-urls.ts';
import type { MediaUsage } from '#services/workflows/media-usage.ts';
import type { Cores } from './cores.ts';
import type { JobLane, MediaJobs } from './jobs.ts';
import type { MediaMetrics } from './metrics.ts';
import type { Uses } from './uses.ts';
import type { VideoSlot } from './videos.ts';

export interface MediaDeps {
  readonly log: Log;
  /** If the log has lost records, the consumers read them from this store. */
  readonly eventStore: EventStore;
  readonly store: DomainStore;
  readonly codec: EventCodec;
  /** At least 4 connections. */
  readonly pool: Pool;
  readonly blobs: BlobStore;
  readonly transcoder: Transcoder;
  /** Downloads the file at a caller's address. @throws DownloadError */
  readonly fetchFile: FetchFile;
  /** The full addresses of imports. */
  readonly importUrls: ImportUrls;
  readonly usage: MediaUsage;
  readonly uses: Uses;
  readonly config: Pick<Config, 'leaseTtlMs' | 'mediaConcurrency' | 'mediaDownloads' | 'mediaDownloadsPerWorkspace'>;
  /** Holds files during the work on them. */
  readonly folder: WorkFolder;
  readonly logger: Logger;
  readonly registry?: Registry;
  readonly readiness?: Readiness;
  /** Milliseconds since the epoch, by the database's clock, so that all processes have one time. Default `Date.now`. */
  readonly now?: () => number;
  /** While the clock has a fault, the worker takes no lease. Default: no fault. */
  readonly clock?: Pick<Clock, 'fault'>;
  /**
   * Milliseconds between two searches for due work when no signal wakes the worker; a worker without a search for ten
   * times that is not ready. Default 1,000.
   */
  readonly pollMs?: number;
  /** Wait after the first failure, doubled after each further one, milliseconds. Default 1,000. */
  readonly backOffMs?: number;
  /** Cores and name of this machine. Default: its own. */
  readonly machine?: { readonly count: number; readonly host: string };
}

export type FetchFile = (
  url: string,
  options: { readonly to: string; readonly maxBytes: number; readonly signal: AbortSignal },
) => Promise<{ readonly bytes: number; readonly sha256: string }>;

/** The tools for the work on one asset. */
export interface Tools {
  /** The lane of its slot. */
  readonly lane: JobLane;
  readonly uses: Uses;
  /** Call it after the download: from then on a death of the worker counts against the file. */
  readonly counted: () => Promise<void>;
  /** The asset's share of its customer's quota. */
  readonly usage: {
    /** False: the quota has no room. */
    readonly reserve: (bytes: number) => Promise<boolean>;
    readonly set: (bytes: number) => Promise<void>;
  };
  readonly transcoder: Transcoder;
  readonly fetchFile: FetchFile;
  readonly importUrls: ImportUrls;
  readonly cores: Cores;
  readonly videos: VideoSlot;
  readonly jobs: MediaJobs;
  readonly folder: WorkFolder;
  readonly metrics: MediaMetrics | null;
  /** Reports how far a rendering has come, without waiting. @param done 0–1 */
  readonly progress: (assetId: string, done: number) => void;
  readonly logger: Logger;
}
