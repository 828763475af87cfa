import { setImmediate } from 'node:timers/promises';
import { within } from '#contracts/base/pause.ts';
import { noteFeedUse } from '#projections/feed/uses.ts';
import { decodeToken, encodeToken, mergePositions, RecentWrites } from '#runtime/eventing/consistency.ts';
import { type CommandContext, type Positions, Unavailable, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { fingerprintOf, keyHmacOf } from '#runtime/eventing/idempotency.ts';
import type { EventActor } from '#schemas/common.ts';
import type { Warning } from '#schemas/http/common.ts';
import type { Topic } from '#schemas/topics.ts';
import { limitToClients, namesOther, requireOpenToLimited, requireRole, requireScope } from './access.ts';
import { type Allowances, spend } from './allowances.ts';
import { commandsOf, ifMatch } from './commands.ts';
import type { CallPatience, Deps, Readers } from './deps.ts';
import { type BodyTools, releaseBody, takeBody, takeKey, takeParams, takeQuery } from './input.ts';
import {
  type Answer,
  type Call,
  type CalledState,
  type Commands,
  type LineStream,
  nounOf,
  type Principal,
  type Raw,
} from './operation.ts';
import { notFound, tooLate } from './refusal.ts';
import type { Warnings } from './warnings.ts';
import type { Warned, Wire } from './wire.ts';

/**
 * One call of an operation, from the caller that is known to the answer. REST, MCP and the console all come this way;
 * they differ in their wire. The same key therefore makes a REST call and an invocation the same call.
 */

/** What the steps work with. */
export interface CallTools extends BodyTools {
  readonly deps: Deps;
  readonly allowances: Allowances;
  readonly ownWrites: OwnWrites;
  readonly warnings: Warnings;
  readonly patience: CallPatience;
}

type Work<Result> = (state: CalledState, wire: Wire, tools: CallTools) => Result;

interface Step {
  readonly name: string;
  /** @throws Refusal or Rejection; the steps after it are then not taken */
  readonly take: Work<Promise<void> | void>;
  /** At the end of a call that began this step, however the call ended; the latest step first. */
  readonly giveBack?: Work<void>;
}

/** Who reads what happened is recorded before it is answered. */
const noteUse = async ({ operation, principal, params, query }: CalledState, { deps }: CallTools): Promise<void> => {
  if (principal === null) return;
  const { limit: _limit, cursor: _cursor, ...asked } = query as Readonly<Record<string, unknown>>;
  await noteFeedUse(deps.pool, {
    ...{ workspaceId: principal.workspaceId, credential: `${principal.kind} ${principal.id}`, range: null },
    asked: JSON.stringify({ operation: operation.id, ...(params as object), ...asked }),
  });
};

/** @throws Refusal, Rejection, or the error of a store */
const carryOut: Work<Promise<void>> = async (state, wire, tools) => {
  const { operation } = state;
  const { callMs } = tools.patience;
  const principal = state.principal ?? nobody;
  const isPast = 'asOf' in (state.query as object);
  if ((operation.scope === 'events.read' && operation.notesUse !== true) || isPast) await noteUse(state, tools);
  const work: Promise<Answer> = aheadOf(state, tools).then((aheadMs) =>
    operation.handle(callOf(state, wire, tools, aheadMs) as Call<never, never, never>),
  );
  const made = await within(callMs, work, tooLate);
  if (principal.clientIds !== null && (await showsOther(made, principal.clientIds))) {
    tools.deps.logger.error(
      { operation: operation.id, correlationId: state.correlationId },
      'an answer named a client beyond the limit of its caller',
    );
    throw notFound(nounOf(operation));
  }
  await wire.answer(made, 'raw' in made || 'begin' in made ? {} : await warningsOf(tools, state, made));
};

/** The caller reads the events that the call stored; after a refusal too, because a call may store events before it refuses. */
const rememberWrites: Work<void> = ({ principal, positions }, wire, { ownWrites }) => {
  if (positions.size > 0) wire.wrote(ownWrites.remember((principal ?? nobody).id, positions));
};

/** A workspace that was moved or is to be erased answers nothing. */
const requireOpenWorkspace: Work<Promise<void>> = async ({ principal }, _wire, { deps }) => {
  if (principal !== null) await deps.closed?.requireOpen(principal.workspaceId);
};

/** The steps of every call, in their order: the first that refuses is the answer. */
export const steps: readonly Step[] = [
  { name: 'open workspace', take: requireOpenWorkspace },
  { name: 'scope', take: requireScope },
  { name: 'role', take: requireRole },
  { name: 'whole workspace', take: requireOpenToLimited },
  { name: 'allowance', take: spend },
  { name: 'params', take: takeParams },
  { name: 'query', take: takeQuery },
  { name: 'body', take: takeBody, giveBack: releaseBody },
  { name: 'key', take: takeKey },
  { name: 'clients', take: limitToClients },
  { name: 'carry out', take: carryOut, giveBack: rememberWrites },
];

/** @throws Refusal or Rejection, see `toProblem`; or the error of a store */
export const call = async (tools: CallTools, state: CalledState, wire: Wire): Promise<void> => {
  using ends = new DisposableStack();
  for (const { take, giveBack } of steps) {
    if (giveBack !== undefined) ends.defer(() => giveBack(state, wire, tools));
    await take(state, wire, tools);
  }
};

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

/** Milliseconds by which the clock of the caller's workspace is ahead: that of a live one never is. @throws Unavailable */
const aheadOf = async ({ operation, principal }: CalledState, { deps }: CallTools): Promise<number> => {
  if (operation.tag.realTime === true || principal?.mode !== 'test' || deps.sandboxClocks === undefined) return 0;
  try {
    return await deps.sandboxClocks.aheadOf(principal.workspaceId);
  } catch (error) {
    throw new Unavailable('The clock of the sandbox cannot be read.', { cause: error });
  }
};

/** What the operation gets. */
const callOf = (
  state: CalledState,
  wire: Wire,
  { deps, ownWrites, patience, allowances }: CallTools,
  aheadMs: number,
): Call => {
  const { operation, correlationId, params, query, body, entries, notes, unseen, key, positions } = state;
  const principal = state.principal ?? nobody;
  const { workspaceId } = principal;
  const realMs = deps.clock();
  const [realNow, now] = [new Date(realMs).toISOString(), new Date(realMs + aheadMs).toISOString()];
  const asked = { operation: operation.id, params, query, body };
  const fingerprint = key === null ? '' : fingerprintOf(deps.secrets, workspaceId, asked);
  const context: CommandContext = {
    workspaceId,
    actor: eventActorOf(principal),
    correlationId,
    causationId: correlationId,
    commandId: uuidv7(),
    now,
    aheadMs,
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
    realNow,
    context,
    positions,
    guard: operation.ifMatch === true ? ifMatch(wire.ifMatch) : () => undefined,
    accepts: wire.accepts,
    behind: (topics, readers) => ownWrites.behind(principal.id, wire.consistencyToken, topics, readers),
    charge: (requests) => allowances.of(state).owe(wire.limitHeaders, requests),
  };
  return { ...asking, ...commandsOf(asking, operation) };
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

/** Warnings of one answer, and of the answer to a call whose body has entries. */
const maxWarnings = 20;
const maxWarningsOfEntries = 100;

/** What the caller should know of the data of an answer, and of the body that it sent. */
const warningsOf = async (
  { warnings }: Pick<CallTools, 'warnings'>,
  { operation, principal, notes }: Pick<CalledState, 'operation' | 'principal' | 'notes'>,
  made: Exclude<Answer, Raw | LineStream>,
): Promise<Warned> => {
  if (operation.method === 'GET') {
    if ('items' in made) return {};
    // What is wrong now says nothing of then.
    if ('asOf' in made && made.asOf !== undefined) return { asOf: made.asOf };
    const data = (): unknown => ('json' in made ? JSON.parse(made.json) : made.data);
    const own = 'page' in made ? (made.warnings ?? []) : [];
    const found = [...own, ...(await warnings.of((principal ?? nobody).workspaceId, data))].slice(0, maxWarnings);
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

/** How long a read waits until the read models have applied the caller's writes, milliseconds. */
const waitMs = 2_000;

/**
 * A caller reads its own writes: the consistency token names them, or this process remembers the recent writes of the
 * credential.
 */
export class OwnWrites {
  readonly #deps: Pick<Deps, 'secrets' | 'caughtUp'>;
  readonly #recent = new RecentWrites();
  /** Highest position per lane that these readers are known to have applied. A lower position needs no query. */
  readonly #reached: Readonly<Record<Readers, Positions>> = { 'read models': new Map(), dispatcher: new Map() };

  constructor(deps: Pick<Deps, 'secrets' | 'caughtUp'>) {
    this.#deps = deps;
  }

  /** The token of a call that stored something. */
  remember(credential: string, positions: Positions): string {
    this.#recent.remember(credential, positions);
    return encodeToken(this.#deps.secrets, positions);
  }

  /** True when the readers lack events that the caller wrote to these topics, after the wait. */
  async behind(
    credential: string,
    token: string,
    topics: readonly Topic[],
    readers: Readers = 'read models',
  ): Promise<boolean> {
    const reached = this.#reached[readers];
    const wanted: Positions = new Map();
    const brought = token === '' ? null : decodeToken(this.#deps.secrets, token);
    for (const positions of [this.#recent.of(credential), brought]) {
      if (positions !== null) mergePositions(wanted, positions);
    }
    for (const [lane, position] of wanted) {
      const elsewhere = !topics.some((topic) => lane.startsWith(`${topic}-`));
      if (elsewhere || position <= (reached.get(lane) ?? -1n)) wanted.delete(lane);
    }
    if (wanted.size === 0) return false;
    if (!(await this.#deps.caughtUp(wanted, waitMs, readers))) return true;
    mergePositions(reached, wanted);
    return false;
  }
}
