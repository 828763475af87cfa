import type { NewestFirst } from '#projections/engine/rows.ts';
import { listCampaigns as queryCampaigns, renderCampaign } from '#projections/models/campaigns.ts';
import { Campaign, CampaignQuery } from '#schemas/http/campaign.ts';
import { exampleCampaign } from '../campaigns/examples.ts';
import { withinLimit } from '../client-limits.ts';
import { listPage, newestFirst } from '../cursor.ts';
import { operation } from '../operation.ts';

export const listCampaigns = operation({
  id: 'listCampaigns',
  method: 'GET',
  path: '/campaigns',
  tag: 'campaigns',
  summary: 'List campaigns, newest first',
  scope: 'campaigns.read',
  idempotent: 'none',
  cost: 1,
  query: CampaignQuery,
  answer: Campaign,
  list: true,
  codes: [],
  example: { data: exampleCampaign },
  handle: async (call) => {
    await call.behind(['posts']);
    const { clientId } = call.query;
    const filters = { ...withinLimit(call.principal), ...(clientId === undefined ? {} : { clientId }) };
    return listPage('listCampaigns', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        queryCampaigns(knex, call.workspaceId, filters, page),
      keyOf: newestFirst,
      show: renderCampaign,
    });
  },
});
