import type { DecodedEvent } from './codec.ts';
import { type CommandContext, uuidv7 } from './domain-store.ts';

/** The cause of a worker's command. */
export type Cause = Pick<CommandContext, 'workspaceId' | 'correlationId' | 'causationId' | 'causeEventId'>;

/**
 * The context of a command that a worker issues by itself.
 * @param service its name, as the metadata of stored events has it
 * @param now milliseconds since the epoch, in real time; with `aheadMs` by the clock of the workspace, which is so far ahead
 */
export const serviceContext = (service: string, cause: Cause, now: number, aheadMs?: number): CommandContext => ({
  ...cause,
  actor: { type: 'service', id: service },
  commandId: uuidv7(),
  now: new Date(now).toISOString(),
  ...(aheadMs === undefined ? {} : { aheadMs }),
});

export const causedBy = ({ id, metadata }: DecodedEvent): Cause => ({
  workspaceId: metadata.workspaceId,
  correlationId: metadata.$correlationId,
  causationId: id,
});

/** For an append that follows from this event alone: a worker that repeats it appends the same event ids. */
export const derivedFrom = (event: DecodedEvent): Cause => ({ ...causedBy(event), causeEventId: event.id });

/** Follows from the newest event that the worker saw of a stream; from `id` where it saw none. */
export const causedByNewest = (events: readonly DecodedEvent[], workspaceId: string, id: string): Cause => {
  const newest = events.at(-1);
  return newest === undefined
    ? { workspaceId, correlationId: id, causationId: id }
    : { ...causedBy(newest), workspaceId };
};
