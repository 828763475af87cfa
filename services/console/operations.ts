import type { Principal } from '#services/api/call/operation.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import type { MemberVisitor, Visit } from './deps.ts';

/** Operations of the contract, called for the member who asks for a page. */

export interface AskedOperation {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/** @param principal default: that of the live workspace */
export const call = async <Data>(
  { it, ctx, visitor }: Visit<MemberVisitor>,
  operation: string,
  asked: AskedOperation = {},
  principal: Principal = visitor.livePrincipal,
): Promise<Data> => {
  const { correlationId, address } = stateOf(ctx);
  const { data } = await it.invoke<Data>({ ...asked, operation, principal, correlationId, address });
  return data;
};
