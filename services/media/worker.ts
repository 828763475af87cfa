import { media } from '#domain/media.ts';
import { type Bell, Rest } from '#runtime/bell.ts';
import { DownloadError } from '#runtime/egress/download.ts';
import { type Lease, Leases } from '#runtime/leases.ts';
import { endProgress, reportProgress } from '#runtime/progress.ts';
import { Cores } from './cores.ts';
import type { MediaDeps, Tools } from './deps.ts';
import { Held } from './held.ts';
import { type DueJob, Jobs } from './jobs.ts';
import { mediaMetrics } from './metrics.ts';
import { NoRoom, Videos } from './videos.ts';
import { bring, isInnocent } from './work.ts';

/**
 * Finds assets that something is to be done for, leases them, and works on some at once, each workspace in its turn. A
 * lost lease ends the work on it, down to the processes it started; whoever takes it over finds the same next step.
 */

const leaseKind = 'media';
/** How long a suspect lets others be begun before it has this process to itself, milliseconds. */
const patienceMs = 300_000;
/** Longest wait after faults in a row, milliseconds. */
const mostBackOffMs = 600_000;

export class Worker {
  readonly #deps: MediaDeps;
  readonly #signal: AbortSignal;
  readonly #bell: Bell;
  readonly #jobs: Jobs;
  readonly #leases: Leases;
  readonly #cores: Cores;
  readonly #videos: Videos;
  /** Work under way, by workspace. */
  readonly #underWay = new Map<string, Set<Promise<void>>>();
  /** Whether what is under way must stay the only one. */
  #alone = false;
  /** The newest report of each asset's progress: the row goes after it. */
  readonly #reports = new Map<string, Promise<void>>();
  /** When it looked for work, or was full. */
  #lookedAt = performance.now();

  constructor(deps: MediaDeps, bell: Bell, signal: AbortSignal) {
    const { pool, config, clock, logger, readiness, machine, pollMs = 1_000 } = deps;
    const onError = (error: unknown): void => logger.warn({ err: error }, 'leases could not be renewed or given back');
    this.#deps = deps;
    this.#bell = bell;
    this.#signal = signal;
    this.#jobs = new Jobs(pool);
    this.#leases = new Leases({
      pool,
      kind: leaseKind,
      ttlMs: config.leaseTtlMs,
      onError,
      ...(clock === undefined ? {} : { clock }),
    });
    this.#cores = new Cores({ pool, ttlMs: config.leaseTtlMs, onError, ...machine });
    this.#videos = new Videos(config.mediaConcurrency);
    readiness?.add('media', async () => {
      const age = performance.now() - this.#lookedAt;
      if (age > 10 * pollMs) throw new Error(`has not looked for work for ${Math.round(age)} ms`);
      return `looked ${Math.round(age)} ms ago, works on ${this.#running}`;
    });
  }

  get #running(): number {
    let count = 0;
    for (const works of this.#underWay.values()) count += works.size;
    return count;
  }

  async run(): Promise<void> {
    const { folder, transcoder, fetchFile, registry, logger, config, pool, pollMs = 1_000 } = this.#deps;
    const metrics =
      registry === undefined
        ? null
        : mediaMetrics(registry, { queued: () => this.#jobs.length(), underWay: () => this.#running });
    const progress = (assetId: string, done: number): void => {
      // One that fails is made up for by the next.
      this.#reports.set(
        assetId,
        reportProgress(pool, assetId, done).catch(() => undefined),
      );
    };
    const parts = { cores: this.#cores, videos: this.#videos, jobs: this.#jobs, progress };
    const tools: Tools = { transcoder, fetchFile, folder, metrics, logger, ...parts };
    const isOver = (): boolean => this.#signal.aborted;
    const rest = new Rest(pollMs);
    this.#signal.addEventListener('abort', () => this.#bell.ring(), { once: true });
    try {
      while (!isOver()) {
        const more = await this.#look(tools, config.mediaConcurrency - this.#running);
        const waitMs = rest.after(more || this.#running > 0);
        if (!more) await this.#bell.wait(waitMs, isOver);
      }
      while (this.#running > 0) await Promise.all([...this.#underWay.values()].flatMap((works) => [...works]));
    } finally {
      await this.#leases.close();
      await this.#cores.close();
    }
  }

  /** True when it has begun something: there may be more. */
  async #look(tools: Tools, room: number): Promise<boolean> {
    const { logger } = this.#deps;
    try {
      const full = room <= 0 || this.#alone;
      const suspect = full ? null : await this.#jobs.suspect(leaseKind);
      const alone = suspect !== null && this.#running === 0;
      const heldBack = suspect !== null && suspect.waitedMs > patienceMs;
      const chosen = alone ? [suspect] : full || heldBack ? [] : await this.#others(room);
      this.#lookedAt = performance.now();
      const leases = await this.#leases.acquire(chosen.map(({ assetId }) => assetId));
      for (const lease of leases) {
        const job = chosen.find(({ assetId }) => assetId === lease.id);
        if (job !== undefined) this.#begin(job, lease, tools);
        this.#alone = alone;
      }
      return leases.length > 0;
    } catch (error) {
      logger.warn({ err: error }, 'looking for media work failed');
      return false;
    }
  }

  async #others(room: number): Promise<readonly DueJob[]> {
    const due = await this.#jobs.due(leaseKind, room, this.#videos.hasRoom);
    const underWay = (workspaceId: string): number => this.#underWay.get(workspaceId)?.size ?? 0;
    return fairly(due, room, Math.max(1, this.#deps.config.mediaConcurrency - 1), underWay);
  }

  #begin({ assetId, workspaceId }: DueJob, lease: Lease, tools: Tools): void {
    const works = this.#underWay.get(workspaceId) ?? new Set();
    this.#underWay.set(workspaceId, works);
    const work = this.#hold(assetId, lease, tools).finally(() => {
      works.delete(work);
      if (works.size === 0) this.#underWay.delete(workspaceId);
      this.#alone = false;
      this.#bell.ring();
    });
    works.add(work);
  }

  /** Never rejects. */
  async #hold(assetId: string, lease: Lease, tools: Tools): Promise<void> {
    const signal = AbortSignal.any([lease.signal, this.#signal]);
    // A folder of each hold: one that lost the asset may still be at work when we take it anew.
    const folderName = `${assetId}-${lease.epoch}`;
    let began: Began | null = null;
    try {
      const { store, blobs, now = Date.now } = this.#deps;
      const loaded = await store.load(media, assetId);
      const begun = await this.#jobs.begin(assetId, loaded.revision);
      if (begun === null) return;
      began = { revision: loaded.revision, failures: begun.failures };
      const folder = await tools.folder.of(folderName);
      const { jobs } = tools;
      const held = new Held(assetId, begun.written, { store, blobs, jobs, lease, loaded, folder, signal, now });
      await bring(held, begun, tools);
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
  async #putOff(assetId: string, lease: Lease, error: unknown, began: Began | null): Promise<void> {
    const { logger, backOffMs = 1_000 } = this.#deps;
    const tell = (fault: unknown): void => logger.warn({ err: fault, assetId }, 'a media job could not be put off');
    // It is somebody else's now.
    if (!lease.isHeld()) {
      logger.debug({ err: error, assetId }, 'a media file was left to somebody else');
      if (began !== null) await this.#jobs.uncount(assetId, began.revision).catch(tell);
      return;
    }
    const video = error instanceof NoRoom;
    const failed = !this.#signal.aborted && !video;
    const innocent = !failed || isInnocent(error);
    const waitMs = failed ? Math.min(mostBackOffMs, backOffMs * 2 ** Math.min(began?.failures ?? 0, 20)) : 0;
    if (failed) {
      const words = innocent ? 'a media file waits for what it needs' : 'a media file could not be worked on';
      logger[innocent ? 'warn' : 'error']({ err: error, assetId, waitMs }, words);
    }
    const fetch = failed && error instanceof DownloadError;
    // What was not begun was not counted.
    await this.#jobs
      .putOff(assetId, { waitMs, innocent: innocent && began !== null, failed, fetch, video })
      .catch(tell);
  }
}

/** How a job stood when this worker began it. */
interface Began {
  readonly revision: number;
  readonly failures: number;
}

/**
 * Workspaces with the fewest running jobs go first, and none gets more than `most`: many files of one workspace, or slow
 * ones, do not hold up the one file of another.
 */
const fairly = (
  due: readonly DueJob[],
  room: number,
  most: number,
  running: (workspaceId: string) => number,
): readonly DueJob[] => {
  const turns = new Map<string, number>();
  const ranked = due.map((job) => {
    const turn = turns.get(job.workspaceId) ?? running(job.workspaceId);
    turns.set(job.workspaceId, turn + 1);
    return { job, turn };
  });
  return ranked
    .filter(({ turn }) => turn < most)
    .sort((a, b) => a.turn - b.turn)
    .slice(0, room)
    .map(({ job }) => job);
};
