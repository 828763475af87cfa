import { account } from '#domain/account.ts';
import { campaign } from '#domain/campaign.ts';
import { client, letsLateFail, retriesWhenAbsent } from '#domain/client.ts';
import { type ClientRules, textRules } from '#domain/client-rules.ts';
import type { ErrorCode } from '#domain/codes.ts';
import { Rejection } from '#domain/decider.ts';
import { type MediaState, media } from '#domain/media.ts';
import { kindOfType } from '#domain/media-types.ts';
import { draftMediaIssues, mediaIssues, type PostAsset, type PostAssets } from '#domain/post/compose.ts';
import type { Destination } from '#domain/post/scheduling.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';
import type { Platform } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import type { MediaKind } from '#schemas/media.ts';
import type { PostBody } from '#schemas/post.ts';

/** The client of a post, the accounts that it goes to, its campaign and its files, as the checks of a post need them. */

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
  /** On the network. */
  readonly externalId: string;
  readonly username: string | null;
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
  const { clientId, platform, externalId, username, status, timezone, scopes, network, observed } = state;
  return { id, clientId, platform, externalId, username, status, timezone, scopes, network, observed };
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

/** The campaign that a post names. Read from its stream: a deletion is seen as soon as it is acknowledged. */

export interface LiveCampaign {
  readonly clientId: string | null;
}

/** Null for a campaign that is unknown, deleted or another workspace's. */
export const liveCampaign = async (
  { deps, workspaceId }: StreamsOfWorkspace,
  id: string,
): Promise<LiveCampaign | null> => {
  const { state, events } = await deps.store.load(campaign, id);
  return state.status === 'live' && events[0]?.metadata.workspaceId === workspaceId ? state : null;
};

const issueOf = (found: LiveCampaign | null, clientId: string): Issue | null => {
  const path = '/campaignId';
  if (found === null) return { path, code: 'unknown_id', message: 'is not known' };
  if (found.clientId === null || found.clientId === clientId) return null;
  return { path, code: 'mismatch', message: 'belongs to another client than the post' };
};

/** Why a post of the client cannot belong to the campaign; null: it can. */
const campaignRefusal = (found: LiveCampaign | null, clientId: string): Rejection | null => {
  const issue = issueOf(found, clientId);
  return issue === null ? null : new Rejection('validation_failed', 'The input is not valid.', { errors: [issue] });
};

/** Yields why a post of the client cannot belong to the campaign that its body names. */
export async function* checkCampaign(
  reads: { readonly campaign: (id: string) => Promise<LiveCampaign | null> },
  clientId: string,
  { campaignId }: { readonly campaignId: string | null },
): AsyncGenerator<Rejection> {
  const refusal = campaignId === null ? null : campaignRefusal(await reads.campaign(campaignId), clientId);
  if (refusal !== null) yield refusal;
}

/** The assets that a body names, from their streams, and why a post cannot have them. */

/** The file of an import is not fetched yet: it cannot be published. */
export const kindOr = (kind: MediaKind | null): MediaKind => kind ?? 'image';

/** A deleted asset is unknown, like one that never existed. */
const ofState = (state: MediaState): PostAsset | null => {
  if (state.status === 'none' || state.status === 'deleted') return null;
  if (state.status === 'offered') {
    const { clientId, contentType } = state.offer;
    const kind = kindOr(kindOfType(contentType));
    return {
      clientId,
      kind,
      status: 'pending',
      publishable: false,
      probe: null,
      altText: null,
      needs: new Map(),
      sha256: null,
    };
  }
  const { origin, details, stored, status, probe, needs, isDeleted } = state;
  if (isDeleted) return null;
  const claimed = origin.kind === 'upload' ? kindOfType(origin.offer.contentType) : null;
  return {
    clientId: details.clientId,
    kind: kindOr(stored?.kind ?? claimed),
    status,
    publishable: status === 'transcoded',
    probe,
    altText: details.altText,
    needs,
    sha256: stored?.sha256 ?? null,
  };
};

/** Null for an asset that is unknown, deleted or another workspace's. */
export const assetFromStream = async (
  { deps, workspaceId }: StreamsOfWorkspace,
  id: string,
): Promise<PostAsset | null> => {
  const { state, events } = await deps.store.load(media, id);
  return events[0]?.metadata.workspaceId === workspaceId ? ofState(state) : null;
};

const refusal = (code: ErrorCode, detail: string, errors: readonly Issue[]): readonly Rejection[] =>
  errors.length === 0 ? [] : [new Rejection(code, detail, { errors })];

const unknown = (issues: readonly Issue[]): readonly Rejection[] =>
  refusal('validation_failed', 'The input is not valid.', issues);
const strangers = (issues: readonly Issue[]): readonly Rejection[] =>
  refusal('media_not_in_client', 'Media of one client is used in posts of that client only.', issues);

/** `validation_failed` (unknown or foreign ids), `media_not_publishable`, `media_not_in_client` */
export const mediaRefusals = (
  body: PostBody,
  destinations: readonly Destination[],
  assets: PostAssets,
): readonly Rejection[] => {
  const { invalid, notPublishable, notInClient } = mediaIssues(body, destinations, assets);
  return [
    ...unknown(invalid),
    ...refusal('media_not_publishable', 'The media cannot be published, or not yet.', notPublishable),
    ...strangers(notInClient),
  ];
};

/**
 * Only the post's own client must be allowed to use the media of a draft, unless the draft names accounts of several
 * clients. Whether its networks take the media is checked at publication: `validation_failed`, `media_not_in_client`.
 */
export const draftMediaRefusals = (body: PostBody, clientId: string, assets: PostAssets): readonly Rejection[] => {
  const { invalid, notInClient } = draftMediaIssues(body, clientId, assets);
  return [...unknown(invalid), ...(body.targetSelection.mode === 'accounts' ? [] : strangers(notInClient))];
};
