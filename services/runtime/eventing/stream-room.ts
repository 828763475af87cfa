import { Rejection } from '#domain/decider.ts';
import type { DecodedEvent } from './codec.ts';

/**
 * How long a stream may become through optional commands of callers. Each command reads its stream, so a stream without
 * an end makes every further command on it slower, for its own tenant and for all others. Facts that workers record, and
 * commands that end or narrow a thing (publish, cancel, turn off, archive, delete, erase), are never refused.
 */

export const maxOptionalEvents = 2_000;
export const maxOptionalBytes = 8 * 1_024 * 1_024;

/**
 * Holds at the revision of these events: an append at exactly that revision exceeds the limit by itself at most, however
 * many callers there are.
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
