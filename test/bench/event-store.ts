/**
 * Postgres event store: single-event appends by 64 callers, beside emmett-postgresql doing the same (peer) and a bare
 * loop that inserts the same rows 200 at a time with no check at all (limit). One server, rounds interleaved.
 *
 * Run alone: node test/bench/event-store.ts (QUICK=1 for the short form).
 */

import { randomUUID } from 'node:crypto';
import { STREAM_DOES_NOT_EXIST } from '@event-driven-io/emmett';
import { getPostgreSQLEventStore } from '@event-driven-io/emmett-postgresql';
import pg from 'pg';
import { plainArray, textArray } from '#contracts/base/array-literals.ts';
import { tables } from '#infra/postgres/event-store.sql.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { topicOf } from '#schemas/events.ts';
import { partitionOf } from '#schemas/topics.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { environment } from './environment.ts';
import { type BenchRow, percentile, printRows, type Spread, spread } from './row.ts';

const callers = 64;
const bareBatch = 200;
const openLoopRate = 10_000;

const body = { text: 'A post of ordinary length, as people write them. '.repeat(4), at: '2026-01-01T00:00:00.000Z' };
const about = {
  workspaceId: randomUUID(),
  partitionKey: randomUUID(),
  actor: { type: 'key', id: randomUUID() },
  $correlationId: randomUUID(),
  commandId: randomUUID(),
};
const data = Buffer.from(JSON.stringify(body));
const metadata = Buffer.from(JSON.stringify(about));

interface Contestant {
  /** Works for so many milliseconds; resolves to events per second. */
  round(ms: number): Promise<number>;
  close(): Promise<void>;
}

/** Callers that each wait for their answer before the next append. */
const closedLoop = async (ms: number, appendOne: () => Promise<unknown>, latencies?: number[]): Promise<number> => {
  const start = performance.now();
  let count = 0;
  const caller = async () => {
    for (let now = performance.now(); now < start + ms; ) {
      await appendOne();
      const after = performance.now();
      latencies?.push(after - now);
      now = after;
      count++;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return (count / (performance.now() - start)) * 1_000;
};

/** Appends that start on the clock whether or not others were answered; milliseconds from the intended start. */
const openLoop = async (ms: number, rate: number, appendOne: () => Promise<unknown>): Promise<number[]> => {
  const latencies: number[] = [];
  const start = performance.now();
  const pending: Promise<void>[] = [];
  const total = Math.floor((rate * ms) / 1_000);
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, Math.ceil(((performance.now() - start) * rate) / 1_000));
    for (; sent < due; sent++) {
      const intended = start + (sent * 1_000) / rate;
      pending.push(
        appendOne().then(() => {
          latencies.push(performance.now() - intended);
        }),
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(pending);
  return latencies;
};

const appendOurs = (store: PostgresEventStore) => (): Promise<unknown> => {
  const id = randomUUID();
  return store.append(`post-${id}`, 'none', [{ id, type: 'PostCreated', data, metadata, partitionKey: id }]);
};

/** The same columns and indexes, one connection, one prepared statement, one transaction a batch, nothing checked. */
const bare = async (url: string): Promise<Contestant> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query('select coalesce(max(position), 0) as last from bare.event_rows');
  let position = BigInt(rows[0].last);
  const text = `
    insert into bare.event_rows (position, stream, revision, id, type, topic, partition, partition_key, data, metadata)
    select $1::int8 + e.n, e.stream, 0, e.id, 'PostCreated', e.topic, e.partition, e.id::text,
      substr($6::bytea, e.start, ${data.length}), substr($6::bytea, e.start + ${data.length}, ${metadata.length})
    from unnest($2::text[], $3::uuid[], $4::text[], $5::int4[], $7::int4[])
      with ordinality as e(stream, id, topic, partition, start, n)`;
  const insertBatch = async () => {
    const ids = Array.from({ length: bareBatch }, () => randomUUID());
    const streams = ids.map((id) => `post-${id}`);
    await client.query({
      name: 'bare',
      text,
      values: [
        position,
        textArray(streams),
        plainArray(ids),
        plainArray(streams.map(topicOf)),
        plainArray(ids.map((id) => partitionOf(id, 12))),
        Buffer.concat(ids.flatMap(() => [data, metadata])),
        plainArray(ids.map((_, i) => 1 + i * (data.length + metadata.length))),
      ],
    });
    position += BigInt(bareBatch);
  };
  return {
    async round(ms) {
      const start = performance.now();
      let count = 0;
      for (; performance.now() < start + ms; count += bareBatch) await insertBatch();
      return (count / (performance.now() - start)) * 1_000;
    },
    close: () => client.end(),
  };
};

const emmett = async (url: string): Promise<Contestant> => {
  const store = getPostgreSQLEventStore(url);
  await store.schema.migrate();
  const appendOne = () =>
    store.appendToStream(`post-${randomUUID()}`, [{ type: 'PostCreated', data: body, metadata: about }], {
      expectedStreamVersion: STREAM_DOES_NOT_EXIST,
    });
  return { round: (ms) => closedLoop(ms, appendOne), close: () => store.close() };
};

/** Rows before the measurement, so that the indexes have their depth. */
const preload = (url: string, schema: string, count: number): Promise<void> =>
  withClient(url, async (client) => {
    await client.query(
      `insert into ${schema}.event_rows (position, stream, revision, id, type, data, metadata, topic, partition, partition_key)
       select n, 'post-' || gen_random_uuid(), 0, gen_random_uuid(), 'PostCreated', $1, $2, 'posts', n % 12, 'key'
       from generate_series(1, $3::int8) n`,
      [data, metadata, count],
    );
    await client.query(`select setval('${schema}.positions', $1)`, [count]);
    await client.query(`vacuum analyze ${schema}.event_rows`);
    await client.query('checkpoint');
  });

const withClient = async (url: string, work: (client: pg.Client) => Promise<void>): Promise<void> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
};

const inThousands = ({ median, min, max }: Spread): string =>
  `${[median, min, max].map((value) => `${(value / 1_000).toFixed(1)}k`).join(' / ')}`;

export const run = async ({ quick }: { quick: boolean }): Promise<BenchRow[]> => {
  const server = await sharedServer();
  try {
    return await measure(server.url, quick);
  } finally {
    await server.stop();
  }
};

const measure = async (serverUrl: string, quick: boolean): Promise<BenchRow[]> => {
  const rounds = quick ? 3 : 5;
  const roundMs = quick ? 2_000 : 12_000;
  const rowsBefore = quick ? 50_000 : 1_000_000;
  for (const line of await environment(serverUrl)) console.log(line);
  const name = `bench_${randomUUID().replaceAll('-', '')}`;
  await withClient(serverUrl, async (client) => void (await client.query(`create database ${name}`)));
  const address = new URL(serverUrl);
  address.pathname = `/${name}`;
  const url = address.href;
  const store = await PostgresEventStore.open({ url });
  await withClient(url, async (client) => {
    await client.query(`create schema bare; ${tables('bare')}`);
  });
  await preload(url, 'es', rowsBefore);
  await preload(url, 'bare', rowsBefore);
  const limit = await bare(url);
  const peer = await emmett(url);
  try {
    const appendOne = appendOurs(store);
    const latencies: number[] = [];
    const figures = { ours: [] as number[], limit: [] as number[], peer: [] as number[] };
    for (const warm of [() => closedLoop(1_000, appendOne), () => limit.round(1_000), () => peer.round(1_000)])
      await warm();
    for (let round = 0; round < rounds; round++) {
      figures.ours.push(await closedLoop(roundMs, appendOne, latencies));
      figures.limit.push(await limit.round(roundMs));
      figures.peer.push(await peer.round(roundMs));
    }
    const open = await openLoop(quick ? 3_000 : 60_000, openLoopRate, appendOne);
    const ours = spread(figures.ours);
    const bareLoop = spread(figures.limit);
    const other = spread(figures.peer);
    const closed99 = percentile(latencies, 0.99);
    const open99 = percentile(open, 0.99);
    const state = `${rowsBefore.toLocaleString('en')} events before (emmett: empty)`;
    return [
      {
        name: `event store: append 1 event, ${callers} callers`,
        unit: 'events/s',
        ours: ours.median,
        limit: bareLoop.median,
        peer: other.median,
        goal: '≥ 0.6 limit, ≥ 5 peer',
        ok: ours.median >= 0.6 * bareLoop.median && ours.median >= 5 * other.median,
        note:
          `${(ours.median / bareLoop.median).toFixed(2)} of the bare loop, ${(ours.median / other.median).toFixed(1)} × emmett; ` +
          `median / min / max: ours ${inThousands(ours)}, bare ${inThousands(bareLoop)}, emmett ${inThousands(other)}; ${state}`,
      },
      {
        name: `event store: append p99, ${callers} callers`,
        unit: 'ms',
        ours: closed99,
        goal: '≤ 10 ms',
        ok: closed99 <= 10,
        note: `p50 ${percentile(latencies, 0.5).toFixed(2)}, p99.9 ${percentile(latencies, 0.999).toFixed(2)}`,
      },
      {
        name: `event store: append p99, open loop ${openLoopRate.toLocaleString('en')}/s`,
        unit: 'ms',
        ours: open99,
        goal: '≤ 10 ms',
        ok: open99 <= 10,
        note: `from the intended start; p50 ${percentile(open, 0.5).toFixed(2)}, p99.9 ${percentile(open, 0.999).toFixed(2)}`,
      },
    ];
  } finally {
    await Promise.all([store.close(), limit.close(), peer.close()]);
    await withClient(serverUrl, async (client) => void (await client.query(`drop database ${name} with (force)`)));
  }
};

if (import.meta.main) {
  const rows = await run({ quick: process.env.QUICK === '1' });
  printRows(rows);
  process.exitCode = rows.every((row) => row.ok) ? 0 : 1;
}
