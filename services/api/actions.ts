import type { Decider } from '#domain/decider.ts';
import type { CommandContext, Loaded } from '#runtime/eventing/domain-store.ts';
import type { Created, Requested } from '#runtime/eventing/idempotency.ts';

/** How an operation writes to streams. */

/** An event, as every decider gives it. */
export interface Stored {
  readonly type: string;
  readonly data: unknown;
}

export interface Creation<Command> {
  /** Checks and decides, without effects: a repeat runs it too. May refuse by throwing: then the key stays free. */
  readonly command: (id: string) => Promise<Command>;
  /** Right before the append, never for a repeat: takes what the new stream needs. May refuse by throwing. */
  readonly reserve?: (id: string) => Promise<void>;
}

export interface Action<State, Command, Decided> {
  /** Refuses what the caller may not touch; the default: another workspace's (404), another revision than If-Match (412). */
  readonly guard?: (loaded: Loaded<State>) => void;
  /** Default: the stream that the path names. */
  readonly load?: () => Promise<Loaded<State>>;
  /** Checks and decides absolute values, once: a repeat carries out the same. May refuse by throwing. */
  readonly accept?: (loaded: Loaded<State>) => Promise<Decided>;
  readonly command: (decided: Decided, context: CommandContext) => Command;
  /** True: a stream that is full refuses it, see `stream-room.ts`. */
  readonly optional?: boolean;
  /** A rule that asks more than the stream: it holds at the very revision that the command is appended at. */
  readonly rule?: (loaded: Loaded<State>) => Promise<void>;
  /** Where the stream's name does not tell it. */
  readonly partitionKey?: (state: State) => string;
}

/** The stream as the command left it, this time or the first: later events are not among them. */
export interface Acted<State> extends Loaded<State> {
  readonly replayed: boolean;
}

/** A kind of stream, as an operation writes to it. */
export interface StreamCommands<State, Command> {
  /** Creates a stream; a repeat under the same key answers the first one. */
  readonly create: (creation: Creation<Command>) => Promise<Created<State>>;
  /**
   * One command on one stream. If we die between acceptance and the append, the repeat appends the accepted values; after
   * the append, it finds the command in the stream and appends nothing.
   */
  readonly act: <Decided = void>(action: Action<State, Command, Decided>) => Promise<Acted<State>>;
}

export interface Commands {
  readonly stream: <State, Command>(decider: Decider<State, Command, Stored>) => StreamCommands<State, Command>;
  /** For what touches more than one stream: accepted once, carried out until it is done. */
  readonly once: <Decided, Result>(
    accept: () => Promise<Decided>,
    effects: (decided: Decided, context: CommandContext) => Promise<Result>,
  ) => Promise<Requested<Result>>;
}
