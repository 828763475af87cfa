/** Values of the contract's examples of campaigns. */

export const exampleCampaign = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000a',
  object: 'campaign',
  name: 'Spring',
  clientId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001',
  color: '#1f6feb',
  startsOn: '2026-02-01',
  endsOn: '2026-03-31',
  description: null,
  postCount: 0,
  createdAt: '2026-01-31T08:00:00.000Z',
  updatedAt: '2026-01-31T08:00:00.000Z',
  revision: 0,
};

const examplePost = '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0006';

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
    skipped: [{ targetId: '2c9e1b7a-5d44-5f6e-9a3b-7c8d9e0f0007', reason: 'handed_to_platform' }],
  },
};
