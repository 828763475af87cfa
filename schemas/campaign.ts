import { type Static, Type } from 'typebox';
import { type EventOf, Nullable, Uuid } from './common.ts';
import { LocalDate } from './insights.ts';

/** A campaign: a name under which posts are planned, and by which their times are moved together. */

/** What the members of a campaign mean, wherever they stand. */
export const campaignWords = {
  name: 'Its name; two campaigns may have the same.',
  color: 'The color that calendars give it, #rrggbb; null: none is set.',
  startsOn: 'Its first day, YYYY-MM-DD; null: none is set.',
  endsOn: 'Its last day, YYYY-MM-DD, not before the first; null: none is set.',
  description: 'What it is about; null: none is set.',
} as const;

export const CampaignName = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '\\S',
  expects: 'a name with a character that is not blank, such as Spring',
});
export const Color = Type.String({ pattern: '^#[0-9a-f]{6}$', expects: 'a color in lower case, such as #1f6feb' });
export const CampaignDescription = Type.String({ maxLength: 5_000 });

/** What a caller may change. */
export const CampaignFields = Type.Object({
  name: CampaignName,
  color: Nullable(Color),
  startsOn: Nullable(LocalDate),
  endsOn: Nullable(LocalDate),
  description: Nullable(CampaignDescription),
});
export type CampaignFields = Static<typeof CampaignFields>;

/** Targets that one shift moves at most: their ids stand in one event. */
export const maxShifted = 5_000;
export const maxShiftMinutes = 525_600;
export const maxShiftDays = 365;

/** Why a shift passes over a target. */
export const shiftSkipReasons = [
  'publishing',
  'processing',
  'published',
  'canceled',
  'rate_limited',
  'outcome_unknown',
  'handed_to_platform',
  'failed',
  'awaiting_approval',
  'segment_published',
  'schedule_in_past',
  'schedule_too_far',
  'quota_exceeded',
  'cadence_exceeded',
] as const;

/** Exactly one of the two has a value. */
const by = {
  minutes: Nullable(Type.Integer({ minimum: -maxShiftMinutes, maximum: maxShiftMinutes })),
  /** Wall-clock times stay, each in the zone of its target. */
  days: Nullable(Type.Integer({ minimum: -maxShiftDays, maximum: maxShiftDays })),
};

export const campaignEvents = {
  /** A campaign with a client takes only posts of that client. It never changes. */
  CampaignCreated: Type.Object({ clientId: Nullable(Uuid), ...CampaignFields.properties }),
  /** Only the changed members. */
  CampaignUpdated: Type.Partial(CampaignFields),
  /** An intent: decided here, and then carried out on each of these targets. */
  CampaignShifted: Type.Object({
    ...by,
    targetIds: Type.Array(Uuid, { minItems: 1, maxItems: maxShifted }),
    /** Further targets of the campaign, which no shift can move. */
    skipped: Type.Integer({ minimum: 0 }),
  }),
  /** Every target of a shift was moved or passed over; it is never applied to one of them later. */
  CampaignShiftCompleted: Type.Object({
    /** Revision of CampaignShifted. */
    shiftRevision: Type.Integer({ minimum: 0 }),
    ...by,
    shifted: Type.Integer({ minimum: 0 }),
    /** With those that CampaignShifted skipped. */
    skipped: Type.Integer({ minimum: 0 }),
    /** Targets of CampaignShifted that stay, by the reason: a code as `shiftSkipReasons` has them. */
    passedOver: Type.Array(
      Type.Object({
        reason: Type.String({ maxLength: 50 }),
        targetIds: Type.Array(Uuid, { minItems: 1, maxItems: maxShifted }),
      }),
    ),
  }),
  CampaignDeleted: Type.Object({}),
} as const;
export type CampaignEvent = EventOf<typeof campaignEvents>;
