import type { Context, Middleware } from 'koa';
import { grantableScopes } from '#schemas/grant.ts';
import { challengeOf } from '#services/auth/protected-resource.ts';
import type { Deps } from '../call/deps.ts';
import { errors } from '../call/errors.ts';
import { logFailure, type ProblemAnswer, problemBody, toProblem } from '../call/problems.ts';
import { stateOf } from './correlation.ts';

const isGrantable = (scope: string | null | undefined): boolean => grantableScopes.some((one) => one === scope);

const render = (ctx: Context, deps: Deps, problem: ProblemAnswer): void => {
  const { code, headers } = problem;
  const { status } = errors[code];
  ctx.status = status;
  ctx.set(headers);
  if (status === 401) {
    const error = code === 'missing_token' ? null : 'invalid_token';
    ctx.set('WWW-Authenticate', challengeOf(deps.baseUrl(), { error }));
  }
  const { principal, operation } = stateOf(ctx);
  if (code === 'insufficient_scope' && principal?.kind === 'oauth' && isGrantable(operation?.scope)) {
    // What it lacks and what it has: an app then asks for both, and loses nothing.
    const scope = [...new Set([...principal.scopes, operation?.scope])].join(' ');
    ctx.set('WWW-Authenticate', challengeOf(deps.baseUrl(), { error: 'insufficient_scope', scope }));
  }
  ctx.body = JSON.stringify(problemBody(deps, stateOf(ctx).correlationId, problem));
  ctx.type = 'application/problem+json';
};

/**
 * Turns every error into a problem; no other place knows HTTP statuses. An error that is no refusal is logged with its
 * correlation id, and answered as `internal` without the message.
 */
export const problems =
  (deps: Deps): Middleware =>
  async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const answer = toProblem(error);
      const { correlationId, operation } = stateOf(ctx);
      logFailure(deps, answer.code, { correlationId, operation: operation?.id }, error);
      render(ctx, deps, answer);
    }
  };
