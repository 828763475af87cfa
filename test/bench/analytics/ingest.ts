/**
 * Observations from the log into ClickHouse, beside a bare client that inserts the same rows: from the embedded log, and
 * from Kafka beside bare kafkajs and the bare client composed. Recounts go on meanwhile, as they do in the process.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import { Kafka, logLevel } from 'kafkajs';
import type { EventStore, RecordedEvent } from '#contracts/ports/event-store.ts';
import { openAdapters } from '#infra/adapters.ts';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { silenceNegativeTimeouts } from '#infra/kafka/client.ts';
import { openKafkaLogWriter } from '#infra/kafka/writer.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { observationColumns, observationOf } from '#projections/analytics/encode.ts';
import { dropTables, ensureTables } from '#projections/analytics/live.ts';
import { tableOf } from '#projections/analytics/tables.ts';
import { EventCodec, type StoredBytes } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { scopes } from '#schemas/apikey.ts';
import { toRecord } from '#services/relay/record.ts';
import { createApiKey, createWorkspace, type Operator } from '#services/workflows/provision.ts';
import { embeddedClickHouse } from '#test/support/clickhouse.ts';
import { kafkaBroker } from '#test/support/kafka.ts';
import { observed, type Seen } from '#test/support/observations.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { type Process, start } from '#test/support/processes.ts';
import { stored, TestKeys } from '#test/support/projecting.ts';
import { until } from '#test/support/until.ts';
import { environment, residentMb } from '../environment.ts';
import { type BenchRow, spread } from '../row.ts';

const codec = new EventCodec(new TestKeys());
const days = 90;
const bareBatch = 15_000;
const appendsAtOnce = 500;
const first = Date.parse('2026-01-01T03:00:00.000Z');

interface Target extends Pick<Seen, 'workspaceId' | 'postId' | 'targetId' | 'clientId' | 'accountId' | 'platform'> {
  readonly n: number;
}

const targetOf = (n: number, workspaces: readonly string[]): Target => {
  const of = (id: number): string => `0197a000-0000-7000-8000-${String(id).padStart(12, '0')}`;
  return {
    n,
    workspaceId: workspaces[n % workspaces.length] ?? '',
    postId: randomUUID(),
    targetId: randomUUID(),
    clientId: of(n % 50),
    accountId: of(1_000 + (n % 200)),
    platform: 'instagram',
  };
};

/** The answer of an adapter with many members on a day. */
const seenOn = async ({ n: nth, ...about }: Target, day: number): Promise<StoredBytes> => {
  const observedAt = new Date(first + day * 86_400_000 + nth).toISOString();
  const n = day * 37 + (nth % 11);
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
  return stored(codec, observed(seen), { revision: day, position: 0n, workspaceId: about.workspaceId });
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

/** Rows a second of the client alone: prepared batches, one after the other. */
const bareInsert = async (client: ClickHouseClient, version: number, rows: readonly string[]): Promise<number> => {
  await ensureTables(client, version);
  const began = performance.now();
  for (let at = 0; at < rows.length; at += bareBatch) await insert(client, version, rows.slice(at, at + bareBatch));
  const took = performance.now() - began;
  await dropTables(client, version);
  return (rows.length * 1_000) / took;
};

const insert = async (client: ClickHouseClient, version: number, values: readonly string[]): Promise<void> => {
  await client.insert({
    table: tableOf('observations', version),
    columns: observationColumns as [string, ...string[]],
    values: Readable.from([`${values.join('\n')}\n`], { objectMode: false }),
    format: 'TabSeparated',
    clickhouse_settings: { max_partitions_per_insert_block: '0' },
  });
};

interface World {
  readonly pool: ReturnType<typeof openPool>;
  readonly client: ClickHouseClient;
  /** Environment of our processes. */
  readonly env: Readonly<Record<string, string>>;
  /** Key of the workspace for the api's queries. */
  readonly key: string;
  readonly rounds: number;
}

interface Ran {
  readonly rate: number;
  /** Largest resident memory, MB: of the ingesting process, and of an api that answers meanwhile. */
  readonly mb: number;
  readonly apiMb: number;
  /** Until every marked day was recounted, milliseconds after the last observation. */
  readonly settledMs: number;
}

/** Pauses between two queries of the api, and between two checks of the progress: neither is measured. */
const [askMs, lookMs] = [500, 200];

/** Queries an api while observations come in. */
const askedApi = async (api: Process, key: string, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    const answer = await fetch(api.url('/v1/analytics/overview'), { headers: { authorization: `Bearer ${key}` } });
    if (answer.status !== 200) throw new Error(await answer.text());
    await answer.arrayBuffer();
    await delay(askMs);
  }
};

/** Our process as an operator starts it, measured from its first batch on: starting and joining do not count. */
const ours = async ({ pool, client, env, key }: World, version: number, events: number): Promise<Ran> => {
  await pool.query('update ops.analytics_versions set live = $1, newest = $1', [version]);
  await ensureTables(client, version);
  const count = async (): Promise<number> => {
    const answer = await client.query({
      query: `select sum(rows) as n from system.parts
        where active and database = currentDatabase() and table = '${tableOf('observations', version)}'`,
      format: 'JSONEachRow',
    });
    return Number((await answer.json<{ n: string }>())[0]?.n ?? 0);
  };
  const api = await start('services/api/main.ts', { env });
  const ingester = await start('projections/main.ts', { env: { ...env, PROJECTIONS: 'analytics' } });
  const over = new AbortController();
  const asking = askedApi(api, key, over.signal);
  let [mb, apiMb] = [0, 0];
  const watch = setInterval(() => {
    mb = Math.max(mb, residentMb(ingester.pid));
    apiMb = Math.max(apiMb, residentMb(api.pid));
  }, 50);
  let [from, begun] = [0, 0];
  for (let n = 0; n < events; n = await count()) {
    if (from === 0 && n > 0) [from, begun] = [n, performance.now()];
    await delay(lookMs);
  }
  const ended = performance.now();
  const isDirty = async (): Promise<boolean> => {
    const { rows } = await pool.query(
      'select exists (select 1 from ops.analytics_marked where version = $1) as dirty',
      [version],
    );
    return rows[0].dirty;
  };
  while (await isDirty()) await delay(50);
  const settledMs = performance.now() - ended;
  clearInterval(watch);
  over.abort();
  await asking;
  await ingester.stop();
  await api.stop();
  await dropTables(client, version);
  return { rate: ((events - from) * 1_000) / (ended - begun), mb, apiMb, settledMs };
};

/** A workspace, the environment of our processes, and a key of the api. */
const provision = async (databaseUrl: string, clickhouseUrl: string) => {
  const secretKey = `v1:${randomBytes(32).toString('base64')}`;
  const env = { DATABASE_URL: databaseUrl, SECRET_KEY: secretKey, PORT: '0', RATE_LIMIT_PER_MINUTE: '1000000' };
  const adapters = await openAdapters({ name: 'bench', config: readConfig(env), secrets: new Secrets(secretKey) });
  const store = new DomainStore(adapters.store, new EventCodec(adapters.dataKeys), adapters.log.partitions);
  const actor = { type: 'admin', id: 'bench' } as const;
  const operator: Operator = { store, pool: adapters.pool, actor, clock: Date.now, positions: new Map() };
  const owner = await createWorkspace(operator, { name: 'Bench', timezone: 'Europe/Berlin', ownerName: 'Owner' });
  const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
  const { secret: key } = await createApiKey(operator, {
    ...owner,
    ...{ name: 'bench', mode: 'test', scopes: [...scopes], expiresAt },
  });
  const projections = await start('projections/main.ts', { env });
  const api = await start('services/api/main.ts', { env });
  const headers = { authorization: `Bearer ${key}` };
  await until('the key works', async () => (await fetch(api.url('/v1/agency'), { headers })).status === 200);
  await projections.stop();
  await api.stop();
  return { adapters, key, env: { ...env, CLICKHOUSE_URL: clickhouseUrl } };
};

/** Fills the log of the event store, night after night, and makes the same rows for the bare clients. */
const fill = async (store: EventStore, count: number): Promise<readonly string[]> => {
  const workspaces = Array.from({ length: 100 }, () => randomUUID());
  const targets = Array.from({ length: count }, (_, n) => targetOf(n, workspaces));
  const rows: string[] = [];
  for (let day = 0; day < days; day += 1) {
    for (let at = 0; at < count; at += appendsAtOnce) {
      const night = await Promise.all(targets.slice(at, at + appendsAtOnce).map((target) => seenOn(target, day)));
      await Promise.all(
        night.map(({ stream, id, type, data, metadata }) =>
          store.append(stream, day === 0 ? 'none' : BigInt(day - 1), [
            { id, type, data, metadata, partitionKey: stream },
          ]),
        ),
      );
      for (const one of night) {
        const { line } = observationOf(await codec.decode({ ...one, position: BigInt(rows.length + 1) }));
        rows.push(line?.toString().trimEnd() ?? '');
      }
    }
  }
  return rows;
};

export const ingestion = async (quick: boolean): Promise<readonly BenchRow[]> => {
  const server = await sharedServer();
  const name = `bench_${randomUUID().slice(0, 8)}`;
  const admin = openPool({ url: server.url, max: 1 });
  await admin.query(`create database ${name}`);
  const url = Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
  const { embedded, remove } = await embeddedClickHouse(4 * 1024 ** 3);
  const client = openAnalytics({ url: embedded.url });
  const { adapters, env, key } = await provision(url, embedded.url);
  const { pool, store } = adapters;
  try {
    for (const line of await environment(url)) console.log(line);
    const world: World = { pool, client, env, key, rounds: quick ? 3 : 5 };
    const rows = await fill(store, quick ? 1_000 : 8_000);
    const embeddedLog = await fromEmbedded(world, rows);
    const kafka = await fromKafka(world, store, rows, name);
    return kafka === null ? embeddedLog : [...embeddedLog, kafka];
  } finally {
    await client.close();
    await remove();
    await adapters.close();
    await admin.query(`drop database if exists ${name} with (force)`);
    await admin.end();
    await server.stop();
  }
};

/** Prints one round as soon as it is over: all of them take a quarter of an hour. */
const say = (log: string, our = 0, limit = 0): void =>
  console.log(`  ${log}: ours ${Math.round(our)}, bare ${Math.round(limit)} observations/s`);

const fromEmbedded = async (world: World, rows: readonly string[]): Promise<readonly BenchRow[]> => {
  const made: Ran[] = [];
  const bare: number[] = [];
  for (let round = 1; round <= world.rounds; round += 1) {
    made.push(await ours(world, round, rows.length));
    bare.push(await bareInsert(world.client, 100 + round, rows));
    say('embedded log', made.at(-1)?.rate, bare.at(-1));
  }
  const [our, limit] = [rates(made.map((one) => one.rate)), rates(bare)];
  const most = (of: (one: Ran) => number): number => Math.round(Math.max(...made.map(of)));
  const [mb, apiMb] = [most((one) => one.mb), most((one) => one.apiMb)];
  const settled = most((one) => one.settledMs);
  return [
    {
      name: 'analytics: from the embedded log, one process',
      unit: 'observations/s',
      ours: our.median,
      limit: limit.median,
      goal: '≥ 30,000',
      ok: our.median >= 30_000,
      note: `ours ${our.text}, bare insert ${limit.text}; all days recounted at most ${settled} ms after; the process at most ${mb} MB`,
    },
    {
      name: 'analytics: an api that answers meanwhile',
      unit: 'MB',
      ours: apiMb,
      goal: '≤ 300',
      ok: apiMb <= 300,
      note: `largest resident memory seen, an overview every ${askMs} ms`,
    },
  ];
};

/** Bare: kafkajs takes and parses every message, discards it, and the client inserts prepared rows. */
const fromKafka = async (
  world: World,
  store: EventStore,
  rows: readonly string[],
  name: string,
): Promise<BenchRow | null> => {
  const broker = await kafkaBroker();
  if ('skip' in broker) {
    console.log(`from Kafka: skipped, ${broker.skip}`);
    return null;
  }
  try {
    const [brokers, prefix] = [broker.brokers, `${name}-`];
    const writer = await openKafkaLogWriter({ brokers, prefix, topics: ['metrics'] });
    for (let after: bigint | null = null; ; ) {
      const page: readonly RecordedEvent[] = await store.readAll({ after, limit: 2_000 });
      after = page.at(-1)?.position ?? null;
      if (after === null) break;
      await writer.send(page.flatMap((one) => toRecord(one, 12) ?? []).filter(({ topic }) => topic === 'metrics'));
    }
    await writer.close();
    const made: number[] = [];
    const bare: number[] = [];
    const env = { ...world.env, KAFKA_BROKERS: brokers.join(','), KAFKA_TOPIC_PREFIX: prefix };
    for (let round = 1; round <= world.rounds; round += 1) {
      made.push((await ours({ ...world, env }, 200 + round, rows.length)).rate);
      bare.push(await bareKafka(world, brokers, prefix, 300 + round, rows));
      say('Kafka', made.at(-1), bare.at(-1));
    }
    const [our, limit] = [rates(made), rates(bare)];
    return {
      name: 'analytics: from Kafka, one process',
      unit: 'observations/s',
      ours: our.median,
      limit: limit.median,
      goal: '≥ 0.7 of limit',
      ok: our.median >= 0.7 * limit.median,
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
  rows: readonly string[],
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
      for (const { value } of batch.messages) JSON.parse(String(value));
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
