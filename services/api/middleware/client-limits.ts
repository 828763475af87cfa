import type { Middleware } from 'koa';
import type { CallPatience, Deps } from '../deps.ts';
import { operationOf, stateOf } from '../state.ts';
import { requireOpenToLimited } from '../steps/access.ts';
import { limitToClients } from '../steps/client-limits.ts';

/** Refuses what concerns the whole workspace to a credential that is limited to clients. */
export const openToLimited: Middleware = (ctx, next) => {
  requireOpenToLimited(operationOf(ctx), stateOf(ctx).principal);
  return next();
};

/** Replaces the ids that a limited credential may not see. */
export const withinClients =
  (deps: Deps, patience: Pick<CallPatience, 'callMs'>): Middleware =>
  (ctx, next) =>
    limitToClients(deps, patience, stateOf(ctx))?.then(next) ?? next();
