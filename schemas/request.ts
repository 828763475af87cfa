import { Type } from 'typebox';
import type { EventOf } from './common.ts';

/** One keyed call that creates no stream: accepted with its decision, then completed with its result. */

export const requestEvents = {
  RequestAccepted: Type.Object({
    operation: Type.String({ minLength: 1, maxLength: 100 }),
    fingerprint: Type.String({ minLength: 1, maxLength: 100 }),
    /** Absolute values, so that a repeat applies the same ones. */
    decided: Type.Unknown(),
  }),
  RequestCompleted: Type.Union([
    Type.Object({ outcome: Type.Literal('done'), result: Type.Unknown() }),
    /** The key is free again: the next call appends a new RequestAccepted. */
    Type.Object({ outcome: Type.Literal('refused') }),
  ]),
} as const;
export type RequestEvent = EventOf<typeof requestEvents>;
