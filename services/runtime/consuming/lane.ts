import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Lane, LanePosition, Log } from '#contracts/ports/log.ts';
import { topicOf } from '#schemas/events.ts';
import { partitionOf } from '#schemas/topics.ts';
import type { Owned } from './positions.ts';

/** What a member knows of one lane that it holds. */

export interface LaneStatus {
  readonly state: 'running' | 'retrying' | 'stopped';
  /** Why it does not run; null when it does. */
  readonly reason: string | null;
  /** Commit position of the last record applied. */
  readonly position: bigint | null;
  /** Of a stopped lane: how long it still rests before it tries again, milliseconds. Null while it does not rest. */
  readonly restsMs: number | null;
}

export interface LaneState<E> extends Owned {
  /** Events of the next batch that are decoded already, by id. */
  decodedAhead: Map<string, E>;
  /** Stores, a moment later, how far it has passed over records that nobody asked for. Null when all is stored. */
  passing: { readonly timer: NodeJS.Timeout; next: LanePosition; stored: Promise<void> | null } | null;
  nextOffset: bigint | null;
  position: bigint | null;
  /** Ends when what is under way on the lane has ended. */
  turn: Promise<void>;
  state: LaneStatus['state'];
  reason: string | null;
  /** Stops since it last got on. */
  stops: number;
  /** While it is stopped: when it tries again. `over`: its time has come, and the log was asked for the lane anew. */
  rest: { timer: NodeJS.Timeout; readonly until: number; over: boolean } | null;
}

/** Asked anew each time: what is awaited in between may stop it. */
export const isStopped = ({ state }: Pick<LaneStatus, 'state'>): boolean => state === 'stopped';

/** One thing at a time on a lane: batches, and what an operator wants to have tried again. */
export const oneAtATime = async (
  laneState: Pick<LaneState<unknown>, 'turn'>,
  work: () => Promise<void>,
): Promise<void> => {
  const turn = laneState.turn.then(work);
  laneState.turn = turn.catch(() => undefined);
  await turn;
};

export const newest = (a: bigint | null, b: bigint | null): bigint | null =>
  a === null || (b !== null && b > a) ? b : a;

const text = new TextDecoder();

const partitionKeyOf = (event: RecordedEvent): string =>
  (JSON.parse(text.decode(event.metadata)) as { partitionKey: string }).partitionKey;

/** The lane that an event of the store comes on; null where the log does not carry its stream. */
export const laneOf = (log: Log, event: RecordedEvent): Lane | null => {
  const topic = topicOf(event.stream);
  return topic === null ? null : log.laneOf(topic, partitionOf(partitionKeyOf(event), log.partitions));
};
