import { EventStoreError } from '#contracts/ports/event-store.ts';
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
  /** What this command appended; empty when it was so already. */
  readonly appended: readonly DecodedEvent[];
}

export interface ExecuteOptions<State> {
  /** Key of order in the log where the stream's name does not tell it: the post id, for targets. */
  readonly partitionKey?: string;
  readonly positions?: Positions;
  /** False for commands that name what they saw (a worker's claim): a conflict then ends them. Default true. */
  readonly redecide?: boolean;
  /** Refuses, by throwing, what the caller may not touch or did not expect. Runs on every fold. */
  readonly guard?: (loaded: Loaded<State>) => void;
  /** True for a change that a caller could do without: a stream at its limit refuses it, see `stream-room.ts`. */
  readonly optional?: boolean;
  /** Skips the first load when the caller holds the newest fold; a conflict loads anew. */
  readonly loaded?: Loaded<State>;
}

/** Rounds of decide and append before a stream that is written to all the time wins over us. */
const maxRounds = 50;

/**
 * Loads, folds, decides, appends at the revision it read. On a conflict the decision is made again on what is there now.
 * If we die before the append nothing happened; after it, a repeat of the command finds it done and yields `[]`.
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
    if (decided.length === 0) return { ...loaded, appended: [] };
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
      const conflict = error instanceof EventStoreError && error.code === 'wrong_expected_revision';
      if (!conflict || options.redecide === false || round >= maxRounds) throw error;
      loaded = await store.load(decider, id);
    }
  }
};
