import type { Pool, PoolClient, QueryConfig } from 'pg';
import { forgetParked } from '#runtime/consuming/parking.ts';
import { fence } from '#runtime/consuming/positions.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import {
  analyticsShape,
  noteFollowing,
  noteRead,
  noteRebuild,
  noteSwitched,
  noteTables,
  type RebuildReason,
} from '../engine/open-rebuilds.ts';
import { type Filled, hasRead, placePositions, until, withRebuildLock } from '../engine/rebuild.ts';
import { type Intake, readStore } from '../engine/replay.ts';
import { compare, type VersionComparison } from './compare.ts';
import { observationOf } from './encode.ts';
import { Ingester, type IngestOptions, ingest, kinds, topics } from './ingest.ts';
import { dropTables, ensureTables, groupOf, liveVersion } from './live.ts';
import { Recounter } from './recounter.ts';
import { startsWithRule } from './rules.ts';
import { announcementSeconds } from './run.ts';
import { zonesFrom } from './zones.ts';

/**
 * Fills new analytics tables beside the live ones while observations go on: first from the store, up to a head
 * taken after the log's ends were noted, then from those ends. An overlap inserts the same rows. Then the rebuild
 * compares old and new tables, and one transaction fences the old version and makes the new one live. A rebuild that
 * crashes leaves tables that no reader uses; the next rebuild drops them.
 */

export interface RebuiltAnalytics extends VersionComparison {
  readonly version: number;
  /** Observations read from the store. */
  readonly events: number;
  /** Whether the old tables are dropped; false while a process still announces that it reads them. */
  readonly dropped: boolean;
}

export interface RebuildOptions extends IngestOptions {
  /** Called after each page of the store. @param share of the store that is read, 0 to 1 */
  readonly onProgress?: (share: number) => void;
  /** Default: an operator asked for it. */
  readonly reason?: RebuildReason;
}

export const rebuildAnalytics = (options: RebuildOptions): Promise<RebuiltAnalytics> =>
  withRebuildLock(options.pool, 'analytics', options.signal, (signal) => rebuildAlone({ ...options, signal }));

const nearMs = 500;
/**
 * Time-out of deleting the marks of a version, a row for each day of each workspace: more than statements take
 * elsewhere. Milliseconds.
 */
const forgetMs = 600_000;
const dropWaitMs = (announcementSeconds + 5) * 1_000;

const rebuildAlone = async (options: RebuildOptions): Promise<RebuiltAnalytics> => {
  const { pool, store, log, logger, signal, reason = 'asked', onProgress } = options;
  const old = await liveVersion(pool);
  await noteRebuild(pool, { name: 'analytics', shape: analyticsShape, generation: null }, reason);
  const version = await beginVersion(options, old);
  logger.info({ from: old, to: version }, 'rebuild of analytics: reading the store');
  // The ends first: an event stored after the head taken below lies behind them in the log.
  const ends = await log.ends(topics);
  const upTo = await store.head();
  const intake = analyticsIntake(options, version, null);
  let events = 0;
  const failed = await readStore({
    ...{ store, upTo, signal, intakes: [intake] },
    took: async (page) => {
      events += page.events.get(intake.name) ?? 0;
      await noteRead(pool, upTo ?? 0n, page);
      onProgress?.(Math.min(1, Number(page.position) / Math.max(1, Number(upTo))));
    },
  });
  if (failed.has(intake.name)) throw failed.get(intake.name);
  return switchVersion(options, { old, generation: version, events, ends, upTo });
};

/** Inserts all observations of the store, and marks their days. An overlap inserts the same rows. */
export const analyticsIntake = (options: IngestOptions, version: number, after: bigint | null): Intake => {
  const { client, pool, codec } = options;
  const ingester = new Ingester(client, pool, version);
  return {
    ...{ name: 'analytics', kinds: new Set(kinds), after },
    prepare: async (records) => {
      const decoding = codec.decodeAll(records);
      await decoding.catch(() => undefined);
      return async () => {
        const events = await decoding;
        await inTransaction(pool, async (tx) => {
          const failure = await ingester.apply(tx, events.map(observationOf));
          if (failure !== null) throw new Error(`replay of analytics cannot go on: ${failure.reason}`);
          return { commit: true, result: null };
        });
      };
    },
  };
};

/** Follows the log until the tables are near its end, compares them with the live ones, and switches. */
export const switchVersion = async (options: IngestOptions, filled: Filled & { readonly old: number }) => {
  const { client, pool, log, logger, signal } = options;
  const { old, generation: version, events, ends, upTo } = filled;
  await placePositions(pool, groupOf(version), ends, upTo);
  await noteFollowing(pool, 'analytics');

  const over = new AbortController();
  const consumer = ingest(version, { ...options, signal: AbortSignal.any([signal, over.signal]) });
  const recounter = new Recounter(client, pool, version, zonesFrom(options.store, options.codec));
  try {
    // Under constant writes the exact end is never reached: close enough is a pass that takes no longer than this.
    for (let took = Infinity; took > nearMs; ) {
      const began = performance.now();
      const goal = await log.ends(topics);
      await until(signal, async () => {
        const stopped = [...consumer.status().values()].find((lane) => lane.state === 'stopped');
        if (stopped !== undefined) throw new Error(`rebuild of analytics cannot go on: ${stopped.reason}`);
        return hasRead(pool, groupOf(version), goal);
      });
      await recounter.all(signal);
      took = performance.now() - began;
    }
    const compared = await compare(client, old, version, upTo);
    logger.info({ version, ...compared }, 'rebuild of analytics: compared');
    if (compared.after < compared.before) {
      // What the tables lack the store lacks: to go on with them would end here again.
      await noteSwitched(pool, 'analytics');
      throw new Error(
        `the streams hold ${compared.after} observations, the live tables ${compared.before}: the live tables stay`,
      );
    }
    await withMigrationLock(pool, (tx) => switchTo(tx, old, version));
    logger.info({ version, events }, 'rebuild of analytics: switched');
    // This consumer goes on until the followers of the live version have noticed the switch, so that reads stay fresh.
    const free = await until(signal, async () => (await readersOf(pool, old)) === 0, dropWaitMs);
    if (free) await forget(options, old);
    return { version, events, dropped: free, ...compared };
  } finally {
    over.abort();
    await consumer.done.catch(() => undefined);
  }
};

/** Draws the next version and makes its tables; drops the tables of rebuilds that crashed. */
export const beginVersion = async (options: IngestOptions, live: number): Promise<number> => {
  const { client, pool } = options;
  await ensureTables(client, live);
  const { rows } = await pool.query(
    'update ops.analytics_versions set newest = newest + 1 where live = $1 returning newest',
    [live],
  );
  const version: number = rows[0].newest;
  for (let left = 1; left < version; left += 1) {
    if (left !== live && (await readersOf(pool, left)) === 0) await forget(options, left);
  }
  await ensureTables(client, version);
  await startsWithRule(pool, version);
  await noteTables(pool, 'analytics', version);
  return version;
};

/** Drops the version's tables and its records in Postgres. */
const forget = async ({ client, pool }: IngestOptions, version: number): Promise<void> => {
  await dropTables(client, version);
  await inTransaction(pool, async (tx) => {
    await forgetParked(tx, groupOf(version));
    for (const table of [
      'analytics_days',
      'analytics_marked',
      'analytics_late',
      'analytics_highest',
      'analytics_rules',
    ]) {
      const forgetting = { text: `delete from ops.${table} where version = $1`, values: [version] };
      await tx.query({ ...forgetting, query_timeout: forgetMs } as QueryConfig);
    }
    return { commit: true, result: null };
  });
};

/** Fences the old version first: a batch that is under way commits before the switch, and a later one is refused. */
const switchTo = async (tx: PoolClient, old: number, version: number): Promise<void> => {
  await fence(tx, groupOf(old));
  await noteSwitched(tx, 'analytics');
  await tx.query('update ops.analytics_versions set live = $1', [version]);
};

const readersOf = async (pool: Pool, version: number): Promise<number> => {
  const { rows } = await pool.query(
    'select count(*)::int as n from ops.analytics_readers where version = $1 and until > now()',
    [version],
  );
  return rows[0].n;
};
