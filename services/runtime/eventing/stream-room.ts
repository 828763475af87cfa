import { Rejection } from '#domain/decider.ts';
import type { DecodedEvent } from './codec.ts';

/**
 * How many events optional commands of callers may add to a stream. Each command reads its stream, so an endless stream
 * slows every further command on it, for its own tenant and for all others. Facts recorded by workers, and commands
 * that end or narrow something (publish, cancel, turn off, archive, delete, erase), are never refused.
 */

export const maxOptionalEvents = 2_000;
export const maxOptionalBytes = 8 * 1_024 * 1_024;

/**
 * Call it with the events at the append's expected revision: then even concurrent callers exceed the limit by one
 * append at most.
 * @throws Rejection `stream_full`
 */
export const requireRoom = (events: readonly DecodedEvent[]): void => {
  const bytes = events.reduce((sum, one) => sum + one.bytes, 0);
  if (events.length < maxOptionalEvents && bytes < maxOptionalBytes) return;
  throw new Rejection(
    'stream_full',
    `This resource has ${events.length} changes of ${Math.ceil(bytes / 1_024)} KiB, and takes no more. Create a new one from it.`,
  );
};
