/**
 * Observations from the log into ClickHouse, beside a bare client that inserts the same rows: from the embedded log, and
 * from Kafka beside bare kafkajs and the bare client composed. Recounts go on meanwhile, as they do in the process.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import { Kafka, logLevel } from 'kafkajs';
import type { Log, LogRecord } from '#contracts/ports/log.ts';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { silenceNegativeTimeouts } from '#infra/kafka/client.ts';
import { openKafkaLog } from '#infra/kafka/log.ts';
import { openKafkaLogWriter } from '#infra/kafka/writer.ts';
import { MemoryEventStore } from '#infra/memory/event-store.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPostgresLog } from '#infra/postgres/log.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { observationColumns, observationRow, type Row } from '#projections/analytics/encode.ts';
import { ensureTables, migrateAnalytics } from '#projections/analytics/live.ts';
import { runAnalytics } from '#projections/analytics/run.ts';
import { tableOf } from '#projections/analytics/tables.ts';
import { EventCodec, type StoredBytes } from '#runtime/codec.ts';
import { migrate as migrateConsumers } from '#runtime/consume.ts';
import { createLogger } from '#runtime/telemetry.ts';
import { partitionOf } from '#schemas/topics.ts';
import { embeddedClickHouse } from '#test/support/clickhouse.ts';
import { kafkaBroker } from '#test/support/kafka.ts';
import { observed, type Seen } from '#test/support/observations.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { stored, TestKeys } from '#test/support/projecting.ts';
import { environment } from '../environment.ts';
import { type BenchRow, spread } from '../row.ts';

const codec = new EventCodec(new TestKeys());
const logger = createLogger('bench', 'warn');
const days = 90;
const bareBatch = 5_000;
const first = Date.parse('2026-01-01T03:00:00.000Z');

/** Of one target: one a day, as an adapter with many members tells them. */
const story = async (target: number, workspaces: readonly string[]): Promise<readonly StoredBytes[]> => {
  const of = (n: number): string => `0197a000-0000-7000-8000-${String(n).padStart(12, '0')}`;
  const about = {
    workspaceId: workspaces[target % workspaces.length] ?? '',
    postId: randomUUID(),
    targetId: randomUUID(),
    clientId: of(target % 50),
    accountId: of(1_000 + (target % 200)),
    platform: 'instagram' as const,
  };
  const all: StoredBytes[] = [];
  for (let day = 0; day < days; day += 1) {
    const observedAt = new Date(first + day * 86_400_000 + target).toISOString();
    const n = day * 37 + (target % 11);
    const seen: Seen = {
      ...about,
      day: observedAt.slice(0, 10),
      observedAt,
      figures: {
        ...{ impressions: 20 * n, reach: 15 * n, likes: 2 * n, comments: n, shares: null, saves: 0, clicks: null },
        ...{ follows: 1, profileVisits: n, totalInteractions: 3 * n, videoViews: 9 * n, reposts: null, quotes: null },
        permalink: 'https://www.instagram.com/p/Cabcdefghij/',
      },
    };
    all.push(await stored(codec, observed(seen), { revision: day, position: 0n, workspaceId: about.workspaceId }));
  }
  return all;
};

interface Rates {
  readonly median: number;
  readonly text: string;
}

const rates = (values: readonly number[]): Rates => {
  const { median, min, max } = spread(values);
  const shown = (n: number): string => Math.round(n).toLocaleString('en');
  return { median, text: `${shown(median)} (${shown(min)}–${shown(max)})` };
};

/** Rows a second of the client alone: what is ready is sent, batch after batch. */
const bareInsert = async (client: ClickHouseClient, version: number, rows: readonly Row[]): Promise<number> => {
  await ensureTables(client, version);
  const began = performance.now();
  for (let at = 0; at < rows.length; at += bareBatch) await insert(client, version, rows.slice(at, at + bareBatch));
  return (rows.length * 1_000) / (performance.now() - began);
};

const insert = async (client: ClickHouseClient, version: number, values: readonly Row[]): Promise<void> => {
  await client.insert({
    table: tableOf('observations', version),
    columns: observationColumns as [string, ...string[]],
    values,
    format: 'JSONCompactEachRow',
  });
};

interface World {
  readonly pool: ReturnType<typeof openPool>;
  readonly client: ClickHouseClient;
}

interface Ran {
  readonly rate: number;
  /** Largest seen of this process, MB. */
  readonly mb: number;
  /** Until every marked day was recounted, milliseconds after the last observation. */
  readonly settledMs: number;
}

/** Ours, from the first batch on: joining is not what is measured. */
const ours = async ({ pool, client }: World, log: Log, version: number, events: number): Promise<Ran> => {
  await pool.query('update ops.analytics_versions set live = $1, newest = $1', [version]);
  await ensureTables(client, version);
  const stop = new AbortController();
  const store = new MemoryEventStore();
  const count = async (): Promise<number> => {
    const answer = await client.query({
      query: `select sum(rows) as n from system.parts
        where active and database = currentDatabase() and table = '${tableOf('observations', version)}'`,
      format: 'JSONEachRow',
    });
    return Number((await answer.json<{ n: string }>())[0]?.n ?? 0);
  };
  const running = runAnalytics({ client, log, store, pool, codec, signal: stop.signal, logger });
  let mb = 0;
  const watch = setInterval(() => {
    mb = Math.max(mb, process.memoryUsage.rss() / 1e6);
  }, 50);
  const began = performance.now();
  let from = 0;
  let begun = began;
  for (let n = 0; n < events; n = await count()) {
    if (from === 0 && n > 0) {
      from = n;
      begun = performance.now();
    }
    await delay(20);
  }
  const ended = performance.now();
  const isDirty = async (): Promise<boolean> => {
    const { rows } = await pool.query('select exists (select 1 from ops.analytics_dirty where version = $1) as dirty', [
      version,
    ]);
    return rows[0].dirty;
  };
  while (await isDirty()) await delay(50);
  const settledMs = performance.now() - ended;
  clearInterval(watch);
  stop.abort();
  await running.done;
  return { rate: ((events - from) * 1_000) / (ended - begun), mb, settledMs };
};

export const ingestion = async (quick: boolean): Promise<readonly BenchRow[]> => {
  const events = days * (quick ? 1_000 : 8_000);
  const rounds = quick ? 3 : 5;
  const server = await sharedServer();
  const name = `bench_${randomUUID().slice(0, 8)}`;
  const admin = openPool({ url: server.url, max: 1 });
  await admin.query(`create database ${name}`);
  const url = Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
  const pool = openPool({ url, max: 8 });
  const { embedded, remove } = await embeddedClickHouse(4 * 1024 ** 3);
  const client = openAnalytics({ url: embedded.url });
  const world: World = { pool, client };
  try {
    for (const line of await environment(url)) console.log(line);
    await migrateConsumers(pool);
    await migrateAnalytics(pool);
    const workspaces = Array.from({ length: 100 }, () => randomUUID());
    const store = await PostgresEventStore.open({ url });
    const log = await openPostgresLog({ url, store });
    const rows: Row[] = [];
    const records: LogRecord[] = [];
    for (let target = 0; target < events / days; target += 1) {
      const all = await story(target, workspaces);
      const stream = all[0]?.stream ?? '';
      const partitionKey = stream;
      await store.append(
        stream,
        'none',
        all.map(({ id, type, data, metadata }) => ({ id, type, data, metadata, partitionKey })),
      );
      for (const one of all) {
        const position = BigInt(records.length + 1);
        const partition = partitionOf(stream, 12);
        const time = new Date().toISOString();
        records.push({ ...one, topic: 'metrics', partition, key: stream, position, time, value: one.data });
        rows.push(observationRow(await codec.decode({ ...one, position })));
      }
    }
    const made: Ran[] = [];
    const bare: number[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      made.push(await ours(world, log, round, events));
      bare.push(await bareInsert(client, 100 + round, rows));
    }
    const [our, limit] = [rates(made.map((one) => one.rate)), rates(bare)];
    const settled = Math.round(Math.max(...made.map((one) => one.settledMs)));
    const rowsOut: BenchRow[] = [
      {
        name: 'analytics: from the embedded log, one process',
        unit: 'observations/s',
        ours: our.median,
        limit: limit.median,
        goal: '≥ 40,000',
        ok: our.median >= 40_000,
        note: `ours ${our.text}, bare insert ${limit.text}; all days recounted at most ${settled} ms after; this process at most ${Math.round(Math.max(...made.map((one) => one.mb)))} MB`,
      },
    ];
    await log.close();
    await store.close();
    const kafka = await fromKafka(world, records, name, rounds);
    return kafka === null ? rowsOut : [...rowsOut, kafka];
  } finally {
    await client.close();
    await remove();
    await pool.end();
    await admin.query(`drop database if exists ${name} with (force)`);
    await admin.end();
    await server.stop();
  }
};

/** Bare: kafkajs takes every message, and the client inserts rows that are ready, one after the other in one process. */
const fromKafka = async (
  world: World,
  records: readonly LogRecord[],
  name: string,
  rounds: number,
): Promise<BenchRow | null> => {
  const broker = await kafkaBroker();
  if ('skip' in broker) {
    console.log(`from Kafka: skipped, ${broker.skip}`);
    return null;
  }
  try {
    const options = { brokers: broker.brokers, prefix: `${name}-`, topics: ['metrics'] };
    const writer = await openKafkaLogWriter(options);
    for (let at = 0; at < records.length; at += 500) await writer.send(records.slice(at, at + 500));
    await writer.close();
    const log = await openKafkaLog(options);
    const made: number[] = [];
    const bare: number[] = [];
    const rows: readonly Row[] = await Promise.all(
      records.map(async (one) => observationRow(await codec.decode({ ...one, data: one.value }))),
    );
    for (let round = 1; round <= rounds; round += 1) {
      made.push((await ours(world, log, 200 + round, records.length)).rate);
      bare.push(await bareKafka(world, broker.brokers, options.prefix, 300 + round, rows));
    }
    await log.close();
    const [our, limit] = [rates(made), rates(bare)];
    return {
      name: 'analytics: from Kafka, one process',
      unit: 'observations/s',
      ours: our.median,
      limit: limit.median,
      goal: '≥ 0.6 of limit',
      ok: our.median >= 0.6 * limit.median,
      note: `ours ${our.text}, bare consume and insert ${limit.text}`,
    };
  } finally {
    await broker.stop();
  }
};

const bareKafka = async (
  { client }: World,
  brokers: readonly string[],
  prefix: string,
  version: number,
  rows: readonly Row[],
): Promise<number> => {
  await ensureTables(client, version);
  silenceNegativeTimeouts();
  const kafka = new Kafka({ brokers: [...brokers], clientId: 'bare', logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({ groupId: `bare-${version}` });
  await consumer.connect();
  await consumer.subscribe({ topic: `${prefix}metrics`, fromBeginning: true });
  const finished = Promise.withResolvers<number>();
  let begun = 0;
  let first = 0;
  let seen = 0;
  await consumer.run({
    partitionsConsumedConcurrently: 4,
    eachBatch: async ({ batch }) => {
      const at = seen;
      seen += batch.messages.length;
      await insert(client, version, rows.slice(at, at + batch.messages.length));
      if (begun === 0) {
        begun = performance.now();
        first = seen;
      } else if (seen === rows.length) finished.resolve(((seen - first) * 1_000) / (performance.now() - begun));
    },
  });
  const rate = await finished.promise;
  await consumer.disconnect();
  return rate;
};
