import { CampaignPosts, CampaignPostsResult } from '#schemas/http/campaign-posts.ts';
import { IdParams } from '#schemas/http/common.ts';
import { changePosts } from '../campaigns/assign.ts';
import { assignExample } from '../campaigns/examples.ts';
import { operation } from '../operation.ts';

export const unassignCampaignPosts = operation({
  id: 'unassignCampaignPosts',
  method: 'POST',
  path: '/campaigns/{id}/unassign',
  tag: 'campaigns',
  summary: 'Remove up to 100 posts from a campaign',
  description: [
    'A post that does not belong to the campaign stays as it is.',
    'Each post is changed for itself, and one that is refused stops no other: the call answers 200 with a result for each. An id that is unknown, or of another workspace, is refused with `not_found`. With an Idempotency-Key, a repeat of the call answers the same results; if the call was cut off, the repeat changes the rest of the posts.',
    'Counts as one request for each post, taken as debt.',
  ].join('\n\n'),
  scope: 'campaigns.manage',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: CampaignPosts,
  answer: CampaignPostsResult,
  codes: ['validation_failed', 'stream_full'],
  example: assignExample,
  handle: (call) => changePosts(call, 'LeaveCampaign'),
});
