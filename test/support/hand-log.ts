import assert from 'node:assert/strict';
import type { Lane, LanePosition, Log, SubscribeOptions } from '#contracts/ports/log.ts';

/** A log under the test's control: it delivers lanes and batches when the test calls it. */
export class HandLog implements Log {
  readonly partitions = 4;
  readonly reset = async () => [];
  /** By lane: where the log ends. */
  readonly endOf = new Map<Lane, bigint>();
  #subscribed: SubscribeOptions | undefined;
  /** Lanes that the consumer wants to read again. */
  readonly #again: Lane[] = [];
  get again(): readonly Lane[] {
    return this.#again;
  }
  get handlers(): SubscribeOptions['handlers'] {
    assert.ok(this.#subscribed !== undefined);
    return this.#subscribed.handlers;
  }
  subscribe(options: SubscribeOptions) {
    this.#subscribed = options;
    const done = new Promise<void>((resolve) => options.signal.addEventListener('abort', () => resolve()));
    return { done, lanes: () => [], again: (lane: Lane) => void this.#again.push(lane) };
  }
  laneOf(topic: string, partition: number): Lane {
    return `${topic}-${partition}`;
  }
  async ends(): Promise<readonly LanePosition[]> {
    return [...this.endOf].map(([lane, nextOffset]) => ({ lane, nextOffset, position: null }));
  }
  async ping(): Promise<void> {}
  async close(): Promise<void> {}
}
