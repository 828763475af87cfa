import type { ClickHouseClient } from '@clickhouse/client';
import type { Pool } from 'pg';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { topics as metricTopics } from './analytics/ingest.ts';
import { liveVersion } from './analytics/live.ts';
import { analyticsIntake, beginVersion, switchVersion } from './analytics/rebuild.ts';
import { analyticsShape, leftOfAll, noteAll, noteRead, noteTables, type OpenRebuild } from './engine/open-rebuilds.ts';
import type { ProjectOptions } from './engine/project.ts';
import { dropFormer, type Ends, type Filled, formerOf, goLive, withRebuildLock } from './engine/rebuild.ts';
import { type Intake, intakeOf, readStore } from './engine/replay.ts';
import { areTables, liveGeneration, nextGeneration } from './engine/tables.ts';
import { type Projection, projections } from './index.ts';

/**
 * All read models and the analytics are rebuilt at once, from one reading of the store. Which of them are to be rebuilt is
 * noted first, and a switch takes its own note away: so where the process dies, the next one goes on with those that have not
 * switched, each from the page that it had.
 */

export interface RebuildAllOptions extends ProjectOptions {
  /** Null: there are no analytics. */
  readonly client: ClickHouseClient | null;
  /** What was begun before is not gone on with: all begin anew. */
  readonly isAnew?: boolean;
  /** Called after each page of the store. */
  readonly report?: (progress: RebuildProgress) => void;
  /** Called when one has switched and its former tables are gone or left; or with why it was not rebuilt. */
  readonly ended?: (name: string, failed: string | null) => void;
}

export interface RebuildProgress {
  /** Of the store that is read, 0 to 1. */
  readonly share: number;
  /** Events of the store that were read, by this process. */
  readonly events: number;
  /** When the store took the last one of them. */
  readonly readTo: Date;
}

export interface RebuiltPart {
  readonly name: string;
  readonly generation: number;
  /** Events that it took. */
  readonly events: number;
  /** Whether the former tables are dropped; false while a process still announces that it reads them. */
  readonly dropped: boolean;
  /** Why it was not rebuilt: its former rows are served as before. Null: it was. */
  readonly failed: string | null;
}

interface Part {
  readonly name: string;
  readonly shape: number;
  readonly topics: Projection['topics'];
  /** The tables to fill, made where there are none. */
  open(left: OpenRebuild | null): Promise<Opened>;
}

interface Opened {
  readonly intake: Intake;
  readonly generation: number;
  /** Events that its tables hold already. */
  readonly had: number;
  /** Follows the log, switches, and drops the former tables. */
  finish(filled: Omit<Filled, 'old' | 'generation'>): Promise<{ readonly dropped: boolean }>;
}

const modelsPart = (options: ProjectOptions, projection: Projection): Part => ({
  ...projection,
  open: async (left) => {
    const { pool, codec, logger } = options;
    const { name } = projection;
    const old = await liveGeneration(pool, projection);
    const isKept =
      left !== null && left.generation !== null && (await areTables(pool, projection, left.generation, old));
    let generation = left?.generation ?? 0;
    if (!isKept) {
      await withMigrationLock(pool, async (tx) => {
        generation = await nextGeneration(tx, projection);
        await noteTables(tx, name, generation);
      });
    }
    logger.info({ projection: name, from: old, to: generation, goesOn: isKept }, 'rebuild of all: tables');
    const live = await formerOf(pool, projection, old);
    const after = isKept ? left.position : null;
    return {
      intake: await intakeOf({ pool, codec, projection, generation, live, after }),
      generation,
      had: isKept ? left.events : 0,
      finish: async (filled) =>
        dropFormer(options, projection, old, await goLive(options, projection, { ...filled, old, generation })),
    };
  },
});

const analyticsPart = (options: ProjectOptions & { readonly client: ClickHouseClient }): Part => ({
  ...{ name: 'analytics', shape: analyticsShape, topics: metricTopics },
  open: async (left) => {
    const { pool, logger } = options;
    const old = await liveVersion(pool);
    const isKept = left !== null && left.generation !== null && (await isNewestVersion(pool, left.generation));
    const generation = isKept ? (left.generation ?? 0) : await beginVersion(options, old);
    logger.info({ from: old, to: generation, goesOn: isKept }, 'rebuild of all: tables of analytics');
    return {
      intake: analyticsIntake(options, generation, isKept ? left.position : null),
      generation,
      had: isKept ? left.events : 0,
      finish: (filled) => switchVersion(options, { ...filled, old, generation }),
    };
  },
});

const isNewestVersion = async (pool: Pool, version: number): Promise<boolean> => {
  const { rowCount } = await pool.query('select from ops.analytics_versions where newest = $1 and live < $1', [
    version,
  ]);
  return rowCount === 1;
};

/**
 * @returns each that was to be rebuilt; those that an earlier process of the same rebuild has switched are not among them
 * @throws RebuildRuns where another process rebuilds one of them
 */
export const rebuildAll = (options: RebuildAllOptions): Promise<readonly RebuiltPart[]> => {
  const { pool, client } = options;
  const names = [...projections.map(({ name }) => name), ...(client === null ? [] : ['analytics'])];
  return withRebuildLock(pool, names, options.signal, (signal) => rebuildHeld({ ...options, signal }));
};

const rebuildHeld = async (options: RebuildAllOptions): Promise<readonly RebuiltPart[]> => {
  const { pool, client, store, isAnew = false } = options;
  const parts = [
    ...projections.map((one) => modelsPart(options, one)),
    ...(client === null ? [] : [analyticsPart({ ...options, client })]),
  ];
  const head = await store.head();
  const left = isAnew ? [] : (await leftOfAll(pool)).filter((one) => isWithin(one, head));
  const leftOf = ({ name, shape }: Part): OpenRebuild | null =>
    left.find((one) => one.name === name && one.shape === shape) ?? null;
  const isGoingOn = parts.some((part) => leftOf(part) !== null);
  if (!isGoingOn) await noteAll(pool, parts);
  faultPoint('rebuild:all-noted');
  const wanted = isGoingOn ? parts.filter((part) => leftOf(part) !== null) : parts;
  const opened: Opened[] = [];
  for (const part of wanted) opened.push(await part.open(leftOf(part)));
  faultPoint('rebuild:all-opened');
  return fill(options, wanted, opened);
};

/** A store that ends before has lost what the tables hold. */
const isWithin = ({ position }: OpenRebuild, head: bigint | null): boolean =>
  position === null || (head !== null && position <= head);

const fill = async (
  options: RebuildAllOptions,
  parts: readonly Part[],
  opened: readonly Opened[],
): Promise<readonly RebuiltPart[]> => {
  const { pool, store, log, signal, report, ended } = options;
  const ends: Ends[] = [];
  // The ends first: an event stored after the head taken below lies behind them in the log.
  for (const { topics } of parts) ends.push(await log.ends(topics));
  const upTo = await store.head();
  const counts = new Map(opened.map(({ intake, had }) => [intake.name, had]));
  let read = 0;
  const failed = await readStore({
    ...{ store, upTo, signal, intakes: opened.map(({ intake }) => intake) },
    took: async (page) => {
      await noteRead(pool, upTo ?? 0n, page);
      faultPoint('rebuild:all-read');
      for (const [name, count] of page.events) counts.set(name, (counts.get(name) ?? 0) + count);
      read += page.size;
      report?.({ share: Number(page.position) / Math.max(1, Number(upTo)), events: read, readTo: page.readTo });
    },
  });
  signal.throwIfAborted();
  return Promise.all(
    opened.map(async ({ intake: { name }, generation, finish }, at): Promise<RebuiltPart> => {
      const events = counts.get(name) ?? 0;
      const part = { name, generation, events };
      try {
        if (failed.has(name)) throw failed.get(name);
        const { dropped } = await finish({ events, ends: ends[at] ?? [], upTo });
        ended?.(name, null);
        return { ...part, dropped, failed: null };
      } catch (error) {
        signal.throwIfAborted();
        const reason = error instanceof Error ? error.message : String(error);
        ended?.(name, reason);
        return { ...part, dropped: false, failed: reason };
      }
    }),
  );
};
