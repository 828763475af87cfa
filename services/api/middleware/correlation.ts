import { randomUUID } from 'node:crypto';
import type { Middleware } from 'koa';
import type { Deps } from '../deps.ts';
import { begin, stateOf } from '../state.ts';

/** A caller's own id: visible ASCII, at most 128. */
const acceptable = /^[\x21-\x7e]{1,128}$/;

/**
 * A path as it may be logged: what is longer than a uuid could be a token, whoever put it there, and what follows
 * /invite/ is one.
 */
const loggable = (path: string): string =>
  /^\/invite\//i.test(path)
    ? `${path.slice(0, '/invite/'.length)}…`
    : path
        .split('/')
        .map((segment) => (segment.length > 36 || /sk_|sess_/.test(segment) ? '…' : segment))
        .join('/');

/** Names every request, sets what every answer carries, and writes its one log line. No header or body is ever logged. */
export const correlation =
  ({ logger }: Deps): Middleware =>
  async (ctx, next) => {
    const sent = ctx.get('X-Correlation-Id');
    const correlationId = acceptable.test(sent) ? sent : randomUUID();
    const path = loggable(ctx.path);
    begin(ctx, {
      correlationId,
      operation: null,
      principal: null,
      params: {},
      query: {},
      body: {},
      key: null,
      positions: new Map(),
    });
    ctx.set('X-Correlation-Id', correlationId);
    ctx.set('Cache-Control', 'no-store');
    ctx.set('X-Content-Type-Options', 'nosniff');
    const started = performance.now();
    await next();
    const { operation, principal } = stateOf(ctx);
    logger.info(
      {
        correlationId,
        method: ctx.method,
        path,
        operation: operation?.id,
        status: ctx.status,
        ms: Math.round(performance.now() - started),
        credential: principal?.id,
        workspaceId: principal?.workspaceId,
      },
      'answered',
    );
  };
