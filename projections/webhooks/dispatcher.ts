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
import { dispatcher } from '../positions.ts';
import { type AskedTest, applyEndpointEvents } from './endpoints.ts';
import type { Handover } from './handover.ts';
import { Interest } from './interest.ts';
import { Jobs } from './jobs.ts';
import { Marks, positionBefore } from './marks.ts';
import { type Minted, mint, mintAndMove } from './mint.ts';
import { laneOf, mintReserved, occurredAtOf, plan, workspaceOf } from './plan.ts';
import { Subjects } from './subjects.ts';
import { kindsPublished, sampleBytes, typesOfKind } from './types.ts';

/**
 * The dispatcher: one more consumer of the log. One transaction mints the deliveries of a batch and moves the position,
 * so each fact is minted once, whoever dies: before the commit nothing is there, after it everything is. What follows
 * in memory (the hand-over to the sender) only saves the sender a look: a row nobody sends lapses into the queue.
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
 * While somebody hears what comes, each batch is taken at once. While nobody does, as when others are busy and have no
 * endpoint, batches are gathered: to look at what is not wanted as soon as it is there costs the database a query each.
 */
const heardMs = 1_000;
const unheardSpacingMs = 40;

export const webhooksGroup = dispatcher.group;

export interface Dispatcher {
  /** Resolves when the signal ended it; rejects with what the log could not recover from. */
  readonly done: Promise<void>;
  readonly consumer: Consumer;
}

export const startDispatcher = (deps: DispatcherDeps, signal: AbortSignal): Dispatcher => {
  const { log, eventStore, store, codec, pool, handover, logger, metrics } = deps;
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const interest = new Interest(pool);
  const subjects = new Subjects(store);
  const marks = new Marks(pool);
  const onlyLane = onlyLaneOf(log);
  const jobs = new Jobs({ ...deps, interest, subjects, onlyLane });
  const partitions = log.partitions;

  const changing = new WeakMap<readonly StoredBytes[], boolean>();
  /** What comes with a change of an endpoint is judged when that is made. */
  const changesOne = (batch: readonly StoredBytes[]): boolean => {
    const known = changing.get(batch) ?? batch.some(({ stream }) => kindOf(stream) === 'webhook');
    changing.set(batch, known);
    return known;
  };

  const wants = (record: StoredBytes, batch: readonly StoredBytes[]): boolean => {
    if (marks.due) marks.see(record.position, occurredAtOf(record.metadata));
    const kind = kindOf(record.stream);
    if (kind === 'webhook' || changesOne(batch)) return true;
    // All of a stream whose events may be heard: what a payload says beyond its event is folded along the way.
    return interest.size > 0 && interest.hearsAny(workspaceOf(record.metadata), typesOfKind(kind));
  };

  /** A batch changed endpoints, or tried to: what follows is judged by what the tables say now, whatever became of it. */
  let maybeChanged = false;
  const knowing = async (): Promise<void> => {
    if (maybeChanged) interest.outdated();
    maybeChanged = false;
    await interest.fresh();
  };

  let heardAt = Number.NEGATIVE_INFINITY;
  const hearingOf =
    (known: Interest) =>
    ({ metadata, position }: DecodedEvent, type: string) =>
      known.at(metadata.workspaceId, type, position);
  const hearing = hearingOf(interest);

  /** Nearly every batch: it changes no endpoint, somebody hears it, and one statement does all. */
  const atOnce = async (events: readonly DecodedEvent[], move: Move): Promise<Applied | 'nothing' | null> => {
    if (events.some(({ stream }) => kindOf(stream) === 'webhook')) return null;
    // A batch that is applied in pieces: one before may have changed them.
    if (maybeChanged) await knowing();
    const planned = await plan(events, { subjects, partitions, hearing });
    if (planned.length === 0) return 'nothing';
    heardAt = performance.now();
    return mintReserved(handover, planned, (messages) => {
      faultPoint('dispatcher:before-mint');
      return mintAndMove(pool, messages, handover.leaseMs, move);
    });
  };

  const apply = async (tx: PoolClient, events: readonly DecodedEvent[]): Promise<FailureAction | Applied | null> => {
    const own = events.filter(({ stream }) => kindOf(stream) === 'webhook');
    let tests: readonly AskedTest[] = [];
    let hears = hearing;
    if (maybeChanged) await knowing();
    if (own.length > 0) {
      maybeChanged = true;
      const changes = await applyEndpointEvents(tx, own, (instant) => positionBefore(pool, instant), onlyLane);
      if (changes.verdict !== null) return changes.verdict;
      tests = changes.tests;
      const workspaces = [...new Set(events.map(({ metadata }) => metadata.workspaceId))];
      hears = hearingOf(await Interest.within(tx, workspaces));
    }
    const planned = await plan(events, { subjects, partitions, hearing: hears });
    planned.push(...tests.map((test) => messageOf(test, partitions)));
    const changed = (): void => {
      if (own.length === 0) return;
      interest.outdated();
      handover.wake();
      jobs.wake();
    };
    if (planned.length === 0) return { committed: changed, rolledBack: () => undefined };
    const { committed, rolledBack } = await mintReserved(handover, planned, (messages) =>
      mint(pool, tx, messages, handover.leaseMs),
    );
    return {
      committed: () => {
        committed();
        changed();
      },
      rolledBack,
    };
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
      await knowing();
      await marks.save();
    },
    apply,
    applyInOneStatement: atOnce,
    replay: 'never',
    spacingMs: () => (performance.now() - heardAt < heardMs ? 0 : unheardSpacingMs),
    signal: stop,
    ...(metrics === undefined ? {} : { metrics }),
  });
  const done = together([consumer.done, jobs.run(stop)], failed);
  return { done, consumer };
};

const onlyLaneOf = (log: Log): Lane | null => {
  const lanes = new Set(topics.flatMap((topic) => [log.laneOf(topic, 0), log.laneOf(topic, 1)]));
  const [lane] = lanes;
  return lanes.size === 1 && lane !== undefined ? lane : null;
};

/** A test goes to the endpoint that asked, whatever it hears, and says what such an event would. */
const messageOf = ({ event, eventType }: AskedTest, partitions: number): Minted => {
  const messageId = envelopeIdOf(event.id, eventType);
  const endpointId = event.stream.slice('webhook-'.length);
  return {
    eventTime: event.metadata.occurredAt,
    messageId,
    workspaceId: event.metadata.workspaceId,
    type: eventType,
    position: event.position,
    lane: laneOf(event, partitions),
    body: sampleBytes(eventType, event),
    deliveries: [
      { id: deliveryIdOf(messageId, endpointId), endpointId, replayId: null, trigger: 'test', leased: false },
    ],
  };
};
