import type { Pool, PoolClient } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Lane, Log } from '#contracts/ports/log.ts';
import { deliveryIdOf, envelopeIdOf } from '#domain/ids.ts';
import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import type { Applied, ConsumeMetrics, FailureAction } from '#runtime/consuming/options.ts';
import type { Move } from '#runtime/consuming/positions.ts';
import type { DecodedEvent, EventCodec, StoredBytes } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { together } from '#runtime/process/lifecycle.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { kindOf, topics } from '#schemas/topics.ts';
import { dispatcher } from '../engine/positions.ts';
import { applyEndpointEvents, type RequestedTest } from './endpoints.ts';
import type { Handover } from './handover.ts';
import { Interest } from './interest.ts';
import { WebhookJobs } from './jobs.ts';
import { Marks, positionBefore } from './marks.ts';
import { type Minted, mint, mintAndMove } from './mint.ts';
import { laneOf, mintReserved, plan, workspaceOf } from './plan.ts';
import { Subjects } from './subjects.ts';
import { kindsPublished, sampleBytes, typesOfKind } from './types.ts';

/**
 * The dispatcher is a consumer of the log. One transaction mints the deliveries of a batch and moves the position, so
 * each event is minted once, also after a crash: before the commit nothing is there, after it everything is. The
 * hand-over in memory to the sender only saves the sender a query: a row that it does not send lapses into the queue.
 */

export interface DispatcherDeps {
  readonly log: Log;
  readonly eventStore: EventStore;
  readonly store: DomainStore;
  readonly codec: EventCodec;
  /** At least 4 connections. */
  readonly pool: Pool;
  readonly handover: Handover;
  readonly logger: Logger;
  readonly metrics?: ConsumeMetrics;
  /** Deliveries of a replay a second. Default 200. */
  readonly replayRate?: number;
}

/**
 * While an endpoint subscribes to what comes, each batch is taken at once. While none does, for example when other
 * workspaces are busy and have no endpoint, batches are gathered: inspecting each unwanted record at once would cost
 * the database a query each.
 */
const activeMs = 1_000;
const idleSpacingMs = 40;

export const webhooksGroup = dispatcher.group;

export interface Dispatcher {
  /** Resolves when the signal ends it; rejects with an error that the log cannot recover from. */
  readonly done: Promise<void>;
  readonly consumer: Consumer;
}

/** Whether a record is read at all; most of a busy log is not. */
const wantedBy = (interest: Interest, marks: Marks) => {
  const changing = new WeakMap<readonly StoredBytes[], boolean>();
  /** Records in a batch that changes an endpoint are judged after that change is applied. */
  const changesOne = (batch: readonly StoredBytes[]): boolean => {
    const known = changing.get(batch) ?? batch.some(({ stream }) => kindOf(stream) === 'webhook');
    changing.set(batch, known);
    return known;
  };
  return (record: StoredBytes, batch: readonly StoredBytes[]): boolean => {
    if (marks.due) marks.see(record.position);
    const kind = kindOf(record.stream);
    if (kind === 'webhook' || changesOne(batch)) return true;
    // Takes every event of a stream that may be published: the payload's members beyond the event are folded along the
    // way.
    return interest.size > 0 && interest.includesAny(workspaceOf(record.metadata), typesOfKind(kind));
  };
};

const workspacesOf = (events: readonly DecodedEvent[]): readonly string[] => [
  ...new Set(events.map(({ metadata }) => metadata.workspaceId)),
];

const inOrder = (first: () => void, second: () => void) => (): void => {
  first();
  second();
};

const subscribersOf =
  (known: Interest) =>
  ({ metadata, position }: DecodedEvent, type: string) =>
    known.at(metadata.workspaceId, type, position);

export const startDispatcher = (deps: DispatcherDeps, signal: AbortSignal): Dispatcher => {
  const { log, eventStore, store, codec, pool, handover, logger, metrics } = deps;
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const interest = new Interest(pool);
  const subjects = new Subjects(store);
  const marks = new Marks(pool);
  const onlyLane = onlyLaneOf(log);
  const jobs = new WebhookJobs({ ...deps, interest, subjects, onlyLane });
  const partitions = log.partitions;

  const wants = wantedBy(interest, marks);
  /**
   * True after a batch that changed endpoints, or tried to: the next batch reads the tables again, even if the change
   * failed.
   */
  let maybeChanged = false;
  const refreshInterest = async (): Promise<void> => {
    if (maybeChanged) interest.outdated();
    maybeChanged = false;
    await interest.fresh();
  };

  let lastMatchAt = Number.NEGATIVE_INFINITY;
  const subscribersNow = subscribersOf(interest);

  /**
   * Handles nearly every batch: it changes no endpoint, an endpoint subscribes to it, and one statement does
   * everything.
   */
  const mintInOneStatement = async (
    events: readonly DecodedEvent[],
    move: Move,
  ): Promise<Applied | 'nothing' | null> => {
    if (events.some(({ stream }) => kindOf(stream) === 'webhook')) return null;
    // The batch may be applied in pieces, and an earlier piece may have changed endpoints.
    if (maybeChanged) await refreshInterest();
    const planned = await plan(events, { subjects, partitions, subscribers: subscribersNow });
    if (planned.length === 0) return 'nothing';
    lastMatchAt = performance.now();
    return mintReserved(handover, planned, (messages) => {
      faultPoint('dispatcher:before-mint');
      return mintAndMove(pool, messages, handover.leaseMs, move);
    });
  };

  const endpointsChanged = (): void => {
    interest.outdated();
    handover.wake();
    jobs.wake();
  };

  const apply = async (tx: PoolClient, events: readonly DecodedEvent[]): Promise<FailureAction | Applied | null> => {
    const own = events.filter(({ stream }) => kindOf(stream) === 'webhook');
    let tests: readonly RequestedTest[] = [];
    let subscribers = subscribersNow;
    if (maybeChanged) await refreshInterest();
    if (own.length > 0) {
      maybeChanged = true;
      const changes = await applyEndpointEvents(tx, own, (instant) => positionBefore(pool, instant), onlyLane);
      if (changes.failure !== null) return changes.failure;
      tests = changes.tests;
      subscribers = subscribersOf(await Interest.within(tx, workspacesOf(events)));
    }
    const planned = await plan(events, { subjects, partitions, subscribers });
    planned.push(...tests.map((test) => messageOf(test, partitions)));
    const changed = own.length === 0 ? () => undefined : endpointsChanged;
    if (planned.length === 0) return { committed: changed, rolledBack: () => undefined };
    const minted = await mintReserved(handover, planned, (messages) => mint(pool, tx, messages, handover.leaseMs));
    return { ...minted, committed: inOrder(minted.committed, changed) };
  };

  const consumer = consume({
    log,
    store: eventStore,
    pool,
    codec,
    logger,
    group: webhooksGroup,
    topics,
    kinds: kindsPublished,
    wants,
    prepare: async () => {
      await refreshInterest();
      await marks.save();
    },
    apply,
    applyInOneStatement: mintInOneStatement,
    replay: 'never',
    spacingMs: () => (performance.now() - lastMatchAt < activeMs ? 0 : idleSpacingMs),
    signal: stop,
    ...(metrics === undefined ? {} : { metrics }),
  });
  return { done: together([consumer.done, jobs.run(stop)], failed), consumer };
};

const onlyLaneOf = (log: Log): Lane | null => {
  const lanes = new Set(topics.flatMap((topic) => [log.laneOf(topic, 0), log.laneOf(topic, 1)]));
  const [lane] = lanes;
  return lanes.size === 1 && lane !== undefined ? lane : null;
};

/** A test goes to the endpoint that asked for it, whatever its subscription, and has the payload of such an event. */
const messageOf = ({ event, eventType, clientIds }: RequestedTest, partitions: number): Minted => {
  const messageId = envelopeIdOf(event.id, eventType);
  const endpointId = event.stream.slice('webhook-'.length);
  return {
    eventTime: event.metadata.occurredAt,
    messageId,
    workspaceId: event.metadata.workspaceId,
    type: eventType,
    position: event.position,
    lane: laneOf(event, partitions),
    clientId: null,
    body: sampleBytes(eventType, event, clientIds),
    deliveries: [
      { id: deliveryIdOf(messageId, endpointId), endpointId, replayId: null, trigger: 'test', leased: false },
    ],
  };
};
