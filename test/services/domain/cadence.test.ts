import { deepEqual, equal, match } from 'node:assert/strict';
import {
  type CadenceAccount,
  cadenceFault,
  cadenceOf,
  callsOf,
  isLimited,
  nextFreeAt,
  type PostingLimits,
  reachOf,
  ruleFor,
  type Slot,
  usedIn,
  withRule,
} from '#domain/cadence.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import { postBody } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const minute = 60_000;
const hour = 60 * minute;
const sandbox: CadenceAccount = { platform: 'x', network: 'sandbox', observed: [] };
const live: CadenceAccount = { ...sandbox, network: 'live' };
const rule = (more: Partial<CadenceRule>): CadenceRule => ({
  ...{ platform: null, minIntervalMinutes: null, perDay: null },
  ...more,
});
const slot = (at: number, calls = 1): Slot => ({ targetId: `t${at}`, at, calls });

suite('cadence', (t) => {
  t('the rule of a network replaces that of all networks; an empty one ends it', () => {
    const all = rule({ perDay: 5 });
    const ofX = rule({ platform: 'x', minIntervalMinutes: 30 });
    deepEqual(ruleFor([all, ofX], 'x'), ofX);
    deepEqual(ruleFor([all, ofX], 'bluesky'), all);
    equal(ruleFor([ofX], 'bluesky'), null);
    deepEqual(withRule([all, ofX], rule({ perDay: 6 })), [ofX, rule({ perDay: 6 })]);
    deepEqual(withRule([all, ofX], rule({ platform: 'x' })), [all]);
    deepEqual(withRule([all], ofX), [all, ofX]);
  });

  t('a sandbox account is held to the workspace, and to what its network reports', () => {
    equal(isLimited(cadenceOf(sandbox, [])), false);
    equal(isLimited(cadenceOf(live, [])), true);
    equal(isLimited(cadenceOf({ ...live, platform: 'pinterest' }, [])), false);
    equal(isLimited(cadenceOf(sandbox, [rule({ perDay: 1 })])), true);
    equal(isLimited(cadenceOf(sandbox, [rule({ minIntervalMinutes: 1 })])), true);
    const observed = [{ name: '15 min', seconds: 900, limit: 7, used: 0, resetsAt: null }];
    const windows = cadenceOf({ ...sandbox, observed }, []).windows.map(({ seconds, limit, source, isEnforced }) => ({
      ...{ seconds, limit, source, isEnforced },
    }));
    deepEqual(windows, [
      { seconds: 10_800, limit: 300, source: 'platform', isEnforced: false },
      { seconds: 900, limit: 7, source: 'observed', isEnforced: true },
    ]);
    equal(cadenceOf({ ...sandbox, observed }, []).windows[1]?.reported, null);
  });

  t('other targets matter as far as the longest of the limits reaches', () => {
    equal(reachOf(cadenceOf({ ...sandbox, platform: 'pinterest' }, [])), 0);
    equal(reachOf(cadenceOf({ ...sandbox, platform: 'pinterest' }, [rule({ minIntervalMinutes: 30 })])), 30 * minute);
    equal(reachOf(cadenceOf(live, [])), 3 * hour);
    equal(reachOf(cadenceOf(live, [rule({ minIntervalMinutes: 240 })])), 4 * hour);
  });

  t('two targets of one account keep their distance, in both directions', () => {
    const cadence = cadenceOf(sandbox, [rule({ minIntervalMinutes: 30 })]);
    for (const at of [-29, 0, 29])
      match(cadenceFault(cadence, [slot(0)], { at: at * minute, calls: 1 }) ?? '', /30 min/);
    for (const at of [-30, 30]) equal(cadenceFault(cadence, [slot(0)], { at: at * minute, calls: 1 }), null);
    equal(nextFreeAt(cadence, [slot(0), slot(40 * minute)], minute), 70 * minute);
  });

  t('no stretch of 24 hours has more targets than allowed, whatever its beginning', () => {
    const cadence = cadenceOf(sandbox, [rule({ perDay: 2 })]);
    const slots = [slot(0), slot(20 * hour)];
    const at = (hours: number) => cadenceFault(cadence, slots, { at: hours * hour, calls: 9 });
    for (const hours of [-3, 0, 10, 23]) match(at(hours) ?? '', /2 targets within 24 hours/);
    for (const hours of [-4, 24, 30]) equal(at(hours), null);
    equal(nextFreeAt(cadence, slots, hour), 24 * hour);
    const never = cadenceOf(sandbox, [rule({ perDay: 0 })]);
    equal(nextFreeAt(never, [], 0), null);
    match(cadenceFault(never, [], { at: 0, calls: 1 }) ?? '', /may publish 0 targets within 24 hours/);
  });

  t('X counts calls: a thread one for each segment, and a first comment one more', () => {
    const thread = { segments: [1, 2, 3].map((n) => ({ content: `part ${n}`, mediaIds: [] })) };
    const overrides = { firstComment: 'More soon.' };
    const variant = (platform: 'x' | 'bluesky') => ({
      platform,
      contentOverride: null,
      mediaIdsOverride: null,
      overrides,
    });
    equal(callsOf(postBody(), 'x'), 1);
    equal(callsOf(postBody({ variants: [variant('x')] }), 'x'), 2);
    equal(callsOf(postBody({ thread, variants: [variant('x')] }), 'x'), 4);
    equal(callsOf(postBody({ thread, variants: [variant('bluesky')] }), 'bluesky'), 1);
    const cadence = cadenceOf(live, []);
    const near = [slot(0, 60), slot(minute, 38)];
    equal(cadenceFault(cadence, near, { at: 2 * minute, calls: 2 }), null);
    match(cadenceFault(cadence, near, { at: 2 * minute, calls: 3 }) ?? '', /100 calls within 15 minutes/);
    match(cadenceFault(cadence, [], { at: 0, calls: 101 }) ?? '', /101 calls never fits.* 100 within 15 minutes/);
  });

  t('what a network reports counts until it resets', () => {
    const resetsAt = new Date(hour).toISOString();
    const observed = [{ name: '24 hours', seconds: 86_400, limit: 50, used: 50, resetsAt }];
    const cadence = cadenceOf({ ...sandbox, platform: 'instagram', observed }, []);
    match(cadenceFault(cadence, [], { at: 0, calls: 1 }) ?? '', /50 calls/);
    equal(cadenceFault(cadence, [], { at: hour, calls: 1 }), null);
    equal(nextFreeAt(cadence, [], 0), hour);
    const [window] = cadence.windows;
    if (window === undefined) throw new Error('it was reported');
    deepEqual(usedIn(window, [slot(-hour)], 0), { used: 50, remaining: 0, resetsAt: hour });
    deepEqual(usedIn(window, [slot(hour)], 2 * hour), { used: 1, remaining: 49, resetsAt: 25 * hour });
  });

  t('what was used is told of the window that ends now, and when its oldest target leaves it', () => {
    const [window] = cadenceOf(sandbox, [rule({ perDay: 3 })]).windows.slice(-1);
    if (window === undefined) throw new Error('it has one');
    const used = (...hours: readonly number[]) =>
      usedIn(
        window,
        hours.map((one) => slot(one * hour, 5)),
        24 * hour,
      );
    deepEqual(used(), { used: 0, remaining: 3, resetsAt: null });
    deepEqual(used(24, 2, 25, 0), { used: 2, remaining: 1, resetsAt: 26 * hour });
    deepEqual(used(4, 5, 6, 7), { used: 4, remaining: 0, resetsAt: 28 * hour });
    const reported = { ...window, reported: { used: 1, until: 24 * hour } };
    deepEqual(usedIn(reported, [], 24 * hour), { used: 0, remaining: 3, resetsAt: null }, 'it began anew just now');
  });
});

suite('limits of an account, at random', (t) => {
  const { next, int } = seeded('limits of an account');
  const chance = (part: number): boolean => next() < part;
  const someWindow = (): PostingLimits['windows'][number] => ({
    ...{ name: 'w', seconds: int(1, 8), limit: int(0, 4), counts: chance(0.5) ? 'calls' : 'targets' },
    ...{ source: 'observed', isEnforced: chance(0.8) },
    reported: chance(0.3) ? { used: int(0, 4), until: int(-3, 12) * 1_000 } : null,
  });
  const countOf = ({ counts }: PostingLimits['windows'][number], calls: number) => (counts === 'calls' ? calls : 1);

  /** By its definition: no stretch of the length that holds the time, begun at any second, has too many. */
  const isFree = ({ minIntervalMinutes, windows }: PostingLimits, slots: readonly Slot[], at: number, calls: number) =>
    slots.every((one) => Math.abs(one.at - at) >= (minIntervalMinutes ?? 0) * minute) &&
    windows.every((window) => {
      if (!window.isEnforced) return true;
      const own = countOf(window, calls);
      if (window.reported !== null && at < window.reported.until && window.reported.used + own > window.limit) {
        return false;
      }
      return Array.from({ length: window.seconds }, (_, second) => at - second * 1_000).every((begin) => {
        const within = slots.filter((one) => one.at >= begin && one.at < begin + window.seconds * 1_000);
        return within.reduce((sum, one) => sum + countOf(window, one.calls), own) <= window.limit;
      });
    });

  t('a target breaks none exactly where no stretch has too many, and the next free time is the first such one', () => {
    for (let round = 0; round < 500; round += 1) {
      const limits: PostingLimits = {
        minIntervalMinutes: chance(0.3) ? int(1, 2) / 60 : null,
        windows: Array.from({ length: int(0, 2) }, someWindow),
      };
      const slots = Array.from({ length: int(0, 6) }, () => slot(int(-9, 15) * 1_000, int(1, 3)));
      const [from, calls] = [int(0, 3) * 1_000, int(1, 3)];
      const times = Array.from({ length: 60 }, (_, second) => from + second * 1_000);
      const free = times.filter((at) => isFree(limits, slots, at, calls));
      const story = JSON.stringify({ limits, slots, from, calls });
      for (const at of times.slice(0, 20)) {
        equal(cadenceFault(limits, slots, { at, calls }) === null, free.includes(at), `${at} of ${story}`);
      }
      equal(nextFreeAt(limits, slots, from, calls), free[0] ?? null, story);
    }
  });
});
