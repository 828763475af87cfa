import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import { together } from '#runtime/process/lifecycle.ts';
import { WakeSignal } from '#runtime/work/wake-signal.ts';
import type { MediaDeps } from './deps.ts';
import { fill, fillGroup, plannedTypes } from './fill.ts';
import { mediaGroup, onEvents, subscribedTypes } from './intake.ts';
import { runOffers } from './offers.ts';
import { runRecount } from './recount.ts';
import { MediaWorker } from './worker.ts';

/** The loops of the media process: they consume events, request renditions for scheduled posts, and work on assets. */

export interface MediaProcess {
  /** Resolves when the signal ended it; rejects with an error that the log cannot recover from. */
  readonly done: Promise<void>;
  readonly consumers: readonly Consumer[];
}

export const startMedia = (deps: MediaDeps, signal: AbortSignal): MediaProcess => {
  const { log, eventStore, store, codec, pool, logger, now = Date.now } = deps;
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const wakeSignal = new WakeSignal();
  const shared = { log, store: eventStore, pool, codec, signal: stop, logger, replay: 'never' as const };
  const intake = consume({
    ...shared,
    group: mediaGroup,
    topics: ['media'],
    kinds: ['media'],
    types: subscribedTypes,
    apply: (tx, events) => onEvents(tx, events, () => wakeSignal.wake()),
  });
  const filling = consume({
    ...shared,
    group: fillGroup,
    topics: ['posts'],
    kinds: ['post'],
    types: plannedTypes,
    // Bounded by the gate of posts: the files of a post, of its variants and of its segments, each loaded once.
    apply: async (_tx, events) => {
      for (const event of events) await fill(store, event, now);
      return null;
    },
  });
  const worker = new MediaWorker(deps, wakeSignal, stop);
  const done = together(
    [intake.done, filling.done, worker.run(), runOffers(deps, stop), runRecount(deps, stop)],
    failed,
  );
  return { done, consumers: [intake, filling] };
};
