import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import { together } from '#runtime/process/lifecycle.ts';
import type { MetricsDeps } from './deps.ts';
import { insightsGroup, onEvents, subscribedKinds, subscribedTypes } from './intake.ts';
import { type Cadence, cadence as usual } from './schedule.ts';
import { Worker } from './worker.ts';

/** The loops of the metrics process: what is to be asked for is heard of, and asked for when its time has come. */

export interface MetricsProcess {
  /** Resolves when the signal ended it; rejects with what a log could not recover from. */
  readonly done: Promise<void>;
  readonly consumers: readonly Consumer[];
}

export const startMetrics = (deps: MetricsDeps, signal: AbortSignal): MetricsProcess => {
  const { log, eventStore, store, codec, pool, logger, config, sourceOf } = deps;
  const cadence: Cadence = { ...usual, youngMs: config.insightsYoungDelaysMs, ...deps.cadence };
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
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
    apply: (tx, events) => onEvents(tx, events, { store, sourceOf, cadence }),
    signal: stop,
    logger,
  });
  const worker = new Worker(deps, cadence, stop);
  return { done: together([intake.done, worker.run()], failed), consumers: [intake] };
};
