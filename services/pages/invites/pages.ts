import Router from '@koa/router';
import type { Middleware } from 'koa';
import { within } from '#contracts/base/pause.ts';
import type { Allowances } from '#services/api/call/allowances.ts';
import type { CallPatience, Deps } from '#services/api/call/deps.ts';
import { notFound } from '#services/api/call/refusal.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { forPeople, show404, tooLate } from '../links.ts';
import { begin, redirectUriOf } from './begin.ts';
import { callback } from './callback.ts';
import { getChoice, postChoice } from './choice.ts';
import { getCode, postCode } from './code.ts';
import { checked, readForm } from './form.ts';
import { openInvite } from './open-invite.ts';
import { goOrShow, showInvite } from './show-invite.ts';
import { inviteTools } from './tools.ts';

/** What networks read from us before they send a browser back, such as the metadata of our client. */
const documents =
  (deps: Deps, allowances: Allowances): Middleware =>
  async (ctx) => {
    await allowances.of(stateOf(ctx)).spend(ctx, 1);
    const { origin } = new URL(redirectUriOf(deps));
    const ways = Object.values(deps.live?.connectors ?? {}).flat();
    const found = ways.flatMap((way) => {
      const all = way.kind === 'consent' ? (way.documents?.(origin) ?? {}) : {};
      return Object.entries(all).filter(([path]) => path === ctx.params.document);
    });
    const [document] = found;
    if (document === undefined) throw notFound('document');
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Cache-Control', 'public, max-age=300');
    ctx.body = JSON.stringify(document[1]);
    ctx.type = 'application/json';
  };

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
