import { type Static, Type } from 'typebox';
import { Instant, Nullable, Platform } from './common.ts';

/** How often an account may publish: what an operator sets for a workspace, and what networks report of an account. */

export const maxIntervalMinutes = 1_440;
export const maxPerDay = 10_000;

/** Of all networks where `platform` is null; one for a network replaces that. Both members null: no rule. */
export const CadenceRule = Type.Object({
  platform: Nullable(Platform),
  /** Between two targets of one account. */
  minIntervalMinutes: Nullable(Type.Integer({ minimum: 1, maximum: maxIntervalMinutes })),
  /** Targets of one account within any 24 hours. */
  perDay: Nullable(Type.Integer({ minimum: 0, maximum: maxPerDay })),
});
export type CadenceRule = Static<typeof CadenceRule>;

/** A limit that the network reports for one account. */
export const ObservedWindow = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 100 }),
  seconds: Type.Integer({ minimum: 1, maximum: 31 * 86_400 }),
  limit: Type.Integer({ minimum: 0 }),
  /** Calls that the network counts in it, also those that others made. */
  used: Type.Integer({ minimum: 0 }),
  resetsAt: Nullable(Instant),
});
export type ObservedWindow = Static<typeof ObservedWindow>;
