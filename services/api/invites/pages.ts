import Router from '@koa/router';
import type { Middleware } from 'koa';
import { within } from '#contracts/base/within.ts';
import type { CallPatience, Deps } from '../deps.ts';
import type { Allowances } from '../middleware/rate-limit.ts';
import { forPeople, show404, tooLate } from '../people.ts';
import { begin } from './begin.ts';
import { callback } from './callback.ts';
import { getChoice, postChoice } from './choice.ts';
import { getCode, postCode } from './code.ts';
import { documents } from './documents.ts';
import { checked, readForm } from './form.ts';
import { openInvite } from './open-invite.ts';
import { goOrShow, showInvite } from './show-invite.ts';
import { inviteTools } from './tools.ts';

/**
 * The pages behind a connect link, without a script. The token in the address of the link is the only permission; what
 * the guest has begun at a network belongs to their browser too, by a cookie.
 */
export const invitePages = (deps: Deps, allowances: Allowances, patience: CallPatience): Middleware => {
  const router = new Router({ strict: true, sensitive: true });
  const people = forPeople(deps, allowances);
  const tools = inviteTools(deps, patience);
  const openOf = (token: unknown) => within(patience.callMs, openInvite(deps, String(token)), tooLate);
  router.get('/invite/:token', people, async (ctx) => {
    const open = await openOf(ctx.params.token);
    return open === null ? show404(ctx) : showInvite(tools, ctx, open, null);
  });
  router.post('/invite/:token', people, async (ctx) => {
    const open = await openOf(ctx.params.token);
    if (open === null) return show404(ctx);
    const typed = await readForm(ctx);
    await goOrShow(tools, ctx, open, typed, async () => begin(tools, ctx, open, checked(deps, typed, open)));
  });
  router.get('/connect/callback', people, callback(tools));
  router.get('/connect/choice/:token', people, getChoice(tools));
  router.post('/connect/choice/:token', people, postChoice(tools));
  router.get('/connect/code/:token', people, getCode(tools));
  router.post('/connect/code/:token', people, postCode(tools));
  router.get('/connect/:document', documents(deps, allowances));
  return router.routes() as Middleware;
};
