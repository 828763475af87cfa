import Router from '@koa/router';
import Koa, { type Middleware } from 'koa';
import { metadataOf } from '#services/auth/protected-resource.ts';
import { Allowances, rateLimit, showAllowance } from './call/allowances.ts';
import { BodyBudget, HeavyBodies } from './call/bodies.ts';
import { invokerOf } from './call/call.ts';
import { openToLimited, withinClients } from './call/client-limits.ts';
import type { CallPatience, Deps } from './call/deps.ts';
import { OwnWrites } from './call/own-writes.ts';
import { problems } from './call/problems.ts';
import { Warnings } from './call/warnings.ts';
import { authenticator, role, scope, token } from './callers/authenticate.ts';
import { BearerTokens } from './callers/bearer-tokens.ts';
import { answer, heldNotice } from './http/answer.ts';
import { blobs } from './http/blobs.ts';
import { correlation } from './http/correlation.ts';
import { idempotencyKey, input } from './http/input.ts';
import { fixedPathsOf, matched, unmatched } from './http/route.ts';
import { operations } from './operations.ts';
import type { Part, PartTools } from './parts.ts';

/** The document by which an app that was refused finds the authorization server of the api. */
const resourceMetadata = (deps: Deps, allowances: Allowances): Middleware => {
  const router = new Router({ strict: true, sensitive: true });
  router.get('/.well-known/oauth-protected-resource/v1', async (ctx) => {
    const resource = deps.baseUrl();
    await allowances.spend(ctx, 1);
    const documentation = `${new URL(resource).origin}/docs`;
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Cache-Control', 'public, max-age=300');
    ctx.body = JSON.stringify(metadataOf({ resource, name: 'Postline API', authUrl: deps.authUrl(), documentation }));
    ctx.type = 'application/json';
  });
  return router.routes() as Middleware;
};

/**
 * Callers, and proxies in between, give up after some 30 s. A caller that gets 503 before that repeats the call under
 * the same key and finds what was stored. An append that ends gives the better answer, so a call waits for it this
 * long.
 */
const callPatience: CallPatience = { tokenMs: 5_000, appendMs: 15_000, callMs: 17_000 };

/** The whole api: the steps of a request, in order. */
export const createApp = (deps: Deps, parts: readonly Part[]): Koa => {
  const app = new Koa();
  const tokens = new BearerTokens(deps);
  const allowances = new Allowances(deps.rate);
  const { heavyBodies = new HeavyBodies(), bodyBudget = new BodyBudget(), patience = callPatience } = deps;
  const authenticate = authenticator(tokens, allowances, patience);
  const bodies = { heavyBodies, bodyBudget };
  const carryingOut = { deps, ownWrites: new OwnWrites(deps), warnings: new Warnings(deps.pool), patience };
  const router = new Router({ prefix: '/v1', exclusive: 'specificity', strict: true, sensitive: true });

  const fixedPaths = fixedPathsOf(operations);
  for (const operation of operations) {
    router.register(
      operation.path.replace(/\{(\w+)\}/g, ':$1'),
      [operation.method],
      [
        matched(operation, fixedPaths),
        token(authenticate),
        scope,
        role,
        openToLimited,
        rateLimit(allowances),
        input(bodies, allowances),
        idempotencyKey,
        withinClients(deps, patience),
        answer(carryingOut, allowances),
      ],
    );
  }

  for (const middleware of deps.first ?? []) app.use(middleware);
  app.use(correlation(deps));
  app.use(showAllowance(allowances));
  app.use(problems(deps));
  app.use(heldNotice(deps));
  const identify: PartTools['identify'] = (sent, resource) => tokens.identify(sent, resource);
  const invoke = invokerOf({ ...carryingOut, ...bodies, allowances, operations });
  for (const part of parts) app.use(part({ deps, allowances, patience, bodies, identify, authenticate, invoke }));
  app.use(blobs(deps, allowances));
  app.use(router.routes());
  app.use(resourceMetadata(deps, allowances));
  app.use(unmatched(fixedPaths));
  // The connection broke while the answer was sent: the problem middleware has answered every other error.
  app.on('error', (error: unknown) => deps.logger.warn({ err: error }, 'connection broke'));
  return app;
};
