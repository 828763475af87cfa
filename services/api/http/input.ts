import type { Context, Middleware } from 'koa';
import type { TObject } from 'typebox';
import type { Allowances } from '../call/allowances.ts';
import {
  type BodyMeter,
  type BodyText,
  type BodyTools,
  keyOf,
  paramsOf,
  queryOf,
  requireParameter,
  withBody,
} from '../call/input.ts';
import { isJsonType, readBody } from '../call/json.ts';
import type { Operation } from '../call/operation.ts';
import { badParameter, Refusal } from '../call/refusal.ts';
import { operationOf, stateOf } from '../call/state.ts';

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
const readQuery = (ctx: Context, schema: TObject | undefined): unknown => {
  const values: Record<string, unknown> = {};
  for (const [name, text] of new URLSearchParams(ctx.querystring)) {
    requireParameter(schema, name, text);
    const value = read(typeOf(schema?.properties[name]), text);
    const earlier = Object.hasOwn(values, name) ? values[name] : undefined;
    // The contract says commas; half of the generators of clients repeat the parameter whatever it says.
    if (earlier !== undefined && !Array.isArray(earlier)) throw badParameter(name, 'repeated', 'may be sent once');
    values[name] = Array.isArray(earlier) && Array.isArray(value) ? [...earlier, ...value] : value;
  }
  return queryOf(schema, values);
};

const readText = async (ctx: Context, operation: Operation, meter: BodyMeter): Promise<BodyText | null> => {
  const { headers } = ctx.req;
  const none = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
  if (none && operation.bodyOptional === true) return null;
  const encoding = headers['content-encoding'] ?? 'identity';
  if (!none && (!isJsonType(headers['content-type'] ?? '') || encoding !== 'identity')) {
    throw new Refusal('unsupported_media_type', 'Send Content-Type: application/json, without Content-Encoding.');
  }
  const text = await readBody(ctx.req, meter.maxBytes, (chunk) => meter.take(chunk));
  return text.length === 0 && operation.bodyOptional === true ? null : { text, values: meter.values };
};

/** Parameters, then the body. */
export const input =
  (tools: BodyTools, allowances: Allowances): Middleware =>
  (ctx, next) => {
    const operation = operationOf(ctx);
    const state = stateOf(ctx);
    state.params = paramsOf(operation, ctx.params);
    state.query = readQuery(ctx, operation.query);
    const source = {
      read: (meter: BodyMeter) => readText(ctx, operation, meter),
      owe: (requests: number) => allowances.owe(ctx, requests),
    };
    return withBody(tools, operation, state, source, next);
  };

/** The caller's Idempotency-Key, where the operation honours one. */
export const idempotencyKey: Middleware = (ctx, next) => {
  stateOf(ctx).key = keyOf(operationOf(ctx), ctx.req.headers['idempotency-key']);
  return next();
};
