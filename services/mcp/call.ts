import type { Scope } from '#schemas/apikey.ts';
import type { Role } from '#schemas/common.ts';
import type { Warning } from '#schemas/http/common.ts';
import type { Invocation, Invoked } from '#services/api/call/invoke.ts';
import type { Principal } from '#services/api/call/operation.ts';
import type { PartTools } from '#services/api/parts.ts';
import { Cuts } from './cuts.ts';
import { type KeyParts, keyOfCall } from './keys.ts';

/** One call of a tool, on its way through the operations that it needs. */

/** The request that carries the call. */
export interface ToolRequest {
  readonly principal: Principal;
  readonly address: string;
  readonly correlationId: string;
  /** Learns what is left of the allowance. */
  readonly limitHeaders: NonNullable<Invocation['limitHeaders']>;
  /** Requests that its body was counted for. */
  readonly paid: number;
  /** Aborted once the caller is gone. */
  readonly signal: AbortSignal;
}

export type Asked = Pick<Invocation, 'params' | 'query' | 'body' | 'key' | 'ifMatch'>;

/** Pages of a list that a search by name reads, and rows of each. */
const searchedPages = 3;
const searchedRows = 100;

export class ToolCall {
  readonly #invoke: PartTools['invoke'];
  readonly #request: ToolRequest;
  readonly #parts: KeyParts;
  readonly now: () => number;
  readonly #ahead: () => Promise<number>;
  /** What the operations of the call warned of. */
  readonly warnings: Warning[] = [];
  /** What its answer leaves out. */
  readonly cuts = new Cuts();
  /** The request itself was paid for when it came in, and so was its body. */
  #paid = 1;
  #paidBody: number;

  constructor({ invoke, deps }: Pick<PartTools, 'invoke' | 'deps'>, request: ToolRequest, parts: KeyParts) {
    this.#invoke = invoke;
    this.#request = request;
    this.#parts = parts;
    this.#paidBody = request.paid;
    this.now = deps.clock;
    const { mode, workspaceId } = request.principal;
    this.#ahead = async () => (mode === 'test' ? ((await deps.sandboxClocks?.known(workspaceId)) ?? 0) : 0);
  }

  /** Milliseconds since the epoch by the clock of the workspace, which in the sandbox may be ahead of real time. */
  async workspaceNow(): Promise<number> {
    return this.now() + (await this.#ahead());
  }

  /** Where it takes effect: nothing that is done in the sandbox reaches a network. */
  get mode(): 'sandbox' | 'live' {
    return this.#request.principal.mode === 'test' ? 'sandbox' : 'live';
  }

  /** Of the person behind the credential. */
  get role(): Role {
    return this.#request.principal.role;
  }

  /** Whether the credential has the scope. The role may still refuse what it is for. */
  may(scope: Scope): boolean {
    return this.#request.principal.scopes.includes(scope);
  }

  /** The clients to which the credential is limited; null: all. */
  get clientIds(): readonly string[] | null {
    return this.#request.principal.clientIds;
  }

  /** The idempotency key of this call; see `keyOfCall`. */
  key(repeats: 'create' | 'change' | 'step'): string {
    return keyOfCall(this.#parts, repeats, this.now());
  }

  /** Runs an operation. Once the caller is gone, it begins no more of them. @throws Refusal, Rejection */
  async invoke<Data>(operation: string, asked: Asked = {}): Promise<Invoked<Data>> {
    const { signal, paid: _paid, ...request } = this.#request;
    signal.throwIfAborted();
    // The first body that an operation gets is that of the message.
    const paid = this.#paid + (asked.body === undefined ? 0 : this.#paidBody);
    this.#paid = 0;
    if (asked.body !== undefined) this.#paidBody = 0;
    const answer = await this.#invoke<Data>({ operation, ...request, ...asked, paid });
    this.warnings.push(...answer.warnings);
    return answer;
  }

  /** The rows of a list that fit, among its newest 300. */
  async search<Row>(
    operation: string,
    query: Readonly<Record<string, unknown>>,
    fits: (row: Row) => boolean,
  ): Promise<readonly Row[]> {
    const found: Row[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < searchedPages; page += 1) {
      const { data, page: at } = await this.invoke<Row[]>(operation, {
        query: { ...query, limit: searchedRows, cursor },
      });
      found.push(...data.filter(fits));
      cursor = at?.nextCursor ?? undefined;
      if (cursor === undefined) break;
    }
    return found;
  }

  /** The same for a question of the tool itself: what the operation warns of is none of the caller's. */
  async look<Data>(operation: string, asked: Asked = {}): Promise<Invoked<Data>> {
    const before = this.warnings.length;
    const answer = await this.invoke<Data>(operation, asked);
    this.warnings.length = before;
    return answer;
  }
}
