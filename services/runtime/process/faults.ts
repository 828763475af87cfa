import { DatabaseError } from 'pg';
import { BlobError } from '#contracts/ports/blob-store.ts';
import { MissingKey } from '#contracts/ports/data-keys.ts';
import { QueryTimeout } from '#contracts/ports/database.ts';
import { EventStoreError } from '#contracts/ports/event-store.ts';
import { LogError } from '#contracts/ports/log.ts';
import { Rejection } from '#domain/decider.ts';
import { InvalidEvent, UnknownEvent } from '#runtime/eventing/codec.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from './invariant.ts';

/**
 * Classifies errors for the next try. There are two questions, and two lists on purpose: a lane asks whether to stop,
 * and must not stop at a temporary fault that no list foresees; a worker asks whether the job is to blame, and must not
 * excuse a job for a fault that the job made.
 */

/**
 * Connection lost, server stopping, deadlock; the event store, the log or the blob store unavailable: no job is to
 * blame.
 */
export const isInfrastructureFault = (error: unknown): boolean => {
  if (error instanceof Unavailable || error instanceof QueryTimeout) return true;
  if (error instanceof EventStoreError) return error.code === 'unavailable' || error.code === 'outcome_unknown';
  if (error instanceof LogError || error instanceof BlobError) return error.code === 'unavailable';
  if (error instanceof DatabaseError) {
    return error.severity === 'FATAL' || error.severity === 'PANIC' || /^(08|40|53|55|57|58)/.test(error.code ?? '');
  }
  // A TypeError and its like are faults of this code, whatever their message.
  if (!(error instanceof Error) || error.name !== 'Error') return false;
  const code = 'code' in error ? String(error.code) : '';
  return (
    /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EAI_)/.test(code) ||
    /connection|timeout exceeded/i.test(error.message)
  );
};

const ownFaults = [
  InvalidEvent,
  Rejection,
  TypeError,
  RangeError,
  ReferenceError,
  SyntaxError,
  URIError,
  BrokenInvariant,
  MissingKey,
];
const mayPass = ['unavailable', 'outcome_unknown', 'wrong_expected_revision'];
/**
 * One row touched twice or more rows than one, wrong data, violated constraints, refused access, unknown tables, more
 * than a row or an index can hold, errors raised by a function: the same statement fails the same way again. Not 0A: a
 * plan that a migration made stale is one, until the session ends.
 */
const permanentStates = /^(21|22|23|28|42|54|P0)/;

/**
 * Whether a lane or the relay stops, because an immediate retry cannot help. Every unlisted error counts as temporary,
 * such as a name that does not resolve or a server that is read-only for a moment: a lane that stops at a temporary
 * fault stands for minutes.
 */
export const stopsLane = (error: unknown): boolean => {
  if (error instanceof EventStoreError) return !mayPass.includes(error.code);
  if (error instanceof LogError) return error.code === 'fatal' || error.code === 'partition_mismatch';
  if (error instanceof DatabaseError) return permanentStates.test(error.code ?? '');
  return ownFaults.some((kind) => error instanceof kind);
};

/** Refused access, and missing tables, columns and functions. */
const installationStates = /^(28|42501|42P01|42703|42883|3F000)/;

/**
 * For an error that stops a lane: whether the installation is at fault and no event. An event of a later version waits
 * for a process that knows it, one with a missing key for its key: parking them would set aside half of the log during
 * a rolling upgrade.
 */
export const isInstallationFault = (error: unknown): boolean =>
  stopsLane(error) &&
  (error instanceof MissingKey ||
    error instanceof UnknownEvent ||
    error instanceof LogError ||
    (error instanceof EventStoreError && error.code === 'access_denied') ||
    (error instanceof DatabaseError && installationStates.test(error.code ?? '')));

const timedOut = (error: Error): boolean =>
  (error instanceof DatabaseError && error.code === '57014') ||
  error instanceof QueryTimeout ||
  // The message of a pool whose connections we do not watch ourselves.
  error.message === 'Query read timeout';

/** A statement exceeded its time: the database is slow, or the statement is too much for it. */
export const isTimeout = (error: unknown): boolean =>
  error instanceof Error && (timedOut(error) || isTimeout(error.cause));
