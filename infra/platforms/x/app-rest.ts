import type { Failure } from '#schemas/target.ts';

/** A refusal that is about the app. */
export interface AppRefusal {
  /** Milliseconds since the epoch. */
  readonly until: number;
  readonly failure: Failure;
}

/** X caps what an app reads apart from what it posts. */
export type Resting = 'all' | 'reads';

/**
 * How long X refuses the whole app (no credit left, its cap reached): until then no account of it calls. Each process
 * finds it out by itself.
 */
export class AppRest {
  readonly #rests = new Map<Resting, AppRefusal>();

  begin(what: Resting, rest: AppRefusal): void {
    if (rest.until > (this.#rests.get(what)?.until ?? 0)) this.#rests.set(what, rest);
  }

  /** Null: the app may call. */
  at(now: number, isRead: boolean): AppRefusal | null {
    const rests = isRead ? [this.#rests.get('all'), this.#rests.get('reads')] : [this.#rests.get('all')];
    return rests.find((rest) => rest !== undefined && rest.until > now) ?? null;
  }
}
