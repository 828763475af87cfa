/**
 * The packed form of events (`infra/postgres/packing/`) beside zstd with a trained dictionary (peer) and the bytes as
 * they are (limit): processor time, disk, appends and reads of the same events through the Postgres event store.
 * `registerHooks` gives each contestant a store of its own whose `pack.ts` and `unpack.ts` are `packing/stand-ins.ts`.
 *
 * Run alone: node test/bench/packing.ts (QUICK=1 for the short form).
 */
import { randomBytes } from 'node:crypto';
import { registerHooks } from 'node:module';
import pg from 'pg';
import type { EventToAppend } from '#contracts/ports/event-store.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import type { Known } from '#infra/postgres/packing/form.ts';
import { pack } from '#infra/postgres/packing/pack.ts';
import { unpack } from '#infra/postgres/packing/unpack.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { type Append, streamsOf } from './packing/streams.ts';
import { type BenchRow, percentile, printRows, type Spread, spread } from './row.ts';

registerHooks({
  resolve: (specifier, context, next) => {
    const packing = new URL(context.parentURL ?? import.meta.url).searchParams.get('packing');
    if (packing === null || !specifier.startsWith('./')) return next(specifier, context);
    const isReplaced = /^\.\/packing\/(un)?pack\.ts$/.test(specifier);
    const file = isReplaced ? new URL('packing/stand-ins.ts', import.meta.url).href : specifier;
    return next(`${file}?packing=${packing}`, context);
  },
});

interface Contestant {
  readonly Store: typeof PostgresEventStore;
  readonly pack: typeof pack;
  readonly unpack: typeof unpack;
}

const standIn = async (packing: string): Promise<Contestant> => ({
  Store: (await import(`#infra/postgres/event-store.ts?packing=${packing}`)).PostgresEventStore,
  ...(await import(`./packing/stand-ins.ts?packing=${packing}`)),
});

const names = ['ours', 'limit', 'peer'] as const;
type Name = (typeof names)[number];
/** Of one contestant, by figure: a value a turn. */
type Figures = Map<string, number[]>;

const postsAtOnce = 8;
const callers = 64;
const pageEvents = 500;

const note = (figures: Figures, figure: string, value: number): void => {
  const values = figures.get(figure);
  if (values === undefined) figures.set(figure, [value]);
  else values.push(value);
};

/** Processor microseconds of this process. */
const processorOf = async (work: () => unknown): Promise<number> => {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
};

const inTurns = async <Item>(items: readonly Item[], width: number, work: (item: Item) => Promise<unknown>) => {
  const left = items.values();
  const worker = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: width }, worker));
};

const isObservation = ({ events: [event] }: Append): boolean => event?.type.endsWith('MetricsObserved') === true;

const packing = async (one: Contestant, kind: string, appends: readonly Append[], figures: Figures): Promise<void> => {
  const all = appends.flatMap(({ stream, partitionKey, workspace, events }) =>
    events.map(({ data, metadata }) => {
      const row: Known = { workspace, partitionKey, stream };
      return { data, metadata, row, shared: { ...row, stream: null } };
    }),
  );
  const packed: { readonly metadata: Buffer; readonly data: Buffer }[] = [];
  const into = await processorOf(() => {
    for (const { data, metadata, row, shared } of all)
      packed.push({ metadata: one.pack(metadata, shared), data: one.pack(data, row) });
  });
  const outOf = await processorOf(() => {
    for (const [at, { data, metadata }] of packed.entries()) {
      const event = all[at];
      if (event === undefined) break;
      if (!one.unpack(data, event.row).equals(event.data)) throw new Error('data came back as others');
      if (!one.unpack(metadata, event.shared).equals(event.metadata)) throw new Error('metadata came back as others');
    }
  });
  const bytes = packed.reduce((sum, { metadata, data }) => sum + metadata.length + data.length, 0);
  note(figures, `${kind}: data and metadata of an event, bytes`, bytes / all.length);
  note(figures, `${kind}: packing an event, µs of processor`, into / all.length);
  note(figures, `${kind}: unpacking an event, µs of processor`, outOf / all.length);
};

/** A POST is the append of the post, then those of its targets side by side; all others follow, each key in order. */
const appending = async (store: PostgresEventStore, appends: readonly Append[], figures: Figures): Promise<void> => {
  const append = ({ stream, first, events }: Append) =>
    store.append(stream, first === 0n ? 'none' : first - 1n, events as EventToAppend[]);
  const typeOf = ({ events: [event] }: Append) => event?.type;
  const byKey = [...Map.groupBy(appends, ({ partitionKey }) => partitionKey).values()];
  const posts = byKey.flatMap((own) => {
    const post = own.find((one) => typeOf(one) === 'PostScheduled');
    return post === undefined ? [] : [{ post, targets: own.filter((one) => typeOf(one) === 'TargetScheduled') }];
  });
  const early = new Set(posts.flatMap(({ post, targets }) => [post, ...targets]));
  const latencies: number[] = [];
  const start = performance.now();
  const used = await processorOf(async () => {
    await inTurns(posts, postsAtOnce, async ({ post, targets }) => {
      const begun = performance.now();
      await append(post);
      await Promise.all(targets.map(append));
      latencies.push(performance.now() - begun);
    });
    const rest = byKey.map((own) => own.filter((one) => !early.has(one)));
    await inTurns(rest, callers, async (own) => {
      for (const one of own) await append(one);
    });
  });
  const events = appends.reduce((sum, one) => sum + one.events.length, 0);
  note(figures, 'appends, events/s', (events / (performance.now() - start)) * 1_000);
  note(figures, 'an event appended, µs of processor', used / events);
  note(figures, 'appends of a POST with six targets, ms', percentile(latencies, 0.5));
  note(figures, 'appends of a POST with six targets, p99, ms', percentile(latencies, 0.99));
};

const reading = async (store: PostgresEventStore, appends: readonly Append[], figures: Figures): Promise<void> => {
  let bytes = 0;
  let events = 0;
  const start = performance.now();
  const used = await processorOf(async () => {
    for (let after: bigint | null = null; ; ) {
      const page = await store.readAll({ after, limit: pageEvents });
      for (const { position, data, metadata } of page) {
        after = position;
        bytes += data.length + metadata.length;
      }
      if (page.length === 0) break;
      events += page.length;
    }
  });
  note(figures, 'reading the log, events/s', (events / (performance.now() - start)) * 1_000);
  note(figures, 'an event read from the log, µs of processor', used / events);
  const streams = [...new Set(appends.map(({ stream }) => stream))].slice(0, 1_000);
  const latencies: number[] = [];
  await inTurns(streams, postsAtOnce, async (stream) => {
    const begun = performance.now();
    for (const { data, metadata } of await store.read(stream)) bytes += data.length + metadata.length;
    latencies.push(performance.now() - begun);
  });
  note(figures, 'reading a stream, ms', percentile(latencies, 0.5));
  if (bytes === 0) throw new Error('nothing was read');
};

/**
 * What Postgres makes of the same rows where it knows them as JSON. It compresses rows over 2 KB with its own pglz: the
 * embedded server is built without lz4.
 */
const sayAsJson = async (pool: pg.Pool, schema: string): Promise<void> => {
  await pool.query(
    `create table ${schema}.as_json as
     select position, stream, revision, id, type, convert_from(data, 'UTF8')::jsonb as data,
       convert_from(metadata, 'UTF8')::jsonb as metadata, created, topic, partition, partition_key
     from ${schema}.event_rows order by position`,
  );
  const { rows } = await pool.query(
    `select pg_table_size('${schema}.as_json') / count(*) as bytes from ${schema}.as_json`,
  );
  console.log(`disk of an event as jsonb: ${rows[0].bytes} bytes beside its indexes`);
};

const rowOf = (figure: string, figures: Readonly<Record<Name, Figures>>): BenchRow => {
  const [ours, limit, peer] = names.map((name) => spread(figures[name].get(figure) ?? [])) as [Spread, Spread, Spread];
  const range = ({ min, max }: Spread): string => `${min.toFixed(2)} to ${max.toFixed(2)}`;
  const unitAt = figure.lastIndexOf(', ');
  return {
    name: `packing: ${figure.slice(0, unitAt)}`,
    unit: figure.slice(unitAt + 2),
    ours: ours.median,
    limit: limit.median,
    peer: peer.median,
    goal: 'told',
    ok: true,
    note: `ours ${range(ours)}, plain ${range(limit)}, zstd ${range(peer)}`,
  };
};

const measure = async (url: string, appends: readonly Append[], rounds: number): Promise<BenchRow[]> => {
  const contestants: Readonly<Record<Name, Contestant>> = {
    ours: { Store: PostgresEventStore, pack, unpack },
    limit: await standIn('plain'),
    peer: await standIn('zstd'),
  };
  const figures: Readonly<Record<Name, Figures>> = { ours: new Map(), limit: new Map(), peer: new Map() };
  const kinds = { observations: appends.filter(isObservation), others: appends.filter((one) => !isObservation(one)) };
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  // The first round warms up.
  for (let round = 0; round <= rounds; round += 1) {
    const order = round % 2 === 0 ? names : names.toReversed();
    for (const name of order) {
      const into: Figures = round === 0 ? new Map() : figures[name];
      const schema = `${name}_${round}`;
      const store = await contestants[name].Store.open({ url, schema });
      for (const [kind, some] of Object.entries(kinds)) await packing(contestants[name], kind, some, into);
      await appending(store, appends, into);
      await reading(store, appends, into);
      await store.close();
      const { rows } = await pool.query(
        `select pg_table_size('${schema}.event_rows') / count(*)::float8 as rows,
           pg_indexes_size('${schema}.event_rows') / count(*)::float8 as indexes from ${schema}.event_rows`,
      );
      note(into, 'disk of an event, bytes', rows[0].rows);
      note(into, 'disk of an event in indexes, bytes', rows[0].indexes);
      if (name === 'limit' && round === rounds) await sayAsJson(pool, schema);
      await pool.query(`drop schema ${schema} cascade`);
    }
  }
  await pool.end();
  return [...figures.ours.keys()].map((figure) => rowOf(figure, figures));
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const appends = await streamsOf(quick ? 20 : 120, quick ? 5 : 25);
  const count = (some: readonly Append[]): number => some.reduce((sum, { events }) => sum + events.length, 0);
  console.log(
    `${count(appends)} events in ${appends.length} appends, ${count(appends.filter(isObservation))} of them observations`,
  );
  const server = await sharedServer();
  const name = `bench_${randomBytes(6).toString('hex')}`;
  const admin = new pg.Pool({ connectionString: server.url, max: 1 });
  try {
    await admin.query(`create database ${name}`);
    const url = new URL(server.url);
    url.pathname = `/${name}`;
    return await measure(url.href, appends, quick ? 3 : 7);
  } finally {
    await admin.query(`drop database if exists ${name} with (force)`);
    await admin.end();
    await server.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));
