import type { Platform } from '#schemas/common.ts';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { rulesOf } from './platforms/registry.ts';
import type { Overrides } from './platforms/rules.ts';

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

export const native: Mode = { scheduleMode: 'native', scheduleModeReason: null };
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
