import type { Context } from 'koa';
import type { Positions } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { BodyNotes } from '#schemas/http/clean.ts';
import type { Entry } from './entries.ts';
import type { Operation, Principal } from './operation.ts';

/** The state that the middleware of one request share, and that its log line shows. */
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
  unseen: new Map(),
  key: null,
  paidAhead: 0,
  positions: new Map(),
  pageOf: null,
});

const states = new WeakMap<object, CallState>();

export const begin = (ctx: Context, state: CallState): void => {
  states.set(ctx.req, state);
};

/** @throws when the first middleware did not run: a bug of this service. */
export const stateOf = (ctx: Pick<Context, 'req'>): CallState => {
  const state = states.get(ctx.req);
  if (state === undefined) throw new BrokenInvariant('the request has no state yet');
  return state;
};

/** The operation that was matched. @throws outside of its middleware. */
export const operationOf = (ctx: Pick<Context, 'req'>): Operation => {
  const { operation } = stateOf(ctx);
  if (operation === null) throw new BrokenInvariant('no operation was matched yet');
  return operation;
};
