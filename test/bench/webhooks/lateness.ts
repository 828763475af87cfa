/** 300 events a second on the clock, and how late each arrives: through standalone, and through the relay and Kafka. */
import { randomUUID } from 'node:crypto';
import { TourClient } from '#services/standalone/tour-client.ts';
import { kafkaBroker } from '#test/support/kafka.ts';
import type { BenchRow } from '../row.ts';
import { percentile, spread } from '../row.ts';
import { startStandalone } from '../standalone.ts';
import { cleanup } from './cleanup.ts';
import { Feed, type Paced } from './feed.ts';
import { Receiver } from './receiver.ts';
import { BenchWorld, openAppending, settled } from './world.ts';

const rate = 300;
const windows = 6;
const times = (quick: boolean) => ({ warmMs: quick ? 3_000 : 10_000, ms: quick ? 12_000 : 60_000 });

const ms = (value: number): string => value.toFixed(1);

/** The range over six stretches of the run. */
const ranges = (values: readonly number[], share: number): string => {
  const length = Math.ceil(values.length / windows);
  const each = Array.from({ length: windows }, (_, at) =>
    percentile(values.slice(at * length, (at + 1) * length), share),
  );
  const { min, max } = spread(each);
  return `${ms(min)} to ${ms(max)}`;
};

interface Goal {
  readonly share: 0.5 | 0.99;
  readonly goal?: number;
  readonly peer?: number;
}

const rowsOf = (through: string, { fromStart, fromAck }: Paced, goals: readonly Goal[]): BenchRow[] =>
  goals.flatMap(({ share, goal, peer }) =>
    (
      [
        ['from its acknowledgement', fromAck],
        ['from when its append was to begin', fromStart],
      ] as const
    ).map(([since, values]): BenchRow => {
      const value = percentile(values, share);
      return {
        name: `webhooks: ${rate}/s ${through}, p${share * 100} ${since}`,
        unit: 'ms',
        ours: value,
        ...(peer === undefined ? {} : { peer }),
        goal: goal === undefined ? 'shown' : `≤ ${goal}`,
        ok: goal === undefined || value <= goal,
        note: `${ranges(values, share)} in sixths of ${values.length.toLocaleString('en')} events, latest ${ms(Math.max(...values))}${peer === undefined ? '' : '; peer quoted, from its send'}`,
      };
    }),
  );

const measured = async (feed: Feed, receiver: Receiver, quick: boolean): Promise<Paced> => {
  const { warmMs, ms: forMs } = times(quick);
  await feed.openLoop(receiver, { rate, ms: warmMs });
  const paced = await feed.openLoop(receiver, { rate, ms: forMs });
  const { repeated } = await receiver.counts();
  if (repeated > 0) throw new Error(`${repeated} events arrived twice`);
  return paced;
};

/** Standalone with an endpoint registered over HTTP; events appended through the store of the same database. */
export const paced = async (quick: boolean): Promise<BenchRow[]> => {
  await using stack = cleanup();
  const receiver = await Receiver.start({ timed: true });
  stack.defer(() => receiver.stop());
  const [url = ''] = receiver.urls;
  const standalone = await startStandalone({ bare: true, env: { PRIVATE_TARGETS: new URL(url).host } });
  stack.defer(standalone.stop);
  const http = new TourClient(
    `http://127.0.0.1:${standalone.port}/v1`,
    standalone.nextKey(),
    new AbortController().signal,
  );
  const client = await http.post<{ id: string }>('/clients', { name: 'Bench', type: 'brand', defaultPostMode: 'now' });
  const endpoint = await http.post<{ id: string }>('/webhooks', { url, events: ['post.*'] });
  const { adapters, codec, store } = await openAppending(stack, standalone.databaseUrl, standalone.secretKey);
  await settled(adapters.pool, 1);
  const [born] = await store.readStream(`webhook-${endpoint.id}`);
  const feed = await Feed.open(adapters.store, codec, {
    workspaceId: born?.metadata.workspaceId ?? '',
    clientId: client.id,
  });
  return rowsOf('standalone', await measured(feed, receiver, quick), [
    { share: 0.5, goal: 3, peer: 2.6 },
    { share: 0.99, goal: 60, peer: 88 },
  ]);
};

/** Relay and webhooks on their own, with the events in Postgres. */
export const kafka = async (quick: boolean): Promise<BenchRow[]> => {
  await using stack = cleanup();
  const broker = await kafkaBroker();
  if ('skip' in broker) {
    const name = `webhooks: ${rate}/s through Kafka`;
    return [{ name, unit: 'ms', ours: Number.NaN, goal: '≤ 30', ok: false, note: broker.skip }];
  }
  stack.defer(() => broker.stop());
  const receiver = await Receiver.start({ timed: true });
  stack.defer(() => receiver.stop());
  const world = await BenchWorld.open(stack, {
    env: { KAFKA_BROKERS: broker.brokers.join(','), KAFKA_TOPIC_PREFIX: `b${randomUUID().slice(0, 8)}-` },
    besides: ['services/relay/main.ts'],
  });
  const workspaceId = randomUUID();
  const feed = await world.feed(workspaceId);
  await world.register(workspaceId, receiver.urls[0] ?? '');
  await settled(world.pool, 1);
  return rowsOf('through Kafka', await measured(feed, receiver, quick), [{ share: 0.5, goal: 30 }, { share: 0.99 }]);
};
