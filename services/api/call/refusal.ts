import type { ErrorCode } from '#domain/codes.ts';
import { Rejection } from '#domain/decider.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import type { Issue, IssueCode } from '#schemas/issues.ts';

interface More {
  readonly errors?: readonly Issue[];
  /** Members of the problem body beyond the standard ones. */
  readonly extra?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A refusal of the api itself: a rejection whose code is in the catalogue, with headers where the code asks for them. */
export class Refusal extends Rejection {
  readonly headers: Readonly<Record<string, string>>;
  constructor(code: ErrorCode, detail: string, { headers = {}, ...more }: More = {}) {
    super(code, detail, more);
    this.name = 'Refusal';
    this.headers = headers;
  }
}

/** The same message for unknown, malformed and foreign ids, so that it does not reveal which ids exist. */
export const notFound = (noun: string): Refusal => new Refusal('not_found', `There is no such ${noun}.`);

/** @param path JSON Pointer into the body */
export const invalid = (path: string, code: IssueCode, message: string): Refusal =>
  new Refusal('validation_failed', 'The input is not valid.', { errors: [{ path, code, message }] });

export const badParameter = (name: string, code: IssueCode, message: string): Refusal =>
  new Refusal('invalid_parameter', `The parameter ${name} ${message}.`, {
    errors: [{ path: `/${name}`, code, message }],
  });

/** @throws Unavailable: the caller may repeat the call under the same key */
export const tooLate = (): never => {
  throw new Unavailable('The stores behind this call did not answer in time.');
};
