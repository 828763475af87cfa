import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import type { Pool } from 'pg';
import { accountObservationColumns, observationColumns } from './encode.ts';
import { ensureTables } from './live.ts';
import { type TableName, tableOf } from './tables.ts';
import { callClickHouse } from './unavailable.ts';

/**
 * Rows of several lanes share inserts: each insert makes a part, and a server with many small parts spends its time
 * merging. One insert runs at a time; rows that arrive meanwhile go with the next.
 */

/** Lines of the format TabSeparated, with their ends. */
export interface Batch {
  readonly posts: readonly Buffer[];
  readonly accounts: readonly Buffer[];
}

/** A batch that is not full waits this long for others. Milliseconds. */
const gatherMs = 20;
const fullRows = 1_000;
/** Above this an insert takes no further batch. */
const maxRows = 50_000;
/** Bytes of one insert: the raw answers of networks are stored whole, and may be long. */
const maxBytes = 16 * 1024 * 1024;
const insertMs = 60_000;

interface Waiting {
  readonly batch: Batch;
  done(): void;
  failed(error: unknown): void;
}

const sizeOf = ({ posts, accounts }: Batch): number => posts.length + accounts.length;

/** The lines in their order, cut into portions of at most one insert, but at least one row each. */
const portions = (lines: readonly Buffer[]): readonly (readonly Buffer[])[] => {
  const all: Buffer[][] = [];
  let left = 0;
  for (const line of lines) {
    const last = all.at(-1);
    if (last === undefined || left < line.length) {
      all.push([line]);
      left = maxBytes - line.length;
    } else {
      last.push(line);
      left -= line.length;
    }
  }
  return all;
};

export class Inserts {
  readonly #client: ClickHouseClient;
  readonly #pool: Pool;
  readonly #version: number;
  #waiting: Waiting[] = [];
  #busy = false;

  constructor(client: ClickHouseClient, pool: Pool, version: number) {
    this.#client = client;
    this.#pool = pool;
    this.#version = version;
  }

  /** Resolves when ClickHouse has the rows. A repeat inserts the same rows. @throws Unavailable */
  add(batch: Batch): Promise<void> {
    // mutant: position before the observations
    return new Promise((done, failed) => {
      this.#waiting.push({ batch, done, failed });
      if (!this.#busy) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#busy = true;
    while (this.#waiting.length > 0) {
      if (this.#waiting.reduce((sum, { batch }) => sum + sizeOf(batch), 0) < fullRows) await delay(gatherMs);
      const portion: Waiting[] = [];
      for (let rows = 0; this.#waiting.length > 0 && rows < maxRows; ) {
        const next = this.#waiting.shift() as Waiting;
        rows += sizeOf(next.batch);
        portion.push(next);
      }
      try {
        await this.#insert(
          'observations',
          observationColumns,
          portion.flatMap(({ batch }) => batch.posts),
        );
        await this.#insert(
          'account_observations',
          accountObservationColumns,
          portion.flatMap(({ batch }) => batch.accounts),
        );
        for (const { done } of portion) done();
      } catch (error) {
        for (const { failed } of portion) failed(error);
      }
    }
    this.#busy = false;
  }

  async #insert(table: TableName, columns: readonly string[], lines: readonly Buffer[]): Promise<void> {
    for (const values of portions(lines)) await this.#insertOne(table, columns, Buffer.concat(values));
  }

  async #insertOne(table: TableName, columns: readonly string[], rows: Buffer): Promise<void> {
    await ensureTables(this.#client, this.#version, this.#pool);
    await callClickHouse(() =>
      this.#client.insert({
        table: tableOf(table, this.#version),
        columns: columns as [string, ...string[]],
        values: Readable.from([rows], { objectMode: false }),
        format: 'TabSeparated',
        abort_signal: AbortSignal.timeout(insertMs),
        // A batch of late days touches many months.
        clickhouse_settings: { max_partitions_per_insert_block: '0' },
      }),
    );
  }
}
