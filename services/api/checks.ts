import { isTimezone } from '#domain/zones.ts';
import { invalid } from './refusal.ts';

/** Rules about values that a schema cannot say. */

/** @throws Refusal 422 naming the member. */
export const requireTimezone = (timezone: string | null | undefined, path: string): void => {
  if (timezone !== null && timezone !== undefined && !isTimezone(timezone)) {
    throw invalid(path, 'unknown_timezone', 'must be an IANA timezone, such as Europe/Berlin');
  }
};

/** The largest serialised body, in bytes, that fits into one event beside the other members of the event. */
const maxStored = 400 * 1024;

/** Runs before the first of several appends, so that a body that is too large leaves no trace. @throws Refusal 422 */
export const requireStorable = (body: unknown): void => {
  if (Buffer.byteLength(JSON.stringify(body)) > maxStored)
    throw invalid('', 'too_many_bytes', `must be at most ${maxStored} bytes as stored`);
};
