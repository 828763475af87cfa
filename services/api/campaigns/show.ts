import { type CampaignCommand, campaign } from '#domain/campaign.ts';
import { rowOf } from '#projections/engine/model.ts';
import type { NewestFirst } from '#projections/engine/rows.ts';
import {
  campaigns,
  getCampaign as queryCampaign,
  listCampaigns as queryCampaigns,
  renderCampaign,
} from '#projections/models/campaigns.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { Campaign, CampaignCreate, CampaignQuery, CampaignUpdate } from '#schemas/http/campaign.ts';
import { AsOfQuery, IdParams } from '#schemas/http/common.ts';
import { withinLimit } from '../call/access.ts';
import { listPage, newestFirst } from '../call/cursor.ts';
import { type Call, operation } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { ownStreamToDelete, readRow, writtenRow } from '../call/rows.ts';
import { answerCampaignThen, listCampaignsThen } from '../past/things.ts';
import { ownClient } from '../posts/checks.ts';
import { campaignsTag, exampleCampaign } from './examples.ts';

/**
 * A campaign as its stored events leave it, for the answer to a command. Its posts are other streams: their number is
 * that of the read model.
 */
const showWritten = async (
  { deps, workspaceId }: Pick<Call, 'deps' | 'workspaceId'>,
  events: readonly DecodedEvent[],
) => {
  const row = writtenRow(rowOf(campaigns, events));
  const counted = await queryCampaign(deps.knex, workspaceId, row.id);
  return renderCampaign({ ...row, post_count: counted?.post_count ?? 0 });
};

export const createCampaign = operation({
  id: 'createCampaign',
  method: 'POST',
  path: '/campaigns',
  tag: campaignsTag,
  summary: 'Create a campaign',
  description:
    'Posts join it by `campaignId` when they are composed, or by POST /campaigns/{id}/assign. A campaign with a client takes only posts of that client.',
  scope: 'campaigns.manage',
  limited: 'made',
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

export const deleteCampaign = operation({
  id: 'deleteCampaign',
  method: 'DELETE',
  path: '/campaigns/{id}',
  tag: campaignsTag,
  summary: 'Delete a campaign; its posts stay',
  description:
    'Its posts keep their times, and answer `campaignId: null` from then on. Every other operation on the campaign then answers 404; deleting it again answers the same.',
  scope: 'campaigns.manage',
  limited: 'ids',
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

export const getCampaign = operation({
  id: 'getCampaign',
  method: 'GET',
  path: '/campaigns/{id}',
  tag: campaignsTag,
  summary: 'Get a campaign',
  scope: 'campaigns.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  query: AsOfQuery,
  answer: Campaign,
  codes: ['history_too_long'],
  example: { data: exampleCampaign },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return answerCampaignThen(call, call.query.asOf);
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'campaign', ['posts'], (id) => queryCampaign(deps.knex, workspaceId, id));
    if (row.deleted_at !== null) throw notFound('campaign');
    return { data: renderCampaign(row), revision: row.revision };
  },
});

export const listCampaigns = operation({
  id: 'listCampaigns',
  method: 'GET',
  path: '/campaigns',
  tag: campaignsTag,
  summary: 'List campaigns, newest first',
  scope: 'campaigns.read',
  limited: 'filtered',
  idempotent: 'none',
  cost: 1,
  query: CampaignQuery,
  answer: Campaign,
  list: true,
  codes: ['history_too_long'],
  example: { data: exampleCampaign },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return listCampaignsThen(call, call.query.asOf);
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

export const updateCampaign = operation({
  id: 'updateCampaign',
  method: 'PATCH',
  path: '/campaigns/{id}',
  tag: campaignsTag,
  summary: 'Change a campaign',
  description: 'Only the members that are sent change. Null clears a member. The client never changes.',
  scope: 'campaigns.manage',
  limited: 'ids',
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
