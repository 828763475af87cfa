/** A world whose posts are out, and whose network can be asked about them: metrics processes are started by the test. */
import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import type { Log } from '#contracts/ports/log.ts';
import { refresh } from '#domain/refresh.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createLogger, Readiness } from '#runtime/process/telemetry.ts';
import type { Platform } from '#schemas/common.ts';
import type { AccountMetricsEvent, TargetMetricsEvent } from '#schemas/insights.ts';
import type { InsightsDeps } from '#services/insights/deps.ts';
import { type InsightsProcess, startInsights } from '#services/insights/worker.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, type openPublishing, PublishingWorld, quick, type Running } from '#test/support/publishing.ts';
import { until } from '#test/support/until.ts';

type Parts = Pick<Awaited<ReturnType<typeof openPublishing>>, 'eventStore' | 'store' | 'codec' | 'pool' | 'sandbox'>;

/** What a metrics process is made of, in this process or another. */
export const observerOf = (parts: Parts, log: Log, over: Partial<InsightsDeps> = {}): InsightsDeps => {
  const { eventStore, store, codec, pool, sandbox } = parts;
  return {
    ...{ log, eventStore, store, codec, pool, sourceOf: (network) => (network === 'sandbox' ? sandbox : null) },
    config: {
      leaseTtlMs: quick.leaseTtlMs,
      insightsConcurrency: 4,
      insightsYoungDelaysMs: [3_600_000, 21_600_000, 86_400_000],
    },
    logger: createLogger('metrics', process.env.LOG_LEVEL ?? 'silent'),
    pollMs: 25,
    ...over,
  };
};

export interface JobRow {
  readonly dueAt: Date;
  readonly failures: number;
  readonly goneAt: Date | null;
  readonly answeredAt: Date | null;
  readonly wanted: boolean;
}

export interface Started extends Running, InsightsProcess {
  readonly registry: Registry;
  readonly readiness: Readiness;
}

export class MetricsWorld {
  readonly posts: PublishingWorld;
  readonly #publisher: Running;

  static async open(timezone = 'Europe/Berlin'): Promise<MetricsWorld> {
    const posts = await PublishingWorld.open((await preparedDatabase()).url);
    const owner = { memberId: randomUUID(), name: 'Olga' };
    const create = { type: 'Create', name: 'North', timezone, owner } as const;
    await execute(posts.store, workspace, posts.workspaceId, create, posts.context());
    return new MetricsWorld(posts);
  }

  private constructor(posts: PublishingWorld) {
    this.posts = posts;
    this.#publisher = posts.publisher();
  }

  /** Ends what was started here, but for the publisher. */
  async stopWorkers(): Promise<void> {
    await this.posts.stopAll([this.#publisher]);
  }

  async close(): Promise<void> {
    await this.#publisher.stop();
    await this.posts.close();
  }

  start(over: Partial<InsightsDeps> = {}): Started {
    const { posts } = this;
    const registry = new Registry();
    const readiness = new Readiness();
    const deps = observerOf(posts, posts.log, { registry, readiness, ...over });
    const controller = new AbortController();
    const made = startInsights(deps, controller.signal);
    const running = posts.run(async (signal) => {
      signal.addEventListener('abort', () => controller.abort());
      await made.done;
    });
    return { ...running, ...made, registry, readiness };
  }

  /** A client, and an account of it; a name like `metrics-down-acme` scripts the network. */
  async account(platform: Platform = 'x', name?: string): Promise<Account> {
    return this.posts.connect(await this.posts.client(), platform, name);
  }

  /** A post that is out, on each of these accounts. */
  async published(accounts: readonly Account[], text = 'hello'): Promise<readonly string[]> {
    const { targetIds } = await this.posts.schedule(accounts, { text });
    await this.posts.all(targetIds, 'published');
    return targetIds;
  }

  /** Whatever is to be asked for an id is heard of: its first time is known. */
  async received(ids: readonly string[]): Promise<void> {
    await until(`${ids.length} jobs`, async () => (await Promise.all(ids.map((id) => this.job(id)))).every(Boolean));
  }

  async job(id: string): Promise<JobRow | null> {
    const { rows } = await this.posts.pool.query<JobRow>(
      `select due_at as "dueAt", failures, gone_at as "goneAt", answered_at as "answeredAt", wanted
       from ops.insights_jobs where id = $1`,
      [id],
    );
    return rows[0] ?? null;
  }

  /** Its time has come: as if the hours until then had passed. Locks the account before its jobs, as a worker does. */
  async due(...ids: readonly string[]): Promise<void> {
    await this.posts.pool.query(
      `with locked as materialized (
         select account_id from ops.insights_accounts
         where account_id in (select account_id from ops.insights_jobs where id = any($1::uuid[])) order by account_id for update),
       moved as (
         update ops.insights_jobs j set due_at = date_trunc('milliseconds', now()) from locked
         where j.id = any($1::uuid[]) and j.account_id = locked.account_id returning j.account_id)
       update ops.insights_accounts a set next_at = now() from moved where a.account_id = moved.account_id`,
      [ids],
    );
  }

  /** It was asked for since its time came, and has its next time. */
  async tried(...ids: readonly string[]): Promise<void> {
    await until(`${ids} tried`, async () => {
      const jobs = await Promise.all(ids.map((id) => this.job(id)));
      return jobs.every((job) => job === null || job.dueAt.getTime() > Date.now());
    });
  }

  async observed(targetId: string): Promise<readonly TargetMetricsEvent['data'][]> {
    const events = await this.posts.store.readStream(`targetmetrics-${targetId}`);
    return events.map(({ data }) => data as unknown as TargetMetricsEvent['data']);
  }

  async observedOf(accountId: string): Promise<readonly AccountMetricsEvent['data'][]> {
    const events = await this.posts.store.readStream(`accountmetrics-${accountId}`);
    return events.map(({ data }) => data as unknown as AccountMetricsEvent['data']);
  }

  async refresh(accountIds: readonly string[]): Promise<string> {
    const refreshId = randomUUID();
    const command = { type: 'Request', accountIds } as const;
    await execute(this.posts.store, refresh, refreshId, command, this.posts.context());
    return refreshId;
  }

  /** What was said when all of it was tried, once. */
  async refreshed(refreshId: string, withinMs = 30_000) {
    const said = async () =>
      (await this.posts.store.readStream(`refresh-${refreshId}`)).filter(({ type }) => type === 'AnalyticsRefreshed');
    await until(`the refresh ${refreshId}`, async () => (await said()).length > 0, { withinMs });
    return said();
  }

  /** No row of it is left. */
  async forgotten(refreshId: string): Promise<void> {
    const sql = `select 1 from ops.insights_refreshes where refresh_id = $1
      union all select 1 from ops.insights_refresh_accounts where refresh_id = $1`;
    await until('no row of it', async () => (await this.posts.pool.query(sql, [refreshId])).rowCount === 0);
  }

  async parked(accountId: string): Promise<readonly { target_id: string | null; reason: string; raw: string }[]> {
    const sql = 'select target_id, reason, raw from ops.insights_parked where account_id = $1';
    return (await this.posts.pool.query(sql, [accountId])).rows;
  }
}

/** What one of these counters stands at, over all its other labels. */
export const counted = async (registry: Registry, name: string, labels: Readonly<Record<string, string>> = {}) => {
  const metric = (await registry.getMetricsAsJSON()).find((one) => one.name === name);
  const values = (metric?.values ?? []) as readonly { value: number; labels: Record<string, unknown> }[];
  return values
    .filter((one) => Object.entries(labels).every(([label, value]) => one.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0);
};
