import type { Pool, PoolClient, QueryConfig } from 'pg';
import { forgetParked } from '#runtime/consuming/parking.ts';
import { fence } from '#runtime/consuming/positions.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { kindOf } from '#schemas/topics.ts';
import { hasRead, placePositions, until, withRebuildLock } from '../engine/rebuild.ts';
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
}

export const rebuildAnalytics = (options: RebuildOptions): Promise<RebuiltAnalytics> =>
  withRebuildLock(options.pool, 'analytics', options.signal, (signal) => rebuildAlone({ ...options, signal }));

/** Events of one page of the store. */
const pageEvents = 2_000;
const nearMs = 500;
/**
 * Time-out of deleting the marks of a version, a row for each day of each workspace: more than statements take
 * elsewhere. Milliseconds.
 */
const forgetMs = 600_000;
const dropWaitMs = (announcementSeconds + 5) * 1_000;

const rebuildAlone = async (options: RebuildOptions): Promise<RebuiltAnalytics> => {
  const { client, pool, store, log, logger, signal } = options;
  const old = await liveVersion(pool);
  await ensureTables(client, old);
  const version = await begin(options, old);
  logger.info({ from: old, to: version }, 'rebuild of analytics: reading the store');
  // The ends first: an event stored after the head taken below lies behind them in the log.
  const ends = await log.ends(topics);
  const upTo = await store.head();
  const events = await replay(options, version, upTo);
  await placePositions(pool, groupOf(version), ends, upTo);

  const over = new AbortController();
  const consumer = ingest(version, { ...options, signal: AbortSignal.any([signal, over.signal]) });
  const recounter = new Recounter(client, pool, version, zonesFrom(store, options.codec));
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
const begin = async (options: IngestOptions, live: number): Promise<number> => {
  const { client, pool } = options;
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

/** Inserts all observations of the store up to a position, and marks their days. */
const replay = async (options: RebuildOptions, version: number, upTo: bigint | null): Promise<number> => {
  const { client, pool, store, codec, signal } = options;
  const ingester = new Ingester(client, pool, version);
  let applied = 0;
  for (let after: bigint | null = null; upTo !== null && (after === null || after < upTo); ) {
    signal.throwIfAborted();
    const page = await store.readAll({ after, limit: pageEvents });
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.position;
    options.onProgress?.(Math.min(1, Number(after) / Math.max(1, Number(upTo))));
    const wanted = page.filter((one) => one.position <= upTo && kinds.includes(kindOf(one.stream)));
    if (wanted.length === 0) continue;
    const events = await codec.decodeAll(wanted);
    await inTransaction(pool, async (tx) => {
      const failure = await ingester.apply(tx, events.map(observationOf));
      if (failure !== null) throw new Error(`replay of analytics cannot go on: ${failure.reason}`);
      return { commit: true, result: null };
    });
    applied += events.length;
  }
  return applied;
};

/** Fences the old version first: a batch that is under way commits before the switch, and a later one is refused. */
const switchTo = async (tx: PoolClient, old: number, version: number): Promise<void> => {
  await fence(tx, groupOf(old));
  await tx.query('update ops.analytics_versions set live = $1', [version]);
};

const readersOf = async (pool: Pool, version: number): Promise<number> => {
  const { rows } = await pool.query(
    'select count(*)::int as n from ops.analytics_readers where version = $1 and until > now()',
    [version],
  );
  return rows[0].n;
};
