import { setImmediate } from 'node:timers/promises';
import { within } from '#contracts/base/within.ts';
import { type CommandContext, Unavailable, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { fingerprintOf, keyHmacOf } from '#runtime/eventing/idempotency.ts';
import type { EventActor } from '#schemas/common.ts';
import type { Warning } from '#schemas/http/common.ts';
import type { Commands } from '../actions.ts';
import { commandsOf } from '../commands.ts';
import type { CallPatience, Deps } from '../deps.ts';
import { ifMatch } from '../if-match.ts';
import { type Answer, type Call, nounOf, type Operation, type Principal, type Raw } from '../operation.ts';
import type { OwnWrites } from '../own-writes.ts';
import { notFound } from '../refusal.ts';
import type { CallState } from '../state.ts';
import type { Warnings } from '../warnings.ts';
import { namesOther } from './client-limits.ts';

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

export interface Warned {
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
