/** What headers say of limits, and what rows of errors mean. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { refusedOf } from '#infra/platforms/kit/client.ts';
import { beforeBoundary, behindBoundary, type ErrorRow, type ErrorTables, judge } from '#infra/platforms/kit/errors.ts';
import { exhausted, type PolicyBucket, usageOf, windowsOf } from '#infra/platforms/kit/limits.ts';
import { suite } from '#test/support/suite.ts';
import { tablesOf } from './world.ts';

const now = Date.parse('2026-11-01T12:00:00.000Z');
const iso = (ms: number) => new Date(ms).toISOString();

/** As Pinterest sends them. */
const pinterest: PolicyBucket = {
  ...{ policy: 'x-ratelimit-limit', remaining: 'x-ratelimit-remaining', reset: 'x-ratelimit-reset' },
  ...{ resetIs: 'seconds', names: { 60: 'calls in a minute' } },
};
const policy = '60, 100;w=1;name="safety_net_app_id_user_id", 60;w=60;name="org_analytics_app_id_user_id"';
const said = (remaining: string, reset: string, limit = policy) => ({
  ...{ 'x-ratelimit-limit': limit, 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': reset },
});

suite('limits of the kit', (t) => {
  t('a list of limits speaks of the one whose number stands first', () => {
    deepEqual(windowsOf([pinterest], said('59', '55'), now), [
      { name: 'calls in a minute', seconds: 60, limit: 60, used: 1, resetsAt: iso(now + 55_000) },
    ]);
    deepEqual(windowsOf([pinterest], said('99', '1', '100, 100;w=1, 60;w=60'), now), [], 'a limit without a name');
    for (const odd of ['', 'many', '60', '60, 60', '60;w=, 60;w=x']) {
      deepEqual(windowsOf([pinterest], said('1', '1', odd), now), [], odd);
    }
  });

  t('a reset that can only be an instant since the epoch is one', () => {
    const at = exhausted({ buckets: [pinterest] }, said('0', String(now / 1_000 + 30)), now, now + 1);
    deepEqual([at.named, at.ofApp], [now + 30_000, false]);
    equal(exhausted({ buckets: [pinterest] }, said('0', '30'), now, now + 1).named, now + 30_000);
    equal(
      exhausted({ buckets: [pinterest] }, said('0', '999999'), now, now + 1).named,
      now + 60_000,
      'not longer than itself',
    );
    equal(exhausted({ buckets: [pinterest] }, {}, now, now + 1).named, now + 1);
  });

  t('a limit of a list that is of the whole app rests it, and is none of the account', () => {
    const ofDay = { ...pinterest, names: { 60: 'calls in a minute', 86400: 'calls in a day' }, ofApp: [86_400] };
    const trial = '300, 100;w=1;name="safety_net_app_id", 300;w=86400;name="org_write_app_id"';
    deepEqual(windowsOf([ofDay], said('0', '3600', trial), now), []);
    const at = exhausted({ buckets: [ofDay] }, said('0', '3600', trial), now, now + 1);
    deepEqual([at.until, at.ofApp], [now + 3_600_000, true]);
    deepEqual(
      [windowsOf([ofDay], said('1', '9'), now).length, exhausted({ buckets: [ofDay] }, said('0', '9'), now, 0).ofApp],
      [1, false],
    );
  });

  t('a network that counts points tells posts', () => {
    const points: PolicyBucket = {
      ...{ policy: 'ratelimit-policy', remaining: 'ratelimit-remaining', reset: 'ratelimit-reset' },
      ...{ resetIs: 'epoch', names: { 3600: '1 hour' }, perPost: 3 },
    };
    const headers = { 'ratelimit-policy': '5000;w=3600', 'ratelimit-remaining': '4996' };
    deepEqual(windowsOf([points], { ...headers, 'ratelimit-reset': '1793541600' }, now), [
      { name: '1 hour', seconds: 3_600, limit: 1_666, used: 1, resetsAt: iso(1_793_541_600_000) },
    ]);
  });

  const ofPages = 'x-business-use-case-usage';
  const usage = { app: 'x-app-usage', accounts: ['x-page-usage', ofPages] };
  const ofAccount = (minutes: number) =>
    JSON.stringify({
      '17841': [
        {
          type: 'instagram',
          call_count: 100,
          total_cputime: 25,
          total_time: 25,
          estimated_time_to_regain_access: minutes,
        },
        { type: 'messenger', call_count: 2, total_cputime: 1, total_time: 1, estimated_time_to_regain_access: 0 },
      ],
    });

  t('the usage that Meta names in percent says when calls are taken again', () => {
    const headers = {
      'x-app-usage': '{"call_count":28,"total_time":81,"total_cputime":0}',
      [ofPages]: ofAccount(19),
    };
    deepEqual(usageOf(usage, headers), { appPercent: 81, accountPercent: 100, regainMs: 19 * 60_000 });
    deepEqual(usageOf(usage, {}), { appPercent: 0, accountPercent: 0, regainMs: null });
    deepEqual(usageOf(usage, { 'x-app-usage': '[]', [ofPages]: '{"1":[null,{"call_count":"x"}]}' }).accountPercent, 0);
    const tables = { buckets: [], usage };
    deepEqual(exhausted(tables, headers, now, now + 1), {
      until: now + 1_140_000,
      named: now + 1_140_000,
      ofApp: false,
    });
    const full = { 'x-app-usage': '{"call_count":100}' };
    deepEqual(exhausted(tables, full, now, now + 9), { until: now + 9, named: now + 9, ofApp: true });
  });
});

suite('errors of the kit', (t) => {
  const errors: readonly ErrorRow[] = [
    {
      where: { 'error.code': [4], 'error.error_subcode': [2207051] },
      means: 'limited',
      mayBeOut: true,
      wait: 86_400_000,
    },
    { where: { 'error.code': [190, '102'] }, means: 'lapsed' },
    {
      where: { 'errors.reason': ['quotaExceeded'] },
      means: 'limited',
      ofApp: true,
      wait: { nextDayIn: 'America/Los_Angeles' },
    },
    { status: 403, says: /not permitted/i, means: 'permission', ofApp: true },
    { status: '5xx', where: { type: /\/busy$/ }, means: 'later' },
    { status: 409, means: 'later' },
  ];
  const tables = tablesOf({ errors });
  const refused = (status: number, body: Parameters<typeof judge>[1]['body']) =>
    refusedOf({ tables, clock: () => now }, { status, headers: {}, body });
  const before = (...given: Parameters<typeof refused>) => {
    const outcome = beforeBoundary(refused(...given), now);
    return [outcome.kind, outcome.failure.category, outcome.failure.actor];
  };

  t('the first row whose every condition fits decides, by members of lists too', () => {
    deepEqual(before(400, { error: { code: 190, error_subcode: 463 } }), ['failed', 'reauth_required', 'user']);
    deepEqual(before(400, { error: { code: '102' } }), ['failed', 'reauth_required', 'user']);
    deepEqual(before(400, { error: { code: 102 } }), ['failed', 'invalid_content', 'user'], 'a number is no text');
    deepEqual(before(403, { message: 'Not permitted' }), ['failed', 'permission', 'service']);
    deepEqual(before(403, { message: 'No' }), ['failed', 'invalid_content', 'user']);
    deepEqual(before(503, { type: 'https://a.test/busy' }), ['deferred', 'transient', 'platform']);
    deepEqual(before(503, null), ['deferred', 'platform_down', 'platform']);
    deepEqual(before(429, null), ['rate_limited', 'rate_limited', 'platform']);
    deepEqual(before(401, null), ['failed', 'reauth_required', 'user']);
  });

  t('a quota of a day ends at the midnight of the network', () => {
    const body = { errors: [{ reason: 'other' }, { reason: 'quotaExceeded' }] };
    const outcome = beforeBoundary(refused(403, body), now);
    ok(outcome.kind === 'rate_limited');
    deepEqual([outcome.retryAt, outcome.failure.actor], ['2026-11-02T08:00:00.000Z', 'service']);
  });

  t('4: a refusal after which the post was seen is no refusal of the post', () => {
    const body = { error: { code: 4, error_subcode: 2207051, message: 'Action is blocked' } };
    const outcome = behindBoundary(refused(403, body), now);
    equal(outcome.kind, 'unknown');
    equal(outcome.failure.platformMessage, '403 Action is blocked');
    // Where the post is not there after all, it may not be tried again at once.
    equal(outcome.kind === 'unknown' && outcome.retryAt, new Date(now + 86_400_000).toISOString());
    const lost = behindBoundary({ kind: 'silent', reason: '' }, now);
    equal(lost.kind === 'unknown' && lost.retryAt, undefined);
    equal(behindBoundary(refused(400, { error: { code: 4 } }), now).kind, 'failed');
    equal(behindBoundary(refused(409, {}), now).kind, 'nothing_sent');
    equal(behindBoundary(refused(409, null), now).kind, 'unknown', 'the words of another server');
    equal(behindBoundary({ kind: 'unavailable', reason: '' }, now).kind, 'rate_limited');
  });

  t('words come from the paths of the table, each once, and are bounded', () => {
    const own: ErrorTables = { errors: [], words: ['detail', 'errors.message', 'title'], code: () => 'own' };
    const body = { title: 'No', errors: [{ message: 'No' }], detail: 'x'.repeat(5_000) };
    const { failure } = judge(own, { status: 400, body });
    equal(failure.platformCode, 'own');
    equal(failure.platformMessage?.length, 2_000);
    equal(
      judge(own, { status: 400, body: { title: 'No', errors: [{ message: 'No' }] } }).failure.platformMessage,
      'No',
    );
  });
});
