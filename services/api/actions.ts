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
  /**
   * Checks and decides without effects, because a repeat runs it too. May refuse by throwing: then the key stays free.
   */
  readonly command: (id: string) => Promise<Command>;
  /**
   * Takes the room that the new stream needs, right before the append and never for a repeat. May refuse by throwing.
   */
  readonly reserve?: (id: string, command: Command) => Promise<void>;
}

export interface Action<State, Command, Decided> {
  /**
   * Refuses a stream that the caller may not change. Default: refuses a stream of another workspace (404) and a
   * revision that If-Match does not name (412).
   */
  readonly guard?: (loaded: Loaded<State>) => void;
  /** Default: the stream that the path names. */
  readonly load?: () => Promise<Loaded<State>>;
  /** Checks and decides absolute values once: a repeat carries out the same values. May refuse by throwing. */
  readonly accept?: (loaded: Loaded<State>) => Promise<Decided>;
  readonly command: (decided: Decided, context: CommandContext) => Command;
  /** True: a full stream refuses the command, see `stream-room.ts`. */
  readonly optional?: boolean;
  /**
   * A rule that reads, or claims, more than the stream. The rule holds at the revision at which the command is appended.
   */
  readonly rule?: (loaded: Loaded<State>, decided: Decided) => Promise<void>;
  /** The partition key, where it does not follow from the stream's name. */
  readonly partitionKey?: (state: State) => string;
}

/** The stream as the command left it, in this call or in the first one, without later events. */
export interface Acted<State> extends Loaded<State> {
  readonly replayed: boolean;
}

/** A kind of stream, as an operation writes to it. */
export interface StreamCommands<State, Command> {
  /** Creates a stream; a repeat under the same key answers the first one. */
  readonly create: (creation: Creation<Command>) => Promise<Created<State>>;
  /**
   * One command on one stream. If we die between acceptance and the append, the repeat appends the accepted values. If
   * we die after the append, the repeat finds the command in the stream and appends nothing.
   */
  readonly act: <Decided = void>(action: Action<State, Command, Decided>) => Promise<Acted<State>>;
}

export interface Commands {
  readonly stream: <State, Command>(decider: Decider<State, Command, Stored>) => StreamCommands<State, Command>;
  /** For a call that changes more than one stream: accepts it once and carries it out until it is done. */
  readonly once: <Decided, Result>(
    accept: () => Promise<Decided>,
    effects: (decided: Decided, context: CommandContext) => Promise<Result>,
  ) => Promise<Requested<Result>>;
}
