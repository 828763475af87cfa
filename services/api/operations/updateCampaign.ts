import { campaign } from '#domain/campaign.ts';
import { Campaign, CampaignUpdate } from '#schemas/http/campaign.ts';
import { IdParams } from '#schemas/http/common.ts';
import { exampleCampaign } from '../campaigns/examples.ts';
import { showWritten } from '../campaigns/show.ts';
import { operation } from '../operation.ts';

export const updateCampaign = operation({
  id: 'updateCampaign',
  method: 'PATCH',
  path: '/campaigns/{id}',
  tag: 'campaigns',
  summary: 'Change a campaign',
  description: 'Only the members that are sent change. Null clears a member. The client never changes.',
  scope: 'campaigns.manage',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  merge: true,
  params: IdParams,
  body: CampaignUpdate,
  answer: Campaign,
  codes: ['stream_full'],
  example: { body: { endsOn: '2026-04-30' }, data: { ...exampleCampaign, endsOn: '2026-04-30', revision: 1 } },
  handle: async (call) => {
    const { color, ...same } = call.body;
    const changes = color === undefined ? same : { ...same, color: color?.toLowerCase() ?? null };
    const { events } = await call.stream(campaign).act({
      command: () => ({ type: 'Update', changes }),
      optional: true,
    });
    const data = await showWritten(call, events);
    return { data, revision: data.revision };
  },
});
