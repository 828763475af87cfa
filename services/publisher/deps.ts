import type { Pool } from 'pg';
import type { Histogram, Registry } from 'prom-client';
import type { BackOff } from '#contracts/base/back-off.ts';
import { pause } from '#contracts/base/pause.ts';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { PlatformAdapter, PublishRequest } from '#contracts/ports/platform.ts';
import type { AccountSource } from '#contracts/ports/platform-account.ts';
import type { AbsencePolicy } from '#domain/post-target/target.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import type { Config } from '#runtime/process/config.ts';
import type { Logger, Readiness } from '#runtime/process/telemetry.ts';
import type { NetworkRests } from '#runtime/work/network-rests.ts';
import type { PublishingHold } from '#runtime/work/publishing-hold.ts';
import type { Restores } from '#runtime/work/restores.ts';
import type { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import type { Platform } from '#schemas/common.ts';
import type { AskedAccounts } from '#services/workflows/accounts/asked.ts';
import type { PublishingCadence } from './account-slots.ts';
import type { Files } from './files.ts';
import type { NetworkCalls } from './network-calls.ts';
import type { ProcessingRest } from './reconcile-schedule.ts';
import type { WaitingFiles } from './waiting-files.ts';

export type PublisherConfig = Pick<
  Config,
  | 'leaseTtlMs'
  | 'boundaryDeadlineMs'
  | 'settleWindowMs'
  | 'reconcileDelaysMs'
  | 'deferDelaysMs'
  | 'maxRateLimits'
  | 'publishConcurrency'
> &
  Partial<Pick<Config, 'publishing'>>;

export interface Changes {
  readonly version: number;
  /** Resolves when something was appended since `seen`, or after a while. */
  changed(seen: number, signal: AbortSignal): Promise<void>;
}

export interface PublisherDeps {
  readonly store: DomainStore;
  /** Leases and the search for due work; at least 2 connections, best its own pool. */
  readonly pool: Pool;
  /** The adapter of an account's network; null where there is none yet. */
  readonly adapterOf: (network: 'live' | 'sandbox', platform: Platform) => PlatformAdapter | null;
  /** Who says what an account may post before it does; default: nobody. */
  readonly accountsOf?: (network: 'live' | 'sandbox', platform: Platform) => AccountSource | null;
  /** Milliseconds for which such an answer is kept. Default 60,000. */
  readonly factsKeptMs?: number;
  /** Where the files of posts lie. */
  readonly blobs: BlobStore;
  /** Local folder for the files that an adapter needs during its call. */
  readonly workDir: string;
  readonly config: PublisherConfig;
  readonly logger: Logger;
  readonly registry?: Registry;
  readonly readiness?: Readiness;
  /** Publishers read the database's clock, so that two machines agree on which targets are due. */
  readonly clock: Clock;
  /** The clocks of sandbox workspaces. Default: as the rows of the database have them. */
  readonly sandboxClocks?: SandboxClocks;
  /** 0–1. Default `Math.random`. */
  readonly random?: () => number;
  /**
   * Reports appended events; between reports an idle publisher searches less often. Default: it always searches often.
   */
  readonly changes?: Changes;
  /** Milliseconds between two searches for due work. Default 100. */
  readonly pollMs?: number;
  /** Milliseconds before its time at which a worker leases and reads a target. Default 3,000. */
  readonly aheadMs?: number;
  /** Milliseconds an adapter may take before the boundary. Default 15 min. */
  readonly preparationLimitMs?: number;
  /** Milliseconds of preparation without a moved byte and without a checkpoint, after which it ends. Default 60 s. */
  readonly preparationIdleMs?: number;
  /**
   * Milliseconds that a target waits for a rendition, from the latest of its attempt's time, this publisher's start and
   * the request. Default 30 min.
   */
  readonly mediaLimitMs?: number;
  /** Milliseconds between two looks at a target whose renditions are not ready. Default: from 500 ms to 30 s. */
  readonly mediaRest?: BackOff;
  /** Keeps what networks answer for targets. Default: nothing is kept. */
  readonly calls?: NetworkCalls;
  /** Looks at a network after which the rules of a client let a target be tried again. Default 3, a minute apart. */
  readonly absencePolicy?: AbsencePolicy;
  /** Shortest waits after rate limits in a row. Default: from 1 s to 15 min. */
  readonly rateLimitBackOff?: BackOff;
  /** Bounds of the time between two questions about a post that its network accepted. Default: from 2 s to an hour. */
  readonly processingRest?: ProcessingRest;
}

/** What the networks have shown since this start of targets that were never tried here. */
interface LookedBack {
  asked: number;
  /** Questions without an answer. */
  open: number;
  found: number;
  /** Milliseconds since the epoch. */
  oldestDue: number;
  declared: Promise<void> | null;
}

export interface Tools
  extends Required<
    Omit<PublisherDeps, 'registry' | 'readiness' | 'pool' | 'changes' | 'calls' | 'factsKeptMs' | 'sandboxClocks'>
  > {
  readonly calls: NetworkCalls | null;
  readonly asked: AskedAccounts;
  readonly now: () => number;
  /** This publisher's start, milliseconds since the epoch. */
  readonly startedAt: number;
  /** Milliseconds by which `now` is ahead of real time: the clock of the target's workspace. */
  readonly clockAheadMs: () => number;
  /** Since then, by `now`, the files of a due target have had time to become ready. Milliseconds since the epoch. */
  readonly sinceMove: () => number;
  /** Seconds from a target's time to the start of its publish call. */
  readonly lateness: Histogram | null;
  /** Seconds from the acceptance of a post by its network to its end there. */
  readonly processing: Histogram | null;
  readonly files: Files;
  readonly hold: PublishingHold;
  readonly networkRests: NetworkRests;
  readonly waitingFiles: WaitingFiles;
  readonly restores: Restores;
  readonly lookedBack: LookedBack;
  /** Which of these posts of an account other targets are known by. */
  readonly takenPosts: (
    accountId: string,
    exceptTargetId: string,
    externalIds: readonly string[],
  ) => Promise<ReadonlySet<string>>;
  readonly cadence: PublishingCadence;
}

interface AdapterTimes {
  readonly boundaryDeadlineMs: number;
  readonly settleWindowMs: number;
}

/** The configured times; a time that is not configured is the adapter's own. */
export const adapterTimes = (
  adapter: PlatformAdapter,
  platform: Platform,
  account: PublishRequest['account'],
  config: { readonly boundaryDeadlineMs: number | null; readonly settleWindowMs: number | null },
): AdapterTimes => ({
  boundaryDeadlineMs: config.boundaryDeadlineMs ?? adapter.boundaryDeadlineMs,
  settleWindowMs: config.settleWindowMs ?? adapter.settleWindowMs(platform, account),
});

/** Milliseconds after which a wait reads the clock again, because the database's clock may have been measured anew. */
const lookMs = 250;

/** Resolves when the clock `now` has reached the instant (never before), or when the signal aborts. */
export const until = async (instant: number, now: () => number, signal: AbortSignal): Promise<void> => {
  for (let left = instant - now(); left > 0 && !signal.aborted; left = instant - now()) {
    await pause(Math.min(Math.max(1, left), lookMs), signal);
  }
};

/** An instant by which something must end, on the monotonic clock. */
export class Deadline {
  readonly #at: number;
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly signal: AbortSignal;

  constructor(ms: number) {
    this.#at = performance.now() + ms;
    this.#timer = setTimeout(() => this.#abort(), ms);
    const { signal } = this.#controller;
    // A process that resumes after a stop reads `aborted` before its timers run, so the getter checks the clock.
    Object.defineProperty(signal, 'aborted', {
      get: () => {
        if (this.leftMs() <= 0) this.#abort();
        return Reflect.get(AbortSignal.prototype, 'aborted', signal);
      },
    });
    this.signal = signal;
  }

  leftMs(): number {
    return this.#at - performance.now();
  }

  clear(): void {
    clearTimeout(this.#timer);
  }

  #abort(): void {
    clearTimeout(this.#timer);
    this.#controller.abort(new Error('the deadline has passed'));
  }
}
