import { fitsAlone, nextFreeAt, type PostingLimits, type Slot } from './cadence.ts';

/**
 * When a target that is due goes out, beside the others of its account. First come, first served: a target that has to
 * wait gets the next free slot and holds it, so that it waits once. Pure: milliseconds since the epoch.
 */

export interface TakenSlot extends Slot {
  /**
   * `out`: it is published, may be, or its network will publish it at this time. `under_way`: its attempt began at this
   * time and may publish at any. `waiting`: it was deferred to this time.
   */
  readonly state: 'out' | 'under_way' | 'waiting';
}

export interface Wanted {
  readonly targetId: string;
  readonly now: number;
  readonly calls: number;
  /** The time from which it may be claimed. */
  readonly dueAt: number;
  /** Since when it has been rescheduled; absent or null: it was not. */
  readonly deferredSince?: number | null;
}

export type CadenceDecision =
  | { readonly kind: 'go' }
  /** It is looked at again after so many milliseconds. */
  | { readonly kind: 'rest'; readonly ms: number }
  /** `holds`: it has the slot at that time. Else its account may not publish at all now, and it is looked at again then. */
  | { readonly kind: 'wait'; readonly until: number; readonly holds: boolean }
  /** No waiting helps: it makes more calls than a window allows, or its account may not publish for too long. */
  | { readonly kind: 'never' };

/** Milliseconds after which a target is looked at again whose account may not publish at all. */
const closedMs = 3_600_000;
/** Milliseconds for which a target is rescheduled in all because its account may not publish: somebody may allow it again. */
const closedLimitMs = 24 * 3_600_000;
/** A slot that begins late by at most so many milliseconds is not rescheduled: the calls before it may have taken longer. */
const restMs = 120_000;
/** Milliseconds for which a waiting target keeps its slot when its time has come and no worker has claimed it. */
export const graceMs = 300_000;
/** Milliseconds after the begin of an attempt at which those behind it look whether it came to nothing. */
const looksMs: readonly number[] = [1_000, 5_000, 20_000];
/** Milliseconds between further looks of a target whose slot has come: it gives the slot up only after `restMs`. */
const lateLookMs = 5_000;

/** @param taken slots of all targets of the account that matter, in any order */
export const decideCadence = (cadence: PostingLimits, taken: readonly TakenSlot[], wanted: Wanted): CadenceDecision => {
  const { now, calls, targetId } = wanted;
  // A target too large for a window of its own has no slot that it could hold, and must not block the others.
  const held = taken.filter(
    ({ state, at, calls: of }) => state !== 'waiting' || (at > now - graceMs && fitsAlone(cadence, of)),
  );
  const own = held.find((one) => one.targetId === targetId && one.state === 'waiting' && one.at === wanted.dueAt);
  const others = held.filter((one) => one.targetId !== targetId);
  const ahead = others.filter((one) => one.state !== 'waiting' || own === undefined || isBefore(one, own));
  const free = (slots: readonly TakenSlot[]): number | null =>
    nextFreeAt(
      cadence,
      slots.map((one) => atLeast(one, now)),
      now,
      calls,
    );
  const first = free(ahead);
  if (first === now) return { kind: 'go' };
  if (first === null) return mayOpen(cadence, wanted) ? closed(now) : { kind: 'never' };
  const ms = looksAgainIn(others, now) ?? (own !== undefined && now < own.at + restMs ? lateLookMs : null);
  if (ms !== null && free(ahead.filter(({ state }) => state !== 'under_way')) === now) return { kind: 'rest', ms };
  if (own !== undefined && first - now <= restMs) return { kind: 'rest', ms: first - now };
  // One that must wait longer than its slot said keeps its order, unless that takes it past the slot of another.
  const behind = others.filter((one) => !ahead.includes(one));
  const until = behind.some(({ at }) => at <= first) ? free(others) : first;
  return until === null ? closed(now) : { kind: 'wait', until, holds: true };
};

const closed = (now: number): CadenceDecision => ({ kind: 'wait', until: now + closedMs, holds: false });

/** A limit of nothing is a pause that may end; one that is too small for this target alone stays so. */
const mayOpen = ({ windows }: PostingLimits, { now, deferredSince }: Wanted): boolean =>
  windows.some(({ isEnforced, limit }) => isEnforced && limit === 0) && now < (deferredSince ?? now) + closedLimitMs;

const isBefore = (one: Slot, other: Slot): boolean =>
  one.at < other.at || (one.at === other.at && one.targetId < other.targetId);

/** What has not gone out goes out now at the earliest. */
const atLeast = (slot: TakenSlot, now: number): Slot =>
  slot.state === 'out' ? slot : { ...slot, at: Math.max(slot.at, now) };

/** Null: what is under way takes longer than it is waited for. */
const looksAgainIn = (slots: readonly TakenSlot[], now: number): number | null => {
  const begun = Math.max(...slots.filter(({ state }) => state === 'under_way').map(({ at }) => at));
  const next = looksMs.find((ms) => begun + ms > now);
  return next === undefined ? null : Math.min(begun + next - now, next);
};
