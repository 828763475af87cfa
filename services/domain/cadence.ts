import type { CadenceRule, ObservedWindow } from '#schemas/cadence.ts';
import type { Platform } from '#schemas/common.ts';
import { postingWindows } from './platforms/posting-windows.ts';
import { type ContentBody, contentFor, firstCommentOf, type PlatformContent } from './post/content.ts';

/** How often an account may publish. Pure: the times at which it does come in with the question. */

/** A target of the account, when it goes out or went out. Milliseconds since the epoch. */
export interface Slot {
  readonly targetId: string;
  readonly at: number;
  /** Calls that the network counts for it. */
  readonly calls: number;
}

export interface CadenceWindow {
  readonly name: string;
  readonly seconds: number;
  readonly limit: number;
  /** A network counts calls, a workspace targets. */
  readonly counts: 'calls' | 'targets';
  readonly source: 'platform' | 'workspace' | 'observed';
  /** False: shown only. A sandbox account is not held to the windows of the network that it imitates. */
  readonly isEnforced: boolean;
  /** Calls that the network counted when it reported the window, and until when; null: nothing was reported. */
  readonly reported: { readonly used: number; readonly until: number } | null;
}

export interface PostingLimits {
  readonly minIntervalMinutes: number | null;
  readonly windows: readonly CadenceWindow[];
}

export interface CadenceAccount {
  readonly platform: Platform;
  readonly network: 'live' | 'sandbox';
  readonly observed: readonly ObservedWindow[];
}

const dayMs = 86_400_000;

export const ruleFor = (rules: readonly CadenceRule[], platform: Platform): CadenceRule | null =>
  rules.find((one) => one.platform === platform) ?? rules.find((one) => one.platform === null) ?? null;

/** Rules after one was set: it replaces that of the same networks; one without any member ends it. */
export const withRule = (rules: readonly CadenceRule[], rule: CadenceRule): readonly CadenceRule[] => {
  const others = rules.filter(({ platform }) => platform !== rule.platform);
  return rule.minIntervalMinutes === null && rule.perDay === null ? others : [...others, rule];
};

export const cadenceOf = (account: CadenceAccount, rules: readonly CadenceRule[]): PostingLimits => {
  const { platform, network, observed } = account;
  const rule = ruleFor(rules, platform);
  const documented = postingWindows[platform].filter(({ seconds }) => !observed.some((one) => one.seconds === seconds));
  return {
    minIntervalMinutes: rule?.minIntervalMinutes ?? null,
    windows: [
      ...documented.map(
        (one): CadenceWindow => ({
          ...one,
          ...{ counts: 'calls', source: 'platform', isEnforced: network === 'live', reported: null },
        }),
      ),
      ...observed.map(
        ({ name, seconds, limit, used, resetsAt }): CadenceWindow => ({
          ...{ name, seconds, limit, counts: 'calls', source: 'observed', isEnforced: true },
          reported: resetsAt === null ? null : { used, until: Date.parse(resetsAt) },
        }),
      ),
      ...(rule === null || rule.perDay === null
        ? []
        : [
            {
              ...{ name: '24 hours', seconds: dayMs / 1_000, limit: rule.perDay },
              ...({ counts: 'targets', source: 'workspace', isEnforced: true, reported: null } as const),
            },
          ]),
    ],
  };
};

/** Whether anything limits the account, so that its times must be looked at. */
export const isLimited = ({ minIntervalMinutes, windows }: PostingLimits): boolean =>
  minIntervalMinutes !== null || windows.some(({ isEnforced }) => isEnforced);

/** Milliseconds around a time within which other targets of the account matter. */
export const reachOf = ({ minIntervalMinutes, windows }: PostingLimits): number =>
  Math.max((minIntervalMinutes ?? 0) * 60_000, ...windows.map(({ seconds }) => seconds * 1_000), 0);

/** Calls of a target: X counts each post of a thread, and a first comment as one more. */
export const callsOfContent = ({ segments, overrides }: PlatformContent, platform: Platform): number =>
  segments.length + (platform === 'x' && firstCommentOf(platform, overrides) !== null ? 1 : 0);

export const callsOf = (body: ContentBody, platform: Platform): number =>
  callsOfContent(contentFor(body, platform), platform);

const countIn = ({ counts }: CadenceWindow, { calls }: Pick<Slot, 'calls'>): number => (counts === 'calls' ? calls : 1);

/** What the limit that a further target would break allows, in words; null: it would break none. */
export const cadenceFault = (
  { minIntervalMinutes, windows }: PostingLimits,
  slots: readonly Slot[],
  wanted: Pick<Slot, 'at' | 'calls'>,
): string | null => {
  const { at } = wanted;
  const gap = (minIntervalMinutes ?? 0) * 60_000;
  if (slots.some((one) => Math.abs(one.at - at) < gap)) {
    return `another target of the account is due within ${minIntervalMinutes} minutes`;
  }
  for (const window of windows.filter(({ isEnforced }) => isEnforced)) {
    const own = countIn(window, wanted);
    if (window.limit > 0 && own > window.limit) {
      return `a post of ${own} calls never fits: the account may publish ${window.limit} within ${window.name}`;
    }
    if (isOver(window, slots, wanted)) {
      return `the account may publish ${window.limit} ${window.counts} within ${window.name}`;
    }
  }
  return null;
};

/** Whether some stretch of the window’s length that holds the time would have too many. */
const isOver = (window: CadenceWindow, slots: readonly Slot[], wanted: Pick<Slot, 'at' | 'calls'>): boolean => {
  const { at } = wanted;
  const length = window.seconds * 1_000;
  const own = countIn(window, wanted);
  const { reported } = window;
  if (reported !== null && at < reported.until && reported.used + own > window.limit) return true;
  const near = slots.filter((one) => Math.abs(one.at - at) < length);
  const begins = [...near.map((one) => one.at).filter((begin) => begin <= at), at];
  return begins.some((begin) => {
    const within = near.filter((one) => one.at >= begin && one.at < begin + length);
    return within.reduce((sum, one) => sum + countIn(window, one), own) > window.limit;
  });
};

/** Index of the first of the sorted times that is not before `at`. */
const firstFrom = (times: readonly number[], at: number): number => {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((times[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** When one limit, taken alone, lets a target go out at the earliest. One that is not after the given time: it may at once. */
type Passing = (at: number) => number;

const passingGap =
  (gap: number, times: readonly number[]): Passing =>
  (at) =>
    (times[firstFrom(times, at + gap) - 1] ?? Number.NEGATIVE_INFINITY) + gap;

/** Sums are made once, so that a thousand waiting targets of one account cost no square of work. */
const passingWindow = (
  window: CadenceWindow,
  slots: readonly Slot[],
  times: readonly number[],
  own: number,
): Passing => {
  const length = window.seconds * 1_000;
  const before = [0];
  for (const slot of slots) before.push((before.at(-1) ?? 0) + countIn(window, slot));
  const isFull = (begin: number): boolean =>
    (before[firstFrom(times, begin + length)] ?? 0) - (before[firstFrom(times, begin)] ?? 0) + own > window.limit;
  /** By index: the latest slot up to this one from which a window is full. */
  const full: number[] = [];
  for (const [index, begin] of times.entries()) full.push(isFull(begin) ? index : (full[index - 1] ?? -1));
  return (at) => {
    const { reported } = window;
    if (reported !== null && at < reported.until && reported.used + own > window.limit) return reported.until;
    const begun = times[full[firstFrom(times, at + 1) - 1] ?? -1] ?? Number.NEGATIVE_INFINITY;
    if (begun > at - length) return begun + length;
    // A window from here on is full, so the one from the next slot on is.
    return isFull(at) ? (times[firstFrom(times, at)] ?? at) + length : at;
  };
};

/** The earliest time from `from` on at which a target of so many calls breaks no limit; null: there is none ahead. */
export const nextFreeAt = (cadence: PostingLimits, slots: readonly Slot[], from: number, calls = 1): number | null => {
  if (!fitsAlone(cadence, calls)) return null;
  const sorted = slots.toSorted((a, b) => a.at - b.at);
  const times = sorted.map(({ at }) => at);
  const limits = [
    passingGap((cadence.minIntervalMinutes ?? 0) * 60_000, times),
    ...cadence.windows
      .filter(({ isEnforced }) => isEnforced)
      .map((window) => passingWindow(window, sorted, times, countIn(window, { calls }))),
  ];
  // Each step passes the end of a slot's reach or of a report, so the steps are bounded by their number.
  for (let at = from; ; ) {
    const next = limits.reduce((latest, passing) => Math.max(latest, passing(at)), at);
    if (next === at) return at;
    at = next;
  }
};

/** Whether no window is too small for a target of so many calls. */
export const fitsAlone = ({ windows }: PostingLimits, calls: number): boolean =>
  windows.every((window) => !window.isEnforced || countIn(window, { calls }) <= window.limit);

/** What was published within each window until now. */
export const usedIn = (window: CadenceWindow, slots: readonly Slot[], now: number) => {
  const length = window.seconds * 1_000;
  const within = slots.filter(({ at }) => at > now - length && at <= now);
  const own = within.reduce((sum, one) => sum + countIn(window, one), 0);
  const { reported } = window;
  const isReported = reported !== null && now < reported.until;
  const used = isReported ? Math.max(own, reported.used) : own;
  const [oldest] = within.toSorted((a, b) => a.at - b.at);
  const resetsAt = isReported ? reported.until : oldest === undefined ? null : oldest.at + length;
  return { used, remaining: Math.max(0, window.limit - used), resetsAt };
};
