import { account } from '#domain/account.ts';
import { client, letsLateFail, retriesWhenAbsent } from '#domain/client.ts';
import { type ClientRules, textRules } from '#domain/client-rules.ts';
import { Rejection } from '#domain/decider.ts';
import type { Destination } from '#domain/post/scheduling.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';
import type { Platform } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import type { PostBody } from '#schemas/post.ts';

/** The client of a post and the accounts that it goes to, as the checks of a post need them. */

export interface SelectedClient {
  readonly id: string;
  readonly archived: boolean;
  readonly approvalRequired: boolean;
  readonly timezone: string | null;
  /** What it wants of the texts of its posts; null: nothing. */
  readonly rules: ClientRules | null;
  /** Whether a target fails that nobody has approved when it is due. */
  readonly failsLate: boolean;
  /** Whether a target with an unknown outcome is tried again after looks that found no post. */
  readonly retriesWhenAbsent: boolean;
}

export interface SelectedAccount {
  readonly id: string;
  readonly clientId: string;
  readonly platform: Platform;
  readonly status: string;
  readonly timezone: string | null;
  readonly scopes: readonly string[];
  readonly network: 'live' | 'sandbox';
  /** Limits that its network reported. */
  readonly observed: readonly ObservedWindow[];
}

/** Where streams of one workspace are read. */
export interface StreamsOfWorkspace {
  readonly deps: { readonly store: Pick<DomainStore, 'load'> };
  readonly workspaceId: string;
}

/** Null for a client that is unknown or another workspace's. */
export const clientFromStream = async (
  { deps, workspaceId }: StreamsOfWorkspace,
  id: string,
): Promise<SelectedClient | null> => {
  const { state, events } = await deps.store.load(client, id);
  if (state.status === 'none' || events[0]?.metadata.workspaceId !== workspaceId) return null;
  const { approvalRequired, timezone } = state.fields;
  const archived = state.status === 'archived';
  const { rules } = state.fields;
  const read = { failsLate: letsLateFail(rules), rules: textRules(rules) };
  return { id, archived, approvalRequired, timezone, ...read, retriesWhenAbsent: retriesWhenAbsent(state) };
};

/** Null for an account that is unknown or another workspace's. */
export const accountFromStream = async (
  { deps, workspaceId }: StreamsOfWorkspace,
  id: string,
): Promise<SelectedAccount | null> => {
  const { state, events } = await deps.store.load(account, id);
  if (state.status === 'none' || events[0]?.metadata.workspaceId !== workspaceId) return null;
  const { clientId, platform, status, timezone, scopes, network, observed } = state;
  return { id, clientId, platform, status, timezone, scopes, network, observed };
};

export interface Selected {
  readonly clients: readonly SelectedClient[];
  readonly accounts: readonly SelectedAccount[];
  readonly destinations: readonly Destination[];
}

export const unknownId = (path: string): Issue => ({ path, code: 'unknown_id', message: 'is not known' });

export const invalidInput = (errors: readonly Issue[]): Rejection =>
  new Rejection('validation_failed', 'The input is not valid.', { errors });

/** Why the post cannot belong to this client: `validation_failed` (unknown), `client_archived`; null: it can. */
export const clientRefusal = (found: SelectedClient | null): Rejection | null => {
  if (found === null) return invalidInput([unknownId('/clientId')]);
  return found.archived ? new Rejection('client_archived', 'The client is archived.') : null;
};

/** What the checks of a client read. */
interface ClientReads {
  readonly client: (id: string) => Promise<SelectedClient | null>;
}

/** Chooses the accounts of a post: yields why they cannot be, and returns the known ones all the same. */
export type Choose<Reads> = (reads: Reads, clientId: string, body: PostBody) => AsyncGenerator<Rejection, Selected>;

/**
 * Yields why the post's own client takes no posts, and returns the client.
 */
export async function* checkOwnClient(
  reads: ClientReads,
  clientId: string,
): AsyncGenerator<Rejection, SelectedClient | null> {
  const found = await reads.client(clientId);
  const refusal = clientRefusal(found);
  if (refusal !== null) yield refusal;
  return found;
}

/** These accounts, with the rules for their clients. */
export const selectAccounts = (accounts: readonly SelectedAccount[]): Choose<ClientReads> =>
  async function* (reads, clientId) {
    return yield* ofAccounts(reads, clientId, yield* checkOwnClient(reads, clientId), accounts);
  };

export async function* ofAccounts(
  reads: ClientReads,
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
