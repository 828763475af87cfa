import type { Pool } from 'pg';
import { within } from '#contracts/base/pause.ts';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { LanePosition, Log } from '#contracts/ports/log.ts';
import { nextOffsetsOf, topicsOf } from '../engine/positions.ts';

/** Whether a read model is further behind what is stored than its readers may believe it. */

/** Milliseconds by which the read model may be behind. */
const maxBehindMs = 5_000;
/** Milliseconds between two looks, and looks that are remembered: the read model reaches one of them in time, or is behind. */
const lookMs = 1_000;
const maxLooks = 8;
/** Milliseconds that a caller waits for a look that knows nothing recent. */
const waitMs = 1_000;

/** What was stored at an instant. */
interface Look {
  /** By `performance.now()`. */
  readonly at: number;
  /** Head of the store; null: the log is the store. */
  readonly head: bigint | null;
  /** Ends of the log once it had that head; null: the relay has not copied so far yet. */
  ends: readonly LanePosition[] | null;
}

export interface FreshnessSources {
  readonly pool: Pool;
  readonly store: Pick<EventStore, 'head'>;
  readonly log: Pick<Log, 'ends' | 'reset'>;
}

/** It looks while it is asked, at most once a second; several callers share a look. */
export class Freshness {
  readonly #sources: FreshnessSources;
  readonly #name: string;
  readonly #looks: Look[] = [];
  /** The read model has all that was stored at this instant of `performance.now()`. */
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isBehind = false;
  #looking: Promise<void> | null = null;

  /** @param name of the projection */
  constructor(sources: FreshnessSources, name: string) {
    this.#sources = sources;
    this.#name = name;
  }

  /**
   * Whether the read model may lack an event that was stored more than 5 s ago. A relay or a log that is away makes it
   * behind. A store that does not answer takes no event either: then the last answer stands.
   */
  async isBehind(): Promise<boolean> {
    const age = performance.now() - this.#lookedAt;
    if (age < lookMs) return this.#isBehind;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    if (age > maxBehindMs) await within(waitMs, this.#looking, () => undefined);
    return this.#isBehind;
  }

  async #look(): Promise<void> {
    const { store, log } = this.#sources;
    const at = performance.now();
    try {
      const head = log.reset === null ? null : ((await store.head()) ?? -1n);
      // The store has answered: what the log and the relay do not say from here on counts against the read model.
      await this.#compare({ at, head, ends: null }).catch(() => undefined);
      this.#isBehind = performance.now() - this.#confirmedAt > maxBehindMs;
    } catch {
      // The last answer stands.
    } finally {
      this.#lookedAt = performance.now();
    }
  }

  async #compare(look: Look): Promise<void> {
    const { pool, log } = this.#sources;
    this.#looks.push(look);
    if (this.#looks.length > maxLooks) this.#looks.splice(1, 1);
    const copied = log.reset === null ? null : await relayedUpTo(pool);
    const ends = await log.ends(topicsOf(this.#name));
    for (const one of this.#looks) {
      if (one.head === null || (copied !== null && copied >= one.head)) one.ends ??= ends;
    }
    const read = await nextOffsetsOf(pool, this.#name);
    const reached = this.#looks.findLastIndex(
      (one) => one.ends?.every(({ lane, nextOffset }) => (read.get(lane) ?? 0n) >= (nextOffset ?? 0n)) === true,
    );
    if (reached < 0) return;
    this.#confirmedAt = this.#looks[reached]?.at ?? this.#confirmedAt;
    this.#looks.splice(0, reached + 1);
  }
}

/** Commit position up to which the log has what the store has; null: no relay has written yet. */
export const relayedUpTo = async (pool: Pool): Promise<bigint | null> => {
  const { rows } = await pool.query<{ position: string | null }>({
    name: 'relayed-up-to',
    text: 'select position::text from ops.relay_checkpoints order by position desc nulls last limit 1',
  });
  const position = rows[0]?.position ?? null;
  return position === null ? null : BigInt(position);
};
