import { media } from '#domain/media.ts';
import { DownloadError } from '#runtime/egress/download.ts';
import { backOff } from '#runtime/work/back-off.ts';
import { type Lease, Leases } from '#runtime/work/leases.ts';
import { Liveness } from '#runtime/work/liveness.ts';
import { endProgress, reportProgress } from '#runtime/work/progress.ts';
import { Slots } from '#runtime/work/slots.ts';
import { Rest, type WakeSignal } from '#runtime/work/wake-signal.ts';
import { Cores } from './cores.ts';
import { Customers } from './customers.ts';
import type { MediaDeps, Tools } from './deps.ts';
import { type DueJob, type JobLane, Jobs } from './jobs.ts';
import { LeasedAsset } from './leased-asset.ts';
import { mediaMetrics } from './metrics.ts';
import { Postponed } from './postponed.ts';
import { NoRoom, videoSlotOf, videoSlots } from './videos.ts';
import { isInnocent, OtherLane, processAsset } from './work.ts';

/**
 * Finds assets that something is to be done for, leases them, and works on some at once, each workspace in its turn.
 * Downloads have slots of their own, so that slow servers hold up nothing but other downloads of their workspace. A lost
 * lease ends the work on it, down to the processes it started; whoever takes it over finds the same next step.
 */

const leaseKind = 'media';
/** How long a suspect lets others be begun before it has this process to itself, milliseconds. */
const patienceMs = 300_000;
/** Longest wait after faults in a row, milliseconds. */
const maxBackOffMs = 600_000;

export class Worker {
  readonly #deps: MediaDeps;
  readonly #signal: AbortSignal;
  readonly #wakeSignal: WakeSignal;
  readonly #jobs: Jobs;
  readonly #leases: Leases;
  readonly #cores: Cores;
  readonly #customers: Customers;
  readonly #downloads: Slots;
  /** Of all that is no download. */
  readonly #files: Slots;
  /** Those of them that render a video. */
  readonly #videos: Slots;
  readonly #underWay = new Set<Promise<void>>();
  /** Whether what is under way beside the downloads must stay the only one. */
  #alone = false;
  /** The newest report of each asset's progress: the row goes after it. */
  readonly #reports = new Map<string, Promise<void>>();
  readonly #liveness: Liveness;

  constructor(deps: MediaDeps, wakeSignal: WakeSignal, signal: AbortSignal) {
    const { pool, store, config, clock, logger, readiness, machine, pollMs = 1_000 } = deps;
    const onError = (error: unknown): void => logger.warn({ err: error }, 'leases could not be renewed or given back');
    this.#deps = deps;
    this.#wakeSignal = wakeSignal;
    this.#signal = signal;
    this.#jobs = new Jobs(pool);
    this.#liveness = new Liveness(10 * pollMs);
    this.#leases = new Leases({
      pool,
      kind: leaseKind,
      ttlMs: config.leaseTtlMs,
      onError,
      ...(clock === undefined ? {} : { clock }),
    });
    this.#cores = new Cores({ pool, ttlMs: config.leaseTtlMs, onError, ...machine });
    const { mediaConcurrency, mediaDownloads, mediaDownloadsPerWorkspace } = config;
    this.#customers = new Customers(store);
    this.#downloads = new Slots(mediaDownloads, mediaDownloadsPerWorkspace);
    // No workspace has the last slot.
    this.#files = new Slots(mediaConcurrency, Math.max(1, mediaConcurrency - 1));
    this.#videos = videoSlots(mediaConcurrency);
    readiness?.add('media', async () => this.#liveness.check(`works on ${this.#underWay.size}`));
  }

  async run(): Promise<void> {
    const { folder, transcoder, fetchFile, importUrls, uses, registry, logger, pool, pollMs = 1_000 } = this.#deps;
    const metrics =
      registry === undefined
        ? null
        : mediaMetrics(registry, { queued: () => this.#jobs.length(), underWay: () => this.#underWay.size });
    const progress = (assetId: string, done: number): void => {
      // One that fails is made up for by the next.
      this.#reports.set(
        assetId,
        reportProgress(pool, assetId, done).catch(() => undefined),
      );
    };
    const tools = {
      transcoder,
      fetchFile,
      importUrls,
      uses,
      folder,
      metrics,
      logger,
      cores: this.#cores,
      jobs: this.#jobs,
      progress,
    };
    const isOver = (): boolean => this.#signal.aborted;
    const rest = new Rest(pollMs);
    this.#signal.addEventListener('abort', () => this.#wakeSignal.wake(), { once: true });
    try {
      while (!isOver()) {
        const more = await this.#look(tools);
        const waitMs = rest.after(more || this.#underWay.size > 0);
        if (!more) await this.#wakeSignal.wait(waitMs, isOver);
      }
      while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    } finally {
      await this.#leases.close();
      await this.#cores.close();
    }
  }

  /** True when it has begun something: there may be more. */
  async #look(tools: Shared): Promise<boolean> {
    const { logger } = this.#deps;
    try {
      const downloads = await this.#due('downloads', this.#downloads);
      const { chosen: files, alone } = await this.#filesToBegin();
      this.#liveness.looked();
      const chosen = [...downloads, ...files];
      const leases = await this.#leases.acquire(chosen.map(({ assetId }) => assetId));
      for (const lease of leases) {
        const job = chosen.find(({ assetId }) => assetId === lease.id);
        if (job === undefined) continue;
        this.#begin(job, lease, tools);
        if (job.lane !== 'downloads') this.#alone = alone;
      }
      return leases.length > 0;
    } catch (error) {
      logger.warn({ err: error }, 'looking for media work failed');
      return false;
    }
  }

  async #filesToBegin(): Promise<{ readonly chosen: readonly Job[]; readonly alone: boolean }> {
    if (this.#files.free <= 0 || this.#alone) return { chosen: [], alone: this.#alone };
    const poisonCandidate = await this.#jobs.poisonCandidate(leaseKind);
    if (poisonCandidate !== null && this.#files.running === 0) {
      const customer = await this.#customers.of(poisonCandidate.workspaceId);
      return { chosen: [{ ...poisonCandidate, lane: 'files', customer }], alone: true };
    }
    const heldBack = poisonCandidate !== null && poisonCandidate.waitedMs > patienceMs;
    if (heldBack) return { chosen: [], alone: false };
    const videos = await this.#due('videos', this.#videos);
    const files = await this.#due('files', this.#files);
    return { chosen: this.#files.fairly([...videos, ...files]), alone: false };
  }

  /** Those that there is room for among the slots. */
  async #due(lane: JobLane, slots: Slots): Promise<readonly Job[]> {
    if (slots.free <= 0) return [];
    const jobs: Job[] = [];
    for (const job of await this.#jobs.due(leaseKind, slots.free, lane)) {
      jobs.push({ ...job, lane, customer: await this.#customers.of(job.workspaceId) });
    }
    return slots.fairly(jobs);
  }

  #begin(job: Job, lease: Lease, tools: Shared): void {
    const slots = job.lane === 'downloads' ? this.#downloads : this.#files;
    slots.take(job.customer);
    const work = this.#hold(job, lease, tools).finally(() => {
      this.#underWay.delete(work);
      slots.leave(job.customer);
      if (job.lane !== 'downloads') this.#alone = false;
      this.#wakeSignal.wake();
    });
    this.#underWay.add(work);
  }

  /** Never rejects. */
  async #hold({ assetId, lane, customer }: Job, lease: Lease, shared: Shared): Promise<void> {
    const signal = AbortSignal.any([lease.signal, this.#signal]);
    // A folder of each hold: one that lost the asset may still be at work when we take it anew.
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
    const tools: Tools = { ...shared, lane, counted, usage, videos: videoSlotOf(this.#videos, customer) };
    try {
      const { store, blobs, now = Date.now } = this.#deps;
      const loaded = await store.load(media, assetId);
      const begun = await this.#jobs.begin(assetId, loaded.revision, began.counted);
      if (begun === null) return;
      Object.assign(began, { revision: loaded.revision, failures: begun.failures });
      const folder = await tools.folder.of(folderName);
      const { jobs } = tools;
      const held = new LeasedAsset(assetId, begun.written, { store, blobs, jobs, lease, loaded, folder, signal, now });
      await processAsset(held, begun, tools);
    } catch (error) {
      await this.#putOff(assetId, lease, error, began);
    } finally {
      await tools.folder.clear(folderName).catch(() => undefined);
      await this.#reports.get(assetId);
      if (this.#reports.delete(assetId)) await endProgress(this.#deps.pool, assetId).catch(() => undefined);
      lease.release();
    }
  }

  /** When the database is away too, the row stays as it is, and this time counts as if we had died. */
  async #putOff(assetId: string, lease: Lease, error: unknown, began: Began): Promise<void> {
    const { logger, backOffMs = 1_000 } = this.#deps;
    const tell = (fault: unknown): void => logger.warn({ err: fault, assetId }, 'a media job could not be put off');
    // It is somebody else's now.
    if (!lease.isHeld()) {
      logger.debug({ err: error, assetId }, 'a media file was left to somebody else');
      const { revision, counted } = began;
      if (revision !== null && counted) await this.#jobs.uncount(assetId, revision).catch(tell);
      return;
    }
    const lane = laneAfter(error, began.lane);
    const failed = !this.#signal.aborted && !(error instanceof Postponed);
    const infrastructureFault = !failed || isInnocent(error);
    const waits = error instanceof Postponed ? error.waitMs : 0;
    const waitMs = failed ? backOff(began.failures, { firstMs: backOffMs, maxMs: maxBackOffMs }) : waits;
    if (failed) {
      const words = infrastructureFault
        ? 'a media file waits for what it needs'
        : 'a media file could not be worked on';
      logger[infrastructureFault ? 'warn' : 'error']({ err: error, assetId, waitMs }, words);
    }
    const fetch = failed && error instanceof DownloadError;
    // What was not begun was not counted.
    const isTakenBack = infrastructureFault && began.revision !== null && began.counted;
    await this.#jobs.reschedule(assetId, { waitMs, innocent: isTakenBack, failed, fetch, lane }).catch(tell);
  }
}

/** Where a job waits that this ended. What waited among the videos has left them: it says again when it needs their room. */
const laneAfter = (error: unknown, lane: JobLane): JobLane => {
  if (error instanceof OtherLane) return error.lane;
  if (error instanceof NoRoom) return 'videos';
  return lane === 'downloads' ? 'downloads' : 'files';
};

type Shared = Omit<Tools, 'lane' | 'counted' | 'usage' | 'videos'>;

interface Job extends DueJob {
  readonly lane: JobLane;
  readonly customer: string;
}

/** How a job stood when this worker began it. */
interface Began {
  readonly lane: JobLane;
  /** Null: it was not begun. */
  readonly revision: number | null;
  readonly failures: number;
  /** Whether a death now is held against the file. */
  counted: boolean;
}
