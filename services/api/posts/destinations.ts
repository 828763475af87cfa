import type { ErrorCode } from '#domain/codes.ts';
import { Rejection } from '#domain/decider.ts';
import type { Issue, IssueCode } from '#schemas/issues.ts';
import type { PostBody, TargetSelection } from '#schemas/post.ts';
import {
  checkOwnClient,
  clientRefusal,
  invalidInput,
  ofAccounts,
  type Selected,
  type SelectedAccount,
  type SelectedClient,
  unknownId,
} from '#services/workflows/posts/accounts.ts';
import type { Call } from '../call/operation.ts';
import { clientById, type Reads } from './reads.ts';

/** The accounts that a selection names. */

/** @throws Rejection `validation_failed` (unknown), `client_archived` */
export const ownClient = async (
  call: Pick<Call, 'deps' | 'workspaceId'>,
  clientId: string,
): Promise<SelectedClient | null> => {
  const found = await clientById(call, clientId);
  const refusal = clientRefusal(found);
  if (refusal !== null) throw refusal;
  return found;
};

/**
 * Yields why these accounts cannot be selected: `validation_failed` (unknown or foreign ids), `account_not_in_client`,
 * `account_disconnected`, `client_archived`. Returns the known ones all the same.
 */
export async function* select(reads: Reads, clientId: string, body: PostBody): AsyncGenerator<Rejection, Selected> {
  // Both are read at the same time; problems of the client are reported first.
  const asked = accountsOf(reads, clientId, body.targetSelection);
  asked.catch(() => undefined);
  const own = yield* checkOwnClient(reads, clientId);
  const { accounts, refusals } = await asked;
  yield* refusals;
  return yield* ofAccounts(reads, clientId, own, accounts);
}

type Fault = (one: SelectedAccount) => boolean;

interface Found {
  readonly accounts: readonly SelectedAccount[];
  readonly refusals: readonly Rejection[];
}

const accountsOf = async (reads: Reads, ownId: string, selection: TargetSelection): Promise<Found> => {
  if (selection.mode === 'group') {
    const all = await reads.group(ownId);
    const wanted = selection.platforms;
    return { accounts: all.filter(({ platform }) => wanted === null || wanted.includes(platform)), refusals: [] };
  }
  const sent = selection.accountIds ?? [];
  // Duplicates count once; a path leads to the first of them as it was sent.
  const ids = [...new Set(sent)];
  const found = await reads.accounts(ids);
  const path = (id: string) => `/targets/accountIds/${sent.indexOf(id)}`;
  const accounts = found.filter((one) => one !== null);
  const missing = ids.filter((_, index) => found[index] === null).map((id) => unknownId(path(id)));
  const refusals = missing.length === 0 ? [] : [invalidInput(missing)];
  const refuse = (at: Fault, code: ErrorCode & IssueCode, message: string, detail: string): void => {
    const errors = accounts
      .filter(at)
      .map(({ id, platform }): Issue => ({ path: path(id), code, message, accountId: id, platform }));
    if (errors.length > 0) refusals.push(new Rejection(code, detail, { errors }));
  };
  const isForeign: Fault = ({ clientId }) => selection.mode === 'selection' && clientId !== ownId;
  const everyOne = 'Every account of a selection must be the post’s own client’s.';
  refuse(isForeign, 'account_not_in_client', 'belongs to another client than the post', everyOne);
  const isGone: Fault = ({ status }) => status === 'disconnected';
  refuse(isGone, 'account_disconnected', 'is disconnected', 'A selected account is disconnected.');
  return { accounts, refusals };
};
