import type { PoolClient } from 'pg';
import { type EventStore, EventStoreError, type RecordedEvent } from '#contracts/ports/event-store.ts';

/**
 * A position means something in one history of the store alone. A store that was restored to an earlier day, or another
 * store under the same name, gives the positions of lost events to other events. A reader that goes on from its position
 * leaves those out, and neither EventStoreDB nor Kafka notices. So the id of the last event is kept beside its position.
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
    // A read that the server ended early looks like one that found nothing, so the store is asked up to three times.
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
 * Asks the store for the event at the position that `who` has read up to. Call it before reading on.
 * @returns the event; null where a former release kept the position of a record of the store itself
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

/** Of a batch's records, all that is kept until the next: positions and ids. */
export const idsOf = (records: readonly { readonly position: bigint; readonly id: string }[]): readonly LastEvent[] =>
  records.map(({ position, id }) => ({ position, eventId: id }));

export const eventAt = (ids: readonly LastEvent[], position: bigint | null): string | null =>
  ids.findLast((one) => one.position === position)?.eventId ?? null;

/**
 * The event beside a consumer's position. The function with five parameters stays for processes of the release that kept
 * none: where one of those moved the position, `event_position` lies behind it, and the event there is not known. The
 * column is looked for first: `alter table` would wait for all who write, and hold up those behind it.
 */
export const migrateLastEvents = async (tx: PoolClient): Promise<void> => {
  await tx.query(`
    do $$ begin
      if not exists (select from pg_attribute
        where attrelid = 'ops.consumer_positions'::regclass and attname = 'event_id') then
        alter table ops.consumer_positions add column event_id uuid, add column event_position int8;
      end if;
    end $$;
    create or replace function ops.consume_move(m_group text, m_lane text, m_epoch int8, m_next int8, m_position int8,
      m_event uuid) returns bool language plpgsql as $$
    declare
      is_known bool := m_event is not null;
    begin
      update ops.consumer_positions p
      set next_offset = m_next, position = greatest(p.position, m_position), updated_at = now(),
        event_id = case when is_known and (p.position is null or m_position >= p.position)
          then m_event else p.event_id end,
        event_position = case when is_known and (p.position is null or m_position >= p.position)
          then m_position else p.event_position end
      where p.consumer_group = m_group and p.lane = m_lane and p.epoch = m_epoch
        and (p.next_offset, p.position) is distinct from (m_next, m_position);
      return found;
    end $$`);
};

/** A row of positions as Postgres gives it; the event only where it is the one at the position. */
interface PositionRow {
  readonly position: string | null;
  readonly event_id: string | null;
}

/**
 * Why the store's history is not the one that was read to these positions; null where it is. One history has all that lies
 * below an event of its own, so the newest position is asked for, and the newest that has its event.
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
