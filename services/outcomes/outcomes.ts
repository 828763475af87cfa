import type { Pool } from 'pg';
import type { ApiVersions } from '#contracts/ports/api-version.ts';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import { moveClock, movesOf } from '#projections/queries/move-clock.ts';
import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import type { ConsumeMetrics } from '#runtime/consuming/options.ts';
import type { DecodedEvent, EventCodec } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import type { Config } from '#runtime/process/config.ts';
import { together } from '#runtime/process/lifecycle.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import type { PublishingHold } from '#runtime/work/publishing-hold.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { WakeSignal } from '#runtime/work/wake-signal.ts';
import type { ApprovalEvent } from '#schemas/approval.ts';
import type { PostEvent } from '#schemas/post.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { outcomeTypes, recordOutcomes } from '#services/workflows/posts/outcomes.ts';
import { noteCleanUps, runCleanUps } from './clean-ups.ts';
import { type CredentialWatchDeps, watchCredentials } from './credentials.ts';
import { type ListeningDeps, runListening } from './listening.ts';
import { runNotices } from './notices.ts';
import { type OverdueDeps, runOverdue } from './overdue.ts';
import { placeTypes, tendPlacesOf } from './quotas.ts';
import { runRecycles } from './recycles.ts';
import { Resting } from './resting.ts';
import { runRestores } from './restores.ts';
import { type RevocationDeps, runRevocations } from './revocations.ts';
import { runSweeper, type SweeperDeps } from './sweeper.ts';
import { runVersions } from './versions.ts';

/**
 * Finishes what a process began and did not end: a post that was submitted and has no request yet, a decision that its
 * post does not know, a request whose post was changed or canceled.
 */

/** Types of events after which the requests of a post may lag. */
const approvalTypes: readonly (PostEvent | ApprovalEvent)['type'][] = [
  'PostSubmittedForApproval',
  'PostTargetsChanged',
  'PostCanceled',
  'ApprovalApproved',
  'ApprovalRejected',
  'ApprovalChangesRequested',
];

/** Posts that are tended concurrently. */
const width = 16;

const tendAll = async (store: DomainStore, events: readonly DecodedEvent[]): Promise<void> => {
  const named = events.filter(({ type }) => (approvalTypes as readonly string[]).includes(type));
  // The partition key of a post and of its requests is the id of the post.
  const ids = [...new Set(named.map(({ metadata }) => metadata.partitionKey))];
  for (let at = 0; at < ids.length; at += width) {
    await Promise.all(ids.slice(at, at + width).map((id) => tendApprovals(store, id)));
  }
};

export interface OutcomesDeps {
  readonly log: Log;
  /** If the log has lost records, the consumers read them from this store. */
  readonly eventStore: EventStore;
  readonly store: DomainStore;
  readonly codec: EventCodec;
  /** At least 4 connections. */
  readonly pool: Pool;
  readonly config: Pick<Config, 'sweepIntervalMs' | 'leaseTtlMs'>;
  readonly logger: Logger;
  /** Whether copies of recycled posts may be made. Default: unless a row of the database holds publishing. */
  readonly hold?: PublishingHold;
  readonly metrics?: ConsumeMetrics;
  /** Milliseconds since the epoch by the database's clock, which all processes share. Default `Date.now`. */
  readonly now?: () => number;
  /** The clocks of sandbox workspaces. Default: as the rows of the database have them. */
  readonly sandboxClocks?: SandboxClocks;
  /** While the clock has a fault, the sweeper takes no lease. Default: no fault. */
  readonly clock?: Pick<Clock, 'fault'>;
  /** Called for each post, client or account that a sweep could not finish. */
  readonly onFailure?: SweeperDeps['onFailure'] & {};
  /** Refreshes the credentials of these networks ahead of their end. Default: of none. */
  readonly watch?: Pick<CredentialWatchDeps, 'credentials' | 'refreshers' | 'rules'>;
  /** Takes back what these networks gave for accounts that were disconnected. Default: of none. */
  readonly revoke?: Pick<RevocationDeps, 'credentials' | 'revokers'>;
  /** Listens to these networks. Default: to none. */
  readonly listen?: Pick<ListeningDeps, 'credentials' | 'listeners' | 'connectCodes' | 'pushedPosts'>;
  /** Tells workspaces when networks end these versions of their APIs. Default: of none. */
  readonly versions?: ApiVersions;
  /** Called whenever a network answers its listener, or fails to. */
  readonly onHearing?: ListeningDeps['onHearing'] & {};
  /** Called for each target that was recorded as overdue. */
  readonly onOverdue?: OverdueDeps['onOverdue'] & {};
  /** Called for each refresh of a credential that ended. */
  readonly onRefresh?: CredentialWatchDeps['onRefresh'] & {};
}

export const outcomesGroup = 'outcomes';
export const archivesGroup = 'archives';

export interface Outcomes {
  /** Resolves after the signal has aborted; rejects when the log cannot recover. */
  readonly done: Promise<void>;
  /** Two groups, because they read different topics. What their events ask for is bounded; the rest is noted in tables. */
  readonly consumers: readonly Consumer[];
}

/**
 * Runs the follow-up work that no caller waits for: it records the outcomes of targets in their posts, carries decisions
 * about posts out, gives back places of quotas, ends the posts and invites of archived clients and the posts of
 * disconnected accounts, resumes work interrupted by a crash, reports overdue targets, makes the copies of recycled
 * posts, refreshes credentials ahead of their end, gives back those of disconnected accounts, listens to networks, carries out
 * what they said of people, and tells of versions of their APIs that end.
 * Its effects are appends, so its groups are never replayed. After a crash between append and position the consumer repeats the command, and the decider yields no
 * event.
 */
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
  const cleanUps = new WakeSignal();
  const wakeCleanUps = (): void => cleanUps.wake();
  const recycles = new WakeSignal();
  const outcomes = consume({
    ...shared,
    group: outcomesGroup,
    topics: ['posts'],
    kinds: ['target', 'post', 'approval'],
    types: [...new Set<string>([...outcomeTypes, ...approvalTypes, ...placeTypes])],
    // Each event leads to one post and its at most 500 targets.
    apply: async (_tx, events) => {
      await recordOutcomes(store, events, now);
      await tendAll(store, events);
      await tendPlacesOf(store, pool, events, now);
      return null;
    },
  });
  const archives = consume({
    ...shared,
    group: archivesGroup,
    topics: ['workspace'],
    kinds: ['client', 'account', 'workspace'],
    types: ['ClientArchived', 'AccountDisconnected', 'SandboxClockMoved'],
    apply: async (tx, events) => {
      for (const { metadata, ...event } of events) {
        for (const move of movesOf([{ metadata, ...event }]))
          await moveClock(pool, { ...move, workspaceId: metadata.workspaceId });
      }
      const ends = events.filter(({ type }) => type !== 'SandboxClockMoved');
      const asked = ends.map(({ stream, id, revision, metadata }) => {
        const { workspaceId, $correlationId: correlationId } = metadata;
        return { stream, workspaceId, revision, correlationId, causationId: id };
      });
      await noteCleanUps(tx, asked);
      const wake = (): void => {
        if (asked.length > 0) wakeCleanUps();
        if (ends.length < events.length) recycles.wake();
      };
      return { committed: wake, rolledBack: () => undefined };
    },
  });
  const { sandboxClocks = new SandboxClocks(pool) } = deps;
  const timed = { ...deps, sandboxClocks, now: now ?? Date.now };
  const rounds = [
    runCleanUps(timed, cleanUps, stop),
    runSweeper({ ...deps, sandboxClocks, wakeCleanUps }, stop),
    runOverdue(deps, stop),
    runRecycles(timed, stop, recycles),
    runRestores(timed, stop),
    runNotices(timed, stop),
  ];
  if (deps.watch !== undefined) rounds.push(watchCredentials({ ...timed, ...deps.watch }, stop));
  if (deps.revoke !== undefined) rounds.push(runRevocations({ ...timed, ...deps.revoke }, new Resting(), stop));
  if (deps.listen !== undefined) rounds.push(runListening({ ...timed, ...deps.listen }, stop));
  if (deps.versions !== undefined) rounds.push(runVersions({ ...timed, versions: deps.versions }, stop));
  const done = together([outcomes.done, archives.done, ...rounds], failed);
  return { done, consumers: [outcomes, archives] };
};
