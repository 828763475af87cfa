/** The cases that every implementation of the limits of apps passes. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { windowAt } from '#domain/platforms/index.ts';
import type { AppBudget, AppCaller, AppLimits, AppRefusal, BudgetAnswer } from './app-limits.ts';

const january = Date.parse('2026-01-31T23:59:59.000Z');
const february = january + 1_000;
const dayMs = 86_400_000;
const march = february + 28 * dayMs;

const refusal = (until: number, said = 'capped'): AppRefusal => ({
  until,
  failure: {
    ...{ category: 'rate_limited', code: 'network_rate_limited', message: 'Later.', platformCode: said },
    ...{ platformMessage: null, retryable: true, actor: 'service', mediaId: null },
  },
});

/** @param open another view of the same limits, as another process has it */
export const appLimitsCases = (t: (name: string, run: () => Promise<void>) => void, open: () => AppLimits): void => {
  t('an app rests until the latest refusal; a refusal of reads leaves the other calls alone', async () => {
    const [limits, app] = [open(), `x:${randomUUID()}`];
    assert.equal(await limits.restOf(app, true, 1_000), null);
    await limits.rest(app, 'reads', refusal(5_000, 'reads'));
    assert.deepEqual(await limits.restOf(app, true, 4_999), refusal(5_000, 'reads'));
    assert.deepEqual(await limits.restOf(app, false, 4_999), null);
    assert.equal(await limits.restOf(app, true, 5_000), null, 'the refusal is over');
    await limits.rest(app, 'all', refusal(9_000));
    await limits.rest(app, 'all', refusal(7_000, 'sooner'));
    for (const isRead of [true, false]) assert.deepEqual(await limits.restOf(app, isRead, 8_999), refusal(9_000));
    assert.equal(await limits.restOf(`x:${randomUUID()}`, true, 1_000), null, 'another app may call');
  });

  t('what one finds out, another knows, also one that begins later', async () => {
    const [one, other, app] = [open(), open(), `x:${randomUUID()}`];
    await one.rest(app, 'all', refusal(5_000));
    assert.deepEqual(await other.restOf(app, false, 1_000), refusal(5_000));
    assert.deepEqual(await open().restOf(app, false, 1_000), refusal(5_000));
  });

  const caller = (app = `x:${randomUUID()}`): AppCaller => ({ app, workspaceId: randomUUID() });
  /** Reads of a month of UTC, of which each workspace has a share. */
  const reads = (limit: number, now: number): AppBudget => ({
    ...{ name: 'reads', limit, isShared: true },
    ...windowAt({ zone: 'UTC', every: 'month' }, now),
  });
  const takeReads = (limits: AppLimits, who: AppCaller, amount: number, limit: number, now: number) =>
    limits.take(who, amount, reads(limit, now), now);
  /** Of a day of a zone, for whoever comes first. */
  const uploads = (limit: number, now: number, zone = 'America/Los_Angeles'): AppBudget => ({
    ...{ name: 'videos.insert', limit },
    ...windowAt({ zone, every: 'day' }, now),
  });
  const all = async (take: () => Promise<BudgetAnswer>): Promise<number> => {
    for (let taken = 0; ; taken += 1) if ((await take()) !== 'taken') return taken;
  };

  t('all together take no more than a budget has, and a new month begins anew', async () => {
    const one = caller();
    const other = caller(one.app);
    const views = [open(), open()];
    const taken = await Promise.all(
      Array.from({ length: 40 }, (_, at) =>
        takeReads(views[at % 2] as AppLimits, at % 4 < 2 ? one : other, 10, 205, january),
      ),
    );
    assert.equal(taken.filter((answer) => answer === 'taken').length, 20);
    assert.equal(taken.filter((answer) => answer === 'spent').length, 20);
    assert.equal(await takeReads(open(), one, 6, 205, january), 'spent', 'all or none');
    assert.equal(await takeReads(open(), one, 5, 205, january), 'taken');
    assert.equal(await takeReads(open(), one, 102, 205, february), 'taken');
    assert.equal(await takeReads(open(), caller(), 206, 205, january), 'spent', 'more than a month has');
    assert.equal(await takeReads(open(), one, 0, 205, february), 'taken');
    assert.equal(await takeReads(open(), caller(), 1, 0, february), 'spent', 'an app that may read nothing');
  });

  t('no workspace takes what others may want, and each may have more as the month goes by', async () => {
    const [limits, large] = [open(), caller()];
    const small = caller(large.app);
    const takeAll = async (who: AppCaller, now: number): Promise<number> =>
      10 * (await all(() => takeReads(limits, who, 10, 1_000, now)));
    assert.equal(await takeAll(large, february), 500);
    assert.equal(await takeReads(limits, large, 1, 1_000, february), 'share_spent');
    assert.equal(await takeAll(small, february), 250);
    assert.equal(await takeAll(caller(large.app), february), 120, 'there is something left for one more');
    const half = february + 14 * dayMs;
    assert.equal(await takeAll(large, half), 60, 'half of the month is over');
    assert.equal(await takeAll(small, half), 70, 'the rest of the month');
    assert.equal(await takeReads(limits, small, 10, 1_000, half), 'spent');
    const alone = caller();
    assert.equal(await takeAll(alone, february), 500);
    assert.equal(await takeAll(alone, half), 250);
    assert.equal(await takeAll(alone, march - 1), 250, 'who is alone reads all of it by the end of the month');
    assert.equal(await takeAll(alone, march), 500);
  });

  t('what was not counted is given back to its window, and never more than was taken', async () => {
    const [limits, one] = [open(), caller()];
    const other = caller(one.app);
    const take = (who: AppCaller, amount: number, now: number) => takeReads(limits, who, amount, 10, now);
    const giveBack = (who: AppCaller, amount: number, now: number) => limits.giveBack(who, amount, reads(10, now));
    assert.equal(await take(one, 10, january), 'taken');
    await giveBack(one, 4, january);
    await giveBack(one, 4, february);
    assert.equal(await take(one, 5, january), 'spent');
    assert.equal(await take(one, 4, january), 'taken');
    await giveBack(one, 99, january);
    assert.equal(await take(one, 11, january), 'spent');
    assert.equal(await take(one, 10, january), 'taken');
    assert.equal(await take(caller(other.app), 5, february), 'taken');
    assert.equal(await take(other, 2, february), 'taken');
    await giveBack(other, 2, february);
    assert.equal(await take(other, 3, february), 'share_spent');
    assert.equal(await take(other, 2, february), 'taken', 'its share has it again');
  });

  t('a day of a zone has its budget for whoever comes first, also one of 23 or 25 hours', async () => {
    for (const [zone, noon, hours] of [
      ['America/Los_Angeles', '2026-03-08T19:00:00.000Z', 23],
      ['America/Los_Angeles', '2026-11-01T20:00:00.000Z', 25],
      // Its clocks go from 24:00 to 01:00.
      ['America/Santiago', '2026-09-06T15:00:00.000Z', 23],
      ['UTC', '2026-11-01T12:00:00.000Z', 24],
    ] as const) {
      const [limits, one] = [open(), caller()];
      const { begins, ends } = uploads(3, Date.parse(noon), zone);
      assert.equal(ends - begins, hours * 3_600_000, zone);
      const take = (now: number, who = one) => limits.take(who, 1, uploads(3, now, zone), now);
      assert.equal(await all(() => take(begins - 1)), 3, 'the day before');
      assert.equal(await take(begins), 'taken');
      assert.equal(await all(() => take(ends - 1, caller(one.app))), 2, 'another workspace has what is left');
      assert.equal(await take(begins + 1), 'spent');
      assert.equal(await all(() => take(ends)), 3, 'the next day');
    }
  });

  t('a process whose clock is a week ahead takes nothing of today, and ends no day that others are in', async () => {
    const [limits, other, one] = [open(), open(), caller()];
    // Of this year: what is over is forgotten by the clock of the store.
    const now = Date.now();
    const take = (by: AppLimits, at: number) => by.take(one, 1, uploads(4, at), at);
    assert.equal(await take(limits, now), 'taken');
    assert.equal(await all(() => take(other, now + 7 * dayMs)), 4);
    assert.equal(await all(() => take(limits, now)), 3, 'today has what it had');
    assert.equal(await take(other, now), 'spent');
  });

  t('a budget of accounts counts each of them once in a window', async () => {
    const [limits, other, app] = [open(), open(), `tiktok:${randomUUID()}`];
    const members = Array.from({ length: 6 }, () => randomUUID());
    const admit = (member: string | undefined, by = limits, now = january) =>
      by.admit(app, String(member), { ...uploads(5, now, 'UTC'), name: 'accounts' });
    const first = await Promise.all(members.map((member, at) => admit(member, at % 2 === 0 ? limits : other)));
    assert.equal(first.filter((answer) => answer === 'taken').length, 5);
    const left = members[first.indexOf('spent')];
    for (const member of members) {
      const again = await Promise.all([admit(member), admit(member, other)]);
      assert.deepEqual(new Set(again), new Set([member === left ? 'spent' : 'taken']));
    }
    assert.equal(await admit(left, limits, february), 'taken', 'the next day begins anew');
    const [twice] = [randomUUID()];
    const both = await Promise.all(
      Array.from({ length: 8 }, (_, at) => admit(twice, at % 2 === 0 ? limits : other, february)),
    );
    assert.deepEqual(new Set(both), new Set(['taken']));
    const rest = await Promise.all(Array.from({ length: 6 }, () => admit(randomUUID(), limits, february)));
    assert.equal(rest.filter((answer) => answer === 'taken').length, 3, 'one that comes eight times at once is one');
  });

  t('what the network knows better ends a window for all, and leaves the next one', async () => {
    const [limits, other, one] = [open(), open(), caller()];
    const take = (by: AppLimits, now: number, who = one) => by.take(who, 1, uploads(5, now), now);
    assert.equal(await take(limits, january), 'taken');
    await limits.exhaust(one.app, uploads(5, january));
    assert.equal(await take(other, january, caller(one.app)), 'spent');
    assert.equal(await take(other, january + dayMs), 'taken');
    const unknown = caller();
    await limits.exhaust(unknown.app, uploads(5, january));
    assert.equal(await take(limits, january, unknown), 'spent', 'also where nothing was taken yet');
  });
};
