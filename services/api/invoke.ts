import { setImmediate } from 'node:timers/promises';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Warning } from '#schemas/http/common.ts';
import { jsonPieces } from './json-pieces.ts';
import { type Allowances, costOf, type ToldLimits } from './middleware/rate-limit.ts';
import { type Answer, isSearchable, type Many, type Operation, type Pieces, type Principal } from './operation.ts';
import { operations } from './operations.ts';
import { Refusal } from './refusal.ts';
import { type CallState, newState } from './state.ts';
import { requireOpenToLimited, requireRole, requireScope } from './steps/access.ts';
import { type CarryOutTools, carryOut, rememberWrites, type Warned, warningsOf } from './steps/carry-out.ts';
import { limitToClients } from './steps/client-limits.ts';
import {
  type BodyMeter,
  type BodyText,
  type BodyTools,
  keyOf,
  paramsOf,
  queryOf,
  requireParameter,
  withBody,
} from './steps/input.ts';

/**
 * Calls an operation of the contract inside this process, for parts of the server that know the caller already. It
 * takes the steps of a REST call in their order, from the scope on; only the token is not read again. The same key
 * therefore makes a REST call and an invocation the same call.
 */

export interface Invocation {
  /** The operation, or its id. */
  readonly operation: Operation | string;
  readonly principal: Principal;
  readonly params?: Readonly<Record<string, string>>;
  /** Values as the schema names them, not texts; a member that is undefined was not sent. */
  readonly query?: Readonly<Record<string, unknown>>;
  /** A JSON value; undefined: no body is sent. */
  readonly body?: unknown;
  /** Default: none. */
  readonly key?: string | null;
  /** As the header: `"4"`, `*`. */
  readonly ifMatch?: string;
  readonly correlationId: string;
  /** The caller's address: operations without a token count against it. */
  readonly address?: string;
  /** Of an earlier answer, where the caller brought one. */
  readonly consistencyToken?: string;
  /** Requests of this call that its credential has paid for already. */
  readonly paid?: number;
  /** Learns what is left of the allowance. */
  readonly told?: ToldLimits;
}

export interface Invoked<Data = unknown> {
  /** As in the envelope. Of an answer without an envelope: its text or bytes. */
  readonly data: Data;
  /** Of a list. */
  readonly page?: Many<unknown>['page'];
  readonly warnings: readonly Warning[];
  /** Warnings beyond these; absent: none. */
  readonly moreWarnings?: number;
  /** Of the resource's own stream. */
  readonly revision?: number;
  /** True when an earlier call under this key was answered again. */
  readonly replayed: boolean;
  /** Null where the call stored nothing. This process remembers the caller's writes without it. */
  readonly consistencyToken: string | null;
  /** Media type of an answer without an envelope. */
  readonly type?: string;
}

/** @throws Refusal or Rejection as a REST call answers them, see `toProblem` */
export type Invoke = <Data = unknown>(invocation: Invocation) => Promise<Invoked<Data>>;

export interface InvokeTools extends CarryOutTools, BodyTools {
  readonly allowances: Allowances;
}

const byId: ReadonlyMap<string, Operation> = new Map(operations.map((one) => [one.id, one]));

const known = (operation: Operation | string): Operation => {
  const found = typeof operation === 'string' ? byId.get(operation) : operation;
  if (found === undefined) throw new BrokenInvariant(`there is no operation ${operation}`);
  return found;
};

const untold: ToldLimits = { set: () => undefined };

const readQuery = ({ query: schema }: Operation, sent: Invocation['query'] = {}): unknown => {
  const values = Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined));
  for (const [name, value] of Object.entries(values)) requireParameter(schema, name, value);
  return queryOf(schema, values);
};

/** The body as a REST call would send it: the limits of bodies are limits of their text. */
const textOf = (body: unknown): Buffer => Buffer.from(body === undefined ? '' : JSON.stringify(body));

const readText = (text: Buffer, { bodyOptional }: Operation, meter: BodyMeter): BodyText | null => {
  if (text.length === 0 && bodyOptional === true) return null;
  if (text.length > meter.maxBytes) {
    throw new Refusal('payload_too_large', `The body may have ${meter.maxBytes} bytes.`);
  }
  meter.take(text);
  return { text, values: meter.values };
};

const joined = async ({ head, items, tail }: Pieces): Promise<unknown> => {
  const texts: string[] = [];
  for (const item of items()) {
    let text = '';
    for await (const piece of jsonPieces(item)) text += piece;
    texts.push(text);
    await setImmediate();
  }
  return JSON.parse(`${head}${texts.join(',')}${tail}`);
};

const dataOf = (made: Answer): unknown => {
  if ('raw' in made) return made.raw.body;
  if ('items' in made) return joined(made);
  return 'json' in made ? JSON.parse(made.json) : made.data;
};

export const invokerOf = (tools: InvokeTools): Invoke => {
  const { deps, allowances, patience } = tools;

  const answered = async (
    operation: Operation,
    state: CallState,
    asked: Invocation,
    charge: (n: number) => Promise<void>,
  ) => {
    const origin = {
      ifMatch: asked.ifMatch,
      consistencyToken: asked.consistencyToken ?? '',
      accepts: (...types: readonly string[]) => types[0] ?? false,
      charge,
    };
    const made = await carryOut(tools, operation, state, origin);
    const warned: Warned = 'raw' in made ? {} : await warningsOf(tools, operation, state, made);
    const { warnings = [], moreWarnings } = warned;
    return {
      data: await dataOf(made),
      warnings,
      ...(moreWarnings === undefined ? {} : { moreWarnings }),
      replayed: 'replayed' in made && made.replayed === true,
      ...('page' in made ? { page: made.page } : {}),
      ...('revision' in made && made.revision !== undefined ? { revision: made.revision } : {}),
      ...('raw' in made ? { type: made.raw.type } : {}),
    };
  };

  const invoke = async (asked: Invocation): Promise<Invoked> => {
    const operation = known(asked.operation);
    const { told = untold, paid = 0 } = asked;
    const state = newState(asked.correlationId, asked.address ?? '');
    state.operation = operation;
    state.principal = operation.scope === null ? null : asked.principal;
    requireScope(operation, state.principal);
    requireRole(operation, state.principal);
    requireOpenToLimited(operation, state.principal);

    const text = textOf(asked.body);
    const purse = allowances.ofCaller(state);
    const searches = isSearchable(operation) && asked.query?.search !== undefined;
    const { own, ahead } = costOf(allowances, operation, { searches, bytes: text.length });
    if (own + ahead > paid) await purse.spend(told, own + ahead - paid);
    // A caller that has paid for a body paid for all of it.
    state.paidAhead = Math.max(ahead, paid - own);
    const owe = (requests: number): Promise<void> => purse.owe(told, requests);

    state.params = paramsOf(operation, asked.params ?? {});
    state.query = readQuery(operation, asked.query);
    const source = { read: async (meter: BodyMeter) => readText(text, operation, meter), owe };
    try {
      const answer = await withBody(tools, operation, state, source, async () => {
        state.key = keyOf(operation, asked.key ?? undefined);
        await limitToClients(deps, patience, state);
        return answered(operation, state, asked, owe);
      });
      return { ...answer, consistencyToken: rememberWrites(tools, state) };
    } catch (error) {
      rememberWrites(tools, state);
      throw error;
    }
  };
  return invoke as Invoke;
};
