import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { Context, Middleware } from 'koa';
import type { TObject } from 'typebox';
import { pageHeaders } from '#services/shell/page.ts';
import { type CallTools, call } from '../call/call.ts';
import { requireParameter } from '../call/input.ts';
import { isShort, jsonPieces } from '../call/json.ts';
import {
  type Answer,
  type CalledState,
  type CallState,
  calledState,
  type Operation,
  type Pieces,
  type Principal,
} from '../call/operation.ts';
import { badParameter, Refusal } from '../call/refusal.ts';
import type { BodyMeter, BodyText, Warned, Wire } from '../call/wire.ts';
import type { Authenticate } from '../callers/bearer-tokens.ts';
import { stateOf } from './every-request.ts';

/** The body of a request: its bytes under a limit, and whether its type is JSON. */

/**
 * The reader joins chunks when it holds this many. Otherwise a caller that sends single bytes makes 1 MiB of body take
 * 200 MiB of memory, one object for each byte.
 */
const maxChunks = 256;

/**
 * @param look receives each chunk as it arrives, and may refuse the rest by throwing a Refusal.
 * @throws Refusal 413 as soon as the body is known to be too large; the rest is dropped.
 */
export const readBody = async (
  req: IncomingMessage,
  limit: number,
  look: (chunk: Buffer) => void = () => undefined,
): Promise<Buffer> => {
  const tooLarge = () => new Refusal('payload_too_large', `The body may have ${limit} bytes.`);
  if (Number(req.headers['content-length'] ?? 0) > limit) throw tooLarge();
  const chunks: Buffer[] = [];
  let joined = 0;
  let size = 0;
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size > limit) throw tooLarge();
      look(chunk);
      chunks.push(chunk);
      if (chunks.length - joined === maxChunks) {
        chunks.push(Buffer.concat(chunks.splice(joined)));
        joined += 1;
      }
    }
  } catch (error) {
    if (error instanceof Refusal) {
      // The api drops the rest of the body as it arrives, because the next request of this connection follows it.
      req.resume();
      throw error;
    }
    throw new Refusal('invalid_json', 'The body ended before its end.');
  }
  return Buffer.concat(chunks);
};

/**
 * Checks the Content-Type of a JSON body. The code splits the text, because a pattern over optional blanks takes time
 * with the square of their number.
 */
const maxLength = 200;
const structured = /^application\/[\w.+-]+\+json$/;

const isUtf8 = (parameter: string): boolean => {
  const [name = '', value = '', ...more] = parameter.split('=').map((one) => one.trim());
  return name === 'charset' && more.length === 0 && (value === 'utf-8' || value === '"utf-8"');
};

/** `application/json` or `application/…+json`, with nothing but the charset UTF-8 behind it. */
export const isJsonType = (text: string): boolean => {
  if (text.length > maxLength) return false;
  const [type = '', ...parameters] = text.toLowerCase().split(';');
  const given = parameters.map((one) => one.trim()).filter((one) => one !== '');
  const essence = type.trim();
  return (essence === 'application/json' || structured.test(essence)) && given.length < 2 && given.every(isUtf8);
};

/**
 * Paths without a parameter, by the methods they take. `/media/presign` is a path of its own, though `/media/{id}` matches
 * it too: a method that it does not take is 405 there, and never a question about the medium `presign`.
 */
type FixedPaths = ReadonlyMap<string, readonly string[]>;

export const fixedPathsOf = (operations: readonly Operation[]): FixedPaths => {
  const fixed = operations.filter(({ path }) => !path.includes('{'));
  const byPath = Map.groupBy(fixed, ({ path }) => `/v1${path}`);
  return new Map(
    [...byPath].map(([path, all]) => [
      path,
      all.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : method)),
    ]),
  );
};

const notAllowed = (allowed: readonly string[]): Refusal => {
  const allow = [...new Set(allowed), 'OPTIONS'].join(', ');
  return new Refusal('method_not_allowed', `This path takes ${allow}.`, { headers: { Allow: allow } });
};

/** @throws Refusal 405 where the path is another operation's own, though the pattern of this one matches it too */
const requireOwnPath = ({ path }: Context, operation: Operation, fixedPaths: FixedPaths): void => {
  const own = fixedPaths.get(path);
  if (own !== undefined && `/v1${operation.path}` !== path) throw notAllowed([...own].sort());
};

interface Matched {
  readonly matched?: readonly { readonly methods: readonly string[] }[];
}

/** No operation has this method and path: 405 with Allow where the path has others, else 404. OPTIONS says which. */
export const unmatched =
  (fixedPaths: FixedPaths): Middleware =>
  async (ctx: Context & Matched) => {
    const allowed = fixedPaths.get(ctx.path) ?? (ctx.matched ?? []).flatMap(({ methods }) => methods);
    if (allowed.length === 0) throw new Refusal('not_found', 'There is no such path.');
    const refusal = notAllowed([...allowed].sort());
    if (ctx.method !== 'OPTIONS') throw refusal;
    ctx.status = 204;
    ctx.set('Allow', refusal.headers.Allow ?? '');
  };

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
  if ('begin' in made) {
    const isGone = ctx.res.closed || ctx.res.destroyed;
    // Of a caller that has left already nobody would hear it: it begins nothing.
    const { lines, ended } = isGone ? { lines: [], ended: () => undefined } : made.begin();
    ctx.res.once('close', ended);
    ctx.body = Readable.from(lines);
    ctx.type = made.type;
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
  limitHeaders: ctx,
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
    : authenticate({ limitHeaders: ctx, authorization: ctx.get('Authorization'), address, resource: 'api' });

interface RestTools {
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
