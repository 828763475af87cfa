import type { Pool } from 'pg';
import { Batches } from '#contracts/base/batches.ts';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { stampOf } from '#projections/engine/positions.ts';
import type { Freshness } from '#projections/queries/freshness.ts';
import { countWithdrawals } from '#runtime/identity/withdrawals.ts';

/**
 * BearerTokens as the database has them, remembered for as long as nothing can have changed: the projection of
 * workspaces, keys and grants has applied nothing new, and nobody took power since.
 */

/**
 * A revoked credential stops working within a second: what was found is trusted only while the stamp stays the same,
 * which is asked for at least once in this many milliseconds.
 */
const believedMs = 750;
/**
 * What the streams decided is trusted for so long: the row of a withdrawal is there before its event, so they may have
 * been read in between.
 */
const judgedMs = 500;
/** How long a credential is remembered as unknown. A new one is refused for at most this long. */
const absentMs = 100;
const maxRemembered = 10_000;

/** The position of the projection with the number of withdrawals, and when they were asked for. */
interface Asked {
  readonly value: string;
  readonly isBehind: boolean;
  readonly asked: number;
}

/** One for all kinds of credentials of a process. */
export class Stamp {
  readonly #pool: Pool;
  readonly #freshness: Pick<Freshness, 'isBehind'> | undefined;
  #last: Asked = { value: '', isBehind: false, asked: Number.NEGATIVE_INFINITY };
  #asking: Promise<Asked> | null = null;

  /** @param freshness of the projection; absent: it is never behind */
  constructor(pool: Pool, freshness?: Pick<Freshness, 'isBehind'>) {
    this.#pool = pool;
    this.#freshness = freshness;
  }

  /** Whether the projection was further behind than it may be, when the stamp was asked for. */
  get isBehind(): boolean {
    return this.#last.isBehind;
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
    this.#asking ??= Promise.all([
      stampOf(this.#pool, 'workspaces'),
      countWithdrawals(this.#pool),
      this.#freshness?.isBehind() ?? false,
    ])
      .then(([position, withdrawals, isBehind]) => {
        this.#last = { value: `${position} ${withdrawals} ${isBehind}`, isBehind, asked };
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
  readonly #entries = new BoundedMap<string, Entry<V>>(maxRemembered);

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  get(name: string, stamp: string): Entry<V> | undefined {
    const entry = this.#entries.get(name);
    return entry?.stamp === stamp && entry.until > performance.now() ? entry : undefined;
  }

  set(name: string, entry: Entry<V>): void {
    this.#entries.set(name, entry);
  }
}

export class Stamped<V extends { readonly isJudged: boolean }> {
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
    const began = performance.now();
    const made: Entry<V> = { stamp, value: this.#batches.get(name), until: Number.POSITIVE_INFINITY };
    this.#asked.set(name, made);
    try {
      const known = await made.value;
      if (known !== null) this.#found.set(name, { ...made, until: untilOf(known, began) });
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
    const began = performance.now();
    for (const [name, value] of await this.#find(names)) {
      this.#found.set(name, { stamp, value: Promise.resolve(value), until: untilOf(value, began) });
    }
  }
}

const untilOf = ({ isJudged }: { readonly isJudged: boolean }, began: number): number =>
  isJudged ? began + judgedMs : Number.POSITIVE_INFINITY;
