import type { Pool, PoolClient } from 'pg';
import { Gauge, type Registry } from '#runtime/process/metrics.ts';
import type { Logger, Readiness } from '#runtime/process/telemetry.ts';

/**
 * The clock for due work. Many machines compare due instants, so all of them use one clock, the database's: each
 * process measures the offset to its own monotonic clock again and again, and setting a machine's wall clock changes
 * nothing.
 */

export interface Clock {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Why this process may not claim work now; null = it may. */
  readonly fault: () => string | null;
}

/** For tests and processes without a database. */
export const wallClock: Clock = { now: () => Date.now(), fault: () => null };

/** Offsets of this machine's wall clock to the database's, milliseconds. */
const warnsBeyondMs = 5_000;
const claimsWithinMs = 60_000;

/** The most that two healthy clocks drift apart: the rate at which NTP slews a clock. */
const driftShare = 500e-6;
const renewEveryMs = 60_000;
/** After a round trip this short no further one is needed. Milliseconds. */
const tightMs = 5;
const maxSamples = 5;
/** Deadline of the answer. A later one says too little about the time. Milliseconds. */
const answerMs = 5_000;
/**
 * A jump of the wall clock against the monotonic clock of at least this: it was set, or the machine slept while the
 * monotonic clock stood still.
 */
const movedMs = 500;
const retryMs = 1_000;

/** Bounds of the database's clock minus the monotonic clock, as of the monotonic instant `at`. */
interface Bounds {
  readonly low: number;
  readonly high: number;
  readonly at: number;
}

/**
 * The intersection of both bounds. Where they contradict each other a clock was set in between, and the newer bounds
 * hold.
 */
const meet = (known: Bounds, fresh: Bounds): Bounds => {
  const drift = (fresh.at - known.at) * driftShare;
  const low = Math.max(known.low - drift, fresh.low);
  const high = Math.min(known.high + drift, fresh.high);
  return low <= high ? { low, high, at: fresh.at } : fresh;
};

export interface DatabaseClockOptions {
  readonly pool: Pool;
  readonly logger: Logger;
  readonly registry?: Registry;
  readonly readiness?: Readiness;
  /** False: the process claims no work, so a wall clock that is far off is only a warning. Default true. */
  readonly claims?: boolean;
  /** The wall clock, milliseconds. Default `Date.now`. */
  readonly wall?: () => number;
}

export class DatabaseClock implements Clock {
  readonly #options: DatabaseClockOptions;
  readonly #wall: () => number;
  #bounds: Bounds;
  /** The wall clock's offset at the last measurement. */
  #measuredOffset: number;
  #triedAt = performance.now();
  #renewing: Promise<void> | null = null;
  readonly #timer: NodeJS.Timeout;

  /** @throws when the database does not answer. */
  static async open(options: DatabaseClockOptions): Promise<DatabaseClock> {
    return new DatabaseClock(options, await measure(options.pool));
  }

  private constructor(options: DatabaseClockOptions, bounds: Bounds) {
    this.#options = options;
    this.#wall = options.wall ?? (() => Date.now());
    this.#bounds = bounds;
    this.#measuredOffset = this.offsetMs();
    this.#timer = setInterval(() => this.#renew(), renewEveryMs).unref();
    const { registry, readiness, claims = true } = options;
    readiness?.add('clock', async () => {
      const fault = this.fault();
      if (fault !== null && claims) throw new Error(fault);
      return Math.abs(this.offsetMs()) > warnsBeyondMs ? `warning: ${this.#words()}` : null;
    });
    if (registry === undefined) return;
    const offset = () => this.offsetMs() / 1_000;
    new Gauge({
      name: 'clock_offset_seconds',
      help: 'how far the clock of this machine is ahead of the database’s',
      registers: [registry],
      collect() {
        this.set(offset());
      },
    });
  }

  /** Never ahead of the database's clock, and behind it by at most the shortest round trip: so no work starts early. */
  readonly now = (): number => Math.floor(performance.now() + this.#bounds.low);

  readonly fault = (): string | null => {
    const offset = this.offsetMs();
    if (Math.abs(offset - this.#measuredOffset) > movedMs) this.#renewSoon();
    if (Math.abs(offset) <= claimsWithinMs) return null;
    return `${this.#words()}: this process claims no work until the clocks agree within ${claimsWithinMs / 1_000} s`;
  };

  /** How far this machine's wall clock is ahead of the database's, milliseconds. */
  offsetMs(): number {
    const { low, high } = this.#bounds;
    return this.#wall() - performance.now() - (low + high) / 2;
  }

  /** Measures again. Never rejects: without an answer the old bounds stay valid, widened by the drift of the clocks. */
  async renew(): Promise<void> {
    this.#renew();
    await this.#renewing;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewing;
  }

  #words(): string {
    const offset = this.offsetMs();
    const seconds = (Math.abs(offset) / 1_000).toFixed(1);
    return `the clock of this machine is ${seconds} s ${offset > 0 ? 'ahead of' : 'behind'} the database’s; set both by NTP`;
  }

  #renewSoon(): void {
    if (performance.now() - this.#triedAt >= retryMs) this.#renew();
  }

  #renew(): void {
    this.#triedAt = performance.now();
    this.#renewing ??= this.#measure().finally(() => {
      this.#renewing = null;
    });
  }

  async #measure(): Promise<void> {
    const { pool, logger } = this.#options;
    try {
      const before = this.#bounds;
      this.#bounds = meet(before, await measure(pool));
      this.#measuredOffset = this.offsetMs();
      const movedByMs = Math.round(this.#bounds.low - before.low);
      if (Math.abs(movedByMs) > movedMs)
        logger.warn({ movedByMs }, 'the database’s clock was set, or this machine slept');
    } catch (error) {
      logger.warn({ err: error }, 'the database’s clock could not be read; the last reading goes on');
    }
  }
}

/**
 * Up to five round trips, until one is short. The bounds of each hold, so their intersection is tighter than the best
 * one alone.
 */
const measure = async (pool: Pool): Promise<Bounds> => {
  const client = await pool.connect();
  let failed: Error | null = null;
  try {
    let bounds = await sample(client);
    for (let taken = 1; taken < maxSamples && bounds.high - bounds.low > tightMs; taken += 1) {
      bounds = meet(bounds, await sample(client));
    }
    return bounds;
  } catch (error) {
    failed = error instanceof Error ? error : new Error(String(error));
    throw error;
  } finally {
    // A connection that still owes an answer must not go back to the pool.
    client.release(failed ?? undefined);
  }
};

/** The server read its clock between the request and the answer, which gives both bounds. */
const sample = async (client: PoolClient): Promise<Bounds> => {
  // pg takes the limit per query; its types lack the member.
  const query = {
    name: 'clock',
    text: 'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
    values: [],
  };
  const sent = performance.now();
  const { rows } = await client.query<{ now: number }>({ ...query, query_timeout: answerMs } as typeof query);
  const receivedAt = performance.now();
  const [row] = rows;
  if (row === undefined) throw new Error('the database did not return its time');
  return { low: row.now - receivedAt, high: row.now - sent, at: receivedAt };
};
