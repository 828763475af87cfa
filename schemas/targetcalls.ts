import { Type } from 'typebox';
import { type EventOf, Instant, Nullable, Personal, Uuid } from './common.ts';

/** What was asked of a target's network, and what it answered. Nothing in it lets anybody in. */

/** Events of one target; further calls are only counted, in the publisher's metrics. */
export const maxKeptCalls = 200;
/** Bytes of an answer that are kept; that is at most as many characters. */
export const maxKeptAnswer = 4_096;

export const targetcallsEvents = {
  /** One call, or equal pieces of one upload in a row. */
  TargetNetworkCallObserved: Type.Object({
    targetId: Uuid,
    accountId: Uuid,
    clientId: Uuid,
    /** The attempt of the target that was under way. */
    attempt: Type.Integer({ minimum: 0 }),
    method: Type.String({ maxLength: 10 }),
    host: Type.String({ maxLength: 300 }),
    /** With the names of the query's members, without their values. */
    path: Type.String({ maxLength: 500 }),
    /** Of the request, without values that are secret or tell of a person. */
    headers: Type.Record(Type.String({ maxLength: 100 }), Type.String({ maxLength: 300 })),
    /** Of the bytes that went out; null: there were none, they are secret, or the event stands for several calls. */
    bodySha256: Nullable(Type.String({ pattern: '^[0-9a-f]{64}$' })),
    outcome: Type.Enum(['answered', 'unsent', 'silent']),
    status: Nullable(Type.Integer({ minimum: 100, maximum: 999 })),
    /** Why there is no answer; null: there is one. */
    reason: Nullable(Type.String({ maxLength: 200 })),
    /** Its beginning, without credentials; null: none, or all of it is secret. */
    answer: Personal(maxKeptAnswer),
    /** Calls that this event stands for. */
    calls: Type.Integer({ minimum: 1 }),
    /** Of the first of them. */
    startedAt: Instant,
    /** Of the last of them. */
    endedAt: Instant,
  }),
} as const;
export type TargetCallsEvent = EventOf<typeof targetcallsEvents>;
