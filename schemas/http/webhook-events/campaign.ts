import { Type } from 'typebox';
import { Nullable, Uuid } from '#schemas/common.ts';
import { example, perhapsClient, publicEvent } from './common.ts';

/** Events of a campaign; `post.campaign_changed` reports its posts. */

const ids = { campaignId: Uuid, ...perhapsClient };
const exampleIds = { campaignId: example.campaignId, clientId: example.clientId };
const Day = Nullable(Type.String({ format: 'date' }));
const fields = { name: Type.String({ minLength: 1, maxLength: 200 }), startsOn: Day, endsOn: Day };
const spring = { name: 'Spring', startsOn: '2026-02-01', endsOn: '2026-03-31' };

export const campaignPublic = {
  'campaign.created': publicEvent('A campaign was created.', Type.Object({ ...ids, ...fields }), {
    ...exampleIds,
    ...spring,
  }),
  'campaign.updated': publicEvent(
    'A campaign was changed.',
    Type.Object({
      ...ids,
      changed: Type.Array(Type.String({ maxLength: 50 }), { minItems: 1, maxItems: 50 }),
      ...fields,
    }),
    { ...exampleIds, changed: ['endsOn'], ...spring },
  ),
  'campaign.shifted': publicEvent(
    'The pending targets of a campaign were moved.',
    Type.Object({
      ...ids,
      shiftMinutes: Type.Integer({ description: 'Negative: earlier.' }),
      shifted: Type.Integer({ minimum: 0, description: 'Number of moved targets.' }),
      skipped: Type.Integer({ minimum: 0, description: 'Number of targets that could not be moved.' }),
    }),
    { ...exampleIds, shiftMinutes: 1440, shifted: 12, skipped: 1 },
  ),
  'campaign.deleted': publicEvent('A campaign was deleted; its posts stay.', Type.Object(ids), exampleIds),
};
