import Router from '@koa/router';
import Koa from 'koa';
import { blobs } from './blobs.ts';
import type { Deps } from './deps.ts';
import { HeavyBodies } from './heavy-bodies.ts';
import { invitePages } from './invite-page.ts';
import { Keyring } from './keyring.ts';
import { answer } from './middleware/answer.ts';
import { role, scope, token } from './middleware/auth.ts';
import { correlation } from './middleware/correlation.ts';
import { idempotencyKey, input } from './middleware/input.ts';
import { problems } from './middleware/problems.ts';
import { Allowances, rateLimit, showAllowance } from './middleware/rate-limit.ts';
import { matched, unmatched } from './middleware/route.ts';
import { operations } from './operations.ts';
import { OwnWrites } from './own-writes.ts';
import { Sessions } from './sessions.ts';
import { Warnings } from './warnings.ts';

/** The whole api: what happens to a request, in order. */
export const createApp = (deps: Deps): Koa => {
  const app = new Koa();
  const keyring = new Keyring(deps.pool, deps.clock);
  const sessions = new Sessions(deps);
  const allowances = new Allowances(deps.rate);
  const heavyBodies = new HeavyBodies();
  const ownWrites = new OwnWrites(deps);
  const warnings = new Warnings(deps.pool);
  const router = new Router({ prefix: '/v1', exclusive: 'specificity', strict: true, sensitive: true });

  for (const operation of operations) {
    router.register(
      operation.path.replace(/\{(\w+)\}/g, ':$1'),
      [operation.method],
      [
        matched(operation),
        token(keyring, sessions, allowances),
        scope,
        role,
        rateLimit(allowances),
        input(heavyBodies),
        idempotencyKey,
        answer(deps, ownWrites, allowances, warnings),
      ],
    );
  }

  for (const middleware of deps.first ?? []) app.use(middleware);
  app.use(correlation(deps));
  app.use(showAllowance(allowances));
  app.use(problems(deps));
  app.use(blobs(deps, allowances));
  app.use(router.routes());
  app.use(invitePages(deps, allowances));
  app.use(unmatched);
  // What ends up here broke while the answer was on its way: the problem middleware has answered everything else.
  app.on('error', (error: unknown) => deps.logger.warn({ err: error }, 'connection broke'));
  return app;
};
