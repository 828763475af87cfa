import assert from 'node:assert/strict';
import { outcomeOf } from '#infra/platforms/bluesky/errors.ts';
import { readFailed } from '#infra/platforms/telegram/errors.ts';
import { beforeCreate } from '#test/support/networks/x/adapter.ts';
import { suite } from '#test/support/suite.ts';

const now = Date.parse('2026-06-01T09:00:00.400Z');
const reset = (seconds: number) => String(Math.floor(now / 1_000) + seconds);
const x = (headers: Readonly<Record<string, string>>) =>
  beforeCreate({ kind: 'refused', status: 429, headers, body: null }, now);
const bluesky = (headers: Readonly<Record<string, string>>) =>
  outcomeOf({ kind: 'refused', status: 429, error: '', message: '', data: null, headers }, true, now);
const telegram = (retryAfter: number | null) =>
  readFailed({ kind: 'refused', code: 429, description: '', retryAfter, migrateTo: null }, now);

suite('the instant that a network names after a rate limit', (t) => {
  t('reaches the publisher as the network names it, and where it names none, a usual one does', () => {
    const quarter = 900_000;
    const emptyOfX = { 'x-rate-limit-limit': '100', 'x-rate-limit-remaining': '0' };
    for (const [name, outcome, ms] of [
      ['x without one', x({}), quarter],
      ['x with a wait of 0', x({ 'retry-after': '0' }), quarter],
      ['x with a negative one', x({ 'retry-after': '-5' }), quarter],
      ['x with a date', x({ 'retry-after': 'Mon, 01 Jun 2026 09:00:00 GMT' }), quarter],
      ['x with a reset in this second', x({ ...emptyOfX, 'x-rate-limit-reset': reset(0) }), -400],
      ['x with 30 days', x({ 'retry-after': '2592000' }), 2_592_000_000],
      ['bluesky without one', bluesky({}), 60_000],
      ['bluesky with a wait of 0', bluesky({ 'retry-after': '0' }), 0],
      ['bluesky with a negative one', bluesky({ 'retry-after': '-5' }), 60_000],
      ['bluesky with a reset in the past', bluesky({ 'ratelimit-reset': reset(-3_600) }), 60_000],
      ['bluesky with 30 days', bluesky({ 'ratelimit-reset': reset(2_592_000) }), 2_592_000_000 - 400],
      ['telegram without one', telegram(null), 60_000],
      ['telegram with a wait of 0', telegram(0), 0],
      ['telegram with 30 days', telegram(2_592_000), 2_592_000_000],
    ] as const) {
      assert.ok(outcome.kind === 'rate_limited', name);
      assert.equal(Date.parse(outcome.retryAt) - now, ms, name);
    }
  });

  t('is never too far for a date', () => {
    const huge = String(Number.MAX_SAFE_INTEGER);
    const far = [bluesky({ 'retry-after': '1e300' }), telegram(Number.MAX_VALUE), x({ 'retry-after': '999999999999' })];
    for (const outcome of [...far, bluesky({ 'ratelimit-reset': huge })]) {
      assert.equal(outcome.kind === 'rate_limited' && outcome.retryAt, '9999-12-31T23:59:59.999Z');
    }
  });
});
