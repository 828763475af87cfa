import type { CampaignEvent, CampaignFields } from '#schemas/campaign.ts';
import type { campaignPublic } from '#schemas/http/webhook-events/campaign.ts';
import type { Publisher } from './rule.ts';

/** A campaign. Its posts publish that they joined or left it, its targets that they were moved. */

type Shown = Pick<CampaignFields, 'name' | 'startsOn' | 'endsOn'>;

interface Campaign {
  readonly clientId: string | null;
  readonly shown: Shown;
}

const shownOf = ({ name, startsOn, endsOn }: Shown): Shown => ({ name, startsOn, endsOn });

export const campaign: Publisher<typeof campaignPublic, CampaignEvent, Campaign> = {
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
