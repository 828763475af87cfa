/** A world with reports: observations go through the log into a real analytics store, reports are made by the test's workers. */
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { Registry } from 'prom-client';
import type { Log } from '#contracts/ports/log.ts';
import { targetmetrics } from '#domain/insights.ts';
import { type ReportCommand, type ReportRun, report } from '#domain/report.ts';
import { workspace } from '#domain/workspace.ts';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { analyticsStore } from '#projections/analytics/live.ts';
import { analyticsReader } from '#projections/analytics/queries.ts';
import { runAnalytics } from '#projections/analytics/run.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import type { PostFigures } from '#schemas/insights.ts';
import type { ReportDefinition } from '#schemas/report.ts';
import type { ReportDeps } from '#services/reports/deps.ts';
import { startReports } from '#services/reports/reports.ts';
import { type TestClickHouse, testClickHouse } from '#test/support/clickhouse.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld, quick, type Running } from '#test/support/publishing.ts';
import { until } from '#test/support/until.ts';

type Parts = Pick<ReportDeps, 'eventStore' | 'store' | 'codec' | 'pool' | 'blobs'>;

/** What a worker is made of, in this process or another. `close` ends its connection to the analytics. */
export const workerOf = (parts: Parts, log: Log, clickhouseUrl: string, over: Partial<ReportDeps> = {}) => {
  const client = openAnalytics({ url: clickhouseUrl });
  const { eventStore, store, codec, pool, blobs } = parts;
  const deps: ReportDeps = {
    ...{ log, eventStore, store, codec, pool, blobs },
    analytics: analyticsReader(analyticsStore(client, pool)),
    logger: createLogger('reports', process.env.LOG_LEVEL ?? 'silent'),
    config: { leaseTtlMs: quick.leaseTtlMs, reportWaitMs: 6 * 3_600_000 },
    pollMs: 50,
    backOffMs: 20,
    ...over,
  };
  return { deps, close: () => client.close() };
};

export const definition: ReportDefinition = {
  name: 'Monthly',
  kind: 'workspace',
  filters: { clientId: null, socialAccountId: null, platform: null },
  window: 'last_30_days',
  formats: ['json', 'csv', 'pdf'],
  schedule: null,
};

/** The run is asked for at noon of this day, so its newest day is the one before. */
export const today = '2026-03-03';
export const askedAt = `${today}T12:00:00.000Z`;

export class ReportsWorld {
  readonly posts: PublishingWorld;
  readonly clickhouse: TestClickHouse;
  readonly #analytics = new AbortController();
  readonly #counting: Promise<void>;

  static async open(): Promise<ReportsWorld> {
    const posts = await PublishingWorld.open((await preparedDatabase()).url);
    const world = new ReportsWorld(posts, await testClickHouse());
    await world.workspace(posts.workspaceId, 'UTC');
    return world;
  }

  private constructor(posts: PublishingWorld, clickhouse: TestClickHouse) {
    this.posts = posts;
    this.clickhouse = clickhouse;
    const { log, eventStore, pool, codec, logger } = posts;
    const { client } = clickhouse;
    const { signal } = this.#analytics;
    this.#counting = runAnalytics({ log, store: eventStore, pool, codec, client, logger, signal }).done;
  }

  async close(): Promise<void> {
    this.#analytics.abort();
    await this.#counting;
    await this.posts.close();
  }

  get url(): string {
    return this.posts.url;
  }

  /** One more worker. */
  start(over: Partial<ReportDeps> = {}): Running & { readonly registry: Registry } {
    const { posts } = this;
    const registry = new Registry();
    const { deps, close } = workerOf(posts, posts.log, this.clickhouse.url, { registry, ...over });
    const running = posts.run(async (signal) => {
      await startReports(deps, signal).done;
      await close();
    });
    return { ...running, registry };
  }

  async workspace(id: string, timezone: string): Promise<void> {
    const owner = { memberId: randomUUID(), name: 'Anna' };
    const command = { type: 'Create', name: 'Agency', timezone, owner } as const;
    await execute(this.posts.store, workspace, id, command, { ...this.posts.context(), workspaceId: id });
  }

  /** @param daysAgo when it was said, as it were */
  async command(
    id: string,
    command: ReportCommand,
    workspaceId: string = this.posts.workspaceId,
    daysAgo = 0,
  ): Promise<void> {
    const now = new Date(Date.now() - daysAgo * 86_400_000).toISOString();
    await execute(this.posts.store, report, id, command, { ...this.posts.context(), workspaceId, now });
  }

  async define(over: Partial<ReportDefinition> = {}, workspaceId?: string, daysAgo?: number): Promise<string> {
    const id = randomUUID();
    await this.command(id, { type: 'Define', definition: { ...definition, ...over } }, workspaceId, daysAgo);
    return id;
  }

  /** @param at the instant whose day the window ends before */
  async request(id: string, runId: string = randomUUID(), workspaceId?: string, at: string = askedAt): Promise<string> {
    const command = { type: 'RequestRun', runId, at, timezone: 'UTC', by: 'request', formats: null } as const;
    await this.command(id, command, workspaceId);
    return runId;
  }

  /**
   * A look at a post, at an instant that is never ahead: it waits for the next one, which is not there. Of it the newest
   * days are asked for; `closed` is another look, after midnight, and ends them.
   */
  async lookedAtYesterday(account: Account, targetId: string = randomUUID()) {
    const today = new Date().toISOString().slice(0, 10);
    const yesterday = new Date(Date.parse(today) - 86_400_000).toISOString().slice(0, 10);
    const times = { observedAt: `${yesterday}T23:00:00.000Z`, publishedAt: `${yesterday}T06:00:00.000Z` };
    await this.observe(account, yesterday, { impressions: 100, likes: 10 }, targetId, times);
    const after = { ...times, observedAt: `${today}T00:05:00.000Z` };
    return {
      ...{ yesterday, askedAt: `${today}T00:01:00.000Z` },
      closed: () => this.observe(account, today, { impressions: 110, likes: 11 }, targetId, after),
    };
  }

  /** What a network told of a post, counted by the analytics when it answers. */
  async observe(
    account: Account,
    day: string,
    figures: PostFigures,
    targetId: string = randomUUID(),
    times = { observedAt: `${day}T06:00:00.000Z`, publishedAt: '2026-02-01T00:00:00.000Z' },
  ): Promise<string> {
    const context = this.posts.context();
    const postId = targetId;
    const observation = {
      ...{ targetId, postId, accountId: account.id, clientId: account.clientId, platform: account.platform },
      ...{ day, ...times, externalId: 'e' },
      ...{ source: 'sandbox/1', raw: {}, figures, platformRemovedAt: null },
    };
    const { store } = this.posts;
    const options = { partitionKey: postId };
    const done = await execute(store, targetmetrics, targetId, { type: 'Observe', observation }, context, options);
    const position = done.appended.at(-1)?.position ?? 0n;
    await until('the analytics have counted it', () => this.#counted(position));
    return targetId;
  }

  async #counted(position: bigint): Promise<boolean> {
    const { rows } = await this.posts.pool.query(
      `select (select count(*) from ops.analytics_marked) as dirty,
         (select max(position) from ops.consumer_positions where consumer_group like 'analytics-%') as position`,
    );
    return rows[0].dirty === '0' && BigInt(rows[0].position ?? 0) >= position;
  }

  async run(id: string, runId: string): Promise<ReportRun | undefined> {
    const { state } = await this.posts.store.load(report, id);
    return state.status === 'none' ? undefined : state.runs.get(runId);
  }

  story(id: string): Promise<readonly string[]> {
    return this.posts.story(`report-${id}`);
  }

  async plannedFor(id: string): Promise<boolean> {
    const sql = 'select from ops.report_schedules where report_id = $1';
    return (await this.posts.pool.query(sql, [id])).rows.length > 0;
  }

  async job(id: string): Promise<{ attempts: number; written: string[] } | null> {
    const sql = 'select attempts, written from ops.report_jobs where id = $1';
    return (await this.posts.pool.query(sql, [id])).rows[0] ?? null;
  }

  /** Waits until the run has ended so, and nothing is left to do for it. */
  async ended<S extends 'completed' | 'failed'>(
    id: string,
    runId: string,
    status: S,
    ms = 30_000,
  ): Promise<Extract<ReportRun, { status: S }>> {
    let run = await this.run(id, runId);
    const there = async () => {
      run = await this.run(id, runId);
      return run?.status === status && (await this.job(runId)) === null;
    };
    await until(`the run is ${status}`, there, { withinMs: ms }).catch(async () => {
      throw new Error(
        `the run never was ${status}: ${(await this.story(id)).join(' ')} ${JSON.stringify(await this.job(runId))}`,
      );
    });
    return run as Extract<ReportRun, { status: S }>;
  }

  /** Keys of the blobs of a run. */
  async keys(runId: string, workspaceId: string = this.posts.workspaceId): Promise<readonly string[]> {
    const folder = path.join(this.posts.folder, 'blobs', workspaceId, 'reports', runId);
    const names = await readdir(folder).catch(() => []);
    return names
      .filter((name) => !name.includes('~'))
      .map((name) => `${workspaceId}/reports/${runId}/${name}`)
      .sort();
  }

  async bytes(key: string): Promise<Buffer> {
    const { body } = await this.posts.blobs.get(key);
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks);
  }
}
