/** Messages between parent and child of the embedded engine; the parent also hands over connections. */

export interface ToChild {
  readonly dir: string;
  readonly memoryBytes: number;
  readonly database: string;
  /** A connection without a request that has the credentials is closed after this time. Milliseconds. */
  readonly silentMs: number;
  /** After this time without a connection the child reports that it is idle. Milliseconds. */
  readonly idleMs: number;
}

export type FromChild =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly reason: string }
  | { readonly type: 'took'; readonly number: number }
  /** @property taken all connections handed over so far: when the parent has sent more, the child is not idle */
  | { readonly type: 'idle'; readonly taken: number };
