/** What parent and child of the embedded engine tell each other, beside the connections that the parent hands over. */

export interface ToChild {
  readonly dir: string;
  readonly memoryBytes: number;
  readonly database: string;
  /** A connection is closed when none of its requests has had the credentials within so long. Milliseconds. */
  readonly silentMs: number;
  /** After so long without a connection it says that it is idle. Milliseconds. */
  readonly idleMs: number;
}

export type FromChild =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly reason: string }
  | { readonly type: 'took'; readonly number: number }
  /** @property taken of all connections that were handed over: when there are more by now, it is not idle after all. */
  | { readonly type: 'idle'; readonly taken: number };
