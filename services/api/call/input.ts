import type { TObject } from 'typebox';
import { type BodyNotes, clean } from '#schemas/http/clean.ts';
import type { Issue } from '#schemas/issues.ts';
import { issueAt, issuesOf } from '#schemas/validator.ts';
import type { Allowances } from './allowances.ts';
import { type BodyBudget, bodyCost, type HeavyBodies, type HeldBytes, type Piece } from './bodies.ts';
import { readEntries } from './entries.ts';
import { defaultBodyLimit, defaultValueLimit, JsonMeter, parseJson } from './json.ts';
import { type CalledState, nounOf, type Operation } from './operation.ts';
import { badParameter, notFound, Refusal } from './refusal.ts';
import type { BodyMeter, BodyText, Wire } from './wire.ts';

/** Steps of a call that read what the caller sent: validated as sent, then cleaned. */

/** @throws Refusal 404, because a malformed id is an unknown id */
export const takeParams = (state: CalledState, { params: sent }: Pick<Wire, 'params'>): void => {
  const { params } = state.operation;
  if (params !== undefined && issuesOf(params, sent).length > 0) throw notFound(nounOf(state.operation));
  state.params = params === undefined ? sent : clean(params, sent);
};

/** @throws Refusal 400 that names the parameter, or the parameters that the operation takes. */
export const requireParameter = (schema: TObject | undefined, name: string, value: unknown): void => {
  const properties: Readonly<Record<string, unknown>> = schema?.properties ?? {};
  if (!Object.hasOwn(properties, name)) {
    const accepted = Object.keys(properties).join(', ');
    const message = `is not one of this operation, which takes ${accepted || 'none'}`;
    const shown = name.slice(0, 100).toWellFormed();
    throw new Refusal('invalid_parameter', `The parameter ${shown} is not known.`, {
      errors: [issueAt([name], 'unknown_parameter', message)],
    });
  }
  const texts: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (texts.some((text) => typeof text === 'string' && text.includes('\0'))) {
    throw badParameter(name, 'invalid_text', 'must not contain NUL');
  }
};

/** A caller knows a parameter by its name, not the entries that its text is cut into. */
const ofParameters = (issues: readonly Issue[]): readonly Issue[] => {
  const byName = Map.groupBy(issues, ({ path }) => path.split('/', 2).join('/'));
  return [...byName].flatMap(([path, [first]]) => (first === undefined ? [] : [{ ...first, path }]));
};

/** @throws Refusal 400 */
export const takeQuery = (state: CalledState, wire: Pick<Wire, 'readQuery'>): void => {
  const { query: schema } = state.operation;
  const values = wire.readQuery(schema);
  const issues = schema === undefined ? [] : issuesOf(schema, values);
  if (issues.length > 0) {
    throw new Refusal('invalid_parameter', 'A parameter is not valid.', { errors: ofParameters(issues) });
  }
  state.query = schema === undefined ? {} : clean(schema, values);
};

interface BodySource {
  /** Null where the caller sent no body and the operation needs none. */
  readonly read: (meter: BodyMeter) => Promise<BodyText | null>;
  /** Counts further requests against the caller's allowance. */
  readonly owe: (requests: number) => Promise<void>;
}

/**
 * Reads a body under its limits. The bytes that were read count against the allowance, also when the body is refused
 * half way: as debt, less the part that was counted ahead.
 */
export const metered = async (
  operation: Pick<Operation, 'bodyLimit' | 'valueLimit'>,
  held: HeldBytes,
  paidAhead: number,
  { read, owe }: BodySource,
): Promise<BodyText | null> => {
  const meter = new JsonMeter(operation.valueLimit ?? defaultValueLimit);
  let bytes = 0;
  try {
    return await read({
      maxBytes: operation.bodyLimit ?? defaultBodyLimit,
      get values() {
        return meter.values;
      },
      take: (chunk) => {
        held.take(chunk.length);
        bytes += chunk.length;
        meter.take(chunk);
      },
    });
  } finally {
    const further = bodyCost({ bytes, values: meter.values }) - paidAhead;
    if (further > 0) await owe(further);
  }
};

/** @throws Refusal 400, 422 */
const valid = async (
  { merge, bodyOptional }: Operation,
  schema: TObject,
  text: Buffer | null,
  notes: BodyNotes,
  piece: Piece,
): Promise<unknown> => {
  const read = text === null ? null : await piece(() => parseJson(text));
  // Some generated clients send the text null where their caller leaves an optional body out.
  const sent = read === null && bodyOptional === true ? {} : read;
  const issues = await piece(() => issuesOf(schema, sent));
  if (issues.length > 0) throw new Refusal('validation_failed', 'The input is not valid.', { errors: issues });
  return piece(() => clean(schema, sent, { merge: merge === true, notes }));
};

export interface BodyTools {
  readonly heavyBodies: HeavyBodies;
  readonly bodyBudget: BodyBudget;
}

/** An operation without a body ignores one. @throws Refusal 413, 415, 400, 422, 503 */
export const takeBody = async (
  state: CalledState,
  wire: Pick<Wire, 'readBody' | 'limitHeaders'>,
  { heavyBodies, bodyBudget, allowances }: BodyTools & { readonly allowances: Allowances },
): Promise<void> => {
  const { operation, notes } = state;
  const { body, entries: member } = operation;
  if (body === undefined) return;
  // Live and test data of an agency share its turns and its budget of bytes, so that a second key gives no second share.
  const owner = state.principal?.liveWorkspaceId ?? '';
  const held = bodyBudget.hold(owner);
  state.held = held;
  const sent = await metered(operation, held, state.paidAhead, {
    read: (meter) => wire.readBody(operation, meter),
    owe: (requests) => allowances.of(state).owe(wire.limitHeaders, requests),
  });
  const weight = { bytes: sent?.text.length ?? 0, values: sent?.values ?? 0 };
  const text = sent?.text ?? null;
  if (member === undefined || text === null) {
    state.body = await heavyBodies.run(owner, weight, (piece) => valid(operation, body, text, notes, piece));
    return;
  }
  const read = await heavyBodies.run(owner, weight, (piece) => readEntries(body, member, text, notes, piece));
  state.body = { [member]: read.digests };
  state.entries = read.entries;
};

/** Gives the bytes of the body back to the budget. */
export const releaseBody = ({ held }: Pick<CalledState, 'held'>): void => held?.release();

const keyForm = /^[\x21-\x7e]{1,255}$/;

/** The caller's idempotency key, where the operation honours one. @throws Refusal 400 */
export const takeKey = (state: CalledState, { idempotencyKey: sent }: Pick<Wire, 'idempotencyKey'>): void => {
  const { idempotent } = state.operation;
  if (idempotent === 'none') return;
  if (sent === undefined && idempotent === 'required') {
    throw new Refusal('idempotency_key_required', 'Send the header Idempotency-Key.');
  }
  if (sent !== undefined && !(typeof sent === 'string' && keyForm.test(sent))) {
    throw new Refusal('idempotency_key_invalid', 'Idempotency-Key is 1 to 255 visible ASCII characters.');
  }
  state.key = typeof sent === 'string' ? sent : null;
};
