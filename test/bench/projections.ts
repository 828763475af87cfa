/**
 * Projections beside bare multi-row upserts of the same rows, and from Kafka in one process. The bare loop replays the
 * exact statements of the projector, with prepared parameters, into its own tables: no decoding, no position, no
 * loading, no recount. Run alone: `node test/bench/projections.ts` (QUICK=1 for the short form).
 */
import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import type { LogRecord } from '#contracts/ports/log.ts';
import { openKafkaLog } from '#infra/kafka/log.ts';
import { openKafkaLogWriter } from '#infra/kafka/writer.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { migrateSchema } from '#infra/postgres/schema.ts';
import { Projector } from '#projections/engine/apply.ts';
import { runProjections } from '#projections/engine/run.ts';
import { createTables, dropTables, migrate } from '#projections/engine/tables.ts';
import { groupOf, projectionOf } from '#projections/index.ts';
import { consume } from '#runtime/consuming/consume.ts';
import { EventCodec, type StoredBytes } from '#runtime/eventing/codec.ts';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { partitionOf } from '#schemas/topics.ts';
import { MemoryEventStore } from '#test/support/event-store/memory.ts';
import { HandLog } from '#test/support/hand-log.ts';
import { kafkaBroker } from '#test/support/kafka.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { type Given, instant, stored, TestKeys } from '#test/support/projecting.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { environment } from './environment.ts';
import { type BenchRow, printRows, spread } from './row.ts';

const batch = 500;
/** Milliseconds in which the events from Kafka must be applied. */
const kafkaMs = 180_000;
const projection = projectionOf('posts');
const keys = new TestKeys();
const codec = new EventCodec(keys);

interface Sample extends StoredBytes {
  readonly key: string;
}

const recordOf = ({ key, stream, id, type, revision, position, data, metadata }: Sample): LogRecord => ({
  topic: 'posts',
  partition: partitionOf(key, 12),
  key,
  stream,
  id,
  type,
  revision,
  position,
  // A broker deletes by this time.
  time: new Date().toISOString(),
  value: data,
  metadata,
});

/** So many posts with ten targets each: scheduled, then each target claimed and published. */
const samples = async (posts: number): Promise<{ births: Sample[]; changes: Sample[] }> => {
  const births: Sample[] = [];
  const changes: Sample[] = [];
  const workspaceId = randomUUID();
  let position = 0;
  for (let i = 0; i < posts; i += 1) {
    const post = randomUUID();
    const clientId = randomUUID();
    const targets = Array.from({ length: 10 }, (_, n) =>
      planned({ targetId: randomUUID(), accountId: randomUUID(), clientId, dueAt: instant((i * 10 + n) % 40_000) }),
    );
    let birth: Uint8Array | null = null;
    const body = postBody({ content: 'A caption of some length with a link https://example.com/a. '.repeat(4) });
    const createdBy = { type: 'apikey', id: randomUUID() };
    const add = async (into: Sample[], given: Omit<Given, 'at'>, revision: number): Promise<void> => {
      position += 1;
      const at = { revision, position: BigInt(position), workspaceId };
      const made = await stored(codec, { ...given, at: instant(i % 40_000) }, at);
      // One command creates a post and its targets with one metadata. Later events of a target are one command each.
      if (revision === 0) birth ??= made.metadata;
      into.push({ ...made, metadata: revision === 0 ? (birth ?? made.metadata) : made.metadata, key: post });
    };
    const plan = { number: 1, targets };
    await add(births, { stream: `post-${post}`, type: 'PostScheduled', data: { clientId, createdBy, body, plan } }, 0);
    for (const one of targets) {
      const stream = `target-${one.targetId}`;
      await add(births, { stream, type: 'TargetScheduled', data: { ...one, postId: post, postRevision: 0 } }, 0);
    }
    const claim = { attempt: 1, takeover: 0 };
    const out = { ...claim, externalId: 'e-1', permalink: 'https://x.example/1', publishedAt: instant(1) };
    for (const { targetId } of targets) {
      await add(changes, { stream: `target-${targetId}`, type: 'TargetPublishStarted', data: claim }, 1);
      await add(changes, { stream: `target-${targetId}`, type: 'TargetPublished', data: out }, 2);
    }
  }
  return { births, changes };
};

interface Sent {
  readonly text: string;
  readonly values: readonly unknown[];
}

export const run = async ({ quick }: { readonly quick: boolean }): Promise<readonly BenchRow[]> => {
  const rounds = quick ? 3 : 7;
  const postsARound = quick ? 600 : 2_000;
  const kafkaPosts = quick ? 3_000 : 20_000;
  const rows: BenchRow[] = [];
  const server = await sharedServer();
  const name = `bench_${randomUUID().slice(0, 8)}`;
  const admin = openPool({ url: server.url, max: 1 });
  await admin.query(`create database ${name}`);
  const url = Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
  const pool = openPool({ url, max: 8 });
  const per = (events: number, began: number): number => events / ((performance.now() - began) / 1_000);

  /**
   * Ours: consumed as from a log: decode, move the position, load, fold, upsert, recount. Keeps the statements for the
   * bare loop.
   */
  const ours = async (events: readonly Sample[], generation: number, sent: Sent[][]): Promise<number> => {
    const projector = new Projector(projection, generation);
    const log = new HandLog();
    const stop = new AbortController();
    const group = `bench-${generation}-${events[0]?.id}`;
    const { done } = consume({
      log,
      pool,
      group,
      topics: projection.topics,
      codec,
      signal: stop.signal,
      logger: createLogger('bench', 'warn'),
      apply: (tx, decoded) => {
        const kept: Sent[] = [];
        sent.push(kept);
        const query = (statement: { name: string; text: string; values: unknown[] }) => {
          if (/^(birth|upsert)-/.test(statement.name)) kept.push({ text: statement.text, values: statement.values });
          return tx.query(statement);
        };
        return projector.apply({ query } as unknown as PoolClient, decoded);
      },
    });
    const lane = 'bench';
    await log.handlers.assigned([lane]);
    const records = events.map(recordOf);
    const began = performance.now();
    for (let i = 0; i < records.length; i += batch) {
      const slice = records.slice(i, i + batch);
      const position = slice.at(-1)?.position ?? null;
      const next = records.slice(i + batch, i + 2 * batch);
      await log.handlers.batch({ lane, records: slice, nextOffset: BigInt(i + batch), position, next });
    }
    const rate = per(events.length, began);
    stop.abort();
    await done;
    return rate;
  };

  const bare = async (events: number, generation: number, to: number, batches: readonly Sent[][]): Promise<number> => {
    const client = await pool.connect();
    const began = performance.now();
    for (const statements of batches) {
      await client.query('begin');
      for (const { text, values } of statements) {
        await client.query({
          name: `bare-${to}-${text.includes('read.posts_v') ? 'p' : 't'}-${text.includes('returning') ? 'b' : 'u'}`,
          text: text.replaceAll(`_v${generation} `, `_v${to} `),
          values: [...values],
        });
      }
      await client.query('commit');
    }
    const rate = per(events, began);
    client.release();
    return rate;
  };

  try {
    for (const line of await environment(url)) console.log(line);
    await migrateSchema(pool);
    await migrate(pool);

    const figures = { oursBirth: [], bareBirth: [], oursChange: [], bareChange: [], decode: [] } as Record<
      string,
      number[]
    >;
    for (let round = 0; round <= rounds; round += 1) {
      const { births, changes } = await samples(postsARound);
      const [mine, theirs] = [100 + 2 * round, 101 + 2 * round];
      await withMigrationLock(pool, async (tx) => {
        for (const generation of [mine, theirs]) await createTables(tx, projection, generation);
      });
      const sent: { births: Sent[][]; changes: Sent[][] } = { births: [], changes: [] };
      const took = {
        oursBirth: await ours(births, mine, sent.births),
        bareBirth: await bare(births.length, mine, theirs, sent.births),
        oursChange: await ours(changes, mine, sent.changes),
        bareChange: await bare(changes.length, mine, theirs, sent.changes),
      };
      const began = performance.now();
      await codec.decodeAll(births);
      const decode = per(births.length, began);
      // The first round warms up.
      if (round > 0) for (const [key, value] of Object.entries({ ...took, decode })) figures[key]?.push(value);
      await withMigrationLock(pool, async (tx) => {
        for (const generation of [mine, theirs]) await dropTables(tx, projection, generation);
      });
    }
    const median = (key: string): number => spread(figures[key] ?? []).median;
    const noted = (key: string): string => {
      const { min, max } = spread(figures[key] ?? []);
      return `${Math.round(min).toLocaleString('en')}–${Math.round(max).toLocaleString('en')}`;
    };
    for (const [what, key] of [
      ['new posts and targets', 'Birth'],
      ['claimed and published', 'Change'],
    ] as const) {
      const [our, limit] = [median(`ours${key}`), median(`bare${key}`)];
      rows.push({
        name: `projections: ${what}`,
        unit: 'events/s',
        ours: our,
        limit,
        goal: '≥ 0.5 of limit',
        ok: our >= 0.5 * limit,
        note: `ours ${noted(`ours${key}`)}, bare ${noted(`bare${key}`)}; decoding alone ${Math.round(median('decode')).toLocaleString('en')}/s`,
      });
    }

    const broker = await kafkaBroker();
    if ('skip' in broker) console.log(`from Kafka: skipped, ${broker.skip}`);
    else {
      try {
        const options = { brokers: broker.brokers, prefix: `${name}-`, topics: ['posts'] };
        const writer = await openKafkaLogWriter(options);
        const { births } = await samples(kafkaPosts);
        // A lane asks the store whether it has what the log has.
        const store = new MemoryEventStore();
        const records: LogRecord[] = [];
        for (const birth of births) {
          const { position } = await store.append(birth.stream, 'none', [{ ...birth, partitionKey: birth.key }]);
          records.push(recordOf({ ...birth, position: position ?? birth.position }));
        }
        for (let i = 0; i < records.length; i += batch) await writer.send(records.slice(i, i + batch));
        await writer.close();
        const log = await openKafkaLog(options);
        const stop = new AbortController();
        const applied = async (): Promise<number> => {
          const { rows: found } = await pool.query(
            'select coalesce(sum(next_offset), 0)::int as n from ops.consumer_positions where consumer_group = $1',
            [groupOf('posts', 1)],
          );
          return found[0].n;
        };
        const running = runProjections({
          log,
          store,
          pool,
          codec,
          names: ['posts'],
          signal: stop.signal,
          logger: createLogger('bench', 'warn'),
        });
        const until = performance.now() + kafkaMs;
        const appliedAtLeast = async (wanted: number, pauseMs: number): Promise<number> => {
          for (;;) {
            const count = await applied();
            if (count >= wanted) return count;
            if (performance.now() > until) throw new Error(`${count} of ${records.length} events were applied`);
            await new Promise((resolve) => setTimeout(resolve, pauseMs));
          }
        };
        // From the first batch on: joining the group does not count.
        const first = await appliedAtLeast(1, 5);
        const began = performance.now();
        const cpu = process.cpuUsage();
        await appliedAtLeast(records.length, 20);
        const rate = per(records.length - first, began);
        const { user, system } = process.cpuUsage(cpu);
        stop.abort();
        await running.done;
        await log.close();
        rows.push({
          name: 'projections: from Kafka, one process',
          unit: 'events/s',
          ours: rate,
          goal: '≥ 12,000',
          ok: rate >= 12_000,
          note: `${((user + system) / (records.length - first)).toFixed(0)} µs of this process's CPU per event`,
        });
      } finally {
        await broker.stop();
      }
    }
    return rows;
  } finally {
    await pool.end();
    await admin.query(`drop database if exists ${name} with (force)`);
    await admin.end();
    await server.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));
