import Router from '@koa/router';
import Koa, { type Middleware } from 'koa';
import { feedKeys } from '#projections/feed/sign.ts';
import { metadataOf } from '#services/auth/protected-resource.ts';
import { Allowances } from './call/allowances.ts';
import { BodyBudget, HeavyBodies } from './call/bodies.ts';
import { type CallTools, OwnWrites } from './call/call.ts';
import type { CallPatience, Deps } from './call/deps.ts';
import { invokerOf } from './call/invoke.ts';
import { Warnings } from './call/warnings.ts';
import { authenticator, BearerTokens } from './callers/bearer-tokens.ts';
import { blobs } from './http/blobs.ts';
import { correlation, heldNotice, problems, showAllowance, stateOf } from './http/every-request.ts';
import { fixedPathsOf, rest, unmatched } from './http/rest.ts';
import { operations } from './operations.ts';
import type { Part, PartTools, ServerDeps } from './parts.ts';

/** The document by which an app that was refused finds the authorization server of the api. */
const resourceMetadata = (deps: Deps, allowances: Allowances): Middleware => {
  const router = new Router({ strict: true, sensitive: true });
  router.get('/.well-known/oauth-protected-resource/v1', async (ctx) => {
    const resource = deps.baseUrl();
    await allowances.of(stateOf(ctx)).spend(ctx, 1);
    const documentation = `${new URL(resource).origin}/docs`;
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Cache-Control', 'public, max-age=300');
    ctx.body = JSON.stringify(metadataOf({ resource, name: 'Postline API', authUrl: deps.authUrl(), documentation }));
    ctx.type = 'application/json';
  });
  return router.routes() as Middleware;
};

/** The public keys of checkpoints, for auditors that have no key of the api. */
const publicFeedKeys = (deps: Deps, allowances: Allowances): Middleware => {
  const router = new Router({ strict: true, sensitive: true });
  router.get('/.well-known/postline-feed-keys.json', async (ctx) => {
    await allowances.of(stateOf(ctx)).spend(ctx, 1);
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Cache-Control', 'public, max-age=300');
    ctx.body = JSON.stringify({ keys: await feedKeys(deps.pool) });
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

/** The whole api: what every request passes, in order; `call/call.ts` has the steps of a call. */
export const createApp = (deps: ServerDeps, parts: readonly Part[]): Koa => {
  const app = new Koa();
  const tokens = new BearerTokens(deps);
  const allowances = new Allowances(deps.rate);
  const { heavyBodies = new HeavyBodies(), bodyBudget = new BodyBudget(), patience = callPatience } = deps;
  const authenticate = authenticator(tokens, allowances, patience);
  const bodies = { heavyBodies, bodyBudget };
  const remembering = { ownWrites: new OwnWrites(deps), warnings: new Warnings(deps.pool) };
  const tools: CallTools = { deps, allowances, patience, ...bodies, ...remembering };
  const router = new Router({ prefix: '/v1', exclusive: 'specificity', strict: true, sensitive: true });
  const fixedPaths = fixedPathsOf(operations);
  for (const operation of operations) {
    const path = operation.path.replace(/\{(\w+)\}/g, ':$1');
    router.register(path, [operation.method], [rest(operation, { tools, authenticate, fixedPaths })]);
  }

  for (const middleware of deps.first ?? []) app.use(middleware);
  app.use(correlation(deps));
  app.use(showAllowance(allowances));
  app.use(problems(deps));
  app.use(heldNotice(deps));
  // Before the parts: none of them has a path of an operation, so that a call passes none of their code.
  app.use(router.routes());
  const identify: PartTools['identify'] = (sent, resource) => tokens.identify(sent, resource);
  const invoke = invokerOf(tools, operations);
  for (const part of parts) app.use(part({ deps, allowances, patience, bodies, identify, authenticate, invoke }));
  app.use(blobs(deps, allowances));
  app.use(resourceMetadata(deps, allowances));
  app.use(publicFeedKeys(deps, allowances));
  app.use(unmatched(fixedPaths));
  // The connection broke while the answer was sent: the problem middleware has answered every other error.
  app.on('error', (error: unknown) => deps.logger.warn({ err: error }, 'connection broke'));
  return app;
};
