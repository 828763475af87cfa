import { isConflict } from '#contracts/ports/event-store.ts';
import { canonicalJson } from '#domain/canonical.ts';
import { birthOf, type Decider, Rejection } from '#domain/decider.ts';
import { keyedIdOf, nextKeyedIdOf } from '#domain/ids.ts';
import { type RequestState, request } from '#domain/request.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { DecodedEvent } from './codec.ts';
import {
  type CommandContext,
  type DomainStore,
  foldEvents,
  type Positions,
  partitionKeyOf,
  Unavailable,
  uuidv7,
} from './domain-store.ts';
import { execute } from './execute.ts';

/**
 * A stream identifies a repeated call, never a table beside it. A call that creates one stream is recorded in that
 * stream (create form); every other keyed call has a `request-` stream (request form).
 */

/** The parts of a call in which two calls under one key must agree. */
export interface KeyedCall {
  readonly operation: string;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

const workspaceMac = (secrets: Secrets, workspaceId: string, text: string): string =>
  secrets.mac('fingerprints', `${workspaceId}\n${text}`, secrets.oldest).toString('base64url');

/**
 * An HMAC, so that an event reveals nothing of the body. Under the oldest key version: it must not change when keys
 * rotate.
 */
export const fingerprintOf = (secrets: Secrets, workspaceId: string, call: KeyedCall): string =>
  workspaceMac(
    secrets,
    workspaceId,
    `fingerprint\n${canonicalJson([call.operation, call.params, call.query, call.body])}`,
  );

export const keyHmacOf = (secrets: Secrets, workspaceId: string, key: string): string =>
  workspaceMac(secrets, workspaceId, `key\n${key}`);

export interface Created<State> {
  readonly id: string;
  /**
   * Events of the creation: those of this call, or of the first one. The answer to a repeat is rendered from these
   * alone.
   */
  readonly events: readonly DecodedEvent[];
  readonly state: State;
  readonly replayed: boolean;
  /**
   * A call under another key created the stream (the next claimant of a name may do that): the events are the whole
   * stream.
   */
  readonly other: boolean;
}

export interface BirthOptions<State, Command> {
  readonly store: DomainStore;
  readonly operation: string;
  readonly key: string;
  /** With `keyHmac` and `fingerprint` set. */
  readonly context: CommandContext;
  readonly positions: Positions;
  /**
   * Reads and decides, without effects: it also runs for a repeat, and its result is then ignored. May refuse by
   * throwing: when no stream exists under this key yet the call is refused, and the key stays free.
   */
  readonly command: (id: string) => Promise<Command>;
  /**
   * Runs right before the append, and never for a repeat: reserves what the new stream needs. May refuse by throwing.
   */
  readonly reserve?: (id: string, command: Command) => Promise<void>;
  readonly decider: Decider<State, Command, { readonly type: string; readonly data: unknown }>;
}

/** Creations that other callers may fence before the call gives up. */
const maxGenerations = 20;

/**
 * Create form. The stream's id follows from (workspace, operation, key), so of concurrent callers one append wins and
 * the others read its events. After a crash before the append the key is free; after it, a repeat finds the stream. A
 * stream that another caller has fenced stays as it is, and every caller of the key goes on with the next id.
 */
export const createIdempotently = async <State, Command>(
  options: BirthOptions<State, Command>,
): Promise<Created<State>> => {
  const { context, operation, key } = options;
  let id = keyedIdOf(context.workspaceId, operation, key);
  for (let generation = 1; generation <= maxGenerations; generation += 1) {
    const created = await createAs(options, id);
    if (created !== null) return created;
    id = nextKeyedIdOf(context.workspaceId, operation, key, generation);
  }
  throw new Unavailable('Other callers ended every creation under this Idempotency-Key.');
};

/** Null where another caller has fenced the stream. */
const createAs = async <State, Command>(
  options: BirthOptions<State, Command>,
  id: string,
): Promise<Created<State> | null> => {
  const { store, decider, context, positions } = options;
  const isFenced = (events: readonly DecodedEvent[]): boolean =>
    events.length > 0 && birthOf(decider, events) === undefined;
  const stream = `${decider.kind}-${id}`;
  const partitionKey = partitionKeyOf(decider.kind, id);
  // Both at once, as nearly every call is a first one; a command has no effects of its own.
  const pending = options.command(id);
  pending.catch(() => undefined);
  const known = await store.readStream(stream);
  if (isFenced(known)) return null;
  if (known.length > 0) return replay(options, id, known);
  const command = await pending;
  const decided = decider.decide(command, decider.initial);
  await options.reserve?.(id, command);
  try {
    const events = await store.append(stream, -1, decided, context, partitionKey, positions);
    faultPoint('birth:after-append');
    return { id, events, state: foldEvents(decider, events), replayed: false, other: false };
  } catch (error) {
    if (!isConflict(error)) throw error;
    const others = await store.readStream(stream);
    return isFenced(others) ? null : replay(options, id, others);
  }
};

const replay = <State, Command>(
  { store, context, decider, positions }: BirthOptions<State, Command>,
  id: string,
  events: readonly DecodedEvent[],
): Created<State> => {
  const birth = birthOf(decider, events)?.metadata;
  if (birth?.keyHmac !== context.keyHmac)
    return { id, events, state: foldEvents(decider, events), replayed: false, other: true };
  if (birth?.fingerprint !== context.fingerprint) throw reused();
  const created = events.filter((one) => one.metadata.commandId === birth?.commandId);
  store.note(created, positions);
  return { id, events: created, state: foldEvents(decider, created), replayed: true, other: false };
};

const reused = () => new Rejection('idempotency_key_reused', 'This Idempotency-Key was used with another request.');

export interface RequestOptions<Decided, Result> {
  readonly store: DomainStore;
  readonly operation: string;
  /** Null: the caller sent no key, and nothing is recorded. */
  readonly key: string | null;
  readonly fingerprint: string;
  readonly context: CommandContext;
  /** Checks the call and decides absolute values, once. May refuse by throwing: then nothing was accepted. */
  readonly accept: () => Promise<Decided>;
  /**
   * Carries out the decision. Its commands carry the given context's commandId, so that a repeat finds each of them
   * done. A `Rejection` thrown here refuses the call and frees the key.
   */
  readonly effects: (decided: Decided, context: CommandContext) => Promise<Result>;
}

export interface Requested<Result> {
  readonly result: Result;
  readonly replayed: boolean;
}

/**
 * Request form: accepted → effects → completed. After a crash between any two, a repeat of the call resumes with the
 * accepted values; the deciders recognise finished effects by their commandId and yield nothing. Two concurrent callers
 * carry out the same effects; each is made once.
 */
export const withIdempotencyRecord = async <Decided, Result>(
  options: RequestOptions<Decided, Result>,
): Promise<Requested<Result>> => {
  const { store, key, context, operation, fingerprint } = options;
  if (key === null) {
    const decided = await options.accept();
    return { result: await options.effects(decided, { ...context, commandId: uuidv7() }), replayed: false };
  }
  const id = keyedIdOf(context.workspaceId, operation, key);
  const before = await store.load(request, id);
  const { state: accepted, refused } =
    before.state.status === 'free' ? await accept(options, id) : { state: before.state, refused: false };
  // Another caller accepted and was refused in between: the key is free again.
  if (accepted.status === 'free') return withIdempotencyRecord(options);
  if (accepted.fingerprint !== fingerprint) throw reused();
  if (accepted.status === 'done') return { result: accepted.result as Result, replayed: true };
  const replayed = refused || before.state.status !== 'free';
  faultPoint('request:after-accept');
  try {
    const result = await options.effects(accepted.decided as Decided, { ...context, commandId: accepted.commandId });
    faultPoint('request:after-effects');
    const completed = await execute(
      store,
      request,
      id,
      { type: 'Complete', commandId: accepted.commandId, result },
      context,
    );
    // Of two concurrent callers the first to complete decides the answer.
    const first = completed.state.status === 'done' ? (completed.state.result as Result) : result;
    return { result: first, replayed };
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    const refuse = { type: 'Refuse', commandId: accepted.commandId } as const;
    // A call that accepted nothing frees no key: the caller that accepted may still carry out its effects.
    const { state } = refused ? await store.load(request, id) : await execute(store, request, id, refuse, context);
    // Another caller has carried it out meanwhile, and this refusal came after that.
    if (state.status === 'done' && state.commandId === accepted.commandId) {
      return { result: state.result as Result, replayed: true };
    }
    throw error;
  }
};

interface Acceptance {
  readonly state: RequestState;
  /** This call was refused, and the state is that of a concurrent caller. */
  readonly refused: boolean;
}

const accept = async <Decided, Result>(options: RequestOptions<Decided, Result>, id: string): Promise<Acceptance> => {
  const { store, operation, fingerprint, context } = options;
  try {
    const decided = await options.accept();
    const accepted = await execute(store, request, id, { type: 'Accept', operation, fingerprint, decided }, context);
    return { state: accepted.state, refused: false };
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    // The refusal may be the work of a concurrent caller under this key: its effect is in the way of this call.
    const { state } = await store.load(request, id);
    if (state.status === 'free') throw error;
    return { state, refused: true };
  }
};
