import type { MemberVisitor, Visit, Visitor } from './deps.ts';

/** A page or a form: who may ask for it, and one function. */

interface At {
  readonly method: 'GET' | 'POST';
  /** With `:name` for a part that varies. */
  readonly path: string;
}

export type Route = At &
  (
    | { readonly for: 'anyone'; readonly answer: (visit: Visit) => Promise<void> | void }
    | { readonly for: 'person'; readonly answer: (visit: Visit<Visitor>) => Promise<void> | void }
    | { readonly for: 'member'; readonly answer: (visit: Visit<MemberVisitor>) => Promise<void> | void }
  );
