import type { ErrorCode } from '#domain/codes.ts';
import { Rejection } from '#domain/decider.ts';
import type { Destination } from '#domain/scheduling.ts';
import type { Issue, IssueCode } from '#schemas/issues.ts';
import type { PostBody, TargetSelection } from '#schemas/post.ts';
import type { Call } from '../operation.ts';
import { clientById, type Reads, type SelectedAccount, type SelectedClient } from './reads.ts';

/** The accounts that a selection names. */

export interface Selected {
  readonly clients: readonly SelectedClient[];
  readonly accounts: readonly SelectedAccount[];
  readonly destinations: readonly Destination[];
}

const unknown = (path: string): Issue => ({ path, code: 'unknown_id', message: 'is not known' });

const invalid = (errors: readonly Issue[]): Rejection =>
  new Rejection('validation_failed', 'The input is not valid.', { errors });

/** Why the post cannot belong to this client: `validation_failed` (unknown), `client_archived`; null: it can. */
const clientRefusal = (found: SelectedClient | null): Rejection | null => {
  if (found === null) return invalid([unknown('/clientId')]);
  return found.archived ? new Rejection('client_archived', 'The client is archived.') : null;
};

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
 * Yields why the post's own client takes no posts, and returns the client.
 */
export async function* checkOwnClient(
  reads: Reads,
  clientId: string,
): AsyncGenerator<Rejection, SelectedClient | null> {
  const found = await reads.client(clientId);
  const refusal = clientRefusal(found);
  if (refusal !== null) yield refusal;
  return found;
}

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

/** These accounts, with the rules for their clients. */
export const selectAccounts = (accounts: readonly SelectedAccount[]): typeof select =>
  async function* (reads, clientId) {
    return yield* ofAccounts(reads, clientId, yield* checkOwnClient(reads, clientId), accounts);
  };

async function* ofAccounts(
  reads: Reads,
  clientId: string,
  own: SelectedClient | null,
  accounts: readonly SelectedAccount[],
): AsyncGenerator<Rejection, Selected> {
  const otherIds = [...new Set(accounts.map((one) => one.clientId))].filter((id) => id !== clientId);
  const others = await Promise.all(otherIds.map(reads.client));
  const clients = [own, ...others].filter((one) => one !== null);
  const archived = others.find((one) => one?.archived);
  if (archived) yield new Rejection('client_archived', `The client ${archived.id} is archived.`);
  const zones = new Map(clients.map((one) => [one.id, one.timezone]));
  const destinations = accounts.map(
    (one): Destination => ({
      accountId: one.id,
      clientId: one.clientId,
      platform: one.platform,
      accountTimezone: one.timezone,
      clientTimezone: zones.get(one.clientId) ?? null,
      scopes: one.scopes,
    }),
  );
  return { clients, accounts, destinations };
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
  const missing = ids.filter((_, index) => found[index] === null).map((id) => unknown(path(id)));
  const refusals = missing.length === 0 ? [] : [invalid(missing)];
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
