import type { Tag } from '../call/operation.ts';

export const campaignsTag: Tag = {
  place: 70,
  name: 'campaigns',
  noun: 'campaign',
  about: 'Posts that are planned, and moved, together.',
};

/** Values of the contract's examples of campaigns. */

export const exampleCampaign = {
  id: '2bd51e09-74ca-5548-9f9f-914219978137',
  object: 'campaign',
  name: 'Spring',
  clientId: '315d0d36-9a7d-573e-8bc2-d5133b51f29b',
  color: '#1f6feb',
  startsOn: '2026-02-01',
  endsOn: '2026-03-31',
  description: null,
  postCount: 0,
  createdAt: '2026-01-31T08:00:00.000Z',
  updatedAt: '2026-01-31T08:00:00.000Z',
  revision: 0,
};

const examplePost = '5d53bc21-4db5-57bd-8c92-581ed4a74702';

export const assignExample = {
  body: { postIds: [examplePost] },
  data: {
    object: 'campaign_posts_result',
    campaignId: exampleCampaign.id,
    revision: 0,
    results: [{ postId: examplePost, ok: true, revision: 1 }],
  },
};

export const shiftExample = {
  body: { days: 1 },
  data: {
    object: 'campaign_shift',
    campaignId: exampleCampaign.id,
    revision: 2,
    minutes: null,
    days: 1,
    shifted: 12,
    skippedCount: 1,
    skipped: [{ targetId: '4729b4ea-ca98-57d1-85dc-740aaa03bf1b', reason: 'handed_to_platform' }],
  },
};
