import type { Pool, PoolClient } from 'pg';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';

/**
 * An effect in which repeated and reordered events show: one row per applied event, in the order of the transactions.
 */

export const createEffects = async (pool: Pool): Promise<void> => {
  await pool.query('create table effects (seq bigserial primary key, grp text, stream text, revision int, id uuid)');
};

export const effectsOf =
  (group: string) =>
  async (tx: PoolClient, events: readonly DecodedEvent[]): Promise<null> => {
    for (const { stream, revision, id } of events) {
      await tx.query('insert into effects (grp, stream, revision, id) values ($1, $2, $3, $4)', [
        group,
        stream,
        revision,
        id,
      ]);
    }
    return null;
  };

export const effects = async (pool: Pool, group: string): Promise<{ stream: string; revision: number }[]> => {
  const { rows } = await pool.query('select stream, revision from effects where grp = $1 order by seq', [group]);
  return rows;
};
