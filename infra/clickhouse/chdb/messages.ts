/** What parent and child of the embedded engine tell each other, beside the connections that the parent hands over. */

export interface ToChild {
  readonly dir: string;
  readonly memoryBytes: number;
  readonly database: string;
}

export type FromChild = { readonly type: 'ready' } | { readonly type: 'failed'; readonly reason: string };
