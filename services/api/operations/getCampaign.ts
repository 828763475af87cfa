import { getCampaign as queryCampaign, renderCampaign } from '#projections/models/campaigns.ts';
import { Campaign } from '#schemas/http/campaign.ts';
import { IdParams } from '#schemas/http/common.ts';
import { exampleCampaign } from '../campaigns/examples.ts';
import { operation } from '../operation.ts';
import { notFound } from '../refusal.ts';
import { readRow } from '../rows.ts';

export const getCampaign = operation({
  id: 'getCampaign',
  method: 'GET',
  path: '/campaigns/{id}',
  tag: 'campaigns',
  summary: 'Get a campaign',
  scope: 'campaigns.read',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Campaign,
  codes: [],
  example: { data: exampleCampaign },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'campaign', ['posts'], (id) => queryCampaign(deps.knex, workspaceId, id));
    if (row.deleted_at !== null) throw notFound('campaign');
    return { data: renderCampaign(row), revision: row.revision };
  },
});
