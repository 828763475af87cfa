import { isDeepStrictEqual } from 'node:util';
import type { Actor } from '#schemas/common.ts';
import type { PostEvent, PostStatus, recycleStops } from '#schemas/post.ts';
import { type Fact, Rejection } from '../decider.ts';

/**
 * The recycling of a post, as the post's own stream knows it. Its law: a copy is recorded once and in order, a copy that
 * exists is recorded also after the recycling was cleared, and no setting makes more copies than `times`.
 */

/** When a copy is due: so many days after the publication of the post. */
export interface RecycleRun {
  readonly day: number;
  /** Of its first target. */
  readonly dueAt: string;
}

export type RecycleStop = (typeof recycleStops)[number];

export interface RecycleSettings {
  readonly everyDays: number;
  readonly times: number | null;
  readonly until: string | null;
}

export interface Recycle {
  readonly enabled: boolean;
  /** Null: a caller has cleared them. */
  readonly settings: RecycleSettings | null;
  readonly setBy: Actor;
  /** Every copy is held until it is approved, whatever the role of `setBy` is by then. */
  readonly needsApproval: boolean;
  readonly setAt: string;
  /** Copies so far, under all settings. */
  readonly posted: number;
  /** Day of the last copy that was due; 0: none was. */
  readonly lastDay: number;
  /** Null: the post is not out, or no copy is due any more. */
  readonly next: RecycleRun | null;
  /** Null: the service has not stopped it. */
  readonly stoppedReason: RecycleStop | 'post_canceled' | null;
  /** Since the settings were made, the newest last: the id of a copy, or null for one that was refused. */
  readonly attempts: readonly (string | null)[];
  /** Ids of the last copies under all settings, the newest last. */
  readonly copies: readonly string[];
}

/** What follows once a copy was due. */
export type RecycleThen = RecycleRun | { readonly reason: RecycleStop };

export type RecycleCommand =
  | ({
      readonly type: 'SetRecycle';
      readonly enabled: boolean;
      readonly setBy: Actor;
      readonly needsApproval: boolean;
      /** Null: the post is not out yet. */
      readonly next: RecycleRun | null;
    } & RecycleSettings)
  | { readonly type: 'ClearRecycle' }
  | { readonly type: 'StopRecycle'; readonly reason: RecycleStop }
  /** The post is out: its first copy has a time. */
  | { readonly type: 'PlanRecycle'; readonly then: RecycleThen }
  /** The run of that day would come too soon after the publication before it. */
  | { readonly type: 'MoveRecycle'; readonly day: number; readonly then: RecycleThen }
  | {
      readonly type: 'RecordRecycled';
      readonly occurrence: number;
      readonly newPostId: string;
      readonly day: number;
      readonly scheduledAt: string;
      /** Null: the recycling is not enabled any more. */
      readonly then: RecycleThen | null;
    }
  | {
      readonly type: 'RecordRecycleFailed';
      readonly day: number;
      readonly code: string;
      readonly message: string;
      readonly then: RecycleThen;
    };

/** Failures in a row after which the service makes no more copies. */
export const maxRecycleFailures = 3;

/** The last copies that are looked at: a person may have retried a target of a former one. */
const recentCopies = 3;

/** A copy is stored so long before it is due: it goes out on time, and a person can approve, change or cancel it. */
export const recycleLeadMs = 3_600_000;

interface About {
  readonly status: PostStatus | null;
  readonly recycle: Recycle | null;
  readonly recycledFrom: object | null;
}

const planned = (recycle: Recycle, then: RecycleThen | null): readonly PostEvent[] => {
  if (!recycle.enabled || then === null) return [];
  if ('reason' in then) return [{ type: 'PostRecycleCleared', data: { reason: then.reason } }];
  return [{ type: 'PostRecyclePlanned', data: { day: then.day, dueAt: then.dueAt } }];
};

const invalid = (path: string, code: 'not_allowed' | 'too_small' | 'out_of_range', message: string): Rejection =>
  new Rejection('validation_failed', 'The post cannot be recycled like this.', { errors: [{ path, code, message }] });

const set = (
  { enabled, setBy, needsApproval, everyDays, times, until, next }: Extract<RecycleCommand, { type: 'SetRecycle' }>,
  { status, recycle, recycledFrom }: About,
): readonly PostEvent[] => {
  if (status === 'draft' || status === 'canceled') {
    throw new Rejection('post_not_scheduled', `A ${status} post is not recycled.`);
  }
  if (recycledFrom !== null) throw invalid('', 'not_allowed', 'is itself a copy of a recycled post');
  const posted = recycle?.posted ?? 0;
  if (times !== null && times <= posted) {
    throw invalid('/times', 'too_small', `must be more than the ${posted} copies that were made`);
  }
  const settings = { everyDays, times, until };
  const isSame =
    recycle !== null &&
    recycle.enabled === enabled &&
    recycle.stoppedReason === null &&
    recycle.needsApproval === needsApproval &&
    // Another caller takes it over: the author of the copies is the caller who set it last.
    isDeepStrictEqual(recycle.setBy, setBy) &&
    isDeepStrictEqual(recycle.settings, settings);
  if (isSame) return [];
  if (enabled && next !== null && until !== null && next.dueAt > until) {
    throw invalid('/until', 'out_of_range', `must not lie before ${next.dueAt}, when the next copy would be due`);
  }
  const made: PostEvent = { type: 'PostRecycleSet', data: { enabled, ...settings, setBy, needsApproval } };
  return enabled && next !== null ? [made, { type: 'PostRecyclePlanned', data: { ...next } }] : [made];
};

/** @throws Rejection `post_not_scheduled`, `validation_failed` */
export const decideRecycle = (command: RecycleCommand, about: About): readonly PostEvent[] => {
  const { recycle } = about;
  if (command.type === 'SetRecycle') return set(command, about);
  if (recycle === null) return [];
  // An approver sent the post back before it was out: it has no copies.
  const ends = command.type === 'ClearRecycle' || command.type === 'StopRecycle';
  if (about.status === 'draft' && !ends) return [];
  switch (command.type) {
    case 'ClearRecycle':
      return recycle.settings === null ? [] : [{ type: 'PostRecycleCleared', data: { reason: 'requested' } }];
    case 'StopRecycle':
      return planned(recycle, { reason: command.reason });
    case 'PlanRecycle':
      return recycle.next === null ? planned(recycle, command.then) : [];
    case 'MoveRecycle':
      return recycle.next?.day === command.day ? planned(recycle, command.then) : [];
    case 'RecordRecycled': {
      const { occurrence, newPostId, day, scheduledAt, then } = command;
      if (occurrence !== recycle.posted + 1) return [];
      return [{ type: 'PostRecycled', data: { occurrence, newPostId, day, scheduledAt } }, ...planned(recycle, then)];
    }
    case 'RecordRecycleFailed': {
      const { day, code, message, then } = command;
      if (!recycle.enabled || day <= recycle.lastDay) return [];
      return [{ type: 'PostRecycleFailed', data: { day, code, message } }, ...planned(recycle, then)];
    }
  }
};

const stopped = (recycle: Recycle, reason: Recycle['stoppedReason']): Recycle =>
  !recycle.enabled ? recycle : { ...recycle, enabled: false, next: null, stoppedReason: reason };

const tried = (recycle: Recycle, attempt: string | null): Recycle['attempts'] =>
  [...recycle.attempts, attempt].slice(-maxRecycleFailures);

/** The recycling after an event of its post; the same where the event is about something else. */
export const evolveRecycle = (recycle: Recycle | null, event: PostEvent, { occurredAt }: Fact): Recycle | null => {
  if (event.type === 'PostRecycleSet') {
    const { enabled, everyDays, times, until, setBy, needsApproval } = event.data;
    return {
      ...{ enabled, settings: { everyDays, times, until }, setBy, needsApproval, setAt: occurredAt },
      ...{ posted: recycle?.posted ?? 0, lastDay: recycle?.lastDay ?? 0 },
      ...{ next: null, stoppedReason: null, attempts: [], copies: recycle?.copies ?? [] },
    };
  }
  if (recycle === null) return recycle;
  switch (event.type) {
    case 'PostRecyclePlanned':
      return { ...recycle, next: event.data };
    case 'PostRecycled': {
      const { occurrence, newPostId, day } = event.data;
      const copies = [...recycle.copies, newPostId].slice(-recentCopies);
      const attempts = tried(recycle, newPostId);
      return { ...recycle, posted: occurrence, lastDay: day, next: null, attempts, copies };
    }
    case 'PostRecycleFailed':
      return { ...recycle, lastDay: event.data.day, next: null, attempts: tried(recycle, null) };
    case 'PostRecycleCleared': {
      const { reason } = event.data;
      if (reason !== 'requested') return stopped(recycle, reason);
      return { ...recycle, enabled: false, settings: null, next: null, stoppedReason: null };
    }
    case 'PostCanceled':
      return stopped(recycle, 'post_canceled');
    default:
      return recycle;
  }
};

/** Whether the post as a whole went out, on some of its targets at least: copies are counted from then on. */
export const isOut = (status: PostStatus | null): boolean => status === 'published' || status === 'partially_published';

/** When the service has work with the recycling of a post next; null: nothing is to be done. */
export const recycleWorkAt = (
  recycle: Recycle | null,
  status: PostStatus | null,
  publishedAt: string | null,
): string | null => {
  if (recycle === null || !recycle.enabled) return null;
  if (recycle.next !== null) return new Date(Date.parse(recycle.next.dueAt) - recycleLeadMs).toISOString();
  return isOut(status) ? publishedAt : null;
};
