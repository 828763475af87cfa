import type { Context } from 'koa';
import { errors } from '#services/api/call/errors.ts';
import type { ProblemAnswer } from '#services/api/call/problems.ts';
import { challengeOf } from '#services/auth/protected-resource.ts';

/** Answers to requests that never reach the protocol, in the form in which its clients read errors. */

/** Codes of JSON-RPC: the text is no JSON; it is no request; of this server. */
const parseError = -32_700;
const invalidRequest = -32_600;
const refused = -32_000;

const rpcCode = (code: string, status: number): number => {
  if (code === 'invalid_json') return parseError;
  return status === 400 || status === 413 || status === 415 ? invalidRequest : refused;
};

interface RpcRefusal {
  readonly status: number;
  readonly rpc: number;
  readonly message: string;
  readonly code: string;
}

const write = (ctx: Context, { status, rpc, message, code }: RpcRefusal, correlationId: string): void => {
  ctx.status = status;
  ctx.type = 'application/json';
  ctx.body = JSON.stringify({
    jsonrpc: '2.0',
    id: null,
    error: { code: rpc, message, data: { code, correlationId } },
  });
};

/** A problem of the api, with the challenge that a client needs to get a token. */
export const refuse = (ctx: Context, mcpUrl: string, problem: ProblemAnswer, correlationId: string): void => {
  const { code, detail, errors: issues, headers } = problem;
  const { title, about } = errors[code];
  // A value that no store can hold is no request that the protocol could answer.
  const status = code === 'validation_failed' ? 400 : errors[code].status;
  ctx.set(headers);
  if (status === 401) {
    ctx.set('WWW-Authenticate', challengeOf(mcpUrl, { error: code === 'missing_token' ? null : 'invalid_token' }));
  }
  const shown = issues.slice(0, 3).map(({ path, message }) => `${path} ${message}`);
  const message = [`${title}.`, detail ?? about, ...shown].join(' ');
  write(ctx, { status, rpc: rpcCode(code, status), message, code }, correlationId);
};

export const refuseMethod = (ctx: Context, correlationId: string): void => {
  ctx.set('Allow', 'POST');
  const message = 'This server keeps no sessions and sends nothing of its own: it takes POST alone.';
  write(ctx, { status: 405, rpc: refused, message, code: 'method_not_allowed' }, correlationId);
};

export const refuseHost = (ctx: Context, correlationId: string): void =>
  write(
    ctx,
    { status: 421, rpc: refused, message: 'The MCP server has another host.', code: 'wrong_host' },
    correlationId,
  );

export const refuseOrigin = (ctx: Context, correlationId: string): void =>
  write(
    ctx,
    { status: 403, rpc: refused, message: 'Pages of this origin may not call the server.', code: 'origin_not_allowed' },
    correlationId,
  );
