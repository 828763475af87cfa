import { campaign } from '#domain/campaign.ts';
import { Rejection } from '#domain/decider.ts';
import type { Issue } from '#schemas/issues.ts';
import type { StreamsOfWorkspace } from '../posts/accounts.ts';

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
export const campaignRefusal = (found: LiveCampaign | null, clientId: string): Rejection | null => {
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
