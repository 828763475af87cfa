/** More observations than this within two seconds mean that the process reads a backlog. */
const manyObservations = 1_000;
/** After this long without a batch the log's end was reached: longer than a batch takes. Milliseconds. */
const quietMs = 5_000;

/**
 * Measures how fast observations come in to this process. The rate shows whether it catches up with the log; the size
 * of batches does not, because it differs from log to log. Instants are monotonic milliseconds.
 */
export class Inflow {
  /** Start of the current second; below, the observations of that second and of the one before. */
  #began = 0;
  #now = 0;
  #before = 0;
  #observedAt = -Infinity;

  observed(observations: number, at: number): void {
    this.#observedAt = at;
    if (at < this.#began + 1_000) {
      this.#now += observations;
      return;
    }
    this.#before = at < this.#began + 2_000 ? this.#now : 0;
    [this.#began, this.#now] = [at, observations];
  }

  /** Whether more records of the log seem to wait. */
  isBehind(at: number): boolean {
    return this.#now + this.#before >= manyObservations && at < this.#observedAt + quietMs;
  }
}
