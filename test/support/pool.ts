import type { Pool } from 'pg';

export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A pool whose queries call `seen` first: an error from it is their answer. */
export const watched = (pool: Pool, seen: (statement: Statement) => unknown): Pool =>
  Object.assign(Object.create(pool), {
    query: async (statement: Statement) => {
      await seen(statement);
      return pool.query(statement as never);
    },
  });
