/** The job needs something that it cannot have now and is put off. Nobody is at fault: it counts against no file. */
export class Postponed extends Error {
  /** Milliseconds until the worker tries again. */
  readonly waitMs: number;

  constructor(reason: string, waitMs = 0) {
    super(reason);
    this.name = new.target.name;
    this.waitMs = waitMs;
  }
}
