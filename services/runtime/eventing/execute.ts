import { isConflict } from '#contracts/ports/event-store.ts';
import type { Decider } from '#domain/decider.ts';
import type { DecodedEvent } from './codec.ts';
import {
  asFacts,
  type CommandContext,
  type DomainStore,
  type Loaded,
  type Positions,
  partitionKeyOf,
} from './domain-store.ts';
import { requireRoom } from './stream-room.ts';

export interface Executed<State> extends Loaded<State> {
  /** Events that this command appended; empty when it had nothing to do. */
  readonly appended: readonly DecodedEvent[];
}

export interface ExecuteOptions<State> {
  /** Key that orders the events in the log where the stream's name does not give it: the post id, for targets. */
  readonly partitionKey?: string;
  readonly positions?: Positions;
  /**
   * False for commands that depend on the state they saw (a worker's claim): a conflict then ends them. Default true.
   */
  readonly redecide?: boolean;
  /** Throws when the caller may not touch the stream, or expected another state. Runs on every fold. */
  readonly guard?: (loaded: Loaded<State>) => void;
  /** True for a change that a caller can do without: a stream at its limit refuses it, see `stream-room.ts`. */
  readonly optional?: boolean;
  /** Skips the first load when the caller holds the newest fold; after a conflict the stream is loaded again. */
  readonly loaded?: Loaded<State>;
}

/** Rounds of decide and append before the command gives up on a stream under constant writes. */
const maxRounds = 50;

/**
 * Loads, folds, decides, and appends at the revision it read. After a conflict it decides again on the new state. A
 * crash before the append leaves nothing; after it, a repeat of the command finds it done and yields `[]`.
 */
export const execute = async <State, Command, Event extends { readonly type: string; readonly data: unknown }>(
  store: DomainStore,
  decider: Decider<State, Command, Event>,
  id: string,
  command: Command,
  context: CommandContext,
  options: ExecuteOptions<State> = {},
): Promise<Executed<State>> => {
  const stream = `${decider.kind}-${id}`;
  let loaded = options.loaded ?? (await store.load(decider, id));
  for (let round = 1; ; round += 1) {
    options.guard?.(loaded);
    const decided = decider.decide(command, loaded.state);
    if (decided.length === 0) {
      // An earlier call may have stored what this one asks for, and its answer may have been lost.
      if (options.positions !== undefined) store.note(loaded.events.slice(-1), options.positions);
      return { ...loaded, appended: [] };
    }
    if (options.optional === true) requireRoom(loaded.events);
    try {
      const appended = await store.append(
        stream,
        loaded.revision,
        decided,
        context,
        options.partitionKey ?? partitionKeyOf(decider.kind, id),
        options.positions,
      );
      let state = loaded.state;
      for (const { event, fact } of asFacts<Event>(appended)) state = decider.evolve(state, event, fact);
      return { state, revision: loaded.revision + appended.length, events: [...loaded.events, ...appended], appended };
    } catch (error) {
      if (!isConflict(error) || options.redecide === false || round >= maxRounds) throw error;
      loaded = await store.load(decider, id);
    }
  }
};
