/**
 * The EventStoreDB adapter beside the bare client, both against one server, turn by turn: a real one where there is one,
 * else the double in a process of its own.
 * Both store the same bytes as binary events, and both read bytes back. Run alone: `node test/bench/eventstoredb.ts`.
 */
import { randomUUID } from 'node:crypto';
import db from '@eventstore/db-client';
import type { EventToAppend } from '#contracts/ports/event-store.ts';
import { EventStoreDbStore } from '#infra/eventstoredb/event-store.ts';
import { eventStoreServer, measuredOn } from '#test/support/eventstoredb/server-handle.ts';
import { type BenchRow, printRows, spread } from './row.ts';

const data = Buffer.from(
  JSON.stringify({ text: 'x'.repeat(150), scheduledAt: '2026-01-31T08:00:00.000Z', mediaIds: [] }),
);
const metadata = Buffer.from(
  JSON.stringify({ workspaceId: randomUUID(), partitionKey: randomUUID(), schemaVersion: 1 }),
);

const event = (): EventToAppend => ({ id: randomUUID(), type: 'PostCreated', data, metadata, partitionKey: 'k' });

/** Events a second of `callers` that append one after another until all streams are written. */
const rate = async (
  streams: number,
  callers: number,
  perAppend: number,
  append: (stream: string) => Promise<unknown>,
) => {
  let left = streams;
  const started = performance.now();
  const call = async () => {
    while (left-- > 0) await append(`post-${randomUUID()}`);
  };
  await Promise.all(Array.from({ length: callers }, call));
  return (streams * perAppend * 1_000) / (performance.now() - started);
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const server = await eventStoreServer();
  const store = new EventStoreDbStore({ url: server.url });
  const bare = db.EventStoreDBClient.connectionString(server.url);
  try {
    const ours = (events: number) => (stream: string) =>
      store.append(stream, 'none', Array.from({ length: events }, event));
    const limit = (events: number) => (stream: string) =>
      bare.appendToStream(
        stream,
        Array.from({ length: events }, () =>
          db.binaryEvent({ id: randomUUID(), type: 'PostCreated', data, metadata: Uint8Array.from(metadata) }),
        ),
        { expectedRevision: 'no_stream' },
      );
    const rounds = quick ? 5 : 15;
    const rows: BenchRow[] = [];
    for (const { events, streams } of [
      { events: 1, streams: quick ? 4_000 : 20_000 },
      { events: 10, streams: quick ? 800 : 4_000 },
    ]) {
      await rate(streams / 2, 64, events, ours(events));
      await rate(streams / 2, 64, events, limit(events));
      const measured = { ours: [] as number[], limit: [] as number[] };
      for (let round = 0; round < rounds; round++) {
        const turns = [
          async () => void measured.ours.push(await rate(streams, 64, events, ours(events))),
          async () => void measured.limit.push(await rate(streams, 64, events, limit(events))),
        ];
        for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
      }
      rows.push(row(`EventStoreDB adapter, append of ${events}, 64 callers`, measured.ours, measured.limit));
    }
    rows.push(await reading(store, bare, rounds));
    return rows.map((one) => ({ ...one, note: `${one.note}; ${measuredOn(server)}` }));
  } finally {
    await Promise.all([store.close(), bare.dispose()]);
    await server.stop();
  }
};

/** All events through a subscription from the start until caught up. */
const reading = async (store: EventStoreDbStore, bare: db.EventStoreDBClient, rounds: number): Promise<BenchRow> => {
  const most = 60_000;
  const ours = async () => {
    const stop = new AbortController();
    let seen = 0;
    const started = performance.now();
    for await (const item of store.subscribe({ after: null, signal: stop.signal })) {
      if (item.kind === 'event' && ++seen === most) stop.abort();
      if (item.kind === 'caughtUp') stop.abort();
    }
    return (seen * 1_000) / (performance.now() - started);
  };
  const limit = async () => {
    let seen = 0;
    const started = performance.now();
    const subscription = bare.subscribeToAll({ filter: db.streamNameFilter({ regex: '^[^$]' }) });
    await new Promise<void>((resolve, reject) => {
      subscription.on('error', reject);
      subscription.on('caughtUp', resolve);
      subscription.on('data', () => {
        if (++seen === most) resolve();
      });
    });
    const result = (seen * 1_000) / (performance.now() - started);
    await subscription.unsubscribe();
    return result;
  };
  const measured = { ours: [] as number[], limit: [] as number[] };
  await ours();
  await limit();
  for (let round = 0; round < rounds; round++) {
    const turns = [
      async () => void measured.ours.push(await ours()),
      async () => void measured.limit.push(await limit()),
    ];
    for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
  }
  return row('EventStoreDB adapter, subscription from the start', measured.ours, measured.limit);
};

const row = (name: string, ours: readonly number[], limit: readonly number[]): BenchRow => {
  const [mine, bare] = [spread(ours), spread(limit)];
  const range = (s: { min: number; max: number }) => `${Math.round(s.min)} to ${Math.round(s.max)}`;
  return {
    name,
    unit: 'events/s',
    ours: mine.median,
    limit: bare.median,
    goal: '≥ 0.9 of the bare client',
    ok: mine.median >= 0.9 * bare.median,
    note: `ratio ${(mine.median / bare.median).toFixed(2)}; ours ${range(mine)}, bare ${range(bare)}`,
  };
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));
