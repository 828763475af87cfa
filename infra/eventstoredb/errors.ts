/** Maps the client's errors to those of the port. */
import db from '@eventstore/db-client';
import { status } from '@grpc/grpc-js';
import { EventStoreError, type ExpectedRevision } from '#contracts/ports/event-store.ts';
import { conflict } from '#infra/append-rules.ts';

const typed = (error: unknown): unknown => (error instanceof Error ? db.convertToCommandError(error) : error);

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const isDenied = (error: unknown): boolean =>
  error instanceof db.AccessDeniedError ||
  (error instanceof Error && 'code' in error && error.code === status.PERMISSION_DENIED);

/**
 * The error of an append that certainly wrote nothing and that a repeat would meet again. Null for every other: lost or
 * refused connections, time-outs of either side, a new leader, a server that is busy or not ready (which the batch path
 * calls unknown). Those appends are repeated with the same ids and bytes.
 */
export const refusalOf = (stream: string, expected: ExpectedRevision, raw: unknown): EventStoreError | null => {
  const error = typed(raw);
  if (error instanceof db.WrongExpectedVersionError) {
    return conflict(stream, expected, typeof error.actualVersion === 'bigint' ? error.actualVersion : 'none');
  }
  if (error instanceof db.MaxAppendSizeExceededError) {
    const message = `the store takes at most ${error.maxAppendSize} bytes in one append`;
    return new EventStoreError('too_large', message, { cause: error });
  }
  if (error instanceof db.StreamDeletedError) {
    return new EventStoreError('access_denied', `${stream} was deleted permanently`, { cause: error });
  }
  if (error instanceof db.InvalidArgumentError) {
    return new EventStoreError('invalid_event', messageOf(error), { cause: error });
  }
  return isDenied(error) ? new EventStoreError('access_denied', messageOf(error), { cause: error }) : null;
};

const detailsOf = (raw: unknown): string =>
  raw instanceof Error && 'details' in raw && typeof raw.details === 'string' ? raw.details : messageOf(raw);

const hasStatus = (raw: unknown, code: status): boolean => raw instanceof Error && 'code' in raw && raw.code === code;

/** 24.10 reports an invalid position: a read with UNKNOWN, a subscription with INVALID_ARGUMENT. */
const namesPosition = (raw: unknown): boolean =>
  (hasStatus(raw, status.UNKNOWN) && /ReadAllResult: InvalidPosition$/.test(detailsOf(raw))) ||
  (hasStatus(raw, status.INVALID_ARGUMENT) && /invalid position/i.test(detailsOf(raw)));

/**
 * Whether the position may be at fault: 23.10 answers a read from a position without a record with "… Result: Error",
 * and a subscription with the text of all its own faults.
 */
export const isAboutPosition = (raw: unknown): boolean =>
  hasStatus(raw, status.UNKNOWN) && /(ReadAllResult: Error|thrown by handler)/.test(detailsOf(raw));

/** The error of a read or a subscription: `unavailable` is temporary, the others are not. */
export const readErrorOf = (raw: unknown): EventStoreError => {
  const error = typed(raw);
  const options = { cause: raw };
  if (namesPosition(raw)) return new EventStoreError('invalid_position', detailsOf(raw), options);
  const forEver = isDenied(error) || error instanceof db.StreamDeletedError || hasStatus(raw, status.INVALID_ARGUMENT);
  return new EventStoreError(forEver ? 'access_denied' : 'unavailable', messageOf(error), options);
};

/** Whether the stream was deleted for ever, by an error of the client. */
export const isDeleted = (raw: unknown): boolean => typed(raw) instanceof db.StreamDeletedError;

/** Whether an error of the port means that the stream was deleted for ever: by an operator, or by an erasure. */
export const isDeletedStream = (error: unknown): boolean => error instanceof EventStoreError && isDeleted(error.cause);

/** Whether the client drops its connection after this error; after any other a broken one may stay. */
export const reconnects = (raw: unknown): boolean => {
  const error = typed(raw);
  return (
    error instanceof db.UnavailableError || error instanceof db.CancelledError || error instanceof db.NotLeaderError
  );
};
