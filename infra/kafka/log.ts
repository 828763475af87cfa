import type { Lane, LanePosition, Log, LogSubscription, SubscribeOptions } from '#contracts/ports/log.ts';
import { type Connection, connect, type KafkaOptions, laneOf } from './client.ts';
import { KafkaSubscription } from './subscription.ts';

/** Lanes are topic partitions. Kafka's group protocol assigns them to members. */
class KafkaLog implements Log {
  readonly partitions: number;
  readonly #connection: Connection;
  readonly #closing = new AbortController();
  readonly #open = new Set<LogSubscription>();

  constructor(connection: Connection) {
    this.#connection = connection;
    this.partitions = connection.partitions;
  }

  subscribe(options: SubscribeOptions): LogSubscription {
    const signal = AbortSignal.any([options.signal, this.#closing.signal]);
    const subscription = new KafkaSubscription(this.#connection, { ...options, signal });
    this.#open.add(subscription);
    subscription.done.catch(() => undefined).finally(() => this.#open.delete(subscription));
    return subscription;
  }

  laneOf(topic: string, partition: number): Lane {
    return laneOf(topic, partition);
  }

  async ends(topics: readonly string[]): Promise<readonly LanePosition[]> {
    const bounds = await this.#connection.bounds(topics);
    return [...bounds].map(([lane, { end }]) => ({ lane, nextOffset: end, position: null }));
  }

  readonly reset = async (): Promise<readonly string[]> => {
    const { topics, topicName } = this.#connection;
    const there = new Set(await this.#connection.admin((admin) => admin.listTopics()));
    const names = topics.map(topicName).filter((name) => there.has(name));
    if (names.length > 0) await this.#connection.admin((admin) => admin.deleteTopics({ topics: names }));
    return names;
  };

  async ping(): Promise<void> {
    await this.#connection.admin((admin) => admin.describeCluster());
  }

  /** Ends every subscription, then the connection. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([...this.#open].map((subscription) => subscription.done));
    await this.#connection.close();
  }
}

/** @throws LogError `partition_mismatch | unavailable` */
export const openKafkaLog = async (options: KafkaOptions): Promise<Log> => new KafkaLog(await connect(options));
