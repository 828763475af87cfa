import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { notLeased, skipScan } from '#runtime/work/due-work.ts';
import { type Platform, platforms } from '#schemas/common.ts';

/**
 * Finds the accounts to poll next. A search reads the accounts of each network that wait longest, as many as there are
 * free slots. Where more accounts wait, a walk over the workspaces also finds accounts that wait behind those of a
 * large workspace. A step of the walk is bounded and continues where the last one ended, so the cost of a search does
 * not depend on the number of workspaces and accounts.
 */

export interface DueAccount {
  readonly accountId: string;
  readonly workspaceId: string;
  readonly platform: Platform;
}

/**
 * The instant from which an account is ready: one of its jobs is due and its rest is over. The indexes hold this
 * expression.
 */
const ready = 'greatest(next_at, not_before)';
const known = 'connected and next_at is not null';
const name = 'ops.insights_accounts';
const free = `${ready} <= now() and ${notLeased('account_id', '$1')}`;

export const firstSql = `
select found."accountId", found."workspaceId", found.platform from unnest($2::text[]) as p (platform) cross join lateral (
  select account_id as "accountId", workspace_id as "workspaceId", platform, ${ready} as ready from ${name}
  where ${known} and platform = p.platform and ${free} order by ${ready} limit $3
) found order by found.ready`;

/**
 * The longest due accounts of each workspace. A row without an account: the walk has passed a workspace that has none
 * due.
 */
export const stepSql = `
select p.platform, found.* from unnest($2::text[], $3::uuid[]) as p (platform, after) cross join lateral (
  with recursive ${skipScan({ name, where: `${known} and platform = p.platform` }, 'workspace_id', 'p.after')}
  select due.account_id as "accountId", keys.key as "workspaceId" from keys left join lateral (
    select account_id from ${name}
    where ${known} and platform = p.platform and workspace_id = keys.key and ${free} order by ${ready} limit $4
  ) due on true
  where keys.key is not null limit $5
) found`;

/** Seconds since the first account was ready; null: none is. */
export const lagSql = `
select extract(epoch from now() - min(found.at))::float8 as lag from unnest($1::text[]) as p (platform) cross join lateral (
  select ${ready} as at from ${name}
  where ${known} and platform = p.platform and ${ready} <= now() order by ${ready} limit 1
) found`;

/** Workspaces that one step passes, over all networks: each costs two index searches. */
const stepRows = 250;
/** Shortest time between two steps, milliseconds. */
const stepEveryMs = 100;
const firstWorkspace = '00000000-0000-0000-0000-000000000000';

interface Walk {
  after: string;
  found: readonly DueAccount[];
}

type Passed = Pick<DueAccount, 'platform' | 'workspaceId'> & { readonly accountId: string | null };

export class DueAccountSearch {
  readonly #pool: Pool;
  readonly #leaseKind: string;
  /** Each process begins at a random workspace, so that two processes seldom find the same accounts. */
  readonly #walks = new Map<Platform, Walk>(platforms.map((one) => [one, { after: randomUUID(), found: [] }]));
  #steppedAt = Number.NEGATIVE_INFINITY;

  constructor(pool: Pool, leaseKind: string) {
    this.#pool = pool;
    this.#leaseKind = leaseKind;
  }

  /** The accounts of these networks that wait longest, `max` of each, alternating with those that the walk found. */
  async find(asked: readonly Platform[], max: number): Promise<readonly DueAccount[]> {
    if (asked.length === 0 || max <= 0) return [];
    const first = { name: 'insights-due', text: firstSql, values: [this.#leaseKind, asked, max] };
    const { rows } = await this.#pool.query<DueAccount>(first);
    const behind = asked.filter((platform) => rows.filter((one) => one.platform === platform).length >= max);
    await this.#step(behind, max);
    const walked = behind.flatMap((platform) => this.#walks.get(platform)?.found ?? []);
    const alternating = Array.from({ length: Math.max(walked.length, rows.length) }, (_, at) => [walked[at], rows[at]]);
    const all = new Map(
      alternating.flat().flatMap((one) => (one === undefined ? [] : [[one.accountId, one] as const])),
    );
    return [...all.values()];
  }

  /** The walk no longer finds them: the worker has begun them. */
  taken(chosen: readonly DueAccount[]): void {
    const ids = new Set(chosen.map(({ accountId }) => accountId));
    for (const walk of this.#walks.values()) {
      if (walk.found.length > 0) walk.found = walk.found.filter(({ accountId }) => !ids.has(accountId));
    }
  }

  /** Seconds; 0: none is due. */
  async lag(): Promise<number> {
    const { rows } = await this.#pool.query<{ lag: number | null }>(lagSql, [platforms]);
    return rows[0]?.lag ?? 0;
  }

  async #step(behind: readonly Platform[], ofEach: number): Promise<void> {
    const stepping = behind.filter((platform) => this.#walks.get(platform)?.found.length === 0);
    if (stepping.length === 0 || performance.now() - this.#steppedAt < stepEveryMs) return;
    this.#steppedAt = performance.now();
    const limit = Math.ceil(stepRows / stepping.length);
    const after = stepping.map((platform) => this.#walks.get(platform)?.after);
    const values = [this.#leaseKind, stepping, after, ofEach, limit];
    const { rows } = await this.#pool.query<Passed>({ name: 'insights-due-step', text: stepSql, values });
    for (const platform of stepping) {
      const passed = rows.filter((one) => one.platform === platform);
      const found = passed.filter((one): one is DueAccount => one.accountId !== null);
      const ended = passed.length < limit;
      this.#walks.set(platform, {
        after: ended ? firstWorkspace : (passed.at(-1)?.workspaceId ?? firstWorkspace),
        found,
      });
    }
  }
}
