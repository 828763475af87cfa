import { Type } from 'typebox';
import { Nullable, Uuid } from '#schemas/common.ts';
import { said } from '#schemas/published.ts';
import { example, perhapsClient, publicEvent } from './common.ts';

/** Events of a campaign; `post.campaign_changed` reports its posts. */

const ids = { campaignId: said(Uuid, 'Id of the campaign.'), ...perhapsClient };
const exampleIds = { campaignId: example.campaignId, clientId: example.clientId };
const Day = Nullable(Type.String({ format: 'date' }));
const fields = {
  name: Type.String({ minLength: 1, maxLength: 200, description: 'Name of the campaign.' }),
  startsOn: said(Day, 'Its first day, YYYY-MM-DD; null: none is set.', { examples: ['2026-02-01'] }),
  endsOn: said(Day, 'Its last day, YYYY-MM-DD; null: none is set.', { examples: ['2026-03-31'] }),
};
const spring = { name: 'Spring', startsOn: '2026-02-01', endsOn: '2026-03-31' };

export const campaignPublic = {
  'campaign.created': publicEvent('A caller created a campaign.', Type.Object({ ...ids, ...fields }), {
    ...exampleIds,
    ...spring,
  }),
  'campaign.updated': publicEvent(
    'A caller changed a campaign.',
    Type.Object({
      ...ids,
      changed: Type.Array(Type.String({ maxLength: 50 }), {
        minItems: 1,
        maxItems: 50,
        description: 'Names of the changed members of the campaign, also of members that events do not show.',
        examples: [['endsOn']],
      }),
      ...fields,
    }),
    { ...exampleIds, changed: ['endsOn'], ...spring },
  ),
  'campaign.shifted': publicEvent(
    'The service moved the targets of a campaign to other times, as a caller asked for.',
    Type.Object({
      ...ids,
      minutes: said(
        Nullable(Type.Integer()),
        'Minutes by which each target was moved, negative: to an earlier time; null: they were moved by days.',
      ),
      days: said(
        Nullable(Type.Integer()),
        'Days by which each target was moved, at the same wall-clock time; null: they were moved by minutes.',
      ),
      shifted: Type.Integer({ minimum: 0, description: 'Number of targets that were moved.' }),
      skipped: Type.Integer({ minimum: 0, description: 'Number of targets that could not be moved.' }),
    }),
    { ...exampleIds, minutes: null, days: 1, shifted: 12, skipped: 1 },
  ),
  'campaign.deleted': publicEvent('A caller deleted a campaign; its posts stay.', Type.Object(ids), exampleIds),
};
