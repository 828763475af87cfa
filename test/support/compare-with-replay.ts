import type { Pool, QueryConfig } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import { replay } from '#projections/engine/replay.ts';
import { createTables, dropTables, liveGeneration, tableOf } from '#projections/engine/tables.ts';
import { type Projection, projections } from '#projections/index.ts';
import type { EventCodec } from '#runtime/eventing/codec.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';

/** Proves that the read models agree with the streams: compares every table with a new one filled from the store. */

export interface Difference {
  readonly table: string;
  readonly id: string;
  /** The live row, null when there is none. */
  readonly live: unknown;
  /** The row that the streams make, null when they make none. */
  readonly replayed: unknown;
}

export interface TableComparison {
  /** Rows of the live tables. */
  readonly rows: number;
  /** The first few differences of each table; empty when all rows are equal. */
  readonly differences: readonly Difference[];
}

const shownDifferences = 20;
/** Derived from the rest of the row; rows that a build without these columns wrote lack it. */
const searched = `array['searched', 'searched_revision']`;
/** The searched text counts only where it belongs to the row's revision. */
const textOf = (row: string): string =>
  `case when to_jsonb(${row}) -> 'searched_revision' = to_jsonb(${row}) -> 'revision' then to_jsonb(${row}) -> 'searched' end`;
/** Milliseconds to read two whole tables, which no statement of the running system does. */
const compareMs = 3_600_000;
/** Far above any generation of a rebuild, and different for comparisons that run side by side. */
const scratchGeneration = (): number => 1_000_000_000 + Math.floor(Math.random() * 1_000_000_000);

/**
 * Compares the live tables, row by row and member by member, with a replay of the whole store. Nothing may be written
 * meanwhile, and the projections must have caught up. Placeholders are compared too.
 */
export const compareWithReplay = async (options: {
  readonly pool: Pool;
  readonly store: EventStore;
  readonly codec: EventCodec;
  /** Default: all. */
  readonly only?: readonly Projection[];
}): Promise<TableComparison> => {
  const { pool, store, codec, only = projections } = options;
  const differences: Difference[] = [];
  let rows = 0;
  const upTo = await store.head();
  for (const projection of only) {
    const live = await liveGeneration(pool, projection);
    if (live === null) throw new BrokenInvariant(`projection ${projection.name} has no tables of its shape`);
    const scratch = scratchGeneration();
    await withMigrationLock(pool, (tx) => createTables(tx, projection, scratch));
    try {
      await replay({ pool, store, codec, projection, generation: scratch, live, upTo });
      for (const model of projection.models) {
        const table = tableOf(model, live);
        const patiently = (text: string) => pool.query({ text, query_timeout: compareMs } as QueryConfig);
        const counted = await patiently(`select count(*)::int as n from ${table}`);
        rows += counted.rows[0].n;
        const found = await patiently(
          `select coalesce(l.id, r.id) as id, to_jsonb(l) as live, to_jsonb(r) as replayed
           from ${table} l full join ${tableOf(model, scratch)} r on r.id = l.id
           where to_jsonb(l) - ${searched} is distinct from to_jsonb(r) - ${searched}
             or ${textOf('l')} <> to_jsonb(r) -> 'searched'
           order by 1 limit ${shownDifferences}`,
        );
        differences.push(...found.rows.map((row): Difference => ({ table: model.name, ...row })));
      }
    } finally {
      await withMigrationLock(pool, (tx) => dropTables(tx, projection, scratch));
    }
  }
  return { rows, differences };
};
