import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import { together } from '#runtime/process/lifecycle.ts';
import { runPages } from '#runtime/work/noted-work.ts';
import { WakeSignal } from '#runtime/work/wake-signal.ts';
import type { ReportDeps } from './deps.ts';
import { onEvents, reportsGroup, subscribedTypes } from './intake.ts';
import { reviewPage } from './reviews.ts';
import { runSchedules } from './schedule.ts';
import { ReportWorker } from './worker.ts';

/**
 * The loops of the reports process: it takes in events, reviews the reports that they concern, requests runs that are
 * due, and makes requested runs.
 */

export interface ReportsProcess {
  /** Resolves when the signal ended it; rejects with an error that the log cannot recover from. */
  readonly done: Promise<void>;
  readonly consumers: readonly Consumer[];
}

export const startReports = (deps: ReportDeps, signal: AbortSignal): ReportsProcess => {
  const { log, eventStore, pool, codec, logger, pollMs = 1_000 } = deps;
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const [work, schedules, reviews] = [new WakeSignal(), new WakeSignal(), new WakeSignal()];
  const wake = (): void => {
    work.wake();
    schedules.wake();
  };
  const intake = consume({
    ...{ log, store: eventStore, pool, codec, logger },
    group: reportsGroup,
    topics: ['reports', 'workspace'],
    kinds: ['report', 'workspace', 'client'],
    types: subscribedTypes,
    replay: 'never',
    apply: (tx, events) =>
      onEvents(tx, events, () => {
        wake();
        reviews.wake();
      }),
    signal: stop,
  });
  const worker = new ReportWorker(deps, work, stop);
  const review = async (): Promise<boolean> => {
    const reviewed = await reviewPage(pool);
    if (reviewed) wake();
    return reviewed;
  };
  const reviewing = runPages('reports to review', review, { logger, pollMs, wakeSignal: reviews, signal: stop });
  const done = together([intake.done, worker.run(), runSchedules(deps, schedules, stop), reviewing], failed);
  return { done, consumers: [intake] };
};
