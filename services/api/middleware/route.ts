import type { Context, Middleware } from 'koa';
import type { Operation } from '../operation.ts';
import { Refusal } from '../refusal.ts';
import { stateOf } from '../state.ts';

/** Method and path have matched. Accept is checked before anything else. */
export const matched =
  (operation: Operation): Middleware =>
  async (ctx, next) => {
    stateOf(ctx).operation = operation;
    const produced = ['application/json', ...(operation.alsoAs ?? [])];
    if (ctx.accepts(...produced) === false) {
      throw new Refusal('not_acceptable', `Answers are ${produced.join(' or ')}.`);
    }
    await next();
  };

interface Matched {
  readonly matched?: readonly { readonly methods: readonly string[] }[];
}

/** No operation has this method and path: 405 with Allow where the path has others, else 404. OPTIONS says which. */
export const unmatched: Middleware = async (ctx: Context & Matched) => {
  const allowed = [...new Set((ctx.matched ?? []).flatMap(({ methods }) => methods))].sort();
  if (allowed.length === 0) throw new Refusal('not_found', 'There is no such path.');
  const allow = [...allowed, 'OPTIONS'].join(', ');
  if (ctx.method !== 'OPTIONS') {
    throw new Refusal('method_not_allowed', `This path takes ${allow}.`, { headers: { Allow: allow } });
  }
  ctx.status = 204;
  ctx.set('Allow', allow);
};
