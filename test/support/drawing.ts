/** What a run draws within its files: rows of long tables. A file that is run alone takes them all. */
import { crc32 } from 'node:zlib';
import { drawnOf, random } from './seed.ts';
import type { Declare } from './suite.ts';

/**
 * Of a long table the rows that this run takes, one of a few neighbours each. For tables in a world that each run makes
 * anyway, where a file of their own would make it again. `TEST_DRAWS` is the seed of a run that draws.
 */
export const rowsOfRun = <T>(table: string, rows: readonly T[], nameOf: (row: T) => string): readonly T[] => {
  const seed = process.env.TEST_DRAWS;
  if (seed === undefined) return rows;
  const taken = drawnOf(rows, random((Number(seed) ^ crc32(table)) >>> 0));
  process.stdout.write(`${table}: ${taken.length} of ${rows.length} are drawn: ${taken.map(nameOf).join(', ')}\n`);
  return taken;
};

/** For rows that are not drawn, whose worlds are made all the same: what they prepare, and no test. */
export const withoutTests = (t: Declare): Declare => Object.assign(() => undefined, t);
