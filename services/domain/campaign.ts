import { isDeepStrictEqual } from 'node:util';
import type { CampaignEvent, CampaignFields } from '#schemas/campaign.ts';
import type { Issue } from '#schemas/issues.ts';
import { type Decider, type Fact, Rejection } from './decider.ts';
import { isLocalDateTime } from './zones.ts';

/**
 * A campaign. Its law: its client never changes, a deleted one changes no more, and each shift is carried out until it
 * is completed, once, also when the campaign is deleted meanwhile.
 */

/** By how much: exactly one of the two has a value. */
export interface ShiftBy {
  readonly minutes: number | null;
  readonly days: number | null;
}

/** A shift that is not completed. */
export interface OpenShift extends ShiftBy {
  readonly revision: number;
  readonly eventId: string;
  readonly targetIds: readonly string[];
  /** Targets of the campaign that it does not try to move. */
  readonly skipped: number;
}

export type CampaignState =
  | { readonly status: 'none' }
  | {
      readonly status: 'live' | 'deleted';
      readonly clientId: string | null;
      readonly fields: CampaignFields;
      /** In the order of their decisions. */
      readonly shifts: readonly OpenShift[];
      /** Commands of all shifts: a repeat of one is no second shift. */
      readonly shiftedBy: readonly string[];
    };

export type CampaignCommand =
  | { readonly type: 'Create'; readonly clientId: string | null; readonly fields: CampaignFields }
  | { readonly type: 'Update'; readonly changes: Partial<CampaignFields> }
  | ({
      readonly type: 'Shift';
      readonly commandId: string;
      readonly targetIds: readonly string[];
      readonly skipped: number;
    } & ShiftBy)
  | {
      readonly type: 'CompleteShift';
      readonly shiftRevision: number;
      /** Targets of the shift that were passed over. */
      readonly late: readonly { readonly targetId: string; readonly reason: string }[];
    }
  | { readonly type: 'Delete' };

/** The faults of days that a schema cannot see. Paths are relative to the body. */
const dayIssues = ({ startsOn, endsOn }: CampaignFields): readonly Issue[] => {
  const issues: Issue[] = [];
  for (const [path, day] of [
    ['/startsOn', startsOn],
    ['/endsOn', endsOn],
  ] as const) {
    if (day !== null && !isLocalDateTime(`${day}T00:00`)) {
      issues.push({ path, code: 'no_such_time', message: 'is not a day of the calendar' });
    }
  }
  if (startsOn !== null && endsOn !== null && endsOn < startsOn) {
    issues.push({ path: '/endsOn', code: 'wrong_order', message: 'must not be before startsOn' });
  }
  return issues;
};

const requireDays = (fields: CampaignFields): void => {
  const errors = dayIssues(fields);
  if (errors.length > 0)
    throw new Rejection('validation_failed', 'The days of the campaign are not valid.', { errors });
};

const unknown = (): Rejection => new Rejection('not_found', 'There is no such campaign.');

const decide = (command: CampaignCommand, state: CampaignState): readonly CampaignEvent[] => {
  if (command.type === 'Create') {
    if (state.status !== 'none') return [];
    requireDays(command.fields);
    return [{ type: 'CampaignCreated', data: { clientId: command.clientId, ...command.fields } }];
  }
  if (state.status === 'none') throw unknown();
  if (command.type === 'CompleteShift') {
    const { shiftRevision, late } = command;
    const open = state.shifts.find(({ revision }) => revision === shiftRevision);
    if (open === undefined) return [];
    const { minutes, days, targetIds } = open;
    const passedOver = [...Map.groupBy(late, ({ reason }) => reason)].map(([reason, some]) => ({
      reason,
      targetIds: some.map(({ targetId }) => targetId),
    }));
    const counts = { shifted: targetIds.length - late.length, skipped: open.skipped + late.length };
    const data = { shiftRevision, minutes, days, ...counts, passedOver };
    return [{ type: 'CampaignShiftCompleted', data }];
  }
  if (command.type === 'Delete') return state.status === 'deleted' ? [] : [{ type: 'CampaignDeleted', data: {} }];
  if (state.status === 'deleted') throw unknown();
  switch (command.type) {
    case 'Update': {
      const { fields } = state;
      const changed = Object.entries(command.changes).filter(
        ([name, value]) => value !== undefined && !isDeepStrictEqual(value, fields[name as keyof CampaignFields]),
      );
      if (changed.length === 0) return [];
      const changes: Partial<CampaignFields> = Object.fromEntries(changed);
      requireDays({ ...fields, ...changes });
      return [{ type: 'CampaignUpdated', data: changes }];
    }
    case 'Shift': {
      const { commandId, minutes, days, targetIds, skipped } = command;
      if (targetIds.length === 0 || state.shiftedBy.includes(commandId)) return [];
      return [{ type: 'CampaignShifted', data: { minutes, days, targetIds: [...targetIds], skipped } }];
    }
  }
};

const evolve = (state: CampaignState, event: CampaignEvent, fact: Fact): CampaignState => {
  if (event.type === 'CampaignCreated') {
    const { clientId, ...fields } = event.data;
    return state.status === 'none' ? { status: 'live', clientId, fields, shifts: [], shiftedBy: [] } : state;
  }
  if (state.status === 'none') return state;
  switch (event.type) {
    case 'CampaignUpdated':
      return { ...state, fields: { ...state.fields, ...event.data } };
    case 'CampaignShifted': {
      const shift = { revision: fact.revision, eventId: fact.eventId, ...event.data };
      return { ...state, shifts: [...state.shifts, shift], shiftedBy: [...state.shiftedBy, fact.commandId] };
    }
    case 'CampaignShiftCompleted': {
      const { shiftRevision } = event.data;
      return { ...state, shifts: state.shifts.filter(({ revision }) => revision !== shiftRevision) };
    }
    case 'CampaignDeleted':
      return { ...state, status: 'deleted' };
  }
};

export const campaign: Decider<CampaignState, CampaignCommand, CampaignEvent> = {
  kind: 'campaign',
  initial: { status: 'none' },
  decide,
  evolve,
};
