import type { PostEvent } from '#schemas/post.ts';

/** A post joins a campaign, which it may do at any time, or leaves one. It belongs to one at most. */
export type CampaignChange =
  | { readonly type: 'JoinCampaign'; readonly campaignId: string }
  /** Changes nothing where the post belongs to another campaign, or to none. */
  | { readonly type: 'LeaveCampaign'; readonly campaignId: string };

/** @param present the campaign that the post belongs to; null: none */
export const changeCampaign = ({ type, campaignId }: CampaignChange, present: string | null): readonly PostEvent[] => {
  const leaves = type === 'LeaveCampaign';
  if ((present === campaignId) !== leaves) return [];
  return [
    { type: 'PostCampaignChanged', data: { campaignId: leaves ? null : campaignId, previousCampaignId: present } },
  ];
};
