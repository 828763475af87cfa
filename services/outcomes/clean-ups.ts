import type { ClientBase, Pool } from 'pg';
import { backOff } from '#contracts/base/back-off.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { Clock } from '#runtime/postgres/database-clock.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { dueSql } from '#runtime/work/due-work.ts';
import { pickFairly } from '#runtime/work/fair-pick.ts';
import { LeasedWork } from '#runtime/work/leased-work.ts';
import type { Lease } from '#runtime/work/leases.ts';
import type { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { atMost, Slots } from '#runtime/work/slots.ts';
import type { WakeSignal } from '#runtime/work/wake-signal.ts';
import { idOf, kindOf } from '#schemas/topics.ts';
import type { WalkedPage } from './clean-up-pages.ts';
import { cleanUpArchived, cleanUpDisconnected } from './disconnected.ts';
import type { SweptKind } from './rounds.ts';

/**
 * Ends the open work of archived clients and disconnected accounts, page by page. A client may have a hundred thousand
 * posts: the consumer only notes it, so that no event of another workspace waits behind them. Workspaces take turns: each
 * works on one page at a time, and the one that has waited longest comes next.
 */

/** Notes a client that was archived or an account that was disconnected. */
export interface AskedCleanUp {
  /** `client-…` or `account-…`. */
  readonly stream: string;
  readonly workspaceId: string;
  readonly revision: number;
  readonly correlationId: string;
  readonly causationId: string;
}

const noteSql = (onConflict: string): string => `
insert into ops.clean_ups (stream, workspace_id, revision, correlation_id, causation_id)
select distinct on (stream) * from unnest($1::text[], $2::uuid[], $3::int[], $4::text[], $5::text[])
  as asked (stream, workspace_id, revision, correlation_id, causation_id)
order by stream, revision desc on conflict (stream) do ${onConflict}`;

/** The walk begins again: it may have passed what was still open then. A repeated event does not. */
const askedSql = noteSql(`update
  set revision = excluded.revision, correlation_id = excluded.correlation_id, causation_id = excluded.causation_id,
    progress = null, failures = 0, due_at = now(), version = gen_random_uuid()
  where clean_ups.revision < excluded.revision`);
const foundSql = noteSql('nothing');

const note = async (db: Pool | ClientBase, sql: string, asked: readonly AskedCleanUp[]): Promise<void> => {
  if (asked.length === 0) return;
  const column = <K extends keyof AskedCleanUp>(name: K): AskedCleanUp[K][] => asked.map((one) => one[name]);
  await db.query(sql, [
    column('stream'),
    column('workspaceId'),
    column('revision'),
    column('correlationId'),
    column('causationId'),
  ]);
};

/** For the transaction of the consumer's position, so that no event is lost. */
export const noteCleanUps = (db: Pool | ClientBase, asked: readonly AskedCleanUp[]): Promise<void> =>
  note(db, askedSql, asked);

/** Notes what a search found; a walk that is noted already goes on where it is. */
export const noteFoundCleanUps = (db: Pool | ClientBase, found: readonly AskedCleanUp[]): Promise<void> =>
  note(db, foundSql, found);

/** Workspaces under way at once in a process. */
const maxWorkspaces = 4;
const leaseKind = 'clean-up';
/** A walk that could not end everything begins again after these milliseconds, each time after twice as many. */
const rest = { firstMs: 60_000, maxMs: 3_600_000 };
/** Milliseconds until a page is tried again for which a dependency was unavailable. */
const unavailableRestMs = 2_000;
const pollMs = 1_000;
const stalePolls = 60;

interface CleanUp extends AskedCleanUp {
  readonly progress: { readonly at: unknown; readonly hasFailed: boolean } | null;
  readonly failures: number;
  readonly version: string;
}

const searchSql = dueSql({
  name: 'ops.clean_ups',
  id: 'stream',
  due: 'due_at',
  where: 'true',
  columns: `j.stream, j.workspace_id::text as "workspaceId", j.revision, j.correlation_id as "correlationId",
    j.causation_id as "causationId", j.progress, j.failures, j.version::text as version`,
});

export interface CleanUpDeps {
  readonly store: DomainStore;
  readonly pool: Pool;
  readonly config: { readonly leaseTtlMs: number };
  readonly logger: Logger;
  readonly now: () => number;
  /** The clocks of sandbox workspaces; absent: none is ahead. */
  readonly sandboxClocks?: Pick<SandboxClocks, 'known'>;
  readonly clock?: Pick<Clock, 'fault'>;
  /** Called for each walk that could not end everything. */
  readonly onFailure?: (kind: SweptKind) => void;
}

/** Runs until the signal aborts and every page under way has ended. */
export const runCleanUps = (deps: CleanUpDeps, wakeSignal: WakeSignal, signal: AbortSignal): Promise<void> => {
  const { pool, config, clock, logger } = deps;
  const slots = new Slots(maxWorkspaces, atMost(1));
  const work = new LeasedWork<CleanUp>({
    ...{ pool, leaseKind, leaseTtlMs: config.leaseTtlMs, clock, logger, pollMs, stalePolls, wakeSignal, signal },
    idOf: ({ stream }) => stream,
    work: async (job, lease) => {
      slots.take(job);
      try {
        return await walkPage(deps, job, lease);
      } finally {
        slots.give(job);
      }
    },
  });
  const begin = async (): Promise<boolean> => {
    if (slots.free <= 0) return false;
    // Behind the rows of workspaces that are under way.
    const { rows } = await pool.query<CleanUp>(searchSql, [leaseKind, 1, 2 * slots.size]);
    return (await work.begin(pickFairly(rows, { slots, takerOf: (job) => job }))).length > 0;
  };
  return work.run(begin, 'clean-ups');
};

/**
 * One page. If we die before the row is written, the page is walked again, and what is canceled already yields no event.
 * A worker that lost its lease moves the row at most back.
 * @returns milliseconds for which the lease rests, where the row could not be written; null: it does not
 */
const walkPage = async (deps: CleanUpDeps, job: CleanUp, lease: Lease): Promise<number | null> => {
  const { pool, logger, onFailure } = deps;
  const { stream, version, failures, progress } = job;
  const kind = kindOf(stream) === 'client' ? 'client' : 'account';
  try {
    const { next, fault } = await walk(deps, job);
    if (fault !== null) logger.error({ err: fault, stream }, 'a part of a clean-up failed; the walk goes on behind it');
    const hasFailed = (progress?.hasFailed ?? false) || fault !== null;
    if (!lease.isHeld()) return null;
    if (next !== null) {
      const to = JSON.stringify({ at: next, hasFailed });
      await pool.query('update ops.clean_ups set progress = $3, due_at = now() where stream = $1 and version = $2', [
        ...[stream, version, to],
      ]);
    } else if (hasFailed) {
      onFailure?.(kind);
      await postpone(pool, job, backOff(failures, rest));
    } else await pool.query('delete from ops.clean_ups where stream = $1 and version = $2', [stream, version]);
    return null;
  } catch (error) {
    logger.warn({ err: error, stream }, 'a clean-up failed and waits');
    const isUnavailable = isInfrastructureFault(error);
    if (!isUnavailable) onFailure?.(kind);
    return postpone(pool, job, isUnavailable ? null : backOff(failures, rest)).then(
      () => null,
      () => unavailableRestMs,
    );
  }
};

/** @param restMs until the walk begins again; null: the same page is tried again soon */
const postpone = async (pool: Pool, { stream, version }: CleanUp, restMs: number | null): Promise<void> => {
  await pool.query(
    `update ops.clean_ups set due_at = now() + coalesce($3::float8, $4::float8) * interval '1 millisecond',
       progress = case when $3::float8 is null then progress end,
       failures = failures + case when $3::float8 is null then 0 else 1 end
     where stream = $1 and version = $2`,
    [stream, version, restMs, unavailableRestMs],
  );
};

const walk = async (deps: CleanUpDeps, job: CleanUp): Promise<WalkedPage<unknown>> => {
  const { store, pool } = deps;
  const { stream, workspaceId, revision, correlationId, causationId, progress } = job;
  const aheadMs = (await deps.sandboxClocks?.known(workspaceId)) ?? 0;
  const now = (): number => deps.now() + aheadMs;
  const cause = { workspaceId, correlationId, causationId };
  const at = (progress?.at ?? null) as never;
  return kindOf(stream) === 'client'
    ? cleanUpArchived(store, pool, { clientId: idOf(stream), ...cause }, at, now, aheadMs)
    : cleanUpDisconnected(store, pool, { accountId: idOf(stream), revision, ...cause }, at, now, aheadMs);
};
