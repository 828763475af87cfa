/** What each error that TikTok can answer means for a post, before a file is sent and at the call of the boundary. */
import assert from 'node:assert/strict';
import { type ProblemName, problems } from '#test/support/networks/tiktok/index.ts';
import { type TikTokWorld, tiktokWorld } from '#test/support/networks/tiktok/world.ts';
import { suite } from '#test/support/suite.ts';

/** Outcome, category, code, who acts, whether trying again can help. */
type Row = readonly [string, string, string, string, boolean];

const content = ['failed', 'invalid_content', 'content_rejected', 'user', false] as const;
const media = ['failed', 'media', 'content_rejected', 'user', false] as const;
const forbidden = ['failed', 'permission', 'account_not_permitted', 'user', true] as const;
const lapsed = ['failed', 'reauth_required', 'reauth_required', 'user', true] as const;
const unpermitted = ['failed', 'permission', 'reauth_required', 'user', true] as const;
const limited = ['rate_limited', 'rate_limited', 'network_rate_limited', 'platform', true] as const;
const ours = ['nothing_sent', 'transient', 'network_down', 'service', true] as const;
const unknown = ['unknown', 'unknown', 'outcome_unknown', 'platform', false] as const;

/** At the call that names pictures, which is the boundary. */
const table: Readonly<Record<ProblemName, Row>> = {
  access_token_invalid: lapsed,
  scope_not_authorized: unpermitted,
  scope_permission_missed: unpermitted,
  rate_limit_exceeded: limited,
  spam_risk_too_many_posts: limited,
  spam_risk_too_many_pending_share: limited,
  spam_risk_user_banned_from_posting: forbidden,
  spam_risk: content,
  reached_active_user_cap: limited,
  unaudited_client_can_only_post_to_private_accounts: forbidden,
  url_ownership_unverified: ours,
  privacy_level_option_mismatch: content,
  invalid_param: content,
  invalid_params: content,
  invalid_file_upload: media,
  app_version_check_failed: content,
  invalid_publish_id: content,
  token_not_authorized_for_specified_publish_id: content,
  internal_error: unknown,
  unavailable: unknown,
  bad_gateway: unknown,
};

const dayMs = 86_400_000;

suite('errors of tiktok', (t) => {
  let world: TikTokWorld;
  t.before.each(async () => {
    world = await tiktokWorld();
  });
  t.after.each(() => world.close());

  const pictures = async () => world.request(await world.account(), { media: [world.files.picture()] });
  const video = async () => world.request(await world.account());

  for (const [name, row] of Object.entries(table) as [ProblemName, Row][]) {
    t(`${name}: ${row.slice(0, 3).join(', ')}`, async () => {
      const then = { answer: problems[name] };
      world.network.script({ route: 'POST /v2/post/publish/content/init/', times: 2, then });
      const { outcome } = await world.publish(await pictures());
      assert.ok('failure' in outcome, JSON.stringify(outcome));
      const { category, code, actor, retryable, platformCode } = outcome.failure;
      assert.deepEqual([outcome.kind, category, code, actor, retryable], row);
      assert.equal(world.network.state.posts.length, 0);
      // Before the boundary what would be unknown there has made nothing.
      world.network.script({ route: 'POST /v2/post/publish/video/init/', times: 2, then });
      const { outcome: early, steps } = await world.publish(await video());
      assert.ok('failure' in early && !steps.log.includes('boundary'), JSON.stringify(early));
      const kind = row[0] === 'unknown' || row[0] === 'nothing_sent' ? 'deferred' : row[0];
      assert.equal(early.kind, kind);
      if (row !== unknown && row !== lapsed) assert.deepEqual([platformCode, early.failure.platformCode], [name, name]);
    });
  }

  t('a limit says how long: a minute of calls, hours of posts, the day of accounts', async () => {
    const { network } = world;
    const until = async (name: ProblemName): Promise<number> => {
      const then = { answer: { ...problems[name], status: 200 } };
      network.script({ route: 'POST /v2/post/publish/creator_info/query/', then });
      const { outcome } = await world.publish(await video());
      assert.ok(outcome.kind === 'rate_limited', JSON.stringify(outcome));
      return Date.parse(outcome.retryAt);
    };
    const about = (at: number, ms: number) => assert.ok(Math.abs(at - network.state.now() - ms) < 5_000, `${ms}`);
    about(await until('rate_limit_exceeded'), 60_000);
    about(await until('spam_risk_too_many_posts'), 4 * 3_600_000);
    about(await until('spam_risk_too_many_pending_share'), dayMs);
    const day = await until('reached_active_user_cap');
    assert.deepEqual([day % dayMs, day > network.state.now()], [0, true]);
    // None of them rests the app: other accounts go on.
    assert.equal((await world.publish(await video())).outcome.kind, 'published');
  });

  t('18: an app that is not audited is told in words about the privacy of the account, not of the post', async () => {
    world.network.state.isAudited = false;
    const open = await world.account();
    const closed = await world.account(world.network.person({ isPrivate: true }));
    for (const media of [[world.files.video()], [world.files.picture()]]) {
      const { outcome } = await world.publish(world.request(open, { media }));
      assert.ok(outcome.kind === 'failed', JSON.stringify(outcome));
      assert.equal(outcome.failure.code, 'account_not_permitted');
      assert.match(outcome.failure.platformMessage ?? '', /the account itself is private .*SELF_ONLY/);
      assert.equal((await world.publish(world.request(closed, { media }))).outcome.kind, 'published');
    }
  });
});
