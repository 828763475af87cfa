import type { Pool } from 'pg';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { aheadSql, nowSql } from '#runtime/work/sandbox-clocks.ts';
import type { Platform } from '#schemas/common.ts';
import type { MediaUse } from '#schemas/media.ts';
import { forget, lockAccounts, recount } from './accounts.ts';
import type { Network } from './deps.ts';
import { settle } from './waiting.ts';

/**
 * What to ask the networks for, and when: a row for each account and for each of its posts. The account's row holds the
 * earliest due time of its jobs; each transaction that changes a job computes it again under the lock of the account's
 * row.
 */

export interface Job {
  /** The target, or the account itself. */
  readonly id: string;
  readonly kind: 'post' | 'account';
  /** To the millisecond, because the ids of the job's observations are derived from it. */
  readonly dueAt: Date;
  /** Null for an account, like the members below. */
  readonly postId: string | null;
  readonly externalId: string | null;
  readonly publishedAt: Date | null;
  readonly use: MediaUse | null;
  readonly hasVideo: boolean | null;
  readonly failures: number;
  /** By the network's clock. */
  readonly goneAt: Date | null;
  /** Last revision seen in its stream of observations; null: none. */
  readonly seenRevision: number | null;
}

/** An account to poll, and some of its due jobs. */
export interface PollCycle {
  readonly accountId: string;
  readonly workspaceId: string;
  readonly clientId: string;
  readonly platform: Platform;
  readonly network: Network;
  /** Rate limits of its network in a row. */
  readonly limits: number;
  /** The zone in whose night the account is polled. */
  readonly timezone: string | null;
  /** Of the workspace; null: its event has not come yet. */
  readonly workspaceTimezone: string | null;
  /** Of the database, by the clock of the workspace. */
  readonly now: Date;
  /** Milliseconds by which that clock is ahead of real time. */
  readonly aheadMs: number;
  readonly jobs: readonly Job[];
}

/** A job after it was tried. `dueAt` null: nothing is left to do for it. */
export interface Tried {
  readonly job: Job;
  readonly dueAt: Date | null;
  /** The network answered. */
  readonly answered: boolean;
  /** A refresh that waits for the job counts it as failed. */
  readonly failed: boolean;
  /** Failed tries in a row. */
  readonly failures: number;
  readonly goneAt: Date | null;
  /** New last revision seen; null: as it was. */
  readonly seenRevision: number | null;
}

/** No worker polls the account before `until`, in real time; `limited`: its network reported a rate limit. */
export interface AccountRest {
  readonly until: Date;
  readonly limited: boolean;
}

/** An answer that could not be parsed, kept for an operator. */
export interface Parked {
  readonly job: Job;
  readonly reason: string;
  /** JSON, perhaps cut. */
  readonly raw: string;
}

/** Most jobs of one poll cycle. */
export const maxPosts = 50;

const cycleSql = `
select a.account_id as "accountId", a.workspace_id as "workspaceId", a.client_id as "clientId", a.platform, a.network, a.limits,
  coalesce(a.timezone, c.timezone, w.timezone) as timezone, w.timezone as "workspaceTimezone",
  date_trunc('milliseconds', ${nowSql('a.workspace_id')}) as now,
  extract(epoch from ${aheadSql('a.workspace_id')})::float8 * 1000 as "aheadMs"
from ops.insights_accounts a
left join ops.insights_zones c on c.id = a.client_id
left join ops.insights_zones w on w.id = a.workspace_id
where a.account_id = $1 and a.connected and (a.not_before is null or a.not_before <= now())`;

const jobsSql = `
select id, kind, due_at as "dueAt", post_id as "postId", external_id as "externalId", published_at as "publishedAt",
  use, has_video as "hasVideo", failures, gone_at as "goneAt", seen_revision as "seenRevision"
from ops.insights_jobs where account_id = $1
  and due_at <= (select ${nowSql('a.workspace_id')} from ops.insights_accounts a where a.account_id = $1) order by kind, due_at limit $2`;

const triedSql = `
update ops.insights_jobs j
set due_at = t.due_at, failures = t.failures, gone_at = t.gone_at, wanted = false,
  seen_revision = coalesce(t.seen_revision, j.seen_revision),
  answered_at = case when t.answered then now() else j.answered_at end
from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::bool[], $5::int[], $6::timestamptz[], $7::int[])
  as t (id, was_due, due_at, answered, failures, gone_at, seen_revision)
where j.id = t.id and j.due_at = t.was_due and t.due_at is not null`;

const doneSql = `
delete from ops.insights_jobs j using unnest($1::uuid[], $2::timestamptz[]) as t (id, was_due)
where j.id = t.id and j.due_at = t.was_due`;

export class PollJobs {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Null: the account is no longer connected, or its rest began after the search found it. */
  async pollCycle(accountId: string): Promise<PollCycle | null> {
    const [{ rows }, jobs] = await Promise.all([
      this.#pool.query<Omit<PollCycle, 'jobs'>>({ name: 'insights-cycle', text: cycleSql, values: [accountId] }),
      this.#pool.query<Job>({ name: 'insights-cycle-jobs', text: jobsSql, values: [accountId, maxPosts] }),
    ]);
    return rows[0] === undefined ? null : { ...rows[0], jobs: jobs.rows };
  }

  /** Stores how the post's media went out, which never changes once the post is out. */
  async learn(id: string, use: MediaUse, hasVideo: boolean): Promise<void> {
    await this.#pool.query('update ops.insights_jobs set use = $2, has_video = $3 where id = $1', [id, use, hasVideo]);
  }

  /**
   * A job that a refresh made due meanwhile keeps its new time, so the worker asks once more. While the account rests,
   * refreshes do not wait for its other posts.
   */
  async tried(
    { accountId, workspaceId, platform }: PollCycle,
    tried: readonly Tried[],
    parked: readonly Parked[],
    rest: AccountRest | null,
  ): Promise<void> {
    await inTransaction(this.#pool, async (tx) => {
      await lockAccounts(tx, [accountId]);
      for (const { job, reason, raw } of parked) {
        const targetId = job.kind === 'post' ? job.id : null;
        // Keeps only the newest answer of each job, or a network that answers nonsense all the time would fill the
        // disk.
        await tx.query(
          'delete from ops.insights_parked where account_id = $1 and target_id is not distinct from $2::uuid',
          [accountId, targetId],
        );
        await tx.query(
          `insert into ops.insights_parked (workspace_id, account_id, target_id, platform, reason, raw)
           values ($1, $2, $3, $4, $5, $6)`,
          [workspaceId, accountId, targetId, platform, reason, raw],
        );
      }
      await tx.query(triedSql, [
        tried.map(({ job }) => job.id),
        tried.map(({ job }) => job.dueAt),
        tried.map(({ dueAt }) => dueAt),
        tried.map(({ answered }) => answered),
        tried.map(({ failures }) => failures),
        tried.map(({ goneAt }) => goneAt),
        tried.map(({ seenRevision }) => seenRevision),
      ]);
      const done = tried.filter(({ dueAt }) => dueAt === null);
      if (done.length > 0) {
        await tx.query(doneSql, [done.map(({ job }) => job.id), done.map(({ job }) => job.dueAt)]);
      }
      await tx.query(
        `update ops.insights_accounts set not_before = coalesce($2, not_before),
           limits = case when $3 then limits + 1 else 0 end
         where account_id = $1`,
        [accountId, rest?.until ?? null, rest?.limited ?? false],
      );
      if (rest !== null) {
        await tx.query('update ops.insights_jobs set wanted = false where account_id = $1 and wanted', [accountId]);
      }
      await recount(tx, [accountId]);
      await settle(tx, [accountId], rest !== null || tried.some((one) => one.failed));
      return { commit: true, result: null };
    });
  }

  /** For an account whose client was archived or erased. */
  async forget(accountId: string): Promise<void> {
    await inTransaction(this.#pool, async (tx) => {
      await lockAccounts(tx, [accountId]);
      await forget(tx, [accountId]);
      return { commit: true, result: null };
    });
  }

  /** Deletes jobs of old posts of accounts that are not connected, and parked answers older than 30 days. */
  async clean(lifeMs: number): Promise<void> {
    await this.#pool.query(
      `delete from ops.insights_jobs where id in (
         select j.id from ops.insights_jobs j join ops.insights_accounts a using (account_id)
         where not a.connected and j.published_at < now() - $1 * interval '1 millisecond' limit 10000)`,
      [lifeMs],
    );
    await this.#pool.query(`delete from ops.insights_parked where at < now() - interval '30 days'`);
  }
}
