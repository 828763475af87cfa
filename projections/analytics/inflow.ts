/** Observations within two seconds that are more than come in as they are made. */
const manyObservations = 1_000;
/** After this long without a batch the log's end was reached: longer than a batch takes. Milliseconds. */
const quietMs = 5_000;

/**
 * How fast observations come in to this process. Whether it catches up with the log shows in that and not in the size of
 * batches, which differs from log to log. Instants are milliseconds that never step back.
 */
export class Inflow {
  /** Observations of the second that began then, and of the one before it. */
  #began = 0;
  #now = 0;
  #before = 0;
  #heardAt = -Infinity;

  heard(observations: number, at: number): void {
    this.#heardAt = at;
    if (at < this.#began + 1_000) {
      this.#now += observations;
      return;
    }
    this.#before = at < this.#began + 2_000 ? this.#now : 0;
    [this.#began, this.#now] = [at, observations];
  }

  /** Whether more of the log seems to wait. */
  isBehind(at: number): boolean {
    return this.#now + this.#before >= manyObservations && at < this.#heardAt + quietMs;
  }
}
