import { backOff } from '#contracts/base/back-off.ts';
import { media } from '#domain/media.ts';
import { DownloadError } from '#runtime/egress/download.ts';
import { pickFairly } from '#runtime/work/fair-pick.ts';
import { LeasedWork } from '#runtime/work/leased-work.ts';
import type { Lease } from '#runtime/work/leases.ts';
import { endProgress, reportProgress } from '#runtime/work/progress.ts';
import { atMost, Slots, type Taker } from '#runtime/work/slots.ts';
import type { WakeSignal } from '#runtime/work/wake-signal.ts';
import { Cores } from './cores.ts';
import { Customers } from './customers.ts';
import type { MediaDeps, Tools } from './deps.ts';
import { type DueJob, type JobLane, MediaJobs } from './jobs.ts';
import { LeasedAsset } from './leased-asset.ts';
import { mediaMetrics } from './metrics.ts';
import { Postponed } from './postponed.ts';
import { NoRoom, videoSlotOf, videoSlots } from './videos.ts';
import { isFaultOfSurroundings, OtherLane, processAsset } from './work.ts';

/**
 * Works on several assets at once; workspaces take turns. Downloads have slots of their own, so that slow servers delay
 * only other downloads of their workspace. A lost lease ends the work on an asset and the processes that this work
 * started; the worker that takes the asset over finds the same next step.
 */

const leaseKind = 'media';
/**
 * How long other files may begin before a waiting poison candidate, milliseconds; then no file begins until it has run.
 */
const patienceMs = 300_000;
/** Longest wait after faults in a row, milliseconds. */
const maxBackOffMs = 600_000;
const stalePolls = 10;

export class MediaWorker {
  readonly #deps: MediaDeps;
  readonly #signal: AbortSignal;
  readonly #jobs: MediaJobs;
  readonly #work: LeasedWork<Job>;
  readonly #cores: Cores;
  readonly #customers: Customers;
  readonly #tools: SharedTools;
  readonly #downloads: Slots;
  /** Slots for everything that is no download. */
  readonly #files: Slots;
  /** Slots for rendering videos; such a file also has one of the slots above. */
  readonly #videos: Slots;
  /** A poison candidate runs, and no file may run beside it. */
  #alone = false;
  /** By asset: the newest report of progress, which must end before the row is deleted. */
  readonly #reports = new Map<string, Promise<void>>();

  constructor(deps: MediaDeps, wakeSignal: WakeSignal, signal: AbortSignal) {
    const { pool, store, config, clock, logger, readiness, machine, pollMs = 1_000 } = deps;
    const { leaseTtlMs, mediaConcurrency, mediaDownloads, mediaDownloadsPerWorkspace } = config;
    this.#deps = deps;
    this.#signal = signal;
    this.#jobs = new MediaJobs(pool);
    this.#work = new LeasedWork({
      ...{ pool, leaseKind, leaseTtlMs, clock, logger, pollMs, stalePolls, wakeSignal, signal },
      idOf: ({ assetId }) => assetId,
      work: (job, lease, stop) => this.#hold(job, lease, stop),
    });
    const onError = (error: unknown): void =>
      logger.warn({ err: error }, 'could not renew or release leases of cores; retrying');
    this.#cores = new Cores({ pool, ttlMs: leaseTtlMs, onError, ...machine });
    this.#customers = new Customers(store);
    this.#downloads = new Slots(mediaDownloads, atMost(mediaDownloadsPerWorkspace));
    // No workspace may take the last slot.
    this.#files = new Slots(mediaConcurrency, atMost(Math.max(1, mediaConcurrency - 1)));
    this.#videos = videoSlots(mediaConcurrency);
    this.#tools = this.#shared();
    readiness?.add('media', async () => this.#work.liveness.check(`works on ${this.#work.size}`));
  }

  async run(): Promise<void> {
    try {
      await this.#work.run(() => this.#beginDue(), 'media work');
    } finally {
      await this.#cores.close();
    }
  }

  #shared(): SharedTools {
    const { folder, transcoder, fetchFile, importUrls, uses, registry, logger, pool } = this.#deps;
    const gauges = { queued: () => this.#jobs.length(), underWay: () => this.#work.size };
    const metrics = registry === undefined ? null : mediaMetrics(registry, gauges);
    const progress = (assetId: string, done: number): void => {
      // A failed report is no loss, because the next one follows.
      const reported = reportProgress(pool, assetId, done).catch(() => undefined);
      this.#reports.set(assetId, reported);
    };
    const made = { cores: this.#cores, jobs: this.#jobs, metrics, progress };
    return { transcoder, fetchFile, importUrls, uses, folder, logger, ...made };
  }

  /** @returns whether it began any work */
  async #beginDue(): Promise<boolean> {
    const downloads = await this.#due('downloads', this.#downloads);
    const files = await this.#filesToBegin();
    this.#work.liveness.searched();
    return (await this.#work.begin([...downloads, ...files])).length > 0;
  }

  async #filesToBegin(): Promise<readonly Job[]> {
    if (this.#files.free <= 0 || this.#alone) return [];
    const poisonCandidate = await this.#jobs.poisonCandidate(leaseKind);
    if (poisonCandidate !== null && this.#files.taken === 0) {
      const customer = await this.#customers.of(poisonCandidate.workspaceId);
      return [{ ...poisonCandidate, lane: 'files', customer, alone: true }];
    }
    if (poisonCandidate !== null && poisonCandidate.waitedMs > patienceMs) return [];
    const videos = await this.#due('videos', this.#videos);
    const files = await this.#due('files', this.#files);
    return pickFairly([...videos, ...files], { slots: this.#files, takerOf });
  }

  /** The due jobs of a lane that get a slot. */
  async #due(lane: JobLane, slots: Slots): Promise<readonly Job[]> {
    if (slots.free <= 0) return [];
    const jobs: Job[] = [];
    for (const job of await this.#jobs.due(leaseKind, slots.free, lane)) {
      jobs.push({ ...job, lane, customer: await this.#customers.of(job.workspaceId), alone: false });
    }
    return pickFairly(jobs, { slots, takerOf });
  }

  async #hold(job: Job, lease: Lease, signal: AbortSignal): Promise<null> {
    const isDownload = job.lane === 'downloads';
    const slots = isDownload ? this.#downloads : this.#files;
    slots.take(takerOf(job));
    if (!isDownload) this.#alone = job.alone;
    try {
      await this.#process(job, lease, signal);
    } finally {
      slots.give(takerOf(job));
      if (!isDownload) this.#alone = false;
    }
    return null;
  }

  async #process({ assetId, lane, customer }: Job, lease: Lease, signal: AbortSignal): Promise<void> {
    // A folder for each lease: work that lost the asset may still write when this process takes the asset again.
    const folderName = `${assetId}-${lease.epoch}`;
    const began: Began = { lane, revision: null, failures: 0, counted: lane !== 'downloads' };
    const counted = async (): Promise<void> => {
      if (began.counted) return;
      await this.#jobs.count(assetId);
      began.counted = true;
    };
    const usage: Tools['usage'] = {
      reserve: (bytes) => this.#deps.usage.reserve(assetId, customer, bytes, null),
      set: (bytes) => this.#deps.usage.set(assetId, customer, bytes),
    };
    const tools: Tools = { ...this.#tools, lane, counted, usage, videos: videoSlotOf(this.#videos, customer) };
    try {
      const { store, blobs, now = Date.now } = this.#deps;
      const loaded = await store.load(media, assetId);
      const begun = await this.#jobs.begin(assetId, loaded.revision, began.counted);
      if (begun === null) return;
      Object.assign(began, { revision: loaded.revision, failures: begun.failures });
      const folder = await tools.folder.of(folderName);
      const { jobs } = tools;
      const leased = new LeasedAsset(assetId, begun.written, {
        store,
        blobs,
        jobs,
        lease,
        loaded,
        folder,
        signal,
        now,
      });
      await processAsset(leased, begun, tools);
    } catch (error) {
      await this.#reschedule(assetId, lease, error, began);
    } finally {
      await tools.folder.clear(folderName).catch(() => undefined);
      await this.#reports.get(assetId);
      if (this.#reports.delete(assetId)) await endProgress(this.#deps.pool, assetId).catch(() => undefined);
    }
  }

  /** When the database is unavailable too, the row stays as it is, and this try counts as if the process had died. */
  async #reschedule(assetId: string, lease: Lease, error: unknown, began: Began): Promise<void> {
    const { logger, backOffMs = 1_000 } = this.#deps;
    const warn = (fault: unknown): void => logger.warn({ err: fault, assetId }, 'a media job could not be rescheduled');
    if (!lease.isHeld()) {
      logger.debug({ err: error, assetId }, 'another worker has taken over a media file');
      const { revision, counted } = began;
      if (revision !== null && counted) await this.#jobs.uncount(assetId, revision).catch(warn);
      return;
    }
    const lane = laneAfter(error, began.lane);
    const failed = !this.#signal.aborted && !(error instanceof Postponed);
    const isBlameless = !failed || isFaultOfSurroundings(error);
    const postponedMs = error instanceof Postponed ? error.waitMs : 0;
    const waitMs = failed ? backOff(began.failures, { firstMs: backOffMs, maxMs: maxBackOffMs }) : postponedMs;
    if (failed) {
      const words = isBlameless
        ? 'a media file waits for an unavailable dependency'
        : 'a media file could not be worked on';
      logger[isBlameless ? 'warn' : 'error']({ err: error, assetId, waitMs }, words);
    }
    const fetch = failed && error instanceof DownloadError;
    // A try that was not begun was not counted.
    const infrastructureFault = isBlameless && began.revision !== null && began.counted;
    await this.#jobs.reschedule(assetId, { waitMs, infrastructureFault, failed, fetch, lane }).catch(warn);
  }
}

/**
 * The lane in which the job waits next. A job from the lane of videos waits among the files until it needs a video slot
 * again.
 */
const laneAfter = (error: unknown, lane: JobLane): JobLane => {
  if (error instanceof OtherLane) return error.lane;
  if (error instanceof NoRoom) return 'videos';
  return lane === 'downloads' ? 'downloads' : 'files';
};

/** A workspace and its sandbox twin are one customer, with one share. */
const takerOf = ({ customer }: Job): Taker => ({ workspaceId: customer });

type SharedTools = Omit<Tools, 'lane' | 'counted' | 'usage' | 'videos'>;

interface Job extends DueJob {
  readonly lane: JobLane;
  readonly customer: string;
  /** No other file may run beside it. */
  readonly alone: boolean;
}

/** The state of a job when this worker began it. */
interface Began {
  readonly lane: JobLane;
  /** Null: the worker has not begun it. */
  readonly revision: number | null;
  readonly failures: number;
  /** Whether a death of the worker counts against the file. */
  counted: boolean;
}
