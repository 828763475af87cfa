import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { Middleware } from 'koa';
import { type CommandContext, Unavailable, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { fingerprintOf, keyHmacOf } from '#runtime/eventing/idempotency.ts';
import { within } from '#runtime/process/within.ts';
import type { Commands } from '../actions.ts';
import { commandsOf } from '../commands.ts';
import type { CallPatience, Deps } from '../deps.ts';
import { pageHeaders } from '../html.ts';
import { ifMatch } from '../if-match.ts';
import { isShort, jsonPieces } from '../json-pieces.ts';
import { type Answer, type Call, nounOf, type Pieces, type Principal } from '../operation.ts';
import type { OwnWrites } from '../own-writes.ts';
import { notFound } from '../refusal.ts';
import { operationOf, stateOf } from '../state.ts';
import type { Warnings } from '../warnings.ts';
import { namesOther } from './client-limits.ts';
import type { Allowances } from './rate-limit.ts';

interface Answering {
  readonly deps: Deps;
  readonly ownWrites: OwnWrites;
  readonly allowances: Allowances;
  readonly warnings: Warnings;
  readonly patience: CallPatience;
}

/** The principal of operations without a token: their handlers do not read it. */
const nobody: Principal = {
  kind: 'apikey',
  id: '',
  memberId: '',
  role: 'viewer',
  scopes: [],
  mode: 'test',
  workspaceId: '',
  liveWorkspaceId: '',
  clientIds: null,
  actor: { type: 'service', id: 'nobody' },
};

async function* enveloped({ head, items, tail }: Pieces, meta: unknown): AsyncGenerator<string> {
  yield `{"data":${head}`;
  let comma = '';
  for (const item of items()) {
    if (comma !== '') yield comma;
    comma = ',';
    yield* jsonPieces(item);
    await setImmediate();
  }
  yield `${tail},"meta":${JSON.stringify(meta)}}`;
}

/** Whether any part of the answer names a client that its caller may not see. */
const showsOther = async (made: Answer, clientIds: readonly string[]): Promise<boolean> => {
  if ('json' in made) return namesOther(JSON.parse(made.json), clientIds);
  if ('data' in made) return namesOther(made.data, clientIds);
  if (!('items' in made)) return false;
  for (const item of made.items()) {
    if (namesOther(item, clientIds)) return true;
    await setImmediate();
  }
  return false;
};

/** A long text is written while it is sent. */
const written = (value: object): string | Readable =>
  isShort(value) ? JSON.stringify(value) : Readable.from(jsonPieces(value));

const tooLate = (): never => {
  throw new Unavailable('The stores behind this call did not answer in time.');
};

/** Makes the call and its answer: envelope, ETag, consistency token. */
export const answer =
  ({ deps, ownWrites, allowances, warnings, patience }: Answering): Middleware =>
  async (ctx) => {
    const operation = operationOf(ctx);
    const { correlationId, principal: known, params, query, body, entries, unseen, key, positions } = stateOf(ctx);
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
      giveUpAt: performance.now() + patience.appendMs,
      ...(key === null ? {} : { keyHmac: keyHmacOf(deps.secrets, workspaceId, key), fingerprint }),
    };
    const asking: Omit<Call, keyof Commands> = {
      deps,
      principal,
      workspaceId,
      params,
      query,
      body,
      entries,
      asSent: (id) => unseen.get(id) ?? id,
      key,
      fingerprint,
      correlationId,
      now,
      context,
      positions,
      guard: operation.ifMatch === true ? ifMatch(ctx.headers['if-match']) : () => undefined,
      accepts: (...types) => ctx.accepts(...types) as string | false,
      behind: (topics, readers) => ownWrites.behind(principal.id, ctx.get('X-Consistency-Token'), topics, readers),
      charge: (requests) => allowances.owe(ctx, requests),
    };
    try {
      const call: Call = { ...asking, ...commandsOf(asking, operation) };
      const work: Promise<Answer> = operation.handle(call as Call<never, never, never>);
      const made = await within(patience.callMs, work, tooLate);
      if (principal.clientIds !== null && (await showsOther(made, principal.clientIds))) {
        deps.logger.error(
          { operation: operation.id, correlationId },
          'an answer named a client beyond the limit of its caller',
        );
        throw notFound(nounOf(operation));
      }
      ctx.status = 200;
      if ('raw' in made) {
        if (made.raw.type === 'text/html') ctx.set(pageHeaders);
        ctx.body = made.raw.body;
        ctx.type = made.raw.type;
        return;
      }
      if ('items' in made) {
        const { warnings: told = [] } = made;
        const meta = told.length === 0 ? { correlationId } : { correlationId, warnings: told };
        ctx.body = Readable.from(enveloped(made, meta));
        if (made.replayed === true) ctx.set('Idempotent-Replayed', 'true');
        ctx.type = 'application/json';
        return;
      }
      const own = 'page' in made || 'json' in made ? [] : (made.warnings ?? []);
      const data = (): unknown => ('json' in made ? JSON.parse(made.json) : made.data);
      const warned = operation.method === 'GET' ? await warnings.of(workspaceId, data) : own;
      const meta = warned.length === 0 ? { correlationId } : { correlationId, warnings: warned };
      if ('page' in made) {
        ctx.body = written({ data: made.data, page: made.page, meta });
      } else {
        ctx.body =
          'json' in made ? `{"data":${made.json},"meta":${JSON.stringify(meta)}}` : written({ data: made.data, meta });
        const tagged = operation.ifMatch === true || operation.etag === true;
        if (made.revision !== undefined && tagged) ctx.set('ETag', `"${made.revision}"`);
        if ('data' in made && made.replayed === true) ctx.set('Idempotent-Replayed', 'true');
      }
      ctx.type = 'application/json';
    } finally {
      // Runs after a refusal too, because the call may have stored events before the refusal.
      if (positions.size > 0) {
        ctx.set('X-Consistency-Token', ownWrites.remember(principal.id, positions));
      }
    }
  };
