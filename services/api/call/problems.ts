import { BlobError } from '#contracts/ports/blob-store.ts';
import { QueryTimeout } from '#contracts/ports/database.ts';
import { EventStoreError } from '#contracts/ports/event-store.ts';
import type { ErrorCode } from '#domain/codes.ts';
import { Rejection } from '#domain/decider.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import type { Issue } from '#schemas/issues.ts';
import { maxIssues } from '#schemas/validator.ts';
import type { Deps } from './deps.ts';
import { categoryOf, errors, isErrorCode } from './errors.ts';
import { Refusal } from './refusal.ts';

/** Retry-After when a store is unavailable, seconds. */
const retryAfterSeconds = 2;

/** Connection exceptions, insufficient resources, operator intervention (a server that starts or stops), a deadline. */
const unavailableSqlStates = /^(08|53|57P|57014)/;
const unavailableStoreCodes: ReadonlySet<string> = new Set([
  'unavailable',
  'outcome_unknown',
  'wrong_expected_revision',
]);
const unavailableSystemCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);
/** Texts of errors that pg throws without a code; knex puts its query before them. */
const unavailableMessages =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Knex: Timeout acquiring a connection|Cannot use a pool after calling end|Query read timeout)/i;

/** Whether a dependency is unavailable, as opposed to a bug of this service. */
const isUnavailable = (error: unknown): boolean => {
  if (error instanceof Unavailable || error instanceof QueryTimeout) return true;
  // A conflict that remains after every attempt is contention: the call wrote nothing and may be repeated.
  if (error instanceof EventStoreError) return unavailableStoreCodes.has(error.code);
  if (error instanceof BlobError) return error.code === 'unavailable';
  if (error instanceof AggregateError) return error.errors.some(isUnavailable);
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string' && (unavailableSystemCodes.has(code) || unavailableSqlStates.test(code))) return true;
  const words = code === undefined ? (error.message.split(' - ').at(-1) ?? '') : '';
  return unavailableMessages.test(words) || (error.cause !== undefined && isUnavailable(error.cause));
};

export interface ProblemAnswer {
  readonly code: ErrorCode;
  readonly detail: string | null;
  readonly errors: readonly Issue[];
  readonly extra: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** The problem that answers an error. */
export const toProblem = (error: unknown): ProblemAnswer => {
  if (error instanceof Rejection && isErrorCode(error.code)) {
    const headers = error instanceof Refusal ? error.headers : {};
    return { code: error.code, detail: error.message, errors: error.errors, extra: error.extra, headers };
  }
  if (error instanceof EventStoreError && error.code === 'too_large') {
    const detail = 'The input is too large to be stored.';
    return {
      code: 'validation_failed',
      detail,
      errors: [{ path: '', code: 'too_many_bytes', message: 'is too large to be stored' }],
      extra: {},
      headers: {},
    };
  }
  if (isUnavailable(error)) {
    const headers = { 'Retry-After': String(retryAfterSeconds) };
    return { code: 'unavailable', detail: null, errors: [], extra: {}, headers };
  }
  return { code: 'internal', detail: null, errors: [], extra: {}, headers: {} };
};

/** A problem as callers see it. */
export const problemBody = (
  deps: Pick<Deps, 'baseUrl'>,
  correlationId: string,
  { code, detail, errors: issues, extra }: Omit<ProblemAnswer, 'headers'>,
) => {
  const { status, title } = errors[code];
  return {
    ...extra,
    type: `${deps.baseUrl()}/errors/${code}`,
    title,
    status,
    code,
    category: categoryOf(status),
    ...(detail === null ? {} : { detail }),
    correlationId,
    ...(issues.length === 0 ? {} : { errors: issues.slice(0, maxIssues) }),
  };
};

/** Logs an error that is no refusal: its caller sees only the code. */
export const logFailure = (
  { logger }: Pick<Deps, 'logger'>,
  code: ErrorCode,
  call: { readonly correlationId: string; readonly operation: string | undefined },
  err: unknown,
): void => {
  if (code === 'internal') logger.error({ ...call, err }, 'failed');
  if (code === 'unavailable') logger.warn({ ...call, err }, 'a store is unavailable');
};

/** Why one item of a call was refused: stored with the result of the call, so that a repeat answers the same. */
export interface ItemProblem {
  readonly code: ErrorCode;
  readonly detail: string | null;
  readonly errors: readonly Issue[];
  readonly extra: Readonly<Record<string, unknown>>;
}

/** Bytes of one stored problem: a hundred of them fit into an event. Later entries of `errors` are left out. */
const maxBytes = 8 * 1024;

/** @throws the error itself where it is no refusal of the item: the whole call failed, and may be repeated */
export const itemProblem = (error: unknown): ItemProblem => {
  const { code, detail, errors, extra } = toProblem(error);
  if (code === 'internal' || code === 'unavailable') throw error;
  const kept = errors.slice(0, maxIssues);
  while (kept.length > 1 && Buffer.byteLength(JSON.stringify(kept)) > maxBytes) kept.pop();
  return { code, detail, errors: kept, extra };
};
