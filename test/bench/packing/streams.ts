/** Events as standalone appends them: posts of six targets until all are published, and days of observations. */
import { setTimeout as delay } from 'node:timers/promises';
import type { EventToAppend, RecordedEvent } from '#contracts/ports/event-store.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { perPost, publish, settled } from '../bytes.ts';
import { type Standalone, startStandalone } from '../standalone.ts';

/** Events of one stream that were appended together. */
export interface Append {
  readonly stream: string;
  /** Revision of the first. */
  readonly first: bigint;
  readonly partitionKey: string;
  readonly workspace: string | null;
  readonly events: readonly EventToAppend[];
}

const dayMs = 86_400_000;
const patienceMs = 120_000;

const observe = async ({ pool, databaseUrl }: Standalone, days: number, targets: number): Promise<void> => {
  const network = new SandboxNetwork({ database: { url: databaseUrl } });
  const count = async (): Promise<number> => {
    const sql = "select count(*) as n from es.event_rows where type = 'TargetMetricsObserved'";
    return Number((await pool.query(sql)).rows[0].n);
  };
  try {
    const { rows } = await pool.query('select distinct workspace_id as id from ops.insights_jobs');
    const before = await count();
    for (let day = 1; day <= days; day += 1) {
      for (const { id } of rows) await network.advance(dayMs, id);
      await pool.query('update ops.insights_jobs set due_at = now()');
      await pool.query('update ops.insights_accounts set not_before = null, next_at = now()');
      for (const until = performance.now() + patienceMs; (await count()) < before + day * targets; await delay(100)) {
        if (performance.now() > until) throw new Error(`not all targets were observed on day ${day}`);
      }
    }
  } finally {
    await network.close();
  }
};

const appendsOf = (events: readonly RecordedEvent[]): readonly Append[] => {
  const appends: (Append & { readonly events: EventToAppend[] })[] = [];
  for (const { stream, revision, id, type, data, metadata: bytes } of events) {
    const last = appends.at(-1);
    const isSame = last?.stream === stream && last.events[0]?.metadata.toString() === bytes.toString();
    // The store packs metadata once where events share the bytes.
    const metadata = isSame ? (last.events[0]?.metadata ?? bytes) : bytes;
    const { partitionKey, workspaceId = null } = JSON.parse(bytes.toString());
    const event = { id, type, data, metadata, partitionKey };
    if (isSame) last.events.push(event);
    else appends.push({ stream, first: revision, partitionKey, workspace: workspaceId, events: [event] });
  }
  return appends;
};

/** Posts whose targets are observed: so many of one account are done in one cycle of the worker. */
const observed = 20;

/** @param posts further ones, which are only published */
export const streamsOf = async (posts: number, days: number): Promise<readonly Append[]> => {
  const world = await startStandalone({ keys: 20 });
  try {
    for (const line of world.environment) console.log(line);
    await publish(world, observed);
    await settled(world.pool, observed * perPost);
    await observe(world, days, observed * perPost);
    await publish(world, posts);
    await settled(world.pool, (observed + posts) * perPost);
    const store = await PostgresEventStore.open({ url: world.databaseUrl });
    const events: RecordedEvent[] = [];
    for (let after: bigint | null = null; ; after = events.at(-1)?.position ?? null) {
      const page: readonly RecordedEvent[] = await store.readAll({ after, limit: 500 });
      if (page.length === 0) break;
      events.push(...page);
    }
    await store.close();
    return appendsOf(events);
  } finally {
    await world.stop();
  }
};
