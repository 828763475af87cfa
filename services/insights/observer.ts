import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import { together } from '#runtime/process/lifecycle.ts';
import { runPages } from '#runtime/work/noted-work.ts';
import { WakeSignal } from '#runtime/work/wake-signal.ts';
import { closePage } from './closings.ts';
import type { InsightsDeps } from './deps.ts';
import { insightsGroup, onEvents, subscribedKinds, subscribedTypes } from './intake.ts';
import { askPage } from './refreshes.ts';
import { type Cadence, cadence as usual } from './schedule.ts';
import { Worker } from './worker.ts';

/** The loops of the insights process: one consumes events, one polls due accounts, two work on pages. */

export interface InsightsProcess {
  /** Resolves when the signal ended it; rejects with an error that the log cannot recover from. */
  readonly done: Promise<void>;
  readonly consumers: readonly Consumer[];
}

export const startInsights = (deps: InsightsDeps, signal: AbortSignal): InsightsProcess => {
  const { log, eventStore, store, codec, pool, logger, config, sourceOf, pollMs = 1_000 } = deps;
  const cadence: Cadence = { ...usual, youngMs: config.insightsYoungDelaysMs, ...deps.cadence };
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const [closings, asks] = [new WakeSignal(), new WakeSignal()];
  const onNoted = (): void => {
    closings.wake();
    asks.wake();
  };
  const intake = consume({
    log,
    store: eventStore,
    pool,
    codec,
    group: insightsGroup,
    topics: ['posts', 'workspace'],
    kinds: subscribedKinds,
    types: subscribedTypes,
    replay: 'never',
    apply: (tx, events) => onEvents(tx, events, { store, sourceOf, cadence, onNoted }),
    signal: stop,
    logger,
  });
  const worker = new Worker(deps, cadence, stop);
  const shared = { logger, pollMs, signal: stop };
  const pages = [
    runPages('closed clients', () => closePage(pool), { ...shared, wakeSignal: closings }),
    runPages('refreshes', () => askPage(pool, { store, sourceOf, cadence }), { ...shared, wakeSignal: asks }),
  ];
  return { done: together([intake.done, worker.run(), ...pages], failed), consumers: [intake] };
};
