import { deepEqual, equal, match } from 'node:assert/strict';
import {
  type CadenceAccount,
  cadenceFault,
  cadenceOf,
  callsOf,
  isLimited,
  nextFreeAt,
  ruleFor,
  type Slot,
  usedIn,
  withRule,
} from '#domain/cadence.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import { postBody } from '#test/support/samples.ts';
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
  });

  t('a sandbox account is held to the workspace, and to what its network reports', () => {
    equal(isLimited(cadenceOf(sandbox, [])), false);
    equal(isLimited(cadenceOf(live, [])), true);
    equal(isLimited(cadenceOf({ ...live, platform: 'pinterest' }, [])), false);
    equal(isLimited(cadenceOf(sandbox, [rule({ perDay: 1 })])), true);
    const observed = [{ name: '15 min', seconds: 900, limit: 7, used: 0, resetsAt: null }];
    const windows = cadenceOf({ ...sandbox, observed }, []).windows.map(({ seconds, limit, source, isEnforced }) => ({
      ...{ seconds, limit, source, isEnforced },
    }));
    deepEqual(windows, [
      { seconds: 10_800, limit: 300, source: 'platform', isEnforced: false },
      { seconds: 900, limit: 7, source: 'observed', isEnforced: true },
    ]);
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
    equal(nextFreeAt(cadenceOf(sandbox, [rule({ perDay: 0 })]), [], 0), null);
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
});
