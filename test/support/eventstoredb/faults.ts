/** Faults of the double, injected by a test. The call that meets a fault uses it up. */
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';

/** An error as the server sends it: a status, and the name of its exception where it has one. */
export const failure = (code: number, exception?: string, words?: string): ServiceError => {
  const metadata = new Metadata();
  if (exception !== undefined) metadata.set('exception', exception);
  const details = words ?? exception ?? 'asked for by the test';
  return Object.assign(new Error(details), { code, details, metadata });
};

/** The answer to reads of a stream that was deleted for ever, to appends and to another deletion. */
export const streamDeleted = (stream: string): ServiceError => {
  const error = failure(status.FAILED_PRECONDITION, 'stream-deleted', `Event stream '${stream}' is deleted.`);
  error.metadata.set('stream-name', stream);
  return error;
};

export const codeOf: Readonly<Record<string, number>> = {
  unavailable: status.UNAVAILABLE,
  unavailable_after_commit: status.UNAVAILABLE,
  aborted: status.ABORTED,
  cancelled: status.CANCELLED,
  internal: status.INTERNAL,
  access_denied: status.PERMISSION_DENIED,
};

/** The next appends, one fault each, in the order of injection. */
export type AppendFault =
  /** Commits and never answers. */
  | 'drop_reply'
  /** Commits, then cuts the connection. */
  | 'cut_after_commit'
  /** Commits, then ends the call without an answer and without an error. */
  | 'end_silently'
  /** Never answers, and commits nothing. */
  | 'hang'
  /** Fails before the commit with that gRPC status. */
  | 'unavailable'
  | 'aborted'
  | 'cancelled'
  | 'internal'
  /** Commits, then fails with UNAVAILABLE. */
  | 'unavailable_after_commit'
  /** The answer of an overloaded server: nothing is written. */
  | 'busy'
  /** Commits and answers twice (batch only). */
  | 'answer_twice';

/** The next reads or subscriptions. */
export type ReadFault =
  | 'unavailable'
  | 'aborted'
  | 'cancelled'
  | 'access_denied'
  | 'hang'
  | 'end_silently'
  /** UNKNOWN, with the server's text for every fault of its own. */
  | 'handler';

export class Faults {
  readonly appends: AppendFault[] = [];
  readonly reads: ReadFault[] = [];
  /** The next queries for the server's features fail with this gRPC status. */
  readonly features: number[] = [];
  /** Milliseconds between the arrival of an append and its commit. */
  appendDelayMs = 0;
  /** The next deletions of streams: before them, or behind them, the connection is cut. */
  readonly deletes: ('cut' | 'cut_after_commit')[] = [];
  /** Subscriptions hand over every event twice. */
  deliverTwice = false;
}
