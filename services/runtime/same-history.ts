import { type EventStore, EventStoreError, type RecordedEvent } from '#contracts/ports/event-store.ts';

/**
 * Positions say something about one history alone. A store that was restored to an earlier day, or another one under the
 * same name, gives the positions of what was lost to other events: whoever reads on from its own position leaves those
 * out, and neither EventStoreDB nor Kafka can tell. So the id of the last event is kept beside its position.
 */
export interface LastEvent {
  readonly position: bigint;
  /** Null where a process of the release that kept no ids has moved the position. */
  readonly eventId: string | null;
}

const restored =
  'It is another store, or one that was restored to an earlier day. Name the store that this database was read from, or ' +
  "restore the database from a backup that is no newer than the store's and delete the topics of the log; then start again";

/** The first event from there on. `nothing`: no event begins there. */
const firstFrom = async (
  store: Pick<EventStore, 'readAll'>,
  position: bigint,
): Promise<RecordedEvent | 'nothing' | undefined> => {
  try {
    // A read that the server ends early looks as one that found nothing: asked more than once before it is believed.
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
 * Asks the store for the event at the position where `who` has read to, before anything behind it is read.
 * @returns the event; null where a former release kept the position of a record of the store itself.
 * @throws EventStoreError `invalid_position` where the store's history is another one. The message is for an operator.
 */
export const requireSameHistory = async (
  store: Pick<EventStore, 'readAll' | 'head'>,
  who: string,
  { position, eventId }: LastEvent,
): Promise<RecordedEvent | null> => {
  const found = await firstFrom(store, position);
  if (found !== 'nothing' && found?.position === position) {
    if (eventId === null || found.id === eventId) return found;
  }
  const head = await store.head();
  const isWithin = head !== null && head >= position;
  if (eventId === null && found !== 'nothing' && isWithin) return null;
  const kept = eventId === null ? `position ${position}` : `position ${position}, event ${eventId}`;
  let there = 'another record begins there';
  if (!isWithin) there = head === null ? 'the store is empty' : `the store ends at position ${head}`;
  else if (found === 'nothing') there = 'no event of the store begins there';
  else if (found?.position === position) there = `the store has event ${found.id} there`;
  throw new EventStoreError('invalid_position', `${who} has read to ${kept}, and ${there}. ${restored}.`);
};
