import type { Pool } from 'pg';
import { Batches } from '#contracts/ports/batches.ts';
import { stampOf } from '#projections/positions.ts';

/**
 * BearerTokens as the database has them, remembered for as long as nothing can have changed: the projection of
 * workspaces, keys and grants has applied nothing new.
 */

/**
 * A revoked credential stops working within a second: what was found is trusted only while the projection has applied
 * nothing new, which is checked at least once in this many milliseconds.
 */
const believedMs = 750;
/** How long a credential is remembered as unknown. A new one is refused for at most this long. */
const absentMs = 100;
const maxRemembered = 10_000;

/** The position of the projection, and when it was asked for. */
interface Asked {
  readonly value: string;
  readonly asked: number;
}

/** One for all kinds of credentials of a process. */
export class Stamp {
  readonly #pool: Pool;
  #last: Asked = { value: '', asked: Number.NEGATIVE_INFINITY };
  #asking: Promise<Asked> | null = null;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** It is renewed after half of its time, so that calls rarely wait for a query. */
  async believed(): Promise<string> {
    const now = performance.now();
    const age = now - this.#last.asked;
    if (age < believedMs / 2) return this.#last.value;
    const next = this.#ask();
    if (age < believedMs) {
      next.catch(() => undefined);
      return this.#last.value;
    }
    // The result of a query that began too long ago is out of date.
    const stamp = await next;
    return now - stamp.asked < believedMs ? stamp.value : (await this.#ask()).value;
  }

  #ask(): Promise<Asked> {
    const asked = performance.now();
    this.#asking ??= stampOf(this.#pool, 'workspaces')
      .then((value) => {
        this.#last = { value, asked };
        return this.#last;
      })
      .finally(() => {
        this.#asking = null;
      });
    return this.#asking;
  }
}

interface Entry<V> {
  /** Read before the lookup: what was found is at least as new. */
  readonly stamp: string;
  readonly value: Promise<V | null>;
  readonly until: number;
}

/** The newest entries by name; the oldest is forgotten first. */
class Remembered<V> {
  readonly #entries = new Map<string, Entry<V>>();

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  get(name: string, stamp: string): Entry<V> | undefined {
    const entry = this.#entries.get(name);
    return entry?.stamp === stamp && entry.until > performance.now() ? entry : undefined;
  }

  set(name: string, entry: Entry<V>): void {
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > maxRemembered && oldest !== undefined) this.#entries.delete(oldest);
  }
}

export class Stamped<V> {
  readonly #stamp: Stamp;
  readonly #batches: Batches<V>;
  readonly #find: (names: readonly string[]) => Promise<ReadonlyMap<string, V>>;
  /**
   * Found and absent names have separate memories, because a stranger with many wrong tokens would otherwise push known
   * ones out.
   */
  readonly #found = new Remembered<V>();
  readonly #absent = new Remembered<V>();
  readonly #asked = new Map<string, Entry<V>>();

  constructor(stamp: Stamp, find: (names: readonly string[]) => Promise<ReadonlyMap<string, V>>) {
    this.#stamp = stamp;
    this.#find = find;
    this.#batches = new Batches(find);
  }

  /** Whether this process has found it, possibly in a state that has ended by now. Runs no query. */
  has(name: string): boolean {
    return this.#found.has(name);
  }

  async get(name: string): Promise<V | null> {
    const stamp = await this.#stamp.believed();
    const asked = this.#asked.get(name);
    const entry = this.#found.get(name, stamp) ?? this.#absent.get(name, stamp);
    if (entry !== undefined) return entry.value;
    if (asked?.stamp === stamp) return asked.value;
    const made: Entry<V> = { stamp, value: this.#batches.get(name), until: Number.POSITIVE_INFINITY };
    this.#asked.set(name, made);
    try {
      const known = await made.value;
      if (known !== null) this.#found.set(name, made);
      else this.#absent.set(name, { ...made, until: performance.now() + absentMs });
      return known;
    } finally {
      // A failure is not remembered: the next request repeats the query.
      if (this.#asked.get(name) === made) this.#asked.delete(name);
    }
  }

  /** Looks names up that nobody waits for, in one query. */
  async prepare(names: readonly string[]): Promise<void> {
    const stamp = await this.#stamp.believed();
    for (const [name, value] of await this.#find(names)) {
      this.#found.set(name, { stamp, value: Promise.resolve(value), until: Number.POSITIVE_INFINITY });
    }
  }
}
