import { createHash } from 'node:crypto';
import type { Platform } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import { maxTargets, type Plan, type PostBody, type Schedule } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { Rejection } from '../decider.ts';
import { targetIdOf } from '../ids.ts';
import { rulesOf } from '../platforms/registry.ts';
import type { Overrides } from '../platforms/rules.ts';
import { instantOf, isLocalDateTime, isTimezone, monthsAfter } from '../zones.ts';

/** Which targets are handed to the network's own scheduler, and until when one can be taken back. */

type Mode = Pick<PlannedTarget, 'scheduleMode' | 'scheduleModeReason'>;

export type ScheduleModeReason =
  | 'platform_has_no_scheduler'
  | 'setting_not_schedulable'
  | 'due_now'
  | 'outside_native_window'
  | 'network_unavailable';

/**
 * Milliseconds before the due time from which a handed-over post is not taken back. Neither network documents a limit
 * for deleting, so this one is ours: a deletion that meets the publication is answered by whichever came first.
 */
export const undoClosesMs = 60_000;

export const isUndoable = (dueAt: string, now: string): boolean => Date.parse(dueAt) - Date.parse(now) >= undoClosesMs;

/** Why the network's own scheduler takes no post of that time; null: it does. */
export const timeReason = (
  platform: Platform,
  dueAt: string,
  now: string,
): Extract<ScheduleModeReason, 'platform_has_no_scheduler' | 'due_now' | 'outside_native_window'> | null => {
  const window = rulesOf(platform).nativeWindow;
  if (window === null) return 'platform_has_no_scheduler';
  const aheadMs = Date.parse(dueAt) - Date.parse(now);
  if (aheadMs <= 0) return 'due_now';
  return aheadMs < window.minMs || aheadMs > window.maxMs ? 'outside_native_window' : null;
};

/** The last instant at which the network's own scheduler takes a post of that due time. */
export const closesAt = (platform: Platform, dueAt: string): string =>
  new Date(Date.parse(dueAt) - (rulesOf(platform).nativeWindow?.minMs ?? 0)).toISOString();

const native: Mode = { scheduleMode: 'native', scheduleModeReason: null };
export const managed = (scheduleModeReason: ScheduleModeReason | null): Mode => ({
  scheduleMode: 'managed',
  scheduleModeReason,
});

export interface WantedMode {
  /** The mode that the caller asked for. */
  readonly scheduleMode: PlannedTarget['scheduleMode'];
  /** What the caller set for the network. */
  readonly overrides: Overrides;
  /** Whether the caller wants it out now: such a post is never handed over. */
  readonly isNow: boolean;
}

export const wantedModeOf = (
  { scheduleMode, schedule, variants }: Pick<PostBody, 'scheduleMode' | 'schedule' | 'variants'>,
  platform: Platform,
): WantedMode => ({
  scheduleMode,
  overrides: variants.find((variant) => variant.platform === platform)?.overrides ?? {},
  isNow: schedule.type === 'now',
});

const isRefused = (platform: Platform, overrides: Overrides): boolean =>
  Object.entries(rulesOf(platform).nativeWindow?.refuses ?? {}).some(([key, values]) =>
    values.some((value) => value === overrides[key]),
  );

/** The mode that a target of a new plan or a revision gets. */
export const scheduleModeOf = (
  wanted: WantedMode & { readonly platform: Platform; readonly dueAt: string; readonly now: string },
): Mode => {
  const { scheduleMode, platform, overrides, isNow, dueAt, now } = wanted;
  if (scheduleMode === 'managed') return managed(null);
  const window = rulesOf(platform).nativeWindow;
  if (window === null) return managed('platform_has_no_scheduler');
  if (isRefused(platform, overrides)) return managed('setting_not_schedulable');
  if (isNow) return managed('due_now');
  const reason = timeReason(platform, dueAt, now);
  return reason === null ? native : managed(reason);
};

/**
 * The mode of a target that is revised and keeps its time: a setting that the network does not schedule takes it back,
 * and its end gives it to the network again. Nothing else changes the mode.
 */
export const revisedMode = (
  present: Mode & Pick<PlannedTarget, 'platform' | 'dueAt'>,
  wanted: WantedMode,
  now: string,
): Mode => {
  const { scheduleMode, scheduleModeReason, platform, dueAt } = present;
  const refused = isRefused(platform, wanted.overrides);
  const isDecidedBySetting = scheduleMode === 'native' ? refused : scheduleModeReason === 'setting_not_schedulable';
  return isDecidedBySetting
    ? scheduleModeOf({ ...wanted, platform, dueAt, now })
    : { scheduleMode, scheduleModeReason };
};

/** Turns a selection of accounts and a schedule into a plan: the due time of each target, and the reason for it. */

/** A selected account, with the zones in which its wall-clock times may be read. */
export interface Destination {
  readonly accountId: string;
  readonly clientId: string;
  readonly platform: Platform;
  readonly accountTimezone: string | null;
  readonly clientTimezone: string | null;
  /** The rights that the account's owner granted, in the words of the network. */
  readonly scopes: readonly string[];
}

/** A time that a target has of itself, before jitter. */
export interface RequestedTime {
  readonly at: string;
  /** Null: no wall-clock time was asked for. */
  readonly local: string | null;
  readonly timezone: string;
}

export interface PlanInput {
  readonly postId: string;
  readonly number: number;
  readonly destinations: readonly Destination[];
  readonly schedule: Schedule;
  readonly timezone: string;
  /** By account, instead of the times that the schedule gives. */
  readonly times?: ReadonlyMap<string, RequestedTime>;
  readonly scheduleMode: PostBody['scheduleMode'];
  readonly variants: PostBody['variants'];
  /** Instant of the call, ISO 8601. */
  readonly now: string;
}

/** How far in the past a time may lie and still mean "now". */
const pastToleranceMs = 60_000;
const horizonMonths = 18;

/** The faults of a schedule that do not depend on its accounts. Paths are relative to the body. */
export const scheduleIssues = (schedule: Schedule, timezone: string): readonly Issue[] => {
  const issues: Issue[] = [];
  if (!isTimezone(timezone)) {
    issues.push({
      path: '/timezone',
      code: 'unknown_timezone',
      message: 'must be an IANA timezone, such as Europe/Berlin',
    });
  }
  const { type, scheduledAt, scheduledLocal, from, to } = schedule;
  if (type === 'at' && scheduledAt === null && scheduledLocal === null) {
    issues.push({
      path: '/schedule/scheduledAt',
      code: 'required',
      message: 'is required, or scheduledLocal, when type is at',
    });
  }
  if (type === 'at' && scheduledLocal !== null && !isLocalDateTime(scheduledLocal)) {
    issues.push({ path: '/schedule/scheduledLocal', code: 'no_such_time', message: 'is not a time of the calendar' });
  }
  if (type === 'range') {
    const missing = (path: string): Issue => ({ path, code: 'required', message: 'is required when type is range' });
    if (from === null) issues.push(missing('/schedule/from'));
    if (to === null) issues.push(missing('/schedule/to'));
    if (from !== null && to !== null && to <= from) {
      issues.push({ path: '/schedule/to', code: 'wrong_order', message: 'must be after from' });
    }
  }
  return issues;
};

/** Whole seconds in [0, spread], the same for the same post and account. */
export const jitterOf = (postId: string, accountId: string, spreadMinutes: number): number => {
  if (spreadMinutes === 0) return 0;
  const hash = createHash('sha256').update(`${postId}\n${accountId}`).digest().readUIntBE(0, 6);
  return hash % (spreadMinutes * 60 + 1);
};

const inPast = (instant: string) => ({ code: 'schedule_in_past', message: `${instant} is in the past` }) as const;
const tooFar = (instant: string) =>
  ({ code: 'schedule_too_far', message: `${instant} is more than ${horizonMonths} months ahead` }) as const;

/** Why a target cannot be due then; null: it can. */
export const dueFault = (dueAt: string, now: string): 'schedule_in_past' | 'schedule_too_far' | null => {
  if (Date.parse(dueAt) < Date.parse(now) - pastToleranceMs) return 'schedule_in_past';
  return dueAt > monthsAfter(now, horizonMonths) ? 'schedule_too_far' : null;
};

/** Checks the new time of a single target. @throws Rejection `schedule_in_past`, `schedule_too_far` */
export const checkDue = (dueAt: string, now: string, path: string): void => {
  const fault = dueFault(dueAt, now);
  if (fault === 'schedule_in_past') {
    throw new Rejection('schedule_in_past', 'The target would be due in the past.', {
      errors: [{ path, ...inPast(dueAt) }],
    });
  }
  if (fault === 'schedule_too_far') {
    throw new Rejection('schedule_too_far', 'The target would be due too far ahead.', {
      errors: [{ path, ...tooFar(dueAt) }],
    });
  }
};

const zoneOf = (destination: Destination, timezone: string): string =>
  destination.accountTimezone ?? destination.clientTimezone ?? timezone;

const scheduledLocalOf = ({ type, scheduledLocal }: Schedule): string | null => (type === 'at' ? scheduledLocal : null);

/** The requested instant of destination `index` of `count`, before jitter. */
const requestedTimeAt = (input: PlanInput, destination: Destination, index: number, count: number): string => {
  const { schedule, now } = input;
  if (schedule.type === 'now') return now;
  if (schedule.type === 'at') {
    if (schedule.scheduledLocal !== null)
      return instantOf(schedule.scheduledLocal, zoneOf(destination, input.timezone));
    return schedule.scheduledAt ?? now;
  }
  const from = Date.parse(schedule.from ?? now);
  const to = Date.parse(schedule.to ?? now);
  const step = count > 1 ? (index * (to - from)) / (count - 1) : 0;
  return new Date(Math.round(from + step)).toISOString();
};

/** A plan, and every reason for which it is refused. */
interface ConsideredPlan {
  readonly plan: Plan;
  /** `no_targets`, `validation_failed` (too many), `schedule_in_past`, `schedule_too_far`; the latter name each account. */
  readonly refusals: readonly Rejection[];
}

const countRefusals = (count: number): readonly Rejection[] => {
  if (count === 0) return [new Rejection('no_targets', 'The selection holds no connected account.')];
  if (count <= maxTargets) return [];
  const message = `selects ${count} accounts, at most ${maxTargets} are allowed`;
  const errors = [{ path: '/targets', code: 'too_many', message }] as const;
  return [new Rejection('validation_failed', `A post goes to at most ${maxTargets} accounts.`, { errors })];
};

export const considerPlan = (input: PlanInput): ConsideredPlan => {
  const all = [...input.destinations].sort((a, b) => (a.accountId < b.accountId ? -1 : 1));
  const refusals = [...countRefusals(all.length)];
  const destinations = all.slice(0, maxTargets);
  const earliest = new Date(Date.parse(input.now) - pastToleranceMs).toISOString();
  const latest = monthsAfter(input.now, horizonMonths);
  const past: Issue[] = [];
  const far: Issue[] = [];
  const targets = destinations.map((destination, index): PlannedTarget => {
    const { accountId, platform } = destination;
    const own = input.times?.get(accountId);
    const requested = own?.at ?? requestedTimeAt(input, destination, index, destinations.length);
    if (requested < earliest) past.push({ path: '/schedule', ...inPast(requested), accountId, platform });
    if (requested > latest) far.push({ path: '/schedule', ...tooFar(requested), accountId, platform });
    const jitterSeconds = jitterOf(input.postId, accountId, input.schedule.spreadMinutes ?? 0);
    const dueAt = new Date(Date.parse(requested) + jitterSeconds * 1000).toISOString();
    return {
      targetId: targetIdOf(input.postId, accountId, input.number),
      accountId,
      clientId: destination.clientId,
      platform,
      dueAt,
      scheduledLocal: own !== undefined ? own.local : scheduledLocalOf(input.schedule),
      timezone: own?.timezone ?? zoneOf(destination, input.timezone),
      jitterSeconds,
      ...scheduleModeOf({ ...wantedModeOf(input, platform), platform, dueAt, now: input.now }),
    };
  });
  if (past.length > 0) {
    refusals.push(new Rejection('schedule_in_past', 'A target would be due in the past.', { errors: past }));
  }
  if (far.length > 0) {
    const detail = 'A target would be due more than 18 months ahead.';
    refusals.push(new Rejection('schedule_too_far', detail, { errors: far }));
  }
  return { plan: { number: input.number, targets }, refusals };
};
