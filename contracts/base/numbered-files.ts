/**
 * Tables as numbered files, each carried out once in a database, in the order of their numbers. A file that was carried
 * out never changes: a table changes by the next file. The database keeps number, name and checksum of each.
 */
import { createHash } from 'node:crypto';

export interface SchemaFile {
  /** From 1, without gaps. */
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

/** A file as a database keeps it. */
export interface AppliedFile {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
}

export const checksumOf = ({ sql }: SchemaFile): string => createHash('sha256').update(sql).digest('hex');

export interface SchemaPlan {
  /** To be carried out, in this order; none where a newer build has changed the tables. */
  readonly pending: readonly SchemaFile[];
  /** Files that a newer build has carried out. */
  readonly newer: readonly AppliedFile[];
  /** Says which file was carried out and is another one here; null: none is, so `pending` may be carried out. */
  readonly mismatch: string | null;
}

/** @param kept the table in which the database keeps its files, for the words of a mismatch */
export const planFor = (files: readonly SchemaFile[], applied: readonly AppliedFile[], kept: string): SchemaPlan => {
  const here = new Map(files.map((file) => [file.number, file]));
  const other = applied.find((one) => {
    const file = here.get(one.number);
    return file === undefined ? one.number <= files.length : checksumOf(file) !== one.checksum;
  });
  const newer = applied.filter(({ number }) => number > files.length);
  const done = new Set(applied.map(({ number }) => number));
  return {
    pending: newer.length > 0 ? [] : files.filter(({ number }) => !done.has(number)),
    newer,
    mismatch: other === undefined ? null : mismatchOf(kept, other, here.get(other.number)),
  };
};

const mismatchOf = (kept: string, applied: AppliedFile, file: SchemaFile | undefined): string =>
  `the database was made with another ${applied.name} than this build has` +
  `${file === undefined || file.name === applied.name ? '' : ` (here ${file.name} has its number)`}: ` +
  `its checksum in ${kept} is ${applied.checksum.slice(0, 12)}` +
  `${file === undefined ? '' : `, here it is ${checksumOf(file).slice(0, 12)}`}. Start the release that made it or a ` +
  'later one; in development, begin with an empty database.';
