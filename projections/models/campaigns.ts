import type { Knex } from 'knex';
import type { CampaignEvent, CampaignFields } from '#schemas/campaign.ts';
import { instantOf } from '#schemas/common.ts';
import type { campaignPublic } from '#schemas/http/webhook-events/campaign.ts';
import { change, defineModel, type Row } from '../engine/model.ts';
import type { Publisher } from '../engine/publisher.ts';
import { asRow, type NewestFirst, newestFirst, type Page, type PageOf } from '../engine/rows.ts';
import { view } from '../shapes.ts';

/** Campaigns. The number of posts is counted when a campaign is read: its posts are other streams. */

interface OpenShift {
  readonly revision: number;
  readonly decidedAt: string;
}

interface Own {
  readonly client_id: string | null;
  readonly name: string;
  readonly color: string | null;
  readonly starts_on: string | null;
  readonly ends_on: string | null;
  readonly description: string | null;
  readonly deleted_at: string | null;
  /** Shifts that are not completed, in the order of their decisions. */
  readonly open_shifts: readonly OpenShift[];
  /** When the first of them was decided; null: there is none. */
  readonly shifting_since: string | null;
}
type CampaignRow = Row<Own>;
type CountedCampaign = CampaignRow & { readonly post_count: number };

const written = (fields: Partial<CampaignFields>): Partial<Own> => ({
  ...(fields.name === undefined ? {} : { name: fields.name }),
  ...(fields.color === undefined ? {} : { color: fields.color }),
  ...(fields.startsOn === undefined ? {} : { starts_on: fields.startsOn }),
  ...(fields.endsOn === undefined ? {} : { ends_on: fields.endsOn }),
  ...(fields.description === undefined ? {} : { description: fields.description }),
});

const shifting = (row: Own, open: readonly OpenShift[]): Own => ({
  ...row,
  open_shifts: open,
  shifting_since: open[0]?.decidedAt ?? null,
});

/** A campaign. Its posts publish that they joined or left it, its targets that they were moved. */

type Shown = Pick<CampaignFields, 'name' | 'startsOn' | 'endsOn'>;

interface Campaign {
  readonly clientId: string | null;
  readonly shown: Shown;
}

const shownOf = ({ name, startsOn, endsOn }: Shown): Shown => ({ name, startsOn, endsOn });

const campaignPublisher: Publisher<typeof campaignPublic, CampaignEvent, Campaign> = {
  rules: {
    CampaignCreated: [
      {
        type: 'campaign.created',
        ofEvent: ({ id, data }) => ({ campaignId: id, clientId: data.clientId, ...shownOf(data) }),
      },
    ],
    CampaignUpdated: [
      {
        type: 'campaign.updated',
        ofStream: ({ id, data }, { clientId, shown }) => ({
          campaignId: id,
          clientId,
          changed: Object.keys(data),
          ...shown,
        }),
      },
    ],
    CampaignShifted: 'an intent; campaign.shifted reports what became of it',
    CampaignShiftCompleted: [
      {
        type: 'campaign.shifted',
        ofStream: ({ id, data: { minutes, days, shifted, skipped } }, { clientId }) => ({
          campaignId: id,
          clientId,
          minutes,
          days,
          shifted,
          skipped,
        }),
      },
    ],
    CampaignDeleted: [{ type: 'campaign.deleted', ofStream: ({ id }, { clientId }) => ({ campaignId: id, clientId }) }],
  },
  evolve: (subject, event) => {
    if (event.type === 'CampaignCreated') return { clientId: event.data.clientId, shown: shownOf(event.data) };
    if (subject === null || event.type !== 'CampaignUpdated') return subject;
    return { ...subject, shown: shownOf({ ...subject.shown, ...event.data }) };
  },
};

export const campaigns = defineModel<Own, CampaignEvent>({
  name: 'campaigns',
  kind: 'campaign',
  publisher: campaignPublisher,
  columns: {
    client_id: 'uuid',
    name: 'text',
    color: 'text',
    starts_on: 'text',
    ends_on: 'text',
    description: 'text',
    deleted_at: 'timestamptz',
    open_shifts: 'jsonb',
    shifting_since: 'timestamptz',
  },
  indexes: [
    { on: '(workspace_id, created_at, id) where deleted_at is null' },
    { on: '(client_id, created_at, id) where deleted_at is null and client_id is not null' },
    { on: '(shifting_since, id) where shifting_since is not null' },
  ],
  on: {
    CampaignCreated: (_row, { clientId, name, color, startsOn, endsOn, description }) => ({
      client_id: clientId,
      name,
      color,
      starts_on: startsOn,
      ends_on: endsOn,
      description,
      deleted_at: null,
      open_shifts: [],
      shifting_since: null,
    }),
    CampaignUpdated: change((row, fields) => ({ ...row, ...written(fields) })),
    CampaignShifted: change((row, _data, { revision, metadata }) =>
      // In real time, which says when the process that decided it must have died.
      shifting(row, [...row.open_shifts, { revision, decidedAt: metadata.occurredAt }]),
    ),
    CampaignShiftCompleted: change((row, { shiftRevision }) =>
      shifting(
        row,
        row.open_shifts.filter(({ revision }) => revision !== shiftRevision),
      ),
    ),
    CampaignDeleted: change((row, _data, { metadata }) => ({ ...row, deleted_at: instantOf(metadata) })),
  },
});

export const renderCampaign = (row: CountedCampaign) => ({
  id: row.id,
  object: 'campaign' as const,
  name: row.name,
  clientId: row.client_id,
  color: row.color,
  startsOn: row.starts_on,
  endsOn: row.ends_on,
  description: row.description,
  postCount: row.post_count,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  revision: row.revision,
});

/** A draft may have named a campaign of another workspace before campaigns were checked: its post does not count. */
const postCount = `(select count(*)::int from ${view('posts')} p
  where p.campaign_id = campaigns.id and p.workspace_id = campaigns.workspace_id and p.status <> 'discarded')`;

const counted = (knex: Knex) =>
  knex(`${view('campaigns')} as campaigns`).select('campaigns.*', knex.raw(`${postCount} as post_count`));

/** Returns a deleted campaign too; its `deleted_at` is set. */
export const getCampaign = async (knex: Knex, workspaceId: string, id: string): Promise<CountedCampaign | null> => {
  const row = await counted(knex).where({ id, workspace_id: workspaceId }).first();
  return row === undefined ? null : (asRow(campaigns, row) as CountedCampaign);
};

interface CampaignFilters {
  readonly clientId?: string;
  /** Only campaigns of these clients. */
  readonly clientIds?: readonly string[];
}

/** Newest first, without the deleted ones. */
export const listCampaigns = async (
  knex: Knex,
  workspaceId: string,
  { clientId, clientIds }: CampaignFilters,
  page: PageOf<NewestFirst>,
): Promise<Page<CountedCampaign>> => {
  const query = counted(knex).where({ workspace_id: workspaceId }).whereNull('deleted_at');
  if (clientId !== undefined) query.where({ client_id: clientId });
  if (clientIds !== undefined) query.whereRaw('client_id = any(?::uuid[])', [[...clientIds]]);
  return (await newestFirst(query, campaigns, page)) as Page<CountedCampaign>;
};
