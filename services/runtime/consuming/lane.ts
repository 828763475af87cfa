import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Lane, LanePosition, Log } from '#contracts/ports/log.ts';
import { topicOf } from '#schemas/events.ts';
import { partitionOf } from '#schemas/topics.ts';
import type { Owned } from './positions.ts';

/** The state of one lane that a member holds. */

export interface LaneStatus {
  readonly state: 'running' | 'retrying' | 'stopped';
  /** Why the lane does not run; null: it runs. */
  readonly reason: string | null;
  /** Commit position of the last record applied. */
  readonly position: bigint | null;
  /** Milliseconds that a stopped lane still rests before it retries; null: it does not rest. */
  readonly restsMs: number | null;
}

export interface LaneState<E> extends Owned {
  /** Decoded events of the next batch, by id. */
  decodedAhead: Map<string, E>;
  /** The pending store of a position behind records that the consumer does not want. Null: the position is stored. */
  passing: { readonly timer: NodeJS.Timeout; next: LanePosition; stored: Promise<void> | null } | null;
  nextOffset: bigint | null;
  /** Where the log ended when this member took the lane: up to there a log that was left by a restore has old records. */
  endAtStart: bigint | null;
  position: bigint | null;
  /** Resolves when the running work on the lane has ended. */
  tail: Promise<void>;
  state: LaneStatus['state'];
  reason: string | null;
  /** Stops since the lane last made progress. */
  stops: number;
  /** When a stopped lane retries. `over`: the rest has ended, and the consumer has asked the log for the lane. */
  rest: { timer: NodeJS.Timeout; readonly until: number; over: boolean } | null;
}

/** A function, because a lane may stop during each await. */
export const isStopped = ({ state }: Pick<LaneStatus, 'state'>): boolean => state === 'stopped';

/** Runs one piece of work at a time on a lane: a batch or a retry of parked events. */
export const oneAtATime = async (
  laneState: Pick<LaneState<unknown>, 'tail'>,
  work: () => Promise<void>,
): Promise<void> => {
  const tail = laneState.tail.then(work);
  laneState.tail = tail.catch(() => undefined);
  await tail;
};

export const newest = (a: bigint | null, b: bigint | null): bigint | null =>
  a === null || (b !== null && b > a) ? b : a;

const text = new TextDecoder();

const partitionKeyOf = (event: RecordedEvent): string =>
  (JSON.parse(text.decode(event.metadata)) as { partitionKey: string }).partitionKey;

/** The lane of an event; null: the log does not carry its stream. */
export const laneOf = (log: Log, event: RecordedEvent): Lane | null => {
  const topic = topicOf(event.stream);
  return topic === null ? null : log.laneOf(topic, partitionOf(partitionKeyOf(event), log.partitions));
};

/** Milliseconds that a stopped lane or relay rests: after its first stop, its second, and each later one. */
const defaultRestsMs: readonly number[] = [60_000, 300_000, 900_000];

/** @param stops number of stops in a row without progress, including this one */
export const restAfter = (stops: number, restsMs: readonly number[] = defaultRestsMs): number =>
  restsMs[Math.min(stops, restsMs.length) - 1] ?? 0;
