/** The job cannot go on now and is rescheduled. This does not count as a failure of its file. */
export class Postponed extends Error {
  /** Milliseconds until the worker tries again. */
  readonly waitMs: number;

  constructor(reason: string, waitMs = 0) {
    super(reason);
    this.name = new.target.name;
    this.waitMs = waitMs;
  }
}
