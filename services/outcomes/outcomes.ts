import type { Pool } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import type { ConsumeMetrics } from '#runtime/consuming/options.ts';
import type { EventCodec } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import type { Config } from '#runtime/process/config.ts';
import { together } from '#runtime/process/lifecycle.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { cleanUpArchived } from './archived.ts';
import { outcomeTypes, recordOutcomes } from './record-outcomes.ts';
import { runSweeper, type SweeperDeps } from './sweeper.ts';

/**
 * What follows from facts without anybody asking: targets' outcomes in their posts, the end of an archived client's
 * posts and invites, and work interrupted by a crash. Its effects are appends, so it is never replayed; an append that was
 * made before the position moved is found done by its decider.
 */

export interface OutcomesDeps {
  readonly log: Log;
  /** Where a lane is read on that the log lost. */
  readonly eventStore: EventStore;
  readonly store: DomainStore;
  readonly codec: EventCodec;
  /** At least 4 connections. */
  readonly pool: Pool;
  readonly config: Pick<Config, 'sweepIntervalMs' | 'leaseTtlMs'>;
  readonly logger: Logger;
  readonly metrics?: ConsumeMetrics;
  /** Milliseconds since the epoch, by the database's clock, so that all processes have one time. Default `Date.now`. */
  readonly now?: () => number;
  /** While it has a fault nothing is claimed. Default: it has none. */
  readonly clock?: Pick<Clock, 'fault'>;
  /** Told of what a sweep could not finish. */
  readonly onFailure?: SweeperDeps['onFailure'] & {};
}

export const outcomesGroup = 'outcomes';
export const archivesGroup = 'archives';

export interface Outcomes {
  /** Resolves when the signal ended it; rejects with what a log could not recover from. */
  readonly done: Promise<void>;
  /** Two groups, so that the many posts of an archived client do not hold up the outcomes of all others. */
  readonly consumers: readonly Consumer[];
}

export const startOutcomes = (deps: OutcomesDeps, signal: AbortSignal): Outcomes => {
  const { log, eventStore, store, codec, pool, logger, metrics, now } = deps;
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const shared = {
    log,
    store: eventStore,
    pool,
    codec,
    signal: stop,
    logger,
    replay: 'never' as const,
    ...(metrics === undefined ? {} : { metrics }),
  };
  const outcomes = consume({
    ...shared,
    group: outcomesGroup,
    topics: ['posts'],
    kinds: ['target'],
    types: outcomeTypes,
    apply: async (_tx, events) => {
      await recordOutcomes(store, events, now);
      return null;
    },
  });
  const archives = consume({
    ...shared,
    group: archivesGroup,
    topics: ['workspace'],
    kinds: ['client'],
    types: ['ClientArchived'],
    apply: async (tx, events) => {
      for (const { stream, id, metadata } of events) {
        const { workspaceId, $correlationId: correlationId } = metadata;
        const clientId = stream.slice('client-'.length);
        await cleanUpArchived(store, tx, { clientId, workspaceId, correlationId, causationId: id }, now);
      }
      return null;
    },
  });
  const done = together([outcomes.done, archives.done, runSweeper(deps, stop)], failed);
  return { done, consumers: [outcomes, archives] };
};
