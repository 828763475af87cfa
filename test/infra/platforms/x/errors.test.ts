/** What each error that X can answer means for a post. */
import assert from 'node:assert/strict';
import { type ProblemName, problems } from '#test/support/networks/x/index.ts';
import { type XWorld, xWorld } from '#test/support/networks/x/world.ts';
import { suite } from '#test/support/suite.ts';

/** Outcome, category, code, who acts, whether trying again can help. */
type Row = readonly [string, string, string, string, boolean];

const content = ['failed', 'invalid_content', 'content_rejected', 'user', false] as const;
const media = ['failed', 'media', 'content_rejected', 'user', false] as const;
const permission = ['failed', 'permission', 'content_rejected', 'user', false] as const;
const ofApp = ['failed', 'permission', 'content_rejected', 'service', false] as const;
const lapsed = ['failed', 'reauth_required', 'reauth_required', 'user', true] as const;
const duplicate = ['failed', 'duplicate', 'duplicate_content', 'user', false] as const;
const limited = ['rate_limited', 'rate_limited', 'network_rate_limited', 'platform', true] as const;
const unpaid = ['rate_limited', 'permission', 'network_rate_limited', 'service', true] as const;
const unknown = ['unknown', 'unknown', 'outcome_unknown', 'platform', false] as const;

const table: Readonly<Record<ProblemName, Row>> = {
  unauthorized: lapsed,
  credits_depleted: unpaid,
  credits: unpaid,
  duplicate,
  not_permitted: permission,
  reply_refused: permission,
  quote_refused: permission,
  client_forbidden: ofApp,
  oauth1_permissions: ofApp,
  unsupported_authentication: lapsed,
  feature_forbidden: ofApp,
  user_suspended: lapsed,
  long_video: media,
  not_found: content,
  too_many_requests: limited,
  rate_limit_exceeded: limited,
  usage_capped: ['rate_limited', 'rate_limited', 'network_rate_limited', 'service', true],
  internal: unknown,
  bad_gateway: unknown,
  over_capacity: unknown,
  gateway_timeout: unknown,
  legacy_rate: limited,
  legacy_token: lapsed,
  legacy_suspended: lapsed,
  legacy_too_long: content,
  legacy_duplicate: duplicate,
  legacy_automated: permission,
  legacy_media: media,
  legacy_media_expired: media,
  legacy_locked: lapsed,
  legacy_reply_gone: content,
  legacy_reply_limited: permission,
};

suite('errors of x', (t) => {
  let world: XWorld;
  // Each has an app of its own, since some of the errors rest it.
  t.before.each(async () => {
    world = await xWorld();
  });
  t.after.each(() => world.network.close());

  for (const [name, row] of Object.entries(table) as [ProblemName, Row][]) {
    t(`${name}: ${row.slice(0, 3).join(', ')}`, async () => {
      const request = world.request(await world.account());
      world.network.script({ route: 'POST /2/tweets', times: 2, then: { answer: problems[name] } });
      const { outcome } = await world.publish(request);
      assert.ok('failure' in outcome);
      const { category, code, actor, retryable, message } = outcome.failure;
      assert.deepEqual([outcome.kind, category, code, actor, retryable], row);
      assert.notEqual(message, '');
      const creates = world.network.state.creates.length;
      assert.equal(creates, name === 'unauthorized' ? 2 : 1, 'a call after a 401 alone is repeated');
    });
  }

  t('what the simulated X refuses of its own accord means the same', async () => {
    const account = await world.account();
    const said = async (over: Parameters<XWorld['request']>[1]) => {
      const { outcome } = await world.publish(world.request(account, over));
      return 'failure' in outcome ? outcome.failure.category : outcome.kind;
    };
    assert.equal(await said({ content: 'Once' }), 'published');
    assert.equal(await said({ content: 'Once' }), 'duplicate');
    assert.equal(await said({ content: 'ä'.repeat(280) }), 'published');
    assert.equal(await said({ content: '漢'.repeat(141) }), 'permission');
    assert.equal(await said({ content: '$ABC and $XYZ' }), 'invalid_content');
    assert.equal(await said({ content: 'Q', overrides: { quoteTweetId: '1' } }), 'permission');
    const gone = { parent: '1', head: '1' };
    assert.equal(await said({ content: 'R', thread: { index: 1, of: 2, replyTo: gone } }), 'invalid_content');
    assert.equal(
      await said({ content: 'S', overrides: { quoteTweetId: 'https://evil.test/status/1' } }),
      'invalid_content',
    );
  });

  t('a header that names the year 9999 rests account and app for no longer than the bucket lasts', async () => {
    const { appLimits, app, clock } = world.options;
    const name = `x:${app.clientId}`;
    const hour = 3_600_000;
    for (const [headers, lasts, isOfApp] of [
      [
        { 'x-rate-limit-limit': '100', 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': '253402300799' },
        0.25,
        false,
      ],
      [
        {
          ...{ 'x-app-limit-24hour-limit': '100', 'x-app-limit-24hour-remaining': '0' },
          'x-app-limit-24hour-reset': '253402300799',
        },
        ...[24, true],
      ],
    ] as readonly (readonly [Record<string, string>, number, boolean])[]) {
      const answer = { ...problems.too_many_requests, headers };
      world.network.script({ route: 'POST /2/tweets', then: { answer } });
      const { outcome } = await world.publish(world.request(await world.account()));
      assert.ok(outcome.kind === 'rate_limited', JSON.stringify(outcome));
      const left = Date.parse(outcome.retryAt) - clock();
      assert.ok(
        left > (lasts - 0.1) * hour && left <= lasts * hour,
        `${JSON.stringify(headers)}: ${left / hour} hours`,
      );
      assert.equal((await appLimits.restOf(name, false, clock())) !== null, isOfApp);
      assert.equal(await appLimits.restOf(name, false, clock() + 24 * hour), null);
    }
  });

  t('a token without a scope is refused, and the account stays', async () => {
    const account = await world.account(undefined, ['tweet.read', 'users.read', 'offline.access']);
    const { outcome } = await world.publish(world.request(account));
    assert.ok(outcome.kind === 'failed');
    assert.equal(outcome.failure.category, 'permission');
  });
});
