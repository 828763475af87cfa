/** The cases that every implementation of the limits of apps passes. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { AppLimits, AppReader, AppRefusal } from './app-limits.ts';

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

  const reader = (app = `x:${randomUUID()}`): AppReader => ({ app, workspaceId: randomUUID() });

  t('all together read no more than the month allows, and a new month begins anew', async () => {
    const one = reader();
    const other = reader(one.app);
    const all = [open(), open()];
    const taken = await Promise.all(
      Array.from({ length: 40 }, (_, at) =>
        (all[at % 2] as AppLimits).take(at % 4 < 2 ? one : other, 10, 205, january),
      ),
    );
    assert.equal(taken.filter((answer) => answer === 'taken').length, 20);
    assert.equal(taken.filter((answer) => answer === 'month_spent').length, 20);
    assert.equal(await open().take(one, 6, 205, january), 'month_spent', 'all or none');
    assert.equal(await open().take(one, 5, 205, january), 'taken');
    assert.equal(await open().take(one, 102, 205, february), 'taken');
    assert.equal(await open().take(reader(), 206, 205, january), 'month_spent', 'more than a month has');
    assert.equal(await open().take(one, 0, 205, february), 'taken');
    assert.equal(await open().take(reader(), 1, 0, february), 'month_spent', 'an app that may read nothing');
  });

  t('no workspace takes what others may want, and each may have more as the month goes by', async () => {
    const [limits, large] = [open(), reader()];
    const small = reader(large.app);
    const takeAll = async (who: AppReader, now: number): Promise<number> => {
      for (let taken = 0; ; taken += 10) if ((await limits.take(who, 10, 1_000, now)) !== 'taken') return taken;
    };
    assert.equal(await takeAll(large, february), 500);
    assert.equal(await limits.take(large, 1, 1_000, february), 'share_spent');
    assert.equal(await takeAll(small, february), 250);
    assert.equal(await takeAll(reader(large.app), february), 120, 'there is something left for one more');
    const half = february + 14 * dayMs;
    assert.equal(await takeAll(large, half), 60, 'half of the month is over');
    assert.equal(await takeAll(small, half), 70, 'the rest of the month');
    assert.equal(await limits.take(small, 10, 1_000, half), 'month_spent');
    const alone = reader();
    assert.equal(await takeAll(alone, february), 500);
    assert.equal(await takeAll(alone, half), 250);
    assert.equal(await takeAll(alone, march - 1), 250, 'who is alone reads all of it by the end of the month');
    assert.equal(await takeAll(alone, march), 500);
  });

  t('what was not billed is given back to its month, and never more than was taken', async () => {
    const [limits, one] = [open(), reader()];
    const other = reader(one.app);
    assert.equal(await limits.take(one, 10, 10, january), 'taken');
    await limits.giveBack(one, 4, january);
    await limits.giveBack(one, 4, february);
    assert.equal(await limits.take(one, 5, 10, january), 'month_spent');
    assert.equal(await limits.take(one, 4, 10, january), 'taken');
    await limits.giveBack(one, 99, january);
    assert.equal(await limits.take(one, 11, 10, january), 'month_spent');
    assert.equal(await limits.take(one, 10, 10, january), 'taken');
    assert.equal(await limits.take(reader(other.app), 5, 10, february), 'taken');
    assert.equal(await limits.take(other, 2, 10, february), 'taken');
    await limits.giveBack(other, 2, february);
    assert.equal(await limits.take(other, 3, 10, february), 'share_spent');
    assert.equal(await limits.take(other, 2, 10, february), 'taken', 'its share has it again');
  });
};
