import { Type } from 'typebox';
import { maxShiftDays, maxShiftMinutes, shiftSkipReasons } from '#schemas/campaign.ts';
import { Nullable, Uuid } from '#schemas/common.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { type Cleaned, Maybe } from './common.ts';

/** POST /campaigns/{id}/shift: the targets of a campaign move to other times. */

const minuteWords = 'Minutes by which each target moves; negative: to an earlier time.';
const dayWords =
  'Days by which each target moves, negative: to an earlier day. Its wall-clock time stays, in its own zone, also where the clocks change in between.';

export const CampaignShift = Named(
  'CampaignShift',
  Type.Object(
    {
      minutes: Maybe(Type.Integer({ minimum: -maxShiftMinutes, maximum: maxShiftMinutes, description: minuteWords })),
      days: Maybe(Type.Integer({ minimum: -maxShiftDays, maximum: maxShiftDays, description: dayWords })),
    },
    { description: 'By how much a campaign moves: exactly one of the two members.' },
  ),
);
export type CampaignShift = Cleaned<typeof CampaignShift>;

const SkipReason = OpenEnum(
  'ShiftSkipReason',
  shiftSkipReasons,
  'publishing, processing, published, canceled, outcome_unknown, handed_to_platform, failed, awaiting_approval, rate_limited: the status of the target; segment_published: a segment of its thread is out; schedule_in_past: its new time would be more than 60 seconds ago; schedule_too_far: its new time would be more than 18 months ahead; quota_exceeded: the quota of the workspace has no room in the month of its new time; cadence_exceeded: its account would publish too often at its new time.',
);

export const maxShownSkips = 1_000;

export const ShiftSkip = Named(
  'ShiftSkip',
  Type.Object(
    {
      targetId: said(Uuid, 'Id of the target.'),
      reason: said(SkipReason, 'Why it keeps its time.'),
    },
    { description: 'A target that a shift did not move.' },
  ),
);

export const CampaignShiftResult = Named(
  'CampaignShiftResult',
  Type.Object(
    {
      object: Type.Literal('campaign_shift', { description: 'The kind of resource.' }),
      campaignId: said(Uuid, 'The campaign.'),
      revision: Type.Integer({ minimum: 0, description: 'Revision of the campaign after the shift.' }),
      minutes: said(Nullable(Type.Integer()), 'The minutes that were sent; null: days were.'),
      days: said(Nullable(Type.Integer()), 'The days that were sent; null: minutes were.'),
      shifted: Type.Integer({ minimum: 0, description: 'Number of targets that were moved.' }),
      skippedCount: Type.Integer({ minimum: 0, description: 'Number of targets that were not moved.' }),
      skipped: Type.Array(ShiftSkip, {
        maxItems: maxShownSkips,
        description: `Targets that were not moved: the first ${maxShownSkips}, those that are not settled before the others.`,
      }),
    },
    { description: 'What became of a shift.' },
  ),
);
