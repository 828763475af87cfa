/** Failures of Postgres that callers tell apart by class: adapters throw them, services catch them. */

/**
 * The server did not answer a statement in time. The connection is destroyed, and nobody knows whether the statement took
 * effect: the caller repeats it on another connection, or looks.
 */
export class QueryTimeout extends Error {
  readonly code = 'query_timeout';
  constructor(milliseconds: number) {
    super(`Postgres did not answer a statement within ${milliseconds} ms; its connection was closed`);
    this.name = 'QueryTimeout';
  }
}
