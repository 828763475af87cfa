/** Running jobs, counted by each key that a job counts against. */
export class RunningCounts {
  readonly #counts = new Map<string, number>();
  #total = 0;

  /** @param running the keys of each running job */
  constructor(running: Iterable<readonly string[]> = []) {
    for (const keys of running) this.add(keys);
  }

  get total(): number {
    return this.#total;
  }

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(keys: readonly string[]): void {
    this.#total += 1;
    for (const key of keys) this.#counts.set(key, this.of(key) + 1);
  }

  remove(keys: readonly string[]): void {
    this.#total -= 1;
    for (const key of keys) {
      const left = this.of(key) - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    }
  }

  copy(): RunningCounts {
    const copy = new RunningCounts();
    for (const [key, count] of this.#counts) copy.#counts.set(key, count);
    copy.#total = this.#total;
    return copy;
  }
}

export interface FairRules<Job> {
  /** Jobs that may run at once. */
  readonly slots: number;
  /** The keys that a job counts against, the most important first: its workspace, then perhaps its network. */
  readonly keysOf: (job: Job) => readonly string[];
  /** A slot goes to a job within the first share; if no job is within it, to one within the second; and so on. */
  readonly shares: readonly ((job: Job, running: RunningCounts) => boolean)[];
}

/**
 * The jobs that get the free slots. A job whose workspace has the fewest running jobs goes first; among equals its
 * second key decides, then its place among the candidates. The time grows with candidates × picks, so the search bounds
 * both.
 */
export const pickFairly = <Job>(
  candidates: Iterable<Job>,
  running: RunningCounts,
  { slots, keysOf, shares }: FairRules<Job>,
): readonly Job[] => {
  const counts = running.copy();
  const waiting = new Map<Job, readonly string[]>();
  for (const job of candidates) waiting.set(job, keysOf(job));
  const picked: Job[] = [];
  const firstWithin = (share: FairRules<Job>['shares'][number]): Job | null => {
    let best: Job | null = null;
    let bestKeys: readonly string[] = [];
    for (const [job, keys] of waiting) {
      if ((best !== null && !runsLess(keys, bestKeys, counts)) || !share(job, counts)) continue;
      best = job;
      bestKeys = keys;
    }
    return best;
  };
  while (counts.total < slots) {
    let next: Job | null = null;
    for (const share of shares) next ??= firstWithin(share);
    if (next === null) break;
    counts.add(waiting.get(next) ?? []);
    waiting.delete(next);
    picked.push(next);
  }
  return picked;
};

const runsLess = (keys: readonly string[], than: readonly string[], counts: RunningCounts): boolean => {
  for (const [at, key] of keys.entries()) {
    const difference = counts.of(key) - counts.of(than[at] ?? '');
    if (difference !== 0) return difference < 0;
  }
  return false;
};
