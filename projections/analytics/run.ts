import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { pause } from '#contracts/base/pause.ts';
import type { Consumer } from '#runtime/consuming/consume.ts';
import { restingOf } from '#runtime/consuming/lane-health.ts';
import { isInfrastructureFault, stopsLane } from '#runtime/process/faults.ts';
import { WakeSignal } from '#runtime/work/wake-signal.ts';
import { type IngestOptions, ingest } from './ingest.ts';
import { liveVersion } from './live.ts';
import { Recounter } from './recounter.ts';
import { markOutdated } from './rules.ts';
import { zonesFrom } from './zones.ts';

/** More observations than this within two seconds mean that the process reads a backlog. */
const manyObservations = 1_000;
/** After this long without a batch the log's end was reached: longer than a batch takes. Milliseconds. */
const quietMs = 5_000;

/**
 * Measures how fast observations come in to this process. The rate shows whether it catches up with the log; the size
 * of batches does not, because it differs from log to log. Instants are monotonic milliseconds.
 */
export class Inflow {
  /** Start of the current second; below, the observations of that second and of the one before. */
  #began = 0;
  #now = 0;
  #before = 0;
  #observedAt = -Infinity;

  observed(observations: number, at: number): void {
    this.#observedAt = at;
    if (at < this.#began + 1_000) {
      this.#now += observations;
      return;
    }
    this.#before = at < this.#began + 2_000 ? this.#now : 0;
    [this.#began, this.#now] = [at, observations];
  }

  /** Whether more records of the log seem to wait. */
  isBehind(at: number): boolean {
    return this.#now + this.#before >= manyObservations && at < this.#observedAt + quietMs;
  }
}

/** Ingests and recounts for the live version; follows when another version goes live. */

export interface RunningAnalytics {
  /** Resolves when the signal ends it; rejects with an error that it cannot recover from. */
  readonly done: Promise<void>;
  /** Why it does not work as it should; null when it does. */
  reason(): string | null;
  /** The consumer of the live version, while it runs. */
  consumers(): readonly Consumer[];
}

/** How often it checks which version is live and announces the one it reads. Milliseconds. */
const announceMs = 1_000;
/** An announcement that is not renewed for this long belongs to a dead process. Seconds. */
export const announcementSeconds = 15;
/** An unchanged announcement is renewed after this time, milliseconds. */
const renewAnnouncementMs = (announcementSeconds * 1_000) / 3;

/**
 * How often the recounter searches for marks of other processes. After a round it rests as long as the round took.
 * Milliseconds.
 */
const lookMs = 5_000;
/** Between two tries while a dependency is unavailable. Milliseconds. */
const retryMs = 1_000;
const minRestMs = 100;
const maxRestMs = 30_000;
/**
 * While this process catches up with the log, a day that is counted now is soon marked again: its rounds wait this long
 * for the log's end, so that catching up costs each day a few counts and not one a batch. Milliseconds.
 */
const behindMs = 20_000;
/** After its first batch a round waits this long for others, which show how fast they come. Milliseconds. */
const gatherMs = 100;

/** Between two tries to rebuild lost figures. Milliseconds. */
const mendRestMs = 5_000;

const announce = async (pool: Pool, instance: string, version: number): Promise<void> => {
  await pool.query(
    `insert into ops.analytics_readers (instance, version, until) values ($1, $2, now() + make_interval(secs => $3))
     on conflict (instance) do update set version = excluded.version, until = excluded.until`,
    [instance, version, announcementSeconds],
  );
};

/** Recounts marked days until the signal ends it. Its failures do not stop the ingester: `reason` reports them. */
class RecountLoop {
  readonly done: Promise<void>;
  readonly #recounter: Recounter;
  #reason: string | null = null;
  readonly #wakeSignal = new WakeSignal();
  readonly #inflow = new Inflow();

  constructor(version: number, { client, pool, store, codec, logger, signal }: IngestOptions) {
    const recounter = new Recounter(client, pool, version, zonesFrom(store, codec));
    this.#recounter = recounter;
    signal.addEventListener('abort', () => this.#wakeSignal.wake(), { once: true });
    this.done = (async () => {
      while (!signal.aborted) {
        await this.#atTheEnd(signal);
        const began = performance.now();
        let counted = 0;
        try {
          counted = await recounter.round(signal);
          if (counted === 0) counted = await markOutdated(pool, version);
          this.#reason = null;
        } catch (error) {
          if (!isInfrastructureFault(error) && !signal.aborted)
            logger.error({ err: error }, 'analytics: a recount failed');
          else if (this.#reason === null) logger.warn({ err: error }, 'analytics: a recount waits');
          this.#reason = error instanceof Error ? error.message : String(error);
        }
        const took = performance.now() - began;
        if (this.#reason !== null) await pause(retryMs, signal);
        else if (counted > 0) await pause(Math.min(maxRestMs, Math.max(minRestMs, took)), signal);
        else {
          await this.#wakeSignal.wait(lookMs, () => signal.aborted);
          await pause(gatherMs, signal);
        }
      }
    })();
  }

  /** Call it when there are days to count. */
  wake(observations: number): void {
    this.#inflow.observed(observations, performance.now());
    this.#wakeSignal.wake();
  }

  reason(): string | null {
    return this.#reason ?? this.#recounter.trouble();
  }

  async #atTheEnd(signal: AbortSignal): Promise<void> {
    const until = performance.now() + behindMs;
    const waits = (now: number): boolean => now < until && this.#inflow.isBehind(now);
    while (!signal.aborted && waits(performance.now())) await pause(minRestMs, signal);
  }
}

/** Runs the consumer of one version and its recounts. */
const runVersion = (
  version: number,
  options: IngestOptions,
): { readonly consumer: Consumer; readonly recounts: RecountLoop; readonly done: Promise<void> } => {
  const recounts = new RecountLoop(version, options);
  const consumer = ingest(version, { ...options, onMarked: (observations) => recounts.wake(observations) });
  const done = Promise.all([consumer.done, recounts.done]).then(() => undefined);
  done.catch(() => undefined);
  return { consumer, recounts, done };
};

interface RunOptions extends IngestOptions {
  /** Runs before the ingestion, again until it succeeds. @param report receives the text for /readyz meanwhile */
  readonly mend?: (options: IngestOptions, report: (words: string) => void) => Promise<void>;
}

export const runAnalytics = (options: RunOptions): RunningAnalytics => {
  const { pool, signal, logger } = options;
  const instance = randomUUID();
  let running: ReturnType<typeof runVersion> | null = null;
  let waits: string | null = 'starting';
  let announced: { readonly version: number | null; readonly at: number } = { version: null, at: 0 };

  /** The live version, announced as the one that this process reads; null while the database does not answer. */
  const live = async (): Promise<number | null> => {
    try {
      const version = await liveVersion(pool);
      const now = performance.now();
      if (announced.version !== version || now >= announced.at + renewAnnouncementMs) {
        await announce(pool, instance, version);
        announced = { version, at: now };
      }
      waits = null;
      return version;
    } catch (error) {
      if (stopsLane(error)) throw error;
      waits = error instanceof Error ? error.message : String(error);
      await pause(announceMs, signal);
      return null;
    }
  };

  const follow = async (version: number): Promise<void> => {
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    running = runVersion(version, { ...options, signal: either });
    logger.info({ version }, 'ingesting analytics');
    const ended = running.done.finally(() => over.abort());
    ended.catch(() => undefined);
    while (!either.aborted) {
      await pause(announceMs, either);
      const now = either.aborted ? null : await live();
      // A rebuild's switch fences the old consumer, so it can do no harm until this check notices.
      if (now !== null && now !== version) over.abort();
    }
    await ended;
    running = null;
  };

  const mended = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await options.mend?.(options, (words) => {
          waits = words;
        });
        return;
      } catch (error) {
        if (signal.aborted) return;
        logger.warn({ err: error }, 'analytics: the lost figures are not rebuilt yet');
        waits = error instanceof Error ? error.message : String(error);
        await pause(mendRestMs, signal);
      }
    }
  };

  const done = (async () => {
    try {
      await mended();
      while (!signal.aborted) {
        const version = await live();
        if (version !== null) await follow(version);
      }
    } finally {
      await pool.query('delete from ops.analytics_readers where instance = $1', [instance]).catch(() => undefined);
    }
  })();
  done.catch(() => undefined);
  return {
    done,
    consumers: () => (running === null ? [] : [running.consumer]),
    reason: () => {
      const ill = [...(running?.consumer.status() ?? [])].flatMap(([lane, { state, reason, restsMs }]) =>
        state === 'running' ? [] : [`${lane} ${state}: ${reason}${restingOf(restsMs)}`],
      );
      return waits ?? ill[0] ?? running?.recounts.reason() ?? null;
    },
  };
};
