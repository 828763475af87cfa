import { rulesIssues } from '#domain/client-rules.ts';
import { isTimezone } from '#domain/zones.ts';
import type { ClientFields } from '#schemas/client.ts';
import { invalid, Refusal } from './refusal.ts';

/** Rules about values that a schema cannot say. */

/** @throws Refusal 422 naming the member. */
export const requireTimezone = (timezone: string | null | undefined, path: string): void => {
  if (timezone !== null && timezone !== undefined && !isTimezone(timezone)) {
    throw invalid(path, 'unknown_timezone', 'must be an IANA timezone, such as Europe/Berlin');
  }
};

/** @throws Refusal 422 for rules that are too many or too long */
export const requireRules = (rules: ClientFields['rules'] | null | undefined): void => {
  const errors = rulesIssues(rules ?? {}).map((one) => ({ ...one, path: `/rules${one.path}` }));
  if (errors.length > 0) throw new Refusal('validation_failed', 'The input is not valid.', { errors });
};

/** The largest serialised body, in bytes, that fits into one event beside the other members of the event. */
const maxStored = 400 * 1024;

/** Runs before the first of several appends, so that a body that is too large leaves no trace. @throws Refusal 422 */
export const requireStorable = (body: unknown): void => {
  if (Buffer.byteLength(JSON.stringify(body)) > maxStored)
    throw invalid('', 'too_many_bytes', `must be at most ${maxStored} bytes as stored`);
};
