import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { Context, Middleware } from 'koa';
import type { TObject } from 'typebox';
import { pageHeaders } from '#services/shell/page.ts';
import { type CallTools, call } from '../call/call.ts';
import { requireParameter } from '../call/input.ts';
import { isShort, jsonPieces } from '../call/json.ts';
import type { Answer, Operation, Pieces, Principal } from '../call/operation.ts';
import { badParameter, Refusal } from '../call/refusal.ts';
import { type CalledState, type CallState, calledState } from '../call/state.ts';
import type { BodyMeter, BodyText, Warned, Wire } from '../call/wire.ts';
import type { Authenticate } from '../callers/authenticate.ts';
import { isJsonType, readBody } from './body.ts';
import { type FixedPaths, requireOwnPath } from './route.ts';
import { stateOf } from './state.ts';

/** The wire of REST: reads a request, and writes its answer. */

/** The type of a query value by its schema: text, number, boolean or list. */
const typeOf = (schema: unknown): string => {
  const { type, anyOf } = schema as { type?: string; anyOf?: readonly { type?: string }[] };
  return type ?? anyOf?.find((one) => one.type !== undefined && one.type !== 'null')?.type ?? 'string';
};

const read = (type: string, text: string): unknown => {
  if (type === 'integer') return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  if (type === 'array') return text.split(',');
  return text;
};

/** @throws Refusal 400 */
const readQuery = (ctx: Context, schema: TObject | undefined): Readonly<Record<string, unknown>> => {
  const values: Record<string, unknown> = {};
  for (const [name, text] of new URLSearchParams(ctx.querystring)) {
    requireParameter(schema, name, text);
    const value = read(typeOf(schema?.properties[name]), text);
    const earlier = Object.hasOwn(values, name) ? values[name] : undefined;
    // The contract says commas; half of the generators of clients repeat the parameter whatever it says.
    if (earlier !== undefined && !Array.isArray(earlier)) throw badParameter(name, 'repeated', 'may be sent once');
    values[name] = Array.isArray(earlier) && Array.isArray(value) ? [...earlier, ...value] : value;
  }
  return values;
};

const readText = async (ctx: Context, { bodyOptional }: Operation, meter: BodyMeter): Promise<BodyText | null> => {
  const { headers } = ctx.req;
  const none = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
  if (none && bodyOptional === true) return null;
  const encoding = headers['content-encoding'] ?? 'identity';
  if (!none && (!isJsonType(headers['content-type'] ?? '') || encoding !== 'identity')) {
    throw new Refusal('unsupported_media_type', 'Send Content-Type: application/json, without Content-Encoding.');
  }
  const text = await readBody(ctx.req, meter.maxBytes, (chunk) => meter.take(chunk));
  return text.length === 0 && bodyOptional === true ? null : { text, values: meter.values };
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

/** A long text is written while it is sent. */
const written = (value: object): string | Readable =>
  isShort(value) ? JSON.stringify(value) : Readable.from(jsonPieces(value));

/** The envelope and its headers. */
const write = (ctx: Context, { operation, correlationId }: CalledState, made: Answer, warned: Warned): void => {
  ctx.status = 200;
  if ('raw' in made) {
    if (made.raw.type === 'text/html') ctx.set(pageHeaders);
    ctx.body = made.raw.body;
    ctx.type = made.raw.type;
    return;
  }
  const meta = { correlationId, ...warned };
  if ('items' in made) {
    ctx.body = Readable.from(enveloped(made, meta));
    if (made.replayed === true) ctx.set('Idempotent-Replayed', 'true');
  } else if ('page' in made) {
    ctx.body = written({ data: made.data, page: made.page, meta });
  } else {
    ctx.body =
      'json' in made ? `{"data":${made.json},"meta":${JSON.stringify(meta)}}` : written({ data: made.data, meta });
    const tagged = operation.ifMatch === true || operation.etag === true;
    if (made.revision !== undefined && tagged) ctx.set('ETag', `"${made.revision}"`);
    if ('data' in made && made.replayed === true) ctx.set('Idempotent-Replayed', 'true');
  }
  ctx.type = 'application/json';
};

const wireOf = (ctx: Context, state: CalledState): Wire => ({
  params: ctx.params,
  hasParameter: (name) => new URLSearchParams(ctx.querystring).has(name),
  readQuery: (schema) => readQuery(ctx, schema),
  announcedBytes: ctx.request.length ?? 0,
  readBody: (operation, meter) => readText(ctx, operation, meter),
  idempotencyKey: ctx.req.headers['idempotency-key'],
  ifMatch: ctx.headers['if-match'],
  consistencyToken: ctx.get('X-Consistency-Token'),
  accepts: (...types) => ctx.accepts(...types) as string | false,
  paid: 0,
  told: ctx,
  answer: (made, warned) => write(ctx, state, made, warned),
  wrote: (token) => ctx.set('X-Consistency-Token', token),
});

/** @throws Refusal 406 */
const requireAcceptable = (ctx: Context, { alsoAs = [] }: Operation): void => {
  const produced = ['application/json', ...alsoAs];
  if (ctx.accepts(...produced) === false) {
    throw new Refusal('not_acceptable', `Answers are ${produced.join(' or ')}.`);
  }
};

/** Null for an operation that asks for no token. @throws Refusal 401, or 429 where the address has no guesses left */
const callerOf = async (
  ctx: Context,
  { scope }: Operation,
  { address }: CallState,
  authenticate: Authenticate,
): Promise<Principal | null> =>
  scope === null
    ? null
    : authenticate({ told: ctx, authorization: ctx.get('Authorization'), address, resource: 'api' });

export interface RestTools {
  readonly tools: CallTools;
  readonly authenticate: Authenticate;
  readonly fixedPaths: FixedPaths;
}

/**
 * Answers the requests whose method and path are those of the operation: 405 and 406 are known without a query, so they come
 * before the token, and the token before the steps of the call.
 */
export const rest =
  (operation: Operation, { tools, authenticate, fixedPaths }: RestTools): Middleware =>
  async (ctx) => {
    requireOwnPath(ctx, operation, fixedPaths);
    const state = stateOf(ctx);
    state.operation = operation;
    requireAcceptable(ctx, operation);
    const called = calledState(state, operation, await callerOf(ctx, operation, state, authenticate));
    await call(tools, called, wireOf(ctx, called));
  };
