import { isDeepStrictEqual } from 'node:util';
import type { ClickHouseClient } from '@clickhouse/client';
import type pg from 'pg';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import type { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { analyticsStore, groupOf, liveVersion } from '#projections/analytics/live.ts';
import { analyticsReader } from '#projections/analytics/queries.ts';
import { rule } from '#projections/analytics/rules.ts';
import { tableOf } from '#projections/analytics/tables.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { counters } from '#schemas/insights.ts';
import { idOf, kindOf } from '#schemas/topics.ts';
import {
  expectedAccount,
  expectedBoard,
  expectedPosts,
  type Reading,
  type SeenAccount,
} from '#test/support/expected-analytics.ts';
import type { Seen } from '#test/support/observations.ts';

/** Invariants of the analytics at rest: every number is the one that a recount of the streams gives. */

/** The consumer group that ingests; null: no process ever did. */
const ingesting = async (pool: pg.Pool): Promise<string | null> => {
  const there = await pool.query(`select to_regclass('ops.analytics_versions') as there`);
  if (there.rows[0].there === null) return null;
  const group = groupOf(await liveVersion(pool));
  const { rows } = await pool.query('select 1 from ops.consumer_positions where consumer_group = $1 limit 1', [group]);
  return rows.length === 0 ? null : group;
};

/** Where no process ever ingested there is nothing to wait for. */
export const analyticsAtRest = async (pool: pg.Pool): Promise<boolean> => {
  const group = await ingesting(pool);
  if (group === null) return true;
  const { rows } = await pool.query(
    `select exists (select from ops.analytics_marked) or exists (select from ops.analytics_late)
         or exists (select from ops.analytics_rules where rule < $2 and version = (select live from ops.analytics_versions)) as dirty,
       coalesce((select max(position) from ops.consumer_positions where consumer_group = $1), 0)
         < coalesce((select max(position) from es.events where topic = 'metrics'), 0) as behind`,
    [group, rule],
  );
  return !rows[0].dirty && !rows[0].behind;
};

type SeenPost = Seen & { readonly publishedAt: string };

const seenOf = ({ stream, metadata, data }: DecodedEvent): SeenPost => {
  const { platformRemovedAt, ...seen } = data as unknown as SeenPost & { readonly platformRemovedAt: string | null };
  return {
    ...seen,
    ...{ workspaceId: metadata.workspaceId, targetId: idOf(stream) },
    ...(platformRemovedAt === null ? {} : { removedAt: platformRemovedAt }),
  };
};
const seenAccountOf = ({ stream, metadata, data }: DecodedEvent): SeenAccount => ({
  ...(data as unknown as SeenAccount),
  ...{ workspaceId: metadata.workspaceId, accountId: idOf(stream) },
});

/** No world changes its zone. The sandbox's clock dates the figures of a test workspace. */
const readingOf = async (
  workspaceId: string,
  events: readonly DecodedEvent[],
  sandbox: Pick<SandboxNetwork, 'now'>,
): Promise<Reading> => {
  const created = events.find(({ type }) => type === 'WorkspaceCreated')?.data;
  const now = created?.mode === 'test' ? (await sandbox.now(workspaceId)).getTime() : Date.now();
  return { zone: String(created?.timezone ?? 'UTC'), now };
};

export interface AnalyticsCheck {
  readonly violations: readonly string[];
  readonly observations: number;
}

/** @param url of the analytics store; called only when there is an observation */
export const checkAnalytics = async (
  streams: ReadonlyMap<string, readonly DecodedEvent[]>,
  { pool, url, sandbox }: { readonly pool: pg.Pool; readonly url: () => string; readonly sandbox: SandboxNetwork },
): Promise<AnalyticsCheck> => {
  const ofKind = (kind: string) => [...streams].flatMap(([stream, events]) => (kindOf(stream) === kind ? events : []));
  const [posts, accounts] = [ofKind('targetmetrics'), ofKind('accountmetrics')];
  const observations = posts.length + accounts.length;
  if (observations === 0 || (await ingesting(pool)) === null) return { violations: [], observations };
  const client = openAnalytics({ url: url() });
  try {
    const check = new Check(client, pool, await liveVersion(pool));
    await check.raw('observations', posts);
    await check.raw('account_observations', accounts);
    const [seen, own] = [posts.map(seenOf), accounts.map(seenAccountOf)];
    for (const workspaceId of new Set([...seen, ...own].map((one) => one.workspaceId))) {
      await check.workspace(
        workspaceId,
        seen.filter((one) => one.workspaceId === workspaceId),
        own.filter((one) => one.workspaceId === workspaceId),
        await readingOf(workspaceId, streams.get(`workspace-${workspaceId}`) ?? [], sandbox),
      );
    }
    return { violations: check.violations, observations };
  } finally {
    await client.close();
  }
};

/** As many as a page of the API asks for: the ids travel in the address of the query, which has a limit. */
const pageSize = 100;
/** Reports of one kind; further ones say nothing new. */
const maxShown = 10;

class Check {
  readonly violations: string[] = [];
  readonly #client: ClickHouseClient;
  readonly #reader: ReturnType<typeof analyticsReader>;
  readonly #version: number;

  constructor(client: ClickHouseClient, pool: pg.Pool, version: number) {
    this.#client = client;
    this.#reader = analyticsReader(analyticsStore(client, pool));
    this.#version = version;
  }

  /** Each event is one row, however often it was inserted. */
  async raw(name: 'observations' | 'account_observations', events: readonly DecodedEvent[]): Promise<void> {
    const query = `select distinct toString(event_id) as id from ${tableOf(name, this.#version)}`;
    const rows = await (await this.#client.query({ query, format: 'JSONEachRow' })).json<{ id: string }>();
    const there = new Set(rows.map(({ id }) => id));
    const lost = events.filter(({ id }) => !there.delete(id));
    for (const { stream, position } of lost.slice(0, maxShown)) {
      this.violations.push(`analytics: the observation of ${stream} at ${position} is not in ${name}`);
    }
    if (there.size > 0) this.violations.push(`analytics: ${name} has ${there.size} rows that no event is`);
  }

  async workspace(id: string, seen: readonly SeenPost[], own: readonly SeenAccount[], reading: Reading): Promise<void> {
    const { now } = reading;
    const before = seen.map(({ observedAt }) => new Date(Date.parse(observedAt) - 3 * 86_400_000).toISOString());
    const days = [
      ...before.map((at) => at.slice(0, 10)),
      ...seen.map(({ day }) => day),
      ...own.flatMap((one) => [one.day, one.figuresDay ?? one.day]),
    ].sort();
    const window = { from: days[0] ?? '', to: days.at(-1) ?? '' };
    this.#same(
      `the overview of ${id}`,
      await this.#reader.overview(id, window, {}, { now }),
      expectedBoard(seen, own, () => true, window, reading),
    );
    for (const clientId of new Set(seen.map((one) => one.clientId))) {
      const isOf = (one: Seen): boolean => one.clientId === clientId;
      const shown = await this.#reader.client(id, clientId, window, {}, { now });
      this.#same(
        `the client ${clientId}`,
        shown,
        expectedBoard(
          seen,
          own.filter((one) => one.clientId === clientId),
          isOf,
          window,
          reading,
        ),
      );
    }
    for (const accountId of new Set([...seen, ...own].map((one) => one.accountId))) {
      const shown = await this.#reader.account(id, accountId, window, { now });
      this.#same(
        `the account ${accountId}`,
        shown,
        expectedAccount(
          seen.filter((one) => one.accountId === accountId),
          own,
          accountId,
          window,
          reading,
        ),
      );
    }
    await this.#posts(id, seen, window.to);
  }

  async #posts(workspaceId: string, seen: readonly SeenPost[], to: string): Promise<void> {
    const wanted = expectedPosts(seen);
    const out = Map.groupBy(seen, ({ postId }) => postId);
    const all = [...out].map(([id, own]) => {
      const times = own.map(({ publishedAt }) => publishedAt).sort();
      return { id, first: times[0] ?? '', last: times.at(-1) ?? '' };
    });
    const left = new Set(wanted.keys());
    for (let at = 0; at < all.length; at += pageSize) {
      for (const row of await this.#reader.posts(workspaceId, all.slice(at, at + pageSize), to)) {
        const { targetId, engagementRate: _rate, ...shown } = row;
        left.delete(targetId);
        this.#same(`the target ${targetId}`, shown, wanted.get(targetId));
      }
    }
    for (const targetId of left) this.#same(`the target ${targetId}`, undefined, wanted.get(targetId));
  }

  #same(what: string, shown: unknown, wanted: unknown): void {
    if (isDeepStrictEqual(shown, wanted)) return;
    if (this.violations.length >= maxShown * counters.length) return;
    this.violations.push(`analytics: ${what} ${differenceOf(shown, wanted)}`);
  }
}

/** The members that differ, by their paths. */
const differenceOf = (shown: unknown, wanted: unknown): string => {
  const [ours, theirs] = [leavesOf(shown), leavesOf(wanted)];
  const reported = [...new Set([...ours.keys(), ...theirs.keys()])]
    .filter((path) => ours.get(path) !== theirs.get(path))
    .slice(0, maxShown)
    .map((path) => `${path} is ${ours.get(path) ?? 'absent'}, and the streams say ${theirs.get(path) ?? 'absent'}`);
  return reported.join('; ');
};

const leavesOf = (value: unknown, path = ''): ReadonlyMap<string, string> => {
  if (typeof value !== 'object' || value === null) return new Map([[path, JSON.stringify(value) ?? 'absent']]);
  return new Map(Object.entries(value).flatMap(([name, one]) => [...leavesOf(one, `${path}/${name}`)]));
};
