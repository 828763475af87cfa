import type { Context, Middleware } from 'koa';
import type { TObject } from 'typebox';
import { clean } from '#schemas/http/clean.ts';
import type { Issue } from '#schemas/issues.ts';
import { issueAt, issuesOf } from '#schemas/validator.ts';
import type { BodyBudget, HeldBytes } from '../body-budget.ts';
import { readEntries } from '../entries.ts';
import { bodyCost, type HeavyBodies, type Piece } from '../heavy-bodies.ts';
import { defaultBodyLimit, defaultValueLimit, JsonMeter, parseJson, readBody } from '../json.ts';
import { isJsonType } from '../media-type.ts';
import { nounOf, type Operation } from '../operation.ts';
import { badParameter, notFound, Refusal } from '../refusal.ts';
import { operationOf, stateOf } from '../state.ts';
import type { Allowances } from './rate-limit.ts';

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

/** A caller knows a parameter by its name, not the entries that its text is cut into. */
const ofParameters = (issues: readonly Issue[]): readonly Issue[] => {
  const byName = Map.groupBy(issues, ({ path }) => path.split('/', 2).join('/'));
  return [...byName].flatMap(([path, [first]]) => (first === undefined ? [] : [{ ...first, path }]));
};

/** @throws Refusal 400 that names the parameter, or the parameters that the operation takes. */
const readQuery = (ctx: Context, schema: TObject | undefined): unknown => {
  const properties: Readonly<Record<string, unknown>> = schema?.properties ?? {};
  const values: Record<string, unknown> = {};
  for (const [name, text] of new URLSearchParams(ctx.querystring)) {
    if (!Object.hasOwn(properties, name)) {
      const accepted = Object.keys(properties).join(', ');
      const message = `is not one of this operation, which takes ${accepted || 'none'}`;
      const shown = name.slice(0, 100).toWellFormed();
      throw new Refusal('invalid_parameter', `The parameter ${shown} is not known.`, {
        errors: [issueAt([name], 'unknown_parameter', message)],
      });
    }
    if (text.includes('\0')) throw badParameter(name, 'invalid_text', 'must not contain NUL');
    const value = read(typeOf(properties[name]), text);
    const earlier = Object.hasOwn(values, name) ? values[name] : undefined;
    // The contract says commas; half of the generators of clients repeat the parameter whatever it says.
    if (earlier !== undefined && !Array.isArray(earlier)) throw badParameter(name, 'repeated', 'may be sent once');
    values[name] = Array.isArray(earlier) && Array.isArray(value) ? [...earlier, ...value] : value;
  }
  if (schema === undefined) return {};
  const issues = issuesOf(schema, values);
  if (issues.length > 0) {
    throw new Refusal('invalid_parameter', 'A parameter is not valid.', { errors: ofParameters(issues) });
  }
  return clean(schema, values);
};

/**
 * The text of a body, and the most values that it can hold; null where the caller sent no body and the operation needs
 * none. The bytes that were read count against the allowance, also when the api refuses the body half way: as debt,
 * less the part that was counted ahead.
 */
const readText = async (ctx: Context, operation: Operation, held: HeldBytes, allowances: Allowances) => {
  const { headers } = ctx.req;
  const none = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
  if (none && operation.bodyOptional === true) return null;
  const encoding = headers['content-encoding'] ?? 'identity';
  if (!none && (!isJsonType(headers['content-type'] ?? '') || encoding !== 'identity')) {
    throw new Refusal('unsupported_media_type', 'Send Content-Type: application/json, without Content-Encoding.');
  }
  const meter = new JsonMeter(operation.valueLimit ?? defaultValueLimit);
  let bytes = 0;
  try {
    const text = await readBody(ctx.req, operation.bodyLimit ?? defaultBodyLimit, (chunk) => {
      held.take(chunk.length);
      bytes += chunk.length;
      meter.take(chunk);
    });
    return text.length === 0 && operation.bodyOptional === true ? null : { text, values: meter.values };
  } finally {
    const further = bodyCost({ bytes, values: meter.values }) - stateOf(ctx).paidAhead;
    if (further > 0) await allowances.owe(ctx, further);
  }
};

/** @throws Refusal 400, 422 */
const valid = async (operation: Operation, schema: TObject, text: Buffer | null, piece: Piece): Promise<unknown> => {
  const sent = text === null ? {} : await piece(() => parseJson(text));
  const issues = await piece(() => issuesOf(schema, sent));
  if (issues.length > 0) throw new Refusal('validation_failed', 'The input is not valid.', { errors: issues });
  return piece(() => clean(schema, sent, operation.merge === true));
};

/** Parameters, then the body: validated as sent, then cleaned. An operation without a body ignores one. */
export const input =
  (heavyBodies: HeavyBodies, budget: BodyBudget, allowances: Allowances): Middleware =>
  async (ctx, next) => {
    const operation = operationOf(ctx);
    const state = stateOf(ctx);
    const { params, query, body } = operation;
    if (params !== undefined && issuesOf(params, ctx.params).length > 0) {
      throw notFound(nounOf(operation));
    }
    state.params = params === undefined ? ctx.params : clean(params, ctx.params);
    state.query = readQuery(ctx, query);
    if (body === undefined) return next();
    // Live and test data of an agency share its turns and its budget of bytes, so that a second key gives no second
    // share.
    const owner = state.principal?.liveWorkspaceId ?? '';
    const held = budget.hold(owner);
    try {
      const sent = await readText(ctx, operation, held, allowances);
      const weight = { bytes: sent?.text.length ?? 0, values: sent?.values ?? 0 };
      const text = sent?.text ?? null;
      const { entries: member } = operation;
      if (member === undefined || text === null) {
        state.body = await heavyBodies.run(owner, weight, (piece) => valid(operation, body, text, piece));
      } else {
        const read = await heavyBodies.run(owner, weight, (piece) => readEntries(body, member, text, piece));
        state.body = { [member]: read.digests };
        state.entries = read.entries;
      }
      await next();
    } finally {
      held.release();
    }
  };

const keyForm = /^[\x21-\x7e]{1,255}$/;

/** The caller's Idempotency-Key, where the operation honours one. */
export const idempotencyKey: Middleware = (ctx, next) => {
  const { idempotent } = operationOf(ctx);
  const sent = ctx.req.headers['idempotency-key'];
  if (idempotent !== 'none') {
    if (sent === undefined && idempotent === 'required') {
      throw new Refusal('idempotency_key_required', 'Send the header Idempotency-Key.');
    }
    if (sent !== undefined && !(typeof sent === 'string' && keyForm.test(sent))) {
      throw new Refusal('idempotency_key_invalid', 'Idempotency-Key is 1 to 255 visible ASCII characters.');
    }
    stateOf(ctx).key = typeof sent === 'string' ? sent : null;
  }
  return next();
};
