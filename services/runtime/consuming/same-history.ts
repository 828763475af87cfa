import { setTimeout as delay } from 'node:timers/promises';
import { type EventStore, EventStoreError, type RecordedEvent } from '#contracts/ports/event-store.ts';

/**
 * A position is valid in one history of the store only. A store restored to an earlier day, or another store under the
 * same name, gives the positions of lost events to other events. A reader that continues from its old position misses
 * those events, and neither EventStoreDB nor Kafka notices. So readers keep the id of the last event beside its
 * position.
 */
export interface LastEvent {
  readonly position: bigint;
  readonly eventId: string;
}

/** The position of a consumer; `eventId` null: the batch that moved it did not have the event at it. */
type Reached = Omit<LastEvent, 'eventId'> & { readonly eventId: string | null };

const restored =
  'It is another store, or one that was restored to an earlier day. Name the store that this database was read from, or ' +
  "restore the database from a backup that is no newer than the store's and delete the topics of the log; then start again";

const logIsLeft =
  'The topics were left from before a restore of the store: they hold events that it no longer has. Stop all processes, ' +
  'delete the topics with npm run admin -- log reset, and start again; consumers then read from the store';

/** The first event from that position on. `nothing`: no event begins there. */
const firstFrom = async (
  store: Pick<EventStore, 'readAll'>,
  position: bigint,
): Promise<RecordedEvent | 'nothing' | undefined> => {
  try {
    // A read that the server ended early looks like an empty one, so the reader asks the store up to three times.
    for (let asked = 0; asked < 3; asked++) {
      const [first] = await store.readAll({ from: position, limit: 1 });
      if (first !== undefined) return first;
    }
    return undefined;
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'invalid_position') return 'nothing';
    throw error;
  }
};

/**
 * Reads the event at the position that `who` has reached. Call this before reading on.
 * @throws EventStoreError `invalid_position` if the store has another history. The message is for an operator.
 */
export const requireSameHistory = async (
  store: Pick<EventStore, 'readAll' | 'head'>,
  who: string,
  { position, eventId }: Reached,
): Promise<void> => {
  const found = await firstFrom(store, position);
  if (found !== 'nothing' && found?.position === position) {
    if (eventId === null || found.id === eventId) return;
  }
  const head = await store.head();
  const isWithin = head !== null && head >= position;
  if (eventId === null && found !== 'nothing' && isWithin) return;
  const kept = eventId === null ? `position ${position}` : `position ${position}, event ${eventId}`;
  let there = 'another record begins there';
  if (!isWithin) there = head === null ? 'the store is empty' : `the store ends at position ${head}`;
  else if (found === 'nothing') there = 'no event of the store begins there';
  else if (found?.position === position) there = `the store has event ${found.id} there`;
  throw new EventStoreError('invalid_position', `${who} has read to ${kept}, and ${there}. ${restored}.`);
};

/** Questions about the head before a reader believes that the store lacks what the log has. */
const headQuestions = 5;
const headPauseMs = 200;

/**
 * The log is written from the store, so its newest record is never newer than the store's head. Where it is, the store
 * was restored to an earlier day and the log was left: its records are of events that no longer are. A follower of a
 * cluster may answer late, so the reader asks several times.
 * @param newest commit position of a record
 * @returns the head
 * @throws EventStoreError `invalid_position` if the log is ahead. The message is for an operator.
 */
export const requireHeadAt = async (store: Pick<EventStore, 'head'>, who: string, newest: bigint): Promise<bigint> => {
  let head: bigint | null = null;
  for (let asked = 0; asked < headQuestions; asked += 1) {
    if (asked > 0) await delay(headPauseMs);
    head = await store.head();
    if (head !== null && head >= newest) return head;
  }
  const ends = head === null ? 'the store is empty' : `the store ends at position ${head}`;
  throw new EventStoreError(
    'invalid_position',
    `${who} has a record of position ${newest}, and ${ends}. ${logIsLeft}.`,
  );
};

/** The positions and ids of a batch's records, which a lane keeps until the next batch. */
export const idsOf = (records: readonly { readonly position: bigint; readonly id: string }[]): readonly LastEvent[] =>
  records.map(({ position, id }) => ({ position, eventId: id }));

export const eventAt = (ids: readonly LastEvent[], position: bigint | null): string | null =>
  ids.findLast((one) => one.position === position)?.eventId ?? null;

/** A row of positions as Postgres returns it; `event_id` is null unless it belongs to the position. */
interface PositionRow {
  readonly position: string | null;
  readonly event_id: string | null;
}

/**
 * Why the store's history differs from the one read to these positions; null: it does not. If the store has an event,
 * it has all events before that one, so this checks only the newest position and the newest position with a known
 * event.
 */
export const otherHistory = async (
  store: Pick<EventStore, 'readAll' | 'head'>,
  who: string,
  rows: readonly PositionRow[],
): Promise<string | null> => {
  const read = rows
    .flatMap(({ position, event_id }) => (position === null ? [] : [{ position: BigInt(position), eventId: event_id }]))
    .sort((a, b) => (a.position > b.position ? -1 : 1));
  const [newest] = read;
  const known = read.find(({ eventId }) => eventId !== null);
  try {
    if (newest !== undefined) await requireSameHistory(store, who, newest);
    if (known !== undefined && known !== newest) await requireSameHistory(store, who, known);
    return null;
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'invalid_position') return error.message;
    throw error;
  }
};
