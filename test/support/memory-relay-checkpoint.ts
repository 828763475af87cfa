import type { LastEvent } from '#runtime/consuming/same-history.ts';
import type { RelayCheckpoint } from '#services/relay/loop.ts';

/** The relay's row in memory, for tests that need no database. Its clock is the process's own. */
export class MemoryRelayCheckpoint implements RelayCheckpoint {
  last: LastEvent | null = null;
  epoch = 0n;
  saves = 0;
  #until = 0;

  async acquire(_holder: string, ttlMs: number) {
    if (performance.now() < this.#until) return null;
    this.#until = performance.now() + ttlMs;
    this.epoch++;
    return { epoch: this.epoch, last: this.last };
  }

  async renew(epoch: bigint, ttlMs: number): Promise<boolean> {
    if (epoch !== this.epoch) return false;
    this.#until = performance.now() + ttlMs;
    return true;
  }

  get position(): bigint | null {
    return this.last?.position ?? null;
  }

  async save(last: LastEvent, epoch: bigint): Promise<boolean> {
    if (epoch !== this.epoch) return false;
    this.last = last;
    this.saves++;
    return true;
  }

  async release(epoch: bigint): Promise<void> {
    if (epoch === this.epoch) this.#until = 0;
  }

  /** As if the holder's time had run out. */
  expire(): void {
    this.#until = 0;
  }
}
