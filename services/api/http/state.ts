import type { Context } from 'koa';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { CallState } from '../call/state.ts';

/** The state of the call that a request makes, shared by the middleware of the request. */

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
