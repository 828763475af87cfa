import assert from 'node:assert/strict';
import { readConfig } from '#runtime/process/config.ts';
import { bodyText, type DeliveryDecision, judge, type ReceiverAnswer } from '#services/webhooks/delivery-decision.ts';
import { after, find, type Health, isAllWell, nothingFound, well } from '#services/webhooks/health.ts';
import { retryAfterMs, retryDelayMs } from '#services/webhooks/schedule.ts';
import { suite } from '#test/support/suite.ts';

const hour = 3_600_000;
const { webhookRetryDelaysMs: delays } = readConfig({});
const now = Date.parse('2026-11-21T12:00:00Z');
const httpDate = (ms: number): string => new Date(ms).toUTCString();

suite('schedule', (t) => {
  t('is eleven attempts over about 76 hours, never early, at most a tenth late', () => {
    const waits = (random: number) => delays.slice(1).map((_, at) => retryDelayMs(delays, at + 1, random) ?? 0);
    const exact = [5e3, 60e3, 5 * 60e3, 30 * 60e3, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour];
    assert.deepEqual(waits(0), exact);
    assert.equal(Math.round(exact.reduce((sum, one) => sum + one, 0) / hour), 76);
    for (const random of [0.001, 0.5, 0.999]) {
      for (const [at, wait] of waits(random).entries()) {
        const step = exact[at] ?? 0;
        assert.ok(wait > step && wait <= step * 1.1, `${wait} after ${step}`);
      }
    }
    assert.equal(retryDelayMs(delays, 11, 0), null);
  });

  t('takes Retry-After in seconds and as a date, at most a day; invalid values are ignored', () => {
    const hint = (value: string, date?: string) =>
      retryAfterMs({ 'retry-after': value, ...(date === undefined ? {} : { date }) }, now);
    assert.equal(hint('120'), 120_000);
    assert.equal(hint(' 120 '), 120_000);
    assert.equal(hint('999999999999999999999999'), 24 * hour);
    assert.equal(hint(httpDate(now + 90_000)), 90_000);
    assert.equal(hint(httpDate(now + 48 * hour)), 24 * hour);
    // The receiver's clock is an hour slow, and it says so.
    assert.equal(hint(httpDate(now - hour + 90_000), httpDate(now - hour)), 90_000);
    assert.equal(hint(httpDate(now + 90_000), 'yesterday'), 90_000);
    for (const none of ['0', '-5', '1.5', '', 'soon', '5 s', 'NaN', '0x10', '2026-11-22', httpDate(now - 1_000)]) {
      assert.equal(hint(none), null, none);
    }
    assert.equal(hint('Sat, 99 Nov 2026 12:00:00 GMT'), null);
    assert.equal(retryAfterMs({}, now), null);
  });
});

const answer = (status: number | null, headers: Record<string, string> = {}): ReceiverAnswer => ({
  status,
  error: status === null ? 'timeout' : null,
  headers,
  bodyStart: Buffer.alloc(0),
  durationMs: 1,
});
const judged = (one: ReceiverAnswer, tries = 0, trigger: 'scheduled' | 'test' = 'scheduled'): DeliveryDecision =>
  judge(one, { tries, trigger }, { delays, now, random: 0 });

suite('delivery decision', (t) => {
  t('only 2xx is a success', () => {
    for (const status of [200, 201, 204, 299]) {
      const { outcome, endpoint } = judged(answer(status));
      assert.deepEqual([outcome, endpoint], ['delivered', 'well']);
    }
    for (const status of [300, 302, 304, 400, 401, 404, 410, 499]) {
      const { outcome, endpoint } = judged(answer(status));
      assert.deepEqual([outcome, endpoint], ['again', 'refuses'], String(status));
    }
    for (const status of [null, 429, 500, 503, 599]) {
      const { outcome, endpoint } = judged(answer(status));
      assert.deepEqual([outcome, endpoint], ['again', 'down'], String(status));
    }
  });

  t('waits for the longer of schedule and Retry-After', () => {
    assert.equal(judged(answer(500)).waitMs, 5_000);
    assert.equal(judged(answer(500, { 'retry-after': '2' })).waitMs, 5_000);
    assert.equal(judged(answer(400, { 'retry-after': '7200' })).waitMs, 2 * hour);
    assert.equal(judged(answer(503, { 'retry-after': '-1' }), 3).waitMs, 30 * 60_000);
  });

  t('a 429 or 503 with Retry-After pauses the whole endpoint for at most five minutes', () => {
    assert.equal(judged(answer(429, { 'retry-after': '30' })).pauseMs, 30_000);
    assert.equal(judged(answer(503, { 'retry-after': '86400' })).pauseMs, 5 * 60_000);
    assert.equal(judged(answer(429)).pauseMs, 0);
    assert.equal(judged(answer(429, { 'retry-after': 'soon' })).pauseMs, 0);
    assert.equal(judged(answer(500, { 'retry-after': '30' })).pauseMs, 0);
    assert.equal(judged(answer(200, { 'retry-after': '30' })).pauseMs, 0);
  });

  t('the eleventh failure is the last; a test has one attempt', () => {
    assert.equal(judged(answer(500), 9).outcome, 'again');
    assert.equal(judged(answer(500), 10).outcome, 'failed');
    assert.equal(judged(answer(null), 0, 'test').outcome, 'failed');
    assert.equal(judged(answer(204), 0, 'test').outcome, 'delivered');
  });

  t('an answer that turns the endpoint off loses no delivery', () => {
    for (const [one, disable] of [
      [answer(410), 'gone'],
      [answer(500, { 'webhook-delivery': ' Disable ' }), 'receiver'],
    ] as const) {
      assert.deepEqual([judged(one).outcome, judged(one).disable], ['again', disable]);
      assert.deepEqual([judged(one, 10).outcome, judged(one, 10).disable], ['again', disable]);
    }
    const taken = judged(answer(200, { 'webhook-delivery': 'disable' }));
    assert.deepEqual([taken.outcome, taken.disable], ['delivered', 'receiver']);
  });

  t('a receiver can end a failed delivery, not a successful one', () => {
    const asked = { 'webhook-delivery': 'abort-message' };
    assert.equal(judged(answer(422, asked)).outcome, 'failed');
    assert.equal(judged(answer(422, { 'webhook-delivery': 'abort' })).outcome, 'again');
    assert.equal(judged(answer(200, asked)).outcome, 'delivered');
  });

  t('keeps 4 KiB of a body, as text that Postgres takes', () => {
    assert.equal(bodyText(Buffer.alloc(0)), null);
    assert.equal(bodyText(Buffer.from('thanks')), 'thanks');
    assert.equal(bodyText(Buffer.from('a\0b')), 'a\ufffdb');
    assert.equal(bodyText(Buffer.from([0x61, 0xff])), 'a\ufffd');
    // A character that the cut goes through is left out.
    const long = bodyText(Buffer.from(`${'x'.repeat(4_095)}ë${'y'.repeat(100)}`));
    assert.equal(long, 'x'.repeat(4_095));
  });
});

const rules = { failures: 3, openMs: 1_000 };
const down = judged(answer(null));
const refuses = judged(answer(404));
const success = judged(answer(200));
const paused = judged(answer(429, { 'retry-after': '30' }));

/** One batch after another. */
const afterAll = (start: Health, at: number, ...batches: readonly (readonly DeliveryDecision[])[]): Health => {
  let health = start;
  for (const batch of batches) {
    const found = nothingFound(start.seenRevision);
    for (const one of batch) find(found, one, false);
    health = after(health, found, at, rules) ?? health;
  }
  return health;
};

suite('health', (t) => {
  t('opens after the given number of failures in a row, across batches', () => {
    const closed = afterAll(well(4), now, [down, down]);
    assert.deepEqual([closed.consecutive, closed.opened, closed.openUntil], [2, 0, null]);
    assert.equal(closed.failingSince, now);
    const open = afterAll(closed, now + 5, [down]);
    assert.deepEqual([open.consecutive, open.opened, open.openUntil], [3, 1, now + 1_005]);
    assert.deepEqual([open.failingSince, open.failedAt], [now, now + 5]);
  });

  t('any answer ends the streak of failures; only a success ends the failing period', () => {
    const refused = afterAll(well(4), now, [down, down, refuses, down]);
    assert.deepEqual([refused.consecutive, refused.opened, refused.failingSince], [1, 0, now]);
    assert.equal(afterAll(refused, now + 9, [down, success]).failingSince, null);
    assert.equal(afterAll(refused, now + 9, [success, refuses]).failingSince, now + 9);
    // Many failures between successes are no streak.
    assert.equal(afterAll(well(4), now, [down, down, success, down, down, success]).opened, 0);
  });

  t('requests that were running when it opened neither reopen nor extend it', () => {
    const open = afterAll(well(4), now, [down, down, down]);
    const still = afterAll(open, now + 10, [down, down, down, down]);
    assert.deepEqual([still.opened, still.openUntil], [1, now + 1_000]);
  });

  t('a probe that fails opens it for twice as long, up to twenty times; one that gets an answer closes it', () => {
    const waits: number[] = [];
    let health = afterAll(well(4), now, [down, down, down]);
    for (let count = 0; count < 7; count += 1) {
      const found = nothingFound(4);
      find(found, down, true);
      // While the probe is under way the row says so: until then nobody sends another.
      health = after({ ...health, openUntil: now + 32_000 }, found, now, rules) ?? health;
      waits.push((health.openUntil ?? 0) - now);
    }
    assert.deepEqual(waits, [2_000, 4_000, 8_000, 16_000, 20_000, 20_000, 20_000]);
    for (const one of [success, refuses]) {
      const found = nothingFound(4);
      find(found, one, true);
      const closed = after(health, found, now, rules);
      assert.deepEqual([closed?.opened, closed?.consecutive, closed?.openUntil], [0, 0, null]);
    }
  });

  t('a Retry-After pauses it without a probe, and no success ends the pause', () => {
    const resting = afterAll(well(4), now, [paused]);
    assert.deepEqual([resting.opened, resting.openUntil], [0, now + 30_000]);
    assert.equal(afterAll(resting, now + 1, [success]).openUntil, now + 30_000);
  });

  t('results of an older revision are ignored; a newer revision starts again', () => {
    const open = afterAll(well(4), now, [down, down, down]);
    assert.equal(after(open, { ...nothingFound(3), streak: 9, failed: true }, now, rules), null);
    const fresh = after(open, { ...nothingFound(5), streak: 1, failed: true }, now + 7, rules);
    assert.deepEqual(fresh, { ...well(5), consecutive: 1, failingSince: now + 7, failedAt: now + 7 });
  });

  t('successes alone need no write', () => {
    const found = nothingFound(4);
    find(found, success, false);
    assert.ok(isAllWell(found));
    find(found, down, false);
    assert.ok(!isAllWell(found));
    const asked = nothingFound(4);
    find(asked, judged(answer(200, { 'webhook-delivery': 'disable' })), false);
    assert.ok(!isAllWell(asked));
  });
});
