import type { TObject } from 'typebox';
import type { Warning } from '#schemas/http/common.ts';
import type { Answer, Call, Operation, PastMoment } from './operation.ts';

/** Where an allowance tells what is left of it: the headers of an answer. */
export interface LimitHeaders {
  set(name: string, value: string): void;
}

/** The text of a body, and the most values that it can hold. */
export interface BodyText {
  readonly text: Buffer;
  readonly values: number;
}

/** Holds the bytes of one body and counts what is in it, while it comes. */
export interface BodyMeter {
  /** Of the whole body. */
  readonly maxBytes: number;
  readonly values: number;
  /** @throws Refusal 413, 400, 503 */
  take(chunk: Buffer): void;
}

/** What stands beside the data of an answer: members of its `meta`. */
export interface Warned {
  readonly asOf?: PastMoment;
  readonly warnings?: readonly Warning[];
  /** Beyond these; absent: all are shown. */
  readonly moreWarnings?: number;
}

/**
 * How one caller's request reaches the steps of a call, and how the answer reaches the caller. The api has a wire over
 * HTTP; other parts of the server have one inside the process, see `invoke.ts`.
 */
export interface Wire {
  readonly params: unknown;
  /** Whether the query has the parameter: the price of the call depends on it, and the query is read later. */
  hasParameter(name: string): boolean;
  /** The values of the query as the schema names them. @throws Refusal 400 for a parameter that the schema lacks */
  readQuery(schema: TObject | undefined): Readonly<Record<string, unknown>>;
  /** Bytes of the body as the caller announced them; 0: not announced. */
  readonly announcedBytes: number;
  /** Null where the caller sent no body and the operation needs none. @throws Refusal 413, 415, 400, 503 */
  readBody(operation: Operation, meter: BodyMeter): Promise<BodyText | null>;
  /** Undefined: the caller sent none. The same for `ifMatch`. */
  readonly idempotencyKey: string | readonly string[] | undefined;
  readonly ifMatch: string | undefined;
  /** Empty: the caller sent none. */
  readonly consistencyToken: string;
  readonly accepts: Call['accepts'];
  /** Requests of this call that the credential has paid for already. */
  readonly paid: number;
  /** Learns what is left of the allowance. */
  readonly limitHeaders: LimitHeaders;
  /** Gives the caller the answer. The bytes of the body are held until then. */
  answer(made: Answer, warned: Warned): Promise<void> | void;
  /** The token of what the call stored. It comes after a refusal too, because a call may store events before it refuses. */
  wrote(consistencyToken: string): void;
}
