import { deepEqual, equal, ok } from 'node:assert/strict';
import fc from 'fast-check';
import {
  afterRun,
  afterTooEarly,
  beforeOf,
  nextRun,
  patternOf,
  requestedTimes,
  runToPrepare,
  scheduleOfTimes,
} from '#domain/post/recycle-times.ts';
import { target as targetStream } from '#domain/post-target/target.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { deciding } from '#test/support/deciding.ts';
import { failure, planned } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const { seed } = seeded('recycle times');

const target = (accountId: string, over: Partial<ReturnType<typeof planned>> = {}) =>
  planned({ targetId: accountId, accountId, clientId: 'c', ...over });
/** The night in which the clocks of Berlin go forward is that of 29 March 2026. */
const berlin = target('berlin', { dueAt: '2026-03-27T08:00:00.000Z', timezone: 'Europe/Berlin' });
const tokyo = target('tokyo', { dueAt: '2026-03-27T00:00:00.000Z', timezone: 'Asia/Tokyo' });
const local = (at: string, timezone: string): string =>
  new Date(at).toLocaleTimeString('en-GB', { timeZone: timezone });

suite('times of copies', (t) => {
  t('each target keeps its wall-clock time in its own zone, also where the clocks change', () => {
    const pattern = patternOf([berlin, tokyo], '2026-03-27T00:00:01.000Z');
    const times = requestedTimes(pattern, 7, '2026-03-30T00:00:00.000Z');
    equal(times.get('berlin')?.at, '2026-04-03T07:00:00.000Z');
    equal(times.get('tokyo')?.at, '2026-04-03T00:00:00.000Z');
    deepEqual(nextRun(pattern, { lastDay: 0, everyDays: 7 }, '2026-03-27T00:00:01.000Z'), {
      day: 7,
      dueAt: '2026-04-03T00:00:00.000Z',
    });
  });

  t('a wall-clock time that the clocks skipped comes back the day after', () => {
    const skipped = target('a', {
      dueAt: '2026-03-29T01:30:00.000Z',
      scheduledLocal: '2026-03-29T02:30',
      timezone: 'Europe/Berlin',
    });
    const times = requestedTimes(patternOf([skipped], '2026-03-29T01:30:02.000Z'), 1, '2026-03-29T02:00:00.000Z');
    deepEqual(times.get('a'), { at: '2026-03-30T00:30:00.000Z', local: '2026-03-30T02:30', timezone: 'Europe/Berlin' });
  });

  // Daily copies over both changes of the clocks of 2026: UTC times of the origin and of its copies.
  for (const [timezone, wall, [origin, ...copies]] of [
    ['Europe/Berlin', '2026-03-28T09:00', ['03-28T08:00', '03-29T07:00', '03-30T07:00']],
    ['Europe/Berlin', '2026-10-24T09:00', ['10-24T07:00', '10-25T08:00', '10-26T08:00']],
    ['America/New_York', '2026-03-07T09:00', ['03-07T14:00', '03-08T13:00', '03-09T13:00']],
    ['America/New_York', '2026-10-31T09:00', ['10-31T13:00', '11-01T14:00', '11-02T14:00']],
    // A time that the clocks skip, and one that they show twice: its first time.
    ['Europe/Berlin', '2026-03-28T02:30', ['03-28T01:30', '03-29T01:30', '03-30T00:30']],
    ['Europe/Berlin', '2026-10-24T02:30', ['10-24T00:30', '10-25T00:30', '10-26T01:30']],
    ['America/New_York', '2026-03-07T02:30', ['03-07T07:30', '03-08T07:30', '03-09T06:30']],
    ['America/New_York', '2026-10-31T01:30', ['10-31T05:30', '11-01T05:30', '11-02T06:30']],
  ] as const) {
    t(
      `${wall} in ${timezone}: a copy each day at that time, whether a wall-clock time or an instant was asked for`,
      () => {
        const instant = (at: string): string => `2026-${at}:00.000Z`;
        for (const scheduledLocal of [wall, null]) {
          const one = target('a', { dueAt: instant(origin), scheduledLocal, timezone });
          const pattern = patternOf([one], instant(origin));
          let after = instant(origin);
          for (const [at, copy] of copies.entries()) {
            const run = afterRun(
              pattern,
              { everyDays: 1, times: null, until: null },
              { lastDay: at, posted: at, after },
            );
            deepEqual(run, { day: at + 1, dueAt: instant(copy) });
            equal(requestedTimes(pattern, at + 1, after).get('a')?.at, instant(copy));
            after = instant(copy);
          }
        }
      },
    );
  }

  t('the jitter of the origin is left out, and days of lateness count', () => {
    const jittery = target('a', { dueAt: '2026-01-01T09:10:15.000Z', jitterSeconds: 615 });
    const next = (publishedAt: string) =>
      nextRun(patternOf([jittery], publishedAt), { lastDay: 0, everyDays: 2 }, publishedAt).dueAt;
    equal(next('2026-01-01T09:10:16.000Z'), '2026-01-03T09:00:00.000Z');
    equal(next('2026-01-03T08:00:00.000Z'), '2026-01-05T09:00:00.000Z');
    equal(next('2026-01-03T10:00:00.000Z'), '2026-01-05T09:00:00.000Z');
    // A network may publish a moment early.
    equal(next('2026-01-01T09:10:14.000Z'), '2026-01-03T09:00:00.000Z');
  });

  t('however late it went out, a copy is due at its time of the day, whole days after that', () => {
    const wall = target('a', { dueAt: '2026-06-01T09:00:00.000Z', scheduledLocal: '2026-06-01T09:00' });
    for (const one of [wall, { ...wall, scheduledLocal: null }]) {
      const first = (publishedAt: string, everyDays: number) =>
        nextRun(patternOf([one], publishedAt), { lastDay: 0, everyDays }, publishedAt);
      deepEqual(first('2026-06-05T12:00:01.000Z', 2), { day: 2, dueAt: '2026-06-07T09:00:00.000Z' });
      deepEqual(first('2026-06-05T12:00:01.000Z', 7), { day: 7, dueAt: '2026-06-12T09:00:00.000Z' });
      deepEqual(first('2026-06-02T08:59:00.000Z', 1), { day: 1, dueAt: '2026-06-03T09:00:00.000Z' });
    }
  });

  t('a copy keeps its distance from the publication before it, account by account', () => {
    const pattern = (last: Record<string, string>) =>
      patternOf(
        ['a', 'b'].map((id) => target(id, { dueAt: '2026-06-01T09:00:00.000Z' })),
        '2026-06-01T09:00:01.000Z',
        new Map(Object.entries(last)),
      );
    const next = (last: Record<string, string>, everyDays: number, lastDay: number) =>
      nextRun(pattern(last), { lastDay, everyDays }, '2026-06-01T10:00:00.000Z').dueAt;
    equal(next({ a: '2026-06-03T21:00:00.000Z' }, 2, 2), '2026-06-05T09:00:00.000Z', 'half a day less at most');
    equal(next({ a: '2026-06-03T21:00:00.001Z' }, 2, 2), '2026-06-06T09:00:00.000Z');
    equal(next({ a: '2026-06-03T09:00:00.000Z', b: '2026-06-09T13:00:00.000Z' }, 2, 2), '2026-06-11T09:00:00.000Z');
    equal(next({ other: '2026-07-01T00:00:00.000Z' }, 2, 2), '2026-06-05T09:00:00.000Z');
    equal(next({ a: '2027-12-01T21:00:00.001Z' }, 1, 2), '2027-12-03T09:00:00.000Z');
  });

  t('a run that would come too soon moves to the first day that keeps the distance, or is the end', () => {
    const pattern = patternOf(
      [target('a', { dueAt: '2026-06-01T09:00:00.000Z' })],
      '2026-06-01T09:00:01.000Z',
      new Map([['a', '2026-06-03T21:00:00.001Z']]),
    );
    const after = (day: number, until: string | null) =>
      afterTooEarly(pattern, { day, dueAt: '' }, { everyDays: 2, times: null, until });
    const moved = { day: 5, dueAt: '2026-06-06T09:00:00.000Z' };
    equal(after(5, null), null);
    equal(after(5, '2026-06-01T00:00:00.000Z'), null);
    deepEqual(after(4, null), moved);
    deepEqual(after(4, moved.dueAt), moved);
    deepEqual(after(4, '2026-06-06T08:59:59.999Z'), { reason: 'until' });
  });

  t('a copy counts from when the target before it went out, and waits for one that may still go out', () => {
    const { state } = deciding(targetStream);
    const now = '2026-06-02T00:00:00.000Z';
    const out = '2026-06-01T09:00:00.000Z';
    const claim = { attempt: 1, takeover: 0 };
    const scheduled: TargetEvent = { type: 'TargetScheduled', data: { ...target('a'), postId: 'p', postRevision: 0 } };
    const started: TargetEvent = { type: 'TargetPublishStarted', data: claim };
    const published: TargetEvent = {
      type: 'TargetPublished',
      data: { ...claim, externalId: 'e', permalink: null, publishedAt: out },
    };
    const segment: TargetEvent = {
      type: 'TargetSegmentPublished',
      data: { ...claim, segment: { index: 0, of: 2 }, externalId: 'e', permalink: null, publishedAt: out },
    };
    const failed: TargetEvent = { type: 'TargetFailed', data: { ...claim, failure } };
    const canceled: TargetEvent = { type: 'TargetCanceled', data: { reason: 'requested', postRevision: null } };
    const boundary: TargetEvent = {
      type: 'TargetPublishCheckpointed',
      data: { ...claim, step: 'boundary', data: {}, deadline: now, segment: { index: 0, of: 2 } },
    };
    for (const [events, before] of [
      [[], { kind: 'waits', asked: false }],
      [[scheduled], { kind: 'waits', asked: false }],
      [[scheduled, canceled], { kind: 'nothing' }],
      [[scheduled, started], { kind: 'out', at: now }],
      [[scheduled, started, published], { kind: 'out', at: out }],
      [[scheduled, started, failed], { kind: 'nothing' }],
      [[scheduled, started, boundary, segment, failed], { kind: 'out', at: out }],
    ] as const) {
      deepEqual(beforeOf(state(events), now), before);
    }
  });

  t('whatever the zone, the lateness and the days: never less than the days, less half a day', () => {
    const zones = fc.constantFrom('Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC');
    const minute = fc.integer({ min: 0, max: 525_000 });
    const lateness = fc.array(fc.integer({ min: 0, max: 15_000 }), { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(zones, minute, fc.integer({ min: 1, max: 30 }), lateness, (timezone, minutes, everyDays, lates) => {
        const dueAt = Date.UTC(2026, 0, 1) + minutes * 60_000;
        const one = target('a', { dueAt: new Date(dueAt).toISOString(), timezone });
        const origin = dueAt + (lates[0] ?? 0) * 60_000;
        let [last, lastDay] = [origin, 0];
        for (const late of lates.slice(1)) {
          const known = new Map([['a', new Date(last).toISOString()]]);
          const pattern = patternOf([one], new Date(origin).toISOString(), known);
          const run = nextRun(pattern, { lastDay, everyDays }, new Date(origin).toISOString());
          const distance = Date.parse(run.dueAt) - last;
          ok(distance >= (everyDays - 0.5) * 86_400_000, `${distance / 3_600_000} h`);
          // Nor is a day more given away than lateness and the clocks cost.
          ok(distance <= (everyDays + 1) * 86_400_000, `${distance / 3_600_000} h`);
          [last, lastDay] = [Date.parse(run.dueAt) + late * 60_000, run.day];
        }
      }),
      { seed, numRuns: 300 },
    );
  });

  t('what has passed is due now; missed runs collapse into the latest', () => {
    const daily = patternOf([target('a', { dueAt: '2026-01-01T09:00:00.000Z' })], '2026-01-01T09:00:01.000Z');
    const next = { day: 1, dueAt: '2026-01-02T09:00:00.000Z' };
    const at = (now: string) => runToPrepare(daily, next, { everyDays: 1 }, now)?.day ?? null;
    equal(at('2026-01-02T07:59:59.999Z'), null);
    equal(at('2026-01-02T08:00:00.000Z'), 1);
    equal(at('2026-01-03T07:00:00.000Z'), 1);
    equal(at('2026-01-03T08:30:00.000Z'), 2);
    equal(at('2026-01-09T12:00:00.000Z'), 8);
    deepEqual(requestedTimes(daily, 8, '2026-01-09T12:00:00.000Z').get('a'), {
      at: '2026-01-09T12:00:00.000Z',
      local: null,
      timezone: 'UTC',
    });
  });

  t('nothing follows after the last copy or the last day', () => {
    const daily = patternOf([target('a', { dueAt: '2026-01-01T09:00:00.000Z' })], '2026-01-01T09:00:01.000Z');
    const then = (times: number | null, until: string | null) =>
      afterRun(daily, { everyDays: 1, times, until }, { lastDay: 1, posted: 1, after: '2026-01-02T08:00:00.000Z' });
    deepEqual(then(1, null), { reason: 'times' });
    deepEqual(then(null, '2026-01-03T08:59:59.999Z'), { reason: 'until' });
    deepEqual(then(2, '2026-01-03T09:00:00.000Z'), { day: 2, dueAt: '2026-01-03T09:00:00.000Z' });
  });

  t('the schedule of a copy says its times as well as a schedule can', () => {
    const at = (instant: string, wall: string | null = null) => ({ at: instant, local: wall, timezone: 'UTC' });
    const [one, two] = ['2026-01-02T09:00:00.000Z', '2026-01-02T10:00:00.000Z'];
    const said = (...times: readonly ReturnType<typeof at>[]) => {
      const { type, scheduledAt, scheduledLocal, from, to, spreadMinutes } = scheduleOfTimes(times, 5);
      return [type, scheduledAt ?? scheduledLocal ?? from, to, spreadMinutes];
    };
    deepEqual(said(), ['now', null, null, 5]);
    deepEqual(said(at(one, '2026-01-02T09:00'), at(two, '2026-01-02T10:00')), ['range', one, two, 5]);
    deepEqual(said(at(one)), ['at', one, null, 5]);
    deepEqual(said(at(two), at(one)), ['range', one, two, 5]);
    deepEqual(said(at(two, '2026-01-02T09:00'), at(one, '2026-01-02T09:00')), ['at', '2026-01-02T09:00', null, 5]);
  });

  t('whatever the zone and the day: the same wall-clock time, unless the clocks skip it', () => {
    const zones = fc.constantFrom('Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC');
    fc.assert(
      fc.property(
        zones,
        fc.integer({ min: 0, max: 525_000 }),
        fc.integer({ min: 1, max: 365 }),
        (timezone, minutes, day) => {
          const dueAt = new Date(Date.UTC(2026, 0, 1) + minutes * 60_000).toISOString();
          const pattern = patternOf([target('a', { dueAt, timezone })], dueAt);
          const run = nextRun(pattern, { lastDay: 0, everyDays: day }, dueAt);
          equal(run.day, day);
          const [before, after] = [local(dueAt, timezone), local(run.dueAt, timezone)];
          const hour = Number(before.slice(0, 2));
          if (hour > 3) equal(after, before);
        },
      ),
      { seed, numRuns: 300 },
    );
  });
});
