/** What each error that LinkedIn can answer means for a post, and for a comment. */
import assert from 'node:assert/strict';
import { type ProblemName, problems } from '#test/support/networks/linkedin/index.ts';
import { type LinkedInWorld, linkedinWorld } from '#test/support/networks/linkedin/world.ts';
import { suite } from '#test/support/suite.ts';

/** Outcome, category, code, who acts, whether trying again can help. */
type Row = readonly [string, string, string, string, boolean];

const content = ['failed', 'invalid_content', 'content_rejected', 'user', false] as const;
const media = ['failed', 'media', 'content_rejected', 'user', false] as const;
const forbidden = ['failed', 'permission', 'account_not_permitted', 'user', true] as const;
const lapsed = ['failed', 'reauth_required', 'reauth_required', 'user', true] as const;
const duplicate = ['failed', 'duplicate', 'duplicate_content', 'user', false] as const;
const limited = ['rate_limited', 'rate_limited', 'network_rate_limited', 'platform', true] as const;
const ended = ['rate_limited', 'permission', 'api_version_ended', 'service', true] as const;
const later = ['nothing_sent', 'transient', 'network_down', 'platform', true] as const;
const unknown = ['unknown', 'unknown', 'outcome_unknown', 'platform', false] as const;

const table: Readonly<Record<ProblemName, Row>> = {
  token_invalid: lapsed,
  token_revoked: lapsed,
  token_expired: lapsed,
  token_empty: lapsed,
  access_denied: forbidden,
  video_forbidden: forbidden,
  urn_type: content,
  urn_id: content,
  missing_field: content,
  invalid_value: content,
  too_long: content,
  param_invalid: content,
  media_failed: media,
  media_waiting: later,
  media_processing: later,
  upload_expired: later,
  not_found: content,
  not_everywhere: later,
  no_activity: later,
  conflict: unknown,
  duplicate,
  duplicate_bare: duplicate,
  unprocessable: content,
  version_ended: ended,
  version_missing: ended,
  app_day: limited,
  member_day: limited,
  comment_throttled: limited,
  burst: limited,
  internal: unknown,
  bad_gateway: unknown,
  unavailable: unknown,
  gateway_timeout: unknown,
};

const renewed: readonly ProblemName[] = ['token_invalid', 'token_expired', 'token_empty'];

suite('errors of linkedin', (t) => {
  let world: LinkedInWorld;
  // Each has an app of its own, since some of the errors rest it.
  t.before.each(async () => {
    world = await linkedinWorld();
  });
  t.after.each(() => world.network.close());

  for (const [name, row] of Object.entries(table) as [ProblemName, Row][]) {
    t(`${name}: ${row.slice(0, 3).join(', ')}`, async () => {
      const request = world.request(await world.member());
      world.network.script({ route: 'POST /rest/posts', times: 2, then: { answer: problems[name] } });
      const { outcome } = await world.publish(request);
      assert.ok('failure' in outcome);
      const { category, code, actor, retryable, message } = outcome.failure;
      assert.deepEqual([outcome.kind, category, code, actor, retryable], row);
      assert.notEqual(message, '');
      const creates = world.network.state.creates.length;
      assert.equal(creates, renewed.includes(name) ? 2 : 1, 'a call after an ended token alone is repeated');
    });
  }

  t('a limit of the day waits for midnight of UTC, a short one for two minutes', async () => {
    const { script, state } = world.network;
    for (const [name, isDay] of [
      ['app_day', true],
      ['member_day', true],
      ['burst', false],
    ] as const) {
      script({ route: 'POST /rest/posts', then: { answer: problems[name] } });
      const { outcome } = await world.publish(world.request(await world.member()));
      assert.ok(outcome.kind === 'rate_limited');
      const at = Date.parse(outcome.retryAt);
      if (isDay) assert.match(outcome.retryAt, /T00:00:00\.000Z$/);
      else assert.ok(Math.abs(at - state.now() - 120_000) < 5_000, outcome.retryAt);
      assert.ok(at > state.now() && at - state.now() <= 86_400_000);
    }
    // A limit is of one resource: the others may be called.
    assert.equal((await world.publish(world.request(await world.member()))).outcome.kind, 'published');
  });

  t(
    'a comment on a post that is not known everywhere yet, or too soon after another, waits; one on no post fails',
    async () => {
      const account = await world.member();
      const { outcome } = await world.publish(world.request(account));
      assert.ok(outcome.kind === 'published');
      const { externalId } = outcome;
      const comment = (id = externalId) =>
        world.adapter.comment(
          { targetId: account.id, platform: 'linkedin', account, externalId: id, content: 'First!' },
          AbortSignal.timeout(5_000),
        );
      world.network.state.commentLagMs = 60_000;
      assert.equal((await comment()).kind, 'deferred');
      world.network.script({ route: 'POST /rest/socialActions/:id/comments', then: { answer: problems.no_activity } });
      assert.equal((await comment()).kind, 'deferred');
      world.network.state.advance(60_000);
      const answer = problems.comment_throttled;
      world.network.script({ route: 'POST /rest/socialActions/:id/comments', then: { answer } });
      const throttled = await comment();
      assert.ok(throttled.kind === 'rate_limited');
      assert.ok(Date.parse(throttled.retryAt) - world.network.state.now() > 60_000);
      const gone = await comment('urn:li:share:1');
      assert.ok(gone.kind === 'failed' && gone.failure.category === 'invalid_content');
      assert.equal(world.network.state.comments.length, 0);
      assert.equal((await comment()).kind, 'posted');
    },
  );

  t('what the simulated LinkedIn refuses of its own accord means the same', async () => {
    const account = await world.member();
    const said = async (over: Parameters<LinkedInWorld['request']>[1], by = account) => {
      const { outcome } = await world.publish(world.request(by, over));
      return 'failure' in outcome ? outcome.failure.category : outcome.kind;
    };
    assert.equal(await said({ content: 'Once' }), 'published');
    assert.equal(await said({ content: 'Once' }), 'duplicate');
    assert.equal(await said({ content: '('.repeat(3_000) }), 'published');
    assert.equal(await said({ content: 'ä'.repeat(3_001) }), 'invalid_content');
    const person = world.network.person();
    const looks = world.network.organization(person, 'ANALYST');
    const analyst = await world.accountOf(person, `urn:li:organization:${looks.id}`);
    assert.equal(await said({}, analyst), 'permission');
    const reads = await world.member(person, ['openid', 'profile']);
    assert.equal(await said({}, reads), 'permission');
  });
});
