import Router from '@koa/router';
import type { Context } from 'koa';
import { within } from '#contracts/base/pause.ts';
import { notFound } from '#services/api/call/refusal.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { ownerOfDevice } from '#services/auth/people/sign-in.ts';
import { tooLate } from '#services/pages/links.ts';
import { readCookie } from './cookies.ts';
import type { Console, Visit, Visitor } from './deps.ts';
import { answerError } from './errors.ts';
import { formTokenOf, readForm, requireOwnForm } from './forms.ts';
import { appRoutes } from './pages/apps.ts';
import { consentRoutes } from './pages/consent.ts';
import { developerRoutes } from './pages/developers.ts';
import { homeRoutes } from './pages/home.ts';
import { joinRoutes } from './pages/join.ts';
import { linkRoutes } from './pages/links.ts';
import { secondFactorRoutes } from './pages/second-factor.ts';
import { securityRoutes } from './pages/security.ts';
import { signInRoutes } from './pages/sign-in.ts';
import { teamRoutes } from './pages/team.ts';
import { signInFor } from './paths.ts';
import type { Route } from './routes.ts';
import { goTo, showPage } from './show.ts';
import { memberOf, visitorOf } from './visitors.ts';

/** All pages: the steps of a request for one, in order. */

export interface ConsolePages {
  serve(ctx: Context): Promise<void>;
  /** For a path that nothing is at. */
  missing(ctx: Context): Promise<void>;
}

export const routes: readonly Route[] = [
  ...signInRoutes,
  ...linkRoutes,
  ...joinRoutes,
  ...homeRoutes,
  ...securityRoutes,
  ...secondFactorRoutes,
  ...teamRoutes,
  ...developerRoutes,
  ...appRoutes,
  ...consentRoutes,
];

const answer = async (it: Console, route: Route, ctx: Context): Promise<void> => {
  const visitor = await visitorOf(it, ctx);
  if (visitor === null && route.for !== 'anyone') {
    // A form whose session has ended was not carried out: its page says so after the sign-in.
    return goTo(ctx, signInFor(ctx.path));
  }
  const sessionId = visitor?.session.id ?? null;
  const form = route.method === 'POST' ? await readForm(ctx) : new URLSearchParams();
  if (route.method === 'POST') requireOwnForm(it, ctx, form, sessionId);
  const formToken = formTokenOf(it, ctx, sessionId);
  const params: Readonly<Record<string, string>> = ctx.params;
  const visit: Visit = { it, ctx, params, form, visitor, formToken };
  if (route.for === 'anyone') return route.answer(visit);
  if (visitor === null) return;
  const member = memberOf(visitor);
  if (member !== null) stateOf(ctx).principal = member.principal;
  if (route.for === 'person') return route.answer({ ...visit, visitor });
  if (member === null) return showNoWorkspace({ ...visit, visitor });
  return route.answer({ ...visit, visitor: member });
};

const showNoWorkspace = (visit: Visit<Visitor>): void =>
  showPage(visit, { view: 'no-workspace', title: 'You are in no workspace', status: 403 });

export const consolePages = (it: Console): ConsolePages => {
  const { allowances, patience } = it;
  const router = new Router({ strict: true, sensitive: true });
  for (const route of routes) {
    router.register(route.path, [route.method], (ctx) =>
      within(patience.callMs, answer(it, route, ctx as unknown as Context), tooLate),
    );
  }
  const serveRoute = router.routes();
  const nothing = () => {
    throw notFound('page');
  };
  /**
   * A browser that has signed somebody in spends what that person may, whatever strangers at its address spend: before
   * anything is read, a token of ours is all that shows it.
   */
  const spend = (ctx: Context): Promise<void> => {
    const owner = ownerOfDevice(it.deps, readCookie(it, ctx, 'device'));
    return owner === null
      ? allowances.of(stateOf(ctx)).spend(ctx, 1)
      : allowances.pages.spend(ctx, `person ${owner}`, 1);
  };
  const guarded = async (ctx: Context, work: () => Promise<unknown>): Promise<void> => {
    try {
      await spend(ctx);
      await work();
    } catch (error) {
      answerError(it, ctx, error);
    }
  };
  return {
    serve: (ctx) => guarded(ctx, () => serveRoute(ctx as never, async () => nothing())),
    missing: (ctx) => guarded(ctx, async () => nothing()),
  };
};
