import type { Positions } from '#runtime/eventing/domain-store.ts';
import { BodyNotes } from '#schemas/http/clean.ts';
import type { HeldBytes } from './bodies.ts';
import type { Entry } from './entries.ts';
import type { Operation, Principal } from './operation.ts';

/** What the steps of one call share, and its log line shows. */
export interface CallState {
  correlationId: string;
  /** The caller's address, in the form that allowances are counted by. */
  readonly address: string;
  operation: Operation | null;
  principal: Principal | null;
  params: unknown;
  query: unknown;
  body: unknown;
  entries: readonly Entry<unknown>[];
  /** Which members of the body nothing reads. */
  readonly notes: BodyNotes;
  /** The bytes of the body, until the end of the call; null: none are held. */
  held: HeldBytes | null;
  /** Ids that a limited credential may not see, by the ids in their place. */
  unseen: ReadonlyMap<string, string>;
  key: string | null;
  /** Requests that were counted for the body before it was read. */
  paidAhead: number;
  positions: Positions;
  /** The workspace that a page for people is about; null: none, or no page. */
  pageOf: string | null;
}

/** Of a call of which only its origin is known yet. */
export const newState = (correlationId: string, address: string): CallState => ({
  correlationId,
  address,
  operation: null,
  principal: null,
  params: {},
  query: {},
  body: {},
  entries: [],
  notes: new BodyNotes(),
  held: null,
  unseen: new Map(),
  key: null,
  paidAhead: 0,
  positions: new Map(),
  pageOf: null,
});

/** Of a call whose operation and caller are known. */
export type CalledState = CallState & { readonly operation: Operation };

export const calledState = (state: CallState, operation: Operation, principal: Principal | null): CalledState =>
  Object.assign(state, { operation, principal });
