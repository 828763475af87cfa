import { campaigns } from '#projections/models/campaigns.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { campaignFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: campaigns', (t) => {
  t('campaigns: created, changed, shifted, deleted; the first open shift says since when', async () => {
    const { id, clientId, target } = ids('id', 'clientId', 'target');
    const campaign = on('campaign', id);
    const by = { minutes: 30, days: null };
    const shifted = campaign('CampaignShifted', { ...by, targetIds: [target], skipped: 0 });
    const completed = (shiftRevision: number) =>
      campaign('CampaignShiftCompleted', { shiftRevision, ...by, shifted: 1, skipped: 0, passedOver: [] });
    const written = {
      ...{ id, client_id: clientId, name: 'Spring', color: '#1f6feb', starts_on: '2026-03-01' },
      ...{ ends_on: '2026-03-31', description: 'Everything green.', deleted_at: null },
    };
    const created = campaign('CampaignCreated', { clientId, ...campaignFields });
    await given(created)
      .project(pool, campaigns)
      .sees([{ ...written, open_shifts: [], shifting_since: null }]);
    const changed = campaign('CampaignUpdated', { name: 'Summer', color: null, endsOn: null });
    await given(created, changed, shifted, shifted)
      .project(pool, campaigns)
      .sees([
        {
          ...{ ...written, name: 'Summer', color: null, ends_on: null, shifting_since: instant(2) },
          open_shifts: [
            { revision: 2, decidedAt: instant(2) },
            { revision: 3, decidedAt: instant(3) },
          ],
        },
      ]);
    const rest = campaign('CampaignUpdated', { startsOn: null, description: null });
    await given(created, rest, shifted, shifted, completed(2), campaign('CampaignDeleted', {}))
      .project(pool, campaigns)
      .sees([
        {
          ...{ ...written, starts_on: null, description: null, deleted_at: instant(5) },
          ...{ open_shifts: [{ revision: 3, decidedAt: instant(3) }], shifting_since: instant(3) },
        },
      ]);
    await given(created, shifted, completed(1))
      .project(pool, campaigns)
      .sees([{ ...written, open_shifts: [], shifting_since: null }]);
  });

  everyEventIsProjected(t, 'campaign');
});
