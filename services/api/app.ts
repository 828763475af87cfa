import Router from '@koa/router';
import Koa from 'koa';
import { approvalPages } from './approval-page.ts';
import { BearerTokens } from './bearer-tokens.ts';
import { blobs } from './blobs.ts';
import { BodyBudget } from './body-budget.ts';
import type { CallPatience, Deps } from './deps.ts';
import { docsPages } from './docs/pages.ts';
import { HeavyBodies } from './heavy-bodies.ts';
import { invitePages } from './invites/pages.ts';
import { invokerOf } from './invoke.ts';
import { answer } from './middleware/answer.ts';
import { authenticator, role, scope, token } from './middleware/auth.ts';
import { openToLimited, withinClients } from './middleware/client-limits.ts';
import { correlation } from './middleware/correlation.ts';
import { heldNotice } from './middleware/held-notice.ts';
import { idempotencyKey, input } from './middleware/input.ts';
import { problems } from './middleware/problems.ts';
import { Allowances, rateLimit, showAllowance } from './middleware/rate-limit.ts';
import { fixedPathsOf, matched, unmatched } from './middleware/route.ts';
import { operations } from './operations.ts';
import { OwnWrites } from './own-writes.ts';
import type { Part, PartTools } from './parts.ts';
import { resourceMetadata } from './resource-metadata.ts';
import { rootPage } from './root-page.ts';
import { Warnings } from './warnings.ts';

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
  const invoke = invokerOf({ ...carryingOut, ...bodies, allowances });
  for (const part of parts) app.use(part({ deps, allowances, patience, bodies, identify, authenticate, invoke }));
  app.use(blobs(deps, allowances));
  app.use(router.routes());
  app.use(invitePages(deps, allowances, patience));
  app.use(approvalPages(deps, allowances, patience));
  app.use(resourceMetadata(deps, allowances));
  app.use(docsPages(deps, allowances));
  app.use(rootPage(allowances));
  app.use(unmatched(fixedPaths));
  // The connection broke while the answer was sent: the problem middleware has answered every other error.
  app.on('error', (error: unknown) => deps.logger.warn({ err: error }, 'connection broke'));
  return app;
};
