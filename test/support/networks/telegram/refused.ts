/** An answer that the Bot API gives instead of a result. */
export class RefusedCall extends Error {
  readonly code: number;
  readonly parameters: Readonly<Record<string, number>>;

  constructor(code: number, description: string, parameters: Readonly<Record<string, number>> = {}) {
    super(description);
    this.code = code;
    this.parameters = parameters;
  }
}

export const badRequest = (why: string): RefusedCall => new RefusedCall(400, `Bad Request: ${why}`);
export const tooMany = (seconds: number): RefusedCall =>
  new RefusedCall(429, `Too Many Requests: retry after ${seconds}`, { retry_after: seconds });
