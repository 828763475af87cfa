import type { Pool } from 'pg';
import { type EventStore, EventStoreError } from '#contracts/ports/event-store.ts';
import type { LogWriter } from '#contracts/ports/log.ts';
import { requireHeadAt } from './same-history.ts';

/** What shows at a start that the store is an older copy of what others have read from it. */
export interface OlderCopy {
  /** When the copy was made: the instant of its last event, ISO 8601. */
  readonly storeAsOf: string;
  /** The newest instant of which others know. A restore that was declared since is this one. */
  readonly knownUntil: string;
  /** For a person. */
  readonly evidence: string;
}

/** An event that was read from the store, as another place keeps it. */
interface Seen {
  readonly position: bigint;
  readonly id: string;
  readonly time: string;
}

/** Events that this looks up in the store to learn whether it has the same history. */
const lookedUp = 5;

const positionsOf = async (pool: Pick<Pool, 'query'>): Promise<readonly Seen[]> => {
  const { rows } = await pool.query<{ position: string; id: string; at: Date }>(
    `select position::text, event_id::text as id, updated_at as at from ops.consumer_positions
     where event_id is not null and event_position = position order by position desc limit 1000`,
  );
  return rows.map(({ position, id, at }) => ({ position: BigInt(position), id, time: at.toISOString() }));
};

const eventAt = async (store: Pick<EventStore, 'readAll'>, position: bigint) => {
  try {
    const [event] = await store.readAll({ from: position, limit: 1 });
    return event?.position === position ? event : null;
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'invalid_position') return null;
    throw error;
  }
};

/** Whether the store has an event that these have, too: else it is another store, or these are of another installation. */
const isSameHistory = async (store: Pick<EventStore, 'readAll'>, seen: readonly Seen[]): Promise<boolean> => {
  for (const { position, id } of seen.slice(0, lookedUp)) {
    if ((await eventAt(store, position))?.id === id) return true;
  }
  return false;
};

/**
 * Compares the store with the log, and with how far the consumers of this database have read. It is certain: positions
 * are given once, so who has read beyond the store's head, and shares an event with it, has read events that it lost. A
 * follower of a cluster that answers late is asked several times. Where nothing is shared, another store or other
 * topics are named by mistake: that says nothing of this store, and relay and consumers stop for it.
 * @param log null: the log is the store itself
 * @returns null: nothing shows that the store is older
 */
export const findOlderCopy = async (
  store: Pick<EventStore, 'readAll' | 'head'>,
  pool: Pick<Pool, 'query'>,
  log: Pick<LogWriter, 'lastRecords'> | null,
): Promise<OlderCopy | null> => {
  const head = await store.head();
  if (head === null) return null;
  const places = [
    { who: 'the log', has: 'has a record of', seen: log === null ? [] : await log.lastRecords() },
    { who: 'a consumer of this database', has: 'has read to', seen: await positionsOf(pool) },
  ];
  for (const { who, has, seen } of places) {
    const [newest] = seen;
    if (newest === undefined || newest.position <= head) continue;
    try {
      await requireHeadAt(store, who, newest.position);
    } catch (error) {
      if (!(error instanceof EventStoreError) || error.code !== 'invalid_position') throw error;
      const last = await eventAt(store, head);
      const shared = seen.filter(({ position }) => position <= head);
      if (last === null || !(await isSameHistory(store, shared))) continue;
      const evidence = `${who} ${has} position ${newest.position}, and the store ends at position ${head}`;
      return { storeAsOf: last.created.toISOString(), knownUntil: newest.time, evidence };
    }
  }
  return null;
};
