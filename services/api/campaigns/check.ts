import { campaign } from '#domain/campaign.ts';
import type { Call } from '../operation.ts';

/** A post as answers show it: a campaign that was deleted since is none. */
export const withLiveCampaign = async <Shown extends { readonly campaignId: string | null }>(
  { deps }: Pick<Call, 'deps'>,
  shown: Shown,
): Promise<Shown> => {
  if (shown.campaignId === null) return shown;
  const { state } = await deps.store.load(campaign, shown.campaignId);
  return state.status === 'deleted' ? { ...shown, campaignId: null } : shown;
};
