/** Failures of Postgres that callers distinguish by class: adapters throw them, services catch them. */

/**
 * The server did not answer a statement in time. The connection is destroyed, and whether the statement took effect is
 * unknown: the caller repeats it on another connection, or checks.
 */
export class QueryTimeout extends Error {
  readonly code = 'query_timeout';
  constructor(milliseconds: number) {
    super(`Postgres did not answer a statement within ${milliseconds} ms; its connection was closed`);
    this.name = 'QueryTimeout';
  }
}
