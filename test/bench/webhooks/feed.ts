/** Events as the api would append them, made at the least cost: each the first of a new post, published as post.created. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { EventStore } from '#contracts/ports/event-store.ts';
import { envelopeIdOf } from '#domain/ids.ts';
import { envelopeBytes, subjectOf } from '#projections/webhooks/types.ts';
import type { EventCodec } from '#runtime/eventing/codec.ts';
import { postBody } from '#test/support/samples.ts';
import { monotonicMs } from './clock.ts';
import type { Receiver } from './receiver.ts';

const eventType = 'PostDrafted';
const publicType = 'post.created';
/** Of each body that is sent. The text gives way, so that an event may gain a member. */
export const bodyBytes = 1_024;
const words = 'A post of ordinary length, as people write them, with a link. '.repeat(20);
const media = 9;
const textOf = (characters: number): string => `${words.slice(0, characters)}${'ü'.repeat(12)}`;

/** Appends at one time: the store writes those that wait into one transaction. */
const callers = 128;

export interface Paced {
  /** Milliseconds to the arrival, of each event: from when its append was meant to begin, and from its acknowledgement. */
  readonly fromStart: readonly number[];
  readonly fromAck: readonly number[];
}

export interface Delivered {
  readonly events: number;
  /** Deliveries a second, from the first append to the last arrival. */
  readonly rate: number;
}

interface Made {
  readonly post: string;
  readonly instant: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  /** As the sender would send it. */
  readonly body: Buffer;
}

/** An event whose body has exactly `bodyBytes`. */
export const eventOf = async (
  codec: EventCodec,
  { workspaceId, clientId }: { readonly workspaceId: string; readonly clientId: string },
): Promise<Made> => {
  const mediaIds = Array.from({ length: media }, () => randomUUID());
  const [post, command, key] = [randomUUID(), randomUUID(), randomUUID()];
  const instant = new Date(0).toISOString();
  const stream = `post-${post}`;
  const withText = async (characters: number): Promise<Made> => {
    const encoded = await codec.encode(
      stream,
      {
        type: eventType,
        data: {
          clientId,
          createdBy: { type: 'apikey', id: key },
          body: postBody({ content: textOf(characters), mediaIds }),
        },
      },
      {
        workspaceId,
        partitionKey: post,
        actor: { type: 'apikey', id: key },
        $correlationId: command,
        $causationId: command,
        commandId: command,
        occurredAt: instant,
      },
    );
    const place = { stream, id: command, type: eventType, revision: 0n, position: 0n };
    const event = await codec.decode({ ...place, ...encoded });
    const { initial, evolve } = subjectOf('post');
    return { post, instant, ...encoded, body: envelopeBytes(publicType, event, evolve(initial, event)) };
  };
  const empty = await withText(0);
  const characters = bodyBytes - empty.body.length;
  if (characters < 0 || characters > words.length)
    throw new Error(`a body without its text has ${empty.body.length} bytes`);
  return withText(characters);
};

export class Feed {
  readonly #store: EventStore;
  readonly #data: Uint8Array;
  /** Around the partition key and the instant. */
  readonly #metadata: readonly [string, string, string];
  appended = 0;

  private constructor(store: EventStore, data: Uint8Array, metadata: readonly [string, string, string]) {
    this.#store = store;
    this.#data = data;
    this.#metadata = metadata;
  }

  static async open(
    store: EventStore,
    codec: EventCodec,
    { workspaceId, clientId = randomUUID() }: { readonly workspaceId: string; readonly clientId?: string },
  ): Promise<Feed> {
    const { post, instant, data, metadata } = await eventOf(codec, { workspaceId, clientId });
    const [before = '', rest = ''] = Buffer.from(metadata).toString('utf8').split(post);
    const [between = '', after = ''] = rest.split(instant);
    return new Feed(store, data, [before, between, after]);
  }

  /** Resolves, when it is stored, to the id that its envelope will have. */
  async append(): Promise<string> {
    const post = randomUUID();
    const id = randomUUID();
    const [before, between, after] = this.#metadata;
    const metadata = Buffer.from(`${before}${post}${between}${new Date().toISOString()}${after}`);
    const event = { id, type: eventType, data: this.#data, metadata, partitionKey: post };
    this.appended += 1;
    await this.#store.append(`post-${post}`, 'none', [event]);
    return envelopeIdOf(id, publicType);
  }

  /** So many at once, in no order. */
  async appendMany(events: number): Promise<void> {
    let left = events;
    const caller = async (): Promise<void> => {
      while (left-- > 0) await this.append();
    };
    await Promise.all(Array.from({ length: callers }, caller));
  }

  /**
   * Appends for so long as fast as events arrive, with at most `window` deliveries on their way. Resolves when all have
   * arrived.
   */
  async closedLoop(
    receiver: Receiver,
    { ms, endpoints, window }: { readonly ms: number; readonly endpoints: number; readonly window: number },
  ): Promise<Delivered> {
    const before = receiver.arrived;
    const start = monotonicMs();
    let events = 0;
    const caller = async (): Promise<void> => {
      while (monotonicMs() < start + ms) {
        while ((events + 1) * endpoints - (receiver.arrived - before) > window) await receiver.progress();
        events += 1;
        await this.append();
      }
    };
    await Promise.all(Array.from({ length: callers }, caller));
    await receiver.until(before + events * endpoints, 60_000);
    return { events, rate: (events * endpoints * 1_000) / (receiver.arrivedAt - start) };
  }

  /** Appends that begin on the clock, whether or not others were answered. Resolves when all have arrived. */
  async openLoop(receiver: Receiver, { rate, ms }: { readonly rate: number; readonly ms: number }): Promise<Paced> {
    const before = receiver.arrived;
    const total = Math.floor((rate * ms) / 1_000);
    const start = monotonicMs();
    const sent = await Promise.all(
      Array.from({ length: total }, async (_, at) => {
        const intended = start + (at * 1_000) / rate;
        await delay(Math.max(0, intended - monotonicMs()));
        const id = await this.append();
        return { id, intended, stored: monotonicMs() };
      }),
    );
    await receiver.until(before + total, 60_000);
    const times = await receiver.times();
    const arrivals = sent.map(({ id, intended, stored }) => {
      const at = times.get(id);
      if (at === undefined) throw new Error(`event ${id} did not arrive`);
      return { fromStart: at - intended, fromAck: at - stored };
    });
    return { fromStart: arrivals.map((one) => one.fromStart), fromAck: arrivals.map((one) => one.fromAck) };
  }
}
