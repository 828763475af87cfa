/** What a caller of Postgres must tell from every other failure, whoever opened the connection. */

/**
 * The server did not answer a statement in time. Its connection is destroyed with it, and whether the statement took
 * effect is not known: the same again, on another connection, tells.
 */
export class QueryTimeout extends Error {
  readonly code = 'query_timeout';
  constructor(milliseconds: number) {
    super(`Postgres did not answer a statement within ${milliseconds} ms; its connection was closed`);
    this.name = 'QueryTimeout';
  }
}
