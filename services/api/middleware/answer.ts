import type { Middleware } from 'koa';
import { type CommandContext, uuidv7 } from '#runtime/domain-store.ts';
import { fingerprintOf, keyHmacOf } from '#runtime/idempotency.ts';
import type { Deps } from '../deps.ts';
import { pageHeaders } from '../html.ts';
import { ifMatch } from '../if-match.ts';
import type { Answer, Call, Principal } from '../operation.ts';
import type { OwnWrites } from '../own-writes.ts';
import { operationOf, stateOf } from '../state.ts';
import type { Warnings } from '../warnings.ts';
import type { Allowances } from './rate-limit.ts';

/**
 * How long a call goes on asking a store that does not answer, milliseconds: callers and what stands between give up
 * after some 30 s, and a caller that is told 503 in time repeats with the same key. What was appended nevertheless the
 * repeat finds.
 */
const appendMs = 15_000;

/** Operations without a token act for nobody: their handlers look at no principal. */
const nobody: Principal = {
  kind: 'apikey',
  id: '',
  memberId: '',
  role: 'viewer',
  scopes: [],
  mode: 'test',
  workspaceId: '',
  liveWorkspaceId: '',
  actor: { type: 'service', id: 'nobody' },
};

/** Makes the call, and its answer: envelope, ETag, consistency token. */
export const answer =
  (deps: Deps, ownWrites: OwnWrites, allowances: Allowances, warnings: Warnings): Middleware =>
  async (ctx) => {
    const operation = operationOf(ctx);
    const { correlationId, principal: known, params, query, body, key, positions } = stateOf(ctx);
    const principal = known ?? nobody;
    const { workspaceId } = principal;
    const now = new Date(deps.clock()).toISOString();
    const asked = { operation: operation.id, params, query, body };
    const fingerprint = key === null ? '' : fingerprintOf(deps.secrets, workspaceId, asked);
    const context: CommandContext = {
      workspaceId,
      actor: principal.actor,
      correlationId,
      causationId: correlationId,
      commandId: uuidv7(),
      now,
      giveUpAt: performance.now() + appendMs,
      ...(key === null ? {} : { keyHmac: keyHmacOf(deps.secrets, workspaceId, key), fingerprint }),
    };
    const call: Call = {
      deps,
      principal,
      workspaceId,
      params,
      query,
      body,
      key,
      fingerprint,
      correlationId,
      now,
      context,
      positions,
      guard: operation.ifMatch === true ? ifMatch(ctx.get('If-Match')) : () => undefined,
      accepts: (...types) => ctx.accepts(...types) as string | false,
      behind: (topics, readers) => ownWrites.behind(principal.id, ctx.get('X-Consistency-Token'), topics, readers),
      charge: (requests) => allowances.owe(ctx, requests),
    };
    try {
      const made: Answer = await operation.handle(call as Call<never, never, never>);
      ctx.status = 200;
      if ('raw' in made) {
        if (made.raw.type === 'text/html') ctx.set(pageHeaders);
        ctx.body = made.raw.body;
        ctx.type = made.raw.type;
        return;
      }
      const warned = operation.method === 'GET' ? await warnings.of(workspaceId, made.data) : [];
      const meta = warned.length === 0 ? { correlationId } : { correlationId, warnings: warned };
      if ('page' in made) {
        ctx.body = JSON.stringify({ data: made.data, page: made.page, meta });
      } else {
        ctx.body = JSON.stringify({ data: made.data, meta });
        const tagged = operation.ifMatch === true || operation.etag === true;
        if (made.revision !== undefined && tagged) ctx.set('ETag', `"${made.revision}"`);
        if (made.replayed === true) ctx.set('Idempotent-Replayed', 'true');
      }
      ctx.type = 'application/json';
    } finally {
      // Also when it was refused half way: what was stored was stored.
      if (positions.size > 0) {
        ctx.set('X-Consistency-Token', ownWrites.remember(principal.id, positions));
      }
    }
  };
