import type pg from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import { topicOf } from '#schemas/events.ts';

/**
 * With an EventStoreDB the checks find the end of each topic in the same table as without: one row per event with its
 * position and topic.
 */
export const keepEnds = async (pool: pg.Pool, store: EventStore): Promise<() => Promise<void>> => {
  await pool.query('create schema es; create table es.events (position int8 primary key, topic text)');
  let after: bigint | null = null;
  return async () => {
    for (;;) {
      const page = await store.readAll({ after, limit: 1_000 });
      const last = page.at(-1);
      if (last === undefined) return;
      await pool.query('insert into es.events select * from unnest($1::int8[], $2::text[])', [
        page.map(({ position }) => String(position)),
        page.map(({ stream }) => topicOf(stream)),
      ]);
      after = last.position;
    }
  };
};
