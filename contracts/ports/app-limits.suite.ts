/** The cases that every implementation of the limits of apps passes. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { AppLimits, AppRefusal } from './app-limits.ts';

const january = Date.parse('2026-01-31T23:59:59.000Z');
const february = january + 1_000;

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

  t('all together read no more than the month allows, and a new month begins anew', async () => {
    const app = `x:${randomUUID()}`;
    const all = [open(), open()];
    const taken = await Promise.all(
      Array.from({ length: 40 }, (_, at) => (all[at % 2] as AppLimits).take(app, 10, 205, january)),
    );
    assert.equal(taken.filter(Boolean).length, 20);
    assert.equal(await open().take(app, 6, 205, january), false, 'all or none');
    assert.equal(await open().take(app, 5, 205, january), true);
    assert.equal(await open().take(app, 205, 205, february), true);
    assert.equal(await open().take(app, 1, 205, february), false);
    assert.equal(await open().take(`x:${randomUUID()}`, 206, 205, january), false, 'more than a month has');
    assert.equal(await open().take(app, 0, 205, february), true);
  });

  t('what was not billed is given back to its month, and never more than was taken', async () => {
    const [limits, app] = [open(), `x:${randomUUID()}`];
    assert.equal(await limits.take(app, 10, 10, january), true);
    await limits.giveBack(app, 4, january);
    await limits.giveBack(app, 4, february);
    assert.equal(await limits.take(app, 5, 10, january), false);
    assert.equal(await limits.take(app, 4, 10, january), true);
    await limits.giveBack(app, 99, january);
    assert.equal(await limits.take(app, 11, 10, january), false);
    assert.equal(await limits.take(app, 10, 10, january), true);
  });
};
