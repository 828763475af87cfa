import { setImmediate } from 'node:timers/promises';
import { within } from '#contracts/base/within.ts';
import { type CommandContext, Unavailable, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { fingerprintOf, keyHmacOf } from '#runtime/eventing/idempotency.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { EventActor } from '#schemas/common.ts';
import type { Warning } from '#schemas/http/common.ts';
import { requireOpenToLimited, requireRole, requireScope } from './access.ts';
import { type Allowances, costOf, type ToldLimits } from './allowances.ts';
import { limitToClients, namesOther } from './client-limits.ts';
import { commandsOf, ifMatch } from './commands.ts';
import type { CallPatience, Deps } from './deps.ts';
import {
  type BodyMeter,
  type BodyText,
  type BodyTools,
  keyOf,
  paramsOf,
  queryOf,
  requireParameter,
  withBody,
} from './input.ts';
import { jsonPieces } from './json.ts';
import {
  type Answer,
  type Call,
  type Commands,
  isSearchable,
  type Many,
  nounOf,
  type Operation,
  type Pieces,
  type Principal,
  type Raw,
} from './operation.ts';
import type { OwnWrites } from './own-writes.ts';
import { notFound, Refusal } from './refusal.ts';
import { type CallState, newState } from './state.ts';
import type { Warnings } from './warnings.ts';

/** The last step of every call: the operation itself, under its deadline, and the checks of its answer. */

export interface CarryOutTools {
  readonly deps: Deps;
  readonly ownWrites: OwnWrites;
  readonly warnings: Warnings;
  readonly patience: CallPatience;
}

/** What the call depends on beside its input. */
export interface CallOrigin {
  /** Undefined: the caller sent none. */
  readonly ifMatch: string | undefined;
  /** Empty: the caller sent none. */
  readonly consistencyToken: string;
  readonly accepts: Call['accepts'];
  readonly charge: Call['charge'];
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

/** Events name the member, and the grant under which an app acted for the member. */
const eventActorOf = ({ actor, grantId }: Principal): EventActor =>
  grantId === undefined ? actor : { ...actor, grantId };

const tooLate = (): never => {
  throw new Unavailable('The stores behind this call did not answer in time.');
};

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

/** @throws Refusal, Rejection, or the error of a store */
export const carryOut = async (
  { deps, ownWrites, patience }: CarryOutTools,
  operation: Operation,
  state: CallState,
  origin: CallOrigin,
): Promise<Answer> => {
  const { correlationId, params, query, body, entries, notes, unseen, key, positions } = state;
  const principal = state.principal ?? nobody;
  const { workspaceId } = principal;
  const now = new Date(deps.clock()).toISOString();
  const asked = { operation: operation.id, params, query, body };
  const fingerprint = key === null ? '' : fingerprintOf(deps.secrets, workspaceId, asked);
  const context: CommandContext = {
    workspaceId,
    actor: eventActorOf(principal),
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
    notes,
    asSent: (id) => unseen.get(id) ?? id,
    key,
    fingerprint,
    correlationId,
    now,
    context,
    positions,
    guard: operation.ifMatch === true ? ifMatch(origin.ifMatch) : () => undefined,
    accepts: origin.accepts,
    behind: (topics, readers) => ownWrites.behind(principal.id, origin.consistencyToken, topics, readers),
    charge: origin.charge,
  };
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
  return made;
};

/**
 * The token under which the caller reads the events that the call stored; null where it stored none. Asked for after a
 * refusal too, because a call may store events before it refuses.
 */
export const rememberWrites = (
  { ownWrites }: Pick<CarryOutTools, 'ownWrites'>,
  { principal, positions }: Pick<CallState, 'principal' | 'positions'>,
): string | null => (positions.size === 0 ? null : ownWrites.remember((principal ?? nobody).id, positions));

/** Warnings of one answer, and of the answer to a call whose body has entries. */
const maxWarnings = 20;
const maxWarningsOfEntries = 100;

interface Warned {
  readonly warnings?: readonly Warning[];
  /** Absent: all are shown. */
  readonly moreWarnings?: number;
}

/** What the caller should know of the data of an answer, and of the body that it sent: members of `meta`. */
export const warningsOf = async (
  { warnings }: Pick<CarryOutTools, 'warnings'>,
  operation: Operation,
  { principal, notes }: Pick<CallState, 'principal' | 'notes'>,
  made: Exclude<Answer, Raw>,
): Promise<Warned> => {
  if (operation.method === 'GET') {
    if ('items' in made) return {};
    const data = (): unknown => ('json' in made ? JSON.parse(made.json) : made.data);
    const found = await warnings.of((principal ?? nobody).workspaceId, data);
    return found.length === 0 ? {} : { warnings: found };
  }
  const own = 'page' in made || 'json' in made ? [] : (made.warnings ?? []);
  const id = 'data' in made ? idOf(made.data) : {};
  const all = [...own, ...notes.found.map((one): Warning => ({ ...one, ...id }))];
  const sorted = [...all.filter((one) => one.willFail === true), ...all.filter((one) => one.willFail !== true)];
  const shown = sorted.slice(0, operation.entries === undefined ? maxWarnings : maxWarningsOfEntries);
  const left = sorted.length - shown.length + notes.more + ('page' in made || 'json' in made ? 0 : (made.more ?? 0));
  return {
    ...(shown.length === 0 ? {} : { warnings: shown }),
    ...(left === 0 ? {} : { moreWarnings: left }),
  };
};

const idOf = (data: unknown): Pick<Warning, 'id'> => {
  const { id } = (data ?? {}) as { readonly id?: unknown };
  return typeof id === 'string' ? { id } : {};
};

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

interface InvokeTools extends CarryOutTools, BodyTools {
  readonly allowances: Allowances;
  /** Those that a caller may name. */
  readonly operations: readonly Operation[];
}

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
  const byId = new Map(tools.operations.map((one) => [one.id, one]));
  const known = (operation: Operation | string): Operation => {
    const found = typeof operation === 'string' ? byId.get(operation) : operation;
    if (found === undefined) throw new BrokenInvariant(`there is no operation ${operation}`);
    return found;
  };

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
