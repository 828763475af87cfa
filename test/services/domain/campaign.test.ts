import { deepEqual } from 'node:assert/strict';
import { campaign } from '#domain/campaign.ts';
import type { CampaignEvent } from '#schemas/campaign.ts';
import { deciding } from '#test/support/deciding.ts';
import { campaignFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(campaign);

const clientId = '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001';
const created: CampaignEvent = { type: 'CampaignCreated', data: { clientId, ...campaignFields } };
const deleted: CampaignEvent = { type: 'CampaignDeleted', data: {} };
const targetIds = ['t1', 't2', 't3'];
const byDay = { minutes: null, days: 1 };
const shifted: CampaignEvent = { type: 'CampaignShifted', data: { ...byDay, targetIds, skipped: 2 } };
const completed = (shiftRevision: number): CampaignEvent => ({
  type: 'CampaignShiftCompleted',
  data: {
    ...{ shiftRevision, ...byDay, shifted: 2, skipped: 3 },
    passedOver: [{ reason: 'publishing', targetIds: ['t2'] }],
  },
});
const shift = { type: 'Shift', commandId: 'shift', ...byDay, targetIds, skipped: 2 } as const;
const complete = { type: 'CompleteShift', shiftRevision: 1, late: [{ targetId: 't2', reason: 'publishing' }] } as const;

suite('campaign', (t) => {
  t('is created once, with a client or without one', () => {
    given([]).when({ type: 'Create', clientId, fields: campaignFields }).then([created]);
    given([])
      .when({ type: 'Create', clientId: null, fields: campaignFields })
      .then([{ type: 'CampaignCreated', data: { clientId: null, ...campaignFields } }]);
    given([created, deleted]).when({ type: 'Create', clientId, fields: campaignFields }).then([]);
  });

  t('takes only days of the calendar, in their order', () => {
    const create = (days: object) =>
      given([]).when({ type: 'Create', clientId, fields: { ...campaignFields, ...days } });
    create({ startsOn: '2026-02-31' }).refused('validation_failed', '/startsOn no_such_time');
    create({ endsOn: '2027-02-29' }).refused('validation_failed', '/endsOn is not a day of the calendar');
    create({ startsOn: '2026-03-02', endsOn: '2026-03-01' }).refused('validation_failed', '/endsOn wrong_order');
    create({ startsOn: '2026-03-02', endsOn: '2026-03-01' }).refused('validation_failed', 'not be before startsOn');
    for (const days of [{ startsOn: null }, { endsOn: null }, { startsOn: null, endsOn: null }]) {
      const data = { clientId, ...campaignFields, ...days };
      create(days).then([{ type: 'CampaignCreated', data }]);
    }
    given([created])
      .when({ type: 'Update', changes: { startsOn: '2026-04-01' } })
      .refused('validation_failed', '/endsOn wrong_order');
    given([created])
      .when({ type: 'Update', changes: { startsOn: '2026-04-01', endsOn: '2026-04-01' } })
      .then([{ type: 'CampaignUpdated', data: { startsOn: '2026-04-01', endsOn: '2026-04-01' } }]);
  });

  t('records only the members that changed', () => {
    given([created])
      .when({ type: 'Update', changes: { ...campaignFields, color: null } })
      .then([{ type: 'CampaignUpdated', data: { color: null } }]);
    given([created])
      .when({ type: 'Update', changes: { ...campaignFields } })
      .then([]);
    given([created]).when({ type: 'Update', changes: {} }).then([]);
  });

  t('is deleted once, and then changes and shifts no more', () => {
    given([created]).when({ type: 'Delete' }).then([deleted]);
    given([created, deleted])
      .when({ type: 'Update', changes: { name: 'New' } })
      .refused('not_found');
    given([created, deleted]).when(shift).refused('not_found');
    for (const command of [{ type: 'Delete' }, { type: 'Update', changes: {} }, shift, complete] as const) {
      given([]).when(command).refused('not_found');
    }
  });

  t('decides a shift once for each command, and none without targets', () => {
    given([created]).when(shift).then([shifted]);
    given([created, { ...shifted, commandId: 'shift' }, completed(1)])
      .when(shift)
      .then([]);
    given([created, shifted]).when(shift).then([shifted]);
    given([created])
      .when({ ...shift, targetIds: [] })
      .then([]);
  });

  t('completes a shift once, also of a deleted campaign; what it passed over adds to what it left out', () => {
    given([created, shifted])
      .when(complete)
      .then([completed(1)]);
    given([created, shifted, deleted])
      .when(complete)
      .then([completed(1)]);
    given([created, shifted, completed(1)])
      .when(complete)
      .then([]);
    given([created]).when(complete).then([]);
    // The second of two: the first has other targets.
    const first: CampaignEvent = { type: 'CampaignShifted', data: { ...byDay, targetIds: ['t9'], skipped: 0 } };
    given([created, first, shifted])
      .when({ ...complete, shiftRevision: 2 })
      .then([completed(2)]);
  });

  t('keeps the shifts that are not completed, in their order', () => {
    const open = (events: readonly CampaignEvent[]) => {
      const now = state(events);
      return now.status === 'none' ? [] : now.shifts.map(({ revision, eventId }) => [revision, eventId]);
    };
    const both = [[1, 'event-1'] as const, [2, 'event-2'] as const];
    deepEqual(open([created, shifted, shifted]), both);
    deepEqual(open([created, shifted, shifted, completed(1)]), both.slice(1));
    deepEqual(open([created, shifted, deleted]), both.slice(0, 1));
  });

  t('folds every event, and ignores one that does not fit', () => {
    const renamed: CampaignEvent = { type: 'CampaignUpdated', data: { name: 'Summer' } };
    deepEqual(state([created]), { status: 'live', clientId, fields: campaignFields, shifts: [], shiftedBy: [] });
    const now = state([created, renamed, deleted]);
    deepEqual(now, {
      ...{ status: 'deleted', clientId, shifts: [], shiftedBy: [] },
      fields: { ...campaignFields, name: 'Summer' },
    });
    for (const event of [renamed, shifted, completed(0), deleted]) deepEqual(state([event]), campaign.initial);
    deepEqual(
      state([created, { ...created, data: { ...created.data, name: 'Other' } } as CampaignEvent]),
      state([created]),
    );
  });
});
