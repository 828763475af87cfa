import { EventStoreError } from '#contracts/ports/event-store.ts';
import { type Decider, Rejection } from '#domain/decider.ts';
import { keyedIdOf } from '#domain/ids.ts';
import { type RequestState, request } from '#domain/request.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { canonicalJson } from './canonical.ts';
import type { DecodedEvent } from './codec.ts';
import {
  type CommandContext,
  type DomainStore,
  foldEvents,
  type Positions,
  partitionKeyOf,
  uuidv7,
} from './domain-store.ts';
import { execute } from './execute.ts';

/**
 * A repeated call is told by a stream, never by a table beside it. A call that gives birth to one stream is that stream
 * (birth form); every other keyed call has a `request-` stream (request form).
 */

/** What the caller asked for, as far as two calls under one key must agree. */
export interface Asked {
  readonly operation: string;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

const workspaceMac = (secrets: Secrets, workspaceId: string, text: string): string =>
  secrets.mac('fingerprints', `${workspaceId}\n${text}`, secrets.oldest).toString('base64url');

/** HMAC, so that an event shows nothing of the body. Under the oldest key version: it must not change when keys rotate. */
export const fingerprintOf = (secrets: Secrets, workspaceId: string, asked: Asked): string =>
  workspaceMac(
    secrets,
    workspaceId,
    `fingerprint\n${canonicalJson([asked.operation, asked.params, asked.query, asked.body])}`,
  );

export const keyHmacOf = (secrets: Secrets, workspaceId: string, key: string): string =>
  workspaceMac(secrets, workspaceId, `key\n${key}`);

export interface Born<State> {
  readonly id: string;
  /** Events of the birth: what this call appended, or what the first call did. A replay is rendered from these alone. */
  readonly events: readonly DecodedEvent[];
  readonly state: State;
  readonly replayed: boolean;
  /** The stream was born by a call under another key (a name's next claimant may do that): the events are all of it. */
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
   * Reads and decides, without effects: it is asked for a replay too, and then not heard. May refuse by throwing: when
   * nobody was born under this key yet the call is refused, and the key stays free.
   */
  readonly command: (id: string) => Promise<Command>;
  /** Right before the append, and never for a replay: what has to be held for the new stream. May refuse by throwing. */
  readonly reserve?: (id: string) => Promise<void>;
  readonly decider: Decider<State, Command, { readonly type: string; readonly data: unknown }>;
}

/**
 * Birth form. The stream's id follows from (workspace, operation, key), so of many callers one append wins; the others
 * read what it wrote. If we die before the append the key is free; after it, a repeat finds the stream.
 */
export const createIdempotently = async <State, Command>(
  options: BirthOptions<State, Command>,
): Promise<Born<State>> => {
  const { store, decider, context, positions } = options;
  const id = keyedIdOf(context.workspaceId, options.operation, options.key);
  const stream = `${decider.kind}-${id}`;
  const partitionKey = partitionKeyOf(decider.kind, id);
  // Side by side, as nearly every call is a first one; a command has no effects of its own.
  const asked = options.command(id);
  asked.catch(() => undefined);
  const known = await store.readStream(stream);
  if (known.length > 0) return replay(options, id, known);
  const command = await asked;
  const decided = decider.decide(command, decider.initial);
  await options.reserve?.(id);
  try {
    const events = await store.append(stream, -1, decided, context, partitionKey, positions);
    faultPoint('birth:after-append');
    return { id, events, state: foldEvents(decider, events), replayed: false, other: false };
  } catch (error) {
    if (!(error instanceof EventStoreError && error.code === 'wrong_expected_revision')) throw error;
    return replay(options, id, await store.readStream(stream));
  }
};

const replay = <State, Command>(
  { store, context, decider, positions }: BirthOptions<State, Command>,
  id: string,
  events: readonly DecodedEvent[],
): Born<State> => {
  const first = events[0]?.metadata;
  if (first?.keyHmac !== context.keyHmac)
    return { id, events, state: foldEvents(decider, events), replayed: false, other: true };
  if (first?.fingerprint !== context.fingerprint) throw reused();
  const born = events.filter((one) => one.metadata.commandId === first?.commandId);
  store.note(born, positions);
  return { id, events: born, state: foldEvents(decider, born), replayed: true, other: false };
};

const reused = () => new Rejection('idempotency_key_reused', 'This Idempotency-Key was used with another request.');

export interface RequestOptions<Decided, Result> {
  readonly store: DomainStore;
  readonly operation: string;
  /** Null: the caller sent none; then nothing is remembered. */
  readonly key: string | null;
  readonly fingerprint: string;
  readonly context: CommandContext;
  /** Checks and decides absolute values, once. May refuse by throwing: then nothing was accepted. */
  readonly accept: () => Promise<Decided>;
  /**
   * Carries out what was decided. Its commands carry the given context's commandId, so that a repeat finds each done.
   * A `Rejection` thrown here refuses the call and frees the key.
   */
  readonly effects: (decided: Decided, context: CommandContext) => Promise<Result>;
}

export interface Requested<Result> {
  readonly result: Result;
  readonly replayed: boolean;
}

/**
 * Request form: accepted → effects → completed. If we die between any two, a repeat of the call resumes with the values
 * that were accepted; effects that were made are recognised by their commandId and yield nothing. Two callers at once
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
  const accepted = before.state.status === 'free' ? await accept(options, id) : before.state;
  // Another caller accepted and was refused in between: the key is free again.
  if (accepted.status === 'free') return withIdempotencyRecord(options);
  if (accepted.fingerprint !== fingerprint) throw reused();
  if (accepted.status === 'done') return { result: accepted.result as Result, replayed: true };
  const replayed = before.state.status !== 'free';
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
    // Of two callers at once the first to complete says what the answer is.
    const first = completed.state.status === 'done' ? (completed.state.result as Result) : result;
    return { result: first, replayed };
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    const refuse = { type: 'Refuse', commandId: accepted.commandId } as const;
    const { state } = await execute(store, request, id, refuse, context);
    // Another caller has carried it out by now: what refused us came after that.
    if (state.status === 'done' && state.commandId === accepted.commandId) {
      return { result: state.result as Result, replayed: true };
    }
    throw error;
  }
};

const accept = async <Decided, Result>(options: RequestOptions<Decided, Result>, id: string): Promise<RequestState> => {
  const { store, operation, fingerprint, context } = options;
  const decided = await options.accept();
  const accepted = await execute(store, request, id, { type: 'Accept', operation, fingerprint, decided }, context);
  return accepted.state;
};
