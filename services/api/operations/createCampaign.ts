import { type CampaignCommand, campaign } from '#domain/campaign.ts';
import { rowOf } from '#projections/engine/model.ts';
import { campaigns, renderCampaign } from '#projections/models/campaigns.ts';
import { Campaign, CampaignCreate } from '#schemas/http/campaign.ts';
import { exampleCampaign } from '../campaigns/examples.ts';
import { operation } from '../operation.ts';
import { ownClient } from '../posts/destinations.ts';
import { writtenRow } from '../rows.ts';

export const createCampaign = operation({
  id: 'createCampaign',
  method: 'POST',
  path: '/campaigns',
  tag: 'campaigns',
  summary: 'Create a campaign',
  description:
    'Posts join it by `campaignId` when they are composed, or by POST /campaigns/{id}/assign. A campaign with a client takes only posts of that client.',
  scope: 'campaigns.manage',
  idempotent: 'accepted',
  cost: 1,
  etag: true,
  body: CampaignCreate,
  answer: Campaign,
  codes: ['client_archived'],
  example: {
    body: { name: 'Spring', clientId: exampleCampaign.clientId, color: '#1f6feb', startsOn: '2026-02-01' },
    data: { ...exampleCampaign, endsOn: null },
  },
  handle: async (call) => {
    const { name, clientId = null, color, startsOn = null, endsOn = null, description = null } = call.body;
    const { events, replayed } = await call.stream(campaign).create({
      command: async (): Promise<CampaignCommand> => {
        if (clientId !== null) {
          await call.behind(['workspace']);
          await ownClient(call, clientId);
        }
        const fields = { name, color: color?.toLowerCase() ?? null, startsOn, endsOn, description };
        return { type: 'Create', clientId, fields };
      },
    });
    // A campaign begins without posts, and a repeat says so too.
    const data = renderCampaign({ ...writtenRow(rowOf(campaigns, events)), post_count: 0 });
    return { data, revision: data.revision, replayed };
  },
});
