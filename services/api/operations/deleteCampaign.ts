import { campaign } from '#domain/campaign.ts';
import { Campaign } from '#schemas/http/campaign.ts';
import { IdParams } from '#schemas/http/common.ts';
import { exampleCampaign } from '../campaigns/examples.ts';
import { showWritten } from '../campaigns/show.ts';
import { operation } from '../operation.ts';
import { ownStreamToDelete } from '../rows.ts';

export const deleteCampaign = operation({
  id: 'deleteCampaign',
  method: 'DELETE',
  path: '/campaigns/{id}',
  tag: 'campaigns',
  summary: 'Delete a campaign; its posts stay',
  description:
    'Its posts keep their times, and answer `campaignId: null` from then on. Every other operation on the campaign then answers 404; deleting it again answers the same.',
  scope: 'campaigns.manage',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Campaign,
  codes: [],
  example: { data: { ...exampleCampaign, revision: 1 } },
  handle: async (call) => {
    const { events } = await call.stream(campaign).act({
      guard: ownStreamToDelete(call, 'campaign', ({ status }) => status === 'deleted'),
      command: () => ({ type: 'Delete' }),
    });
    const data = await showWritten(call, events);
    return { data, revision: data.revision };
  },
});
