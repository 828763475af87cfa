/** Numbers the events of a world of tests, as the projections do: the feed then has what was stored. */
import { numberEvents } from '#projections/feed/number.ts';
import type { World } from './http.ts';
import { until } from './until.ts';

const quiet = { info: () => undefined, warn: () => undefined };

export interface Numbering {
  /** Waits until everything that is stored now has its number. */
  readonly numbered: () => Promise<unknown>;
  readonly stop: () => Promise<void>;
}

export const startNumbering = ({ eventStore: store, pool, head }: World): Numbering => {
  const stopped = new AbortController();
  const { signal } = stopped;
  const work = async (): Promise<void> => {
    while (!signal.aborted) await numberEvents({ store, pool, signal, logger: quiet });
  };
  const working = work();
  return {
    numbered: async () => {
      const end = await head();
      await until('all events are numbered', async () => {
        const { rows } = await pool.query<{ readonly position: string | null }>(
          'select position from ops.feed_position',
        );
        return BigInt(rows[0]?.position ?? 0) >= end;
      });
    },
    stop: async () => {
      stopped.abort();
      await working;
    },
  };
};
