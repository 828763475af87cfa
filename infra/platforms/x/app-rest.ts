import type { Failure } from '#schemas/target.ts';

/** A refusal that is about the app. */
export interface AppRefusal {
  /** Milliseconds since the epoch. */
  readonly until: number;
  readonly failure: Failure;
}

/**
 * How long X refuses the whole app (no credit left, its cap reached): until then no account of it calls. Each process
 * finds it out by itself.
 */
export class AppRest {
  #rest: AppRefusal | null = null;

  begin(rest: AppRefusal): void {
    if (this.#rest === null || rest.until > this.#rest.until) this.#rest = rest;
  }

  /** Null: the app may call. */
  at(now: number): AppRefusal | null {
    return this.#rest !== null && this.#rest.until > now ? this.#rest : null;
  }
}
