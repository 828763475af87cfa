/** What each error that Facebook can answer means for a post: to the call that takes its photo, and to the one that publishes it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type ProblemName, problems } from '#test/support/networks/facebook/index.ts';
import { type FacebookWorld, facebookWorld } from '#test/support/networks/facebook/world.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { suite } from '#test/support/suite.ts';

/** Category, code, who acts, whether trying again can help. */
type Meaning = readonly [string, string, string, boolean];
/** Outcomes of the two calls, and what the failure of the first means. */
type Row = readonly [first: string, second: string, Meaning];

const content: Meaning = ['invalid_content', 'content_rejected', 'user', false];
const media: Meaning = ['media', 'content_rejected', 'user', false];
const lapsed: Meaning = ['reauth_required', 'reauth_required', 'user', true];
const unpermitted: Meaning = ['permission', 'reauth_required', 'user', true];
const forbidden: Meaning = ['permission', 'account_not_permitted', 'user', true];
const refused: Meaning = ['permission', 'content_rejected', 'user', false];
const double: Meaning = ['duplicate', 'duplicate_content', 'user', false];
const limited: Meaning = ['rate_limited', 'network_rate_limited', 'platform', true];
const ofApp: Meaning = ['rate_limited', 'network_rate_limited', 'service', true];
const down: Meaning = ['platform_down', 'network_down', 'platform', true];
const later: Meaning = ['transient', 'network_down', 'platform', true];

const waits = (meaning: Meaning): Row => ['rate_limited', 'rate_limited', meaning];
const fails = (meaning: Meaning): Row => ['failed', 'failed', meaning];
/** Before the boundary it may be tried again; behind it the post may be out. */
const open: Row = ['deferred', 'unknown', down];
const passes: Row = ['deferred', 'nothing_sent', later];

const table: Readonly<Record<ProblemName, Row>> = {
  token_ended: fails(lapsed),
  token_invalid: fails(lapsed),
  app_removed: fails(lapsed),
  checkpoint: fails(lapsed),
  password_changed: fails(lapsed),
  unconfirmed: fails(lapsed),
  role_lost: fails(lapsed),
  no_session: fails(lapsed),
  no_proof: fails(content),
  no_permission: fails(unpermitted),
  permission_of_scope: fails(unpermitted),
  no_permission_for_video: fails(unpermitted),
  no_capability: fails(['permission', 'content_rejected', 'service', false]),
  page_authorization: fails(forbidden),
  confirm_identity: fails(forbidden),
  security_check: fails(forbidden),
  account_limited: fails(forbidden),
  blocked: fails(forbidden),
  community_standards: fails(refused),
  abusive: fails(refused),
  app_limited: waits(ofApp),
  user_limited: waits(limited),
  page_limited: waits(limited),
  calls_limited: waits(limited),
  pages_limited: waits(limited),
  instagram_limited: waits(limited),
  too_fast: waits(limited),
  duplicate: fails(double),
  photos_posted: fails(double),
  photo_unreadable: fails(media),
  file_missing: fails(media),
  video_ratio: fails(media),
  link_refused: fails(content),
  fetch_failed: passes,
  unavailable_soon: passes,
  object_missing: fails(content),
  metric_invalid: fails(content),
  unknown_error: open,
  service_down: open,
  transient: open,
  internal: open,
  bad_gateway: open,
  unavailable: open,
};

suite('errors of facebook', { timeoutMs: 60_000 }, (t) => {
  let world: FacebookWorld;
  t.before.each(async () => {
    world = await facebookWorld();
  });
  t.after.each(() => world.close());

  for (const [name, [first, second, meaning]] of Object.entries(table) as [ProblemName, Row][]) {
    t(`${name}: ${first} before the boundary, ${second} behind it, ${meaning[0]}`, async () => {
      for (const [place, route] of ['POST /:id/photos', 'POST /:id/feed'].entries()) {
        // A page whose token is refused asks once more with another one.
        world.network.script({ route, times: 2, then: { answer: problems[name] } });
        // An app that does not rest yet.
        const { adapter } = world.again({}, { appLimits: new MemoryAppLimits() });
        const asked = world.request(await world.account(), { content: randomUUID(), media: [world.photo()] });
        const { outcome } = await world.publish(asked, adapter);
        world.network.state.faults.length = 0;
        assert.equal(outcome.kind, place === 0 ? first : second, JSON.stringify(outcome));
        assert.ok('failure' in outcome);
        assert.notEqual(outcome.failure.message, '');
        assert.equal(world.network.state.made.length, 0);
        if (place === 1) continue;
        const { category, code, actor, retryable } = outcome.failure;
        assert.deepEqual([category, code, actor, retryable], meaning);
      }
    });
  }

  t('what the simulated Facebook refuses of its own accord means the same', async () => {
    const account = await world.account();
    const said = async (over: Parameters<FacebookWorld['request']>[1], by = account) => {
      const { outcome } = await world.publish(world.request(by, over));
      return 'failure' in outcome ? outcome.failure.category : outcome.kind;
    };
    assert.equal(await said({ content: 'ä'.repeat(63_206) }), 'published');
    assert.equal(await said({ content: 'ä'.repeat(63_207) }), 'invalid_content');
    assert.equal(await said({ content: 'twice' }), 'published');
    assert.equal(await said({ content: 'twice' }), 'duplicate');
    assert.equal(await said({ content: '' }), 'invalid_content');
    assert.equal(await said({ media: [world.photo(), world.video()] }), 'invalid_content');
    const few = await world.account({}, ['pages_read_engagement']);
    assert.equal(await said({}, few), 'permission');
  });

  t('8: a permission that is missing is named', async () => {
    const few = await world.account({}, ['pages_read_engagement']);
    const { outcome } = await world.publish(world.request(few));
    assert.ok(outcome.kind === 'failed');
    assert.deepEqual([outcome.failure.code, outcome.failure.platformCode], ['reauth_required', '200']);
    assert.match(outcome.failure.platformMessage ?? '', /pages_manage_posts/);
  });

  t('9: a checkpoint of the person lapses the account, and is no permission that lacks', async () => {
    const account = await world.account();
    for (const name of ['checkpoint', 'unconfirmed'] as const) {
      world.network.script({ route: 'POST /:id/feed', then: { answer: problems[name] } });
      // The login is stopped as the page is: no other token comes.
      world.network.script({ route: 'GET /:id', then: { answer: problems[name] } });
      const { outcome } = await world.publish(world.request(account, { content: name }));
      assert.ok(outcome.kind === 'failed', JSON.stringify(outcome));
      assert.equal(outcome.failure.category, 'reauth_required');
      const { error } = problems[name].body as { readonly error: { readonly message: string } };
      assert.equal(outcome.failure.platformMessage, error.message);
    }
  });

  t('a token of a page that ended is minted once, and the post goes out with the new one', async () => {
    const account = await world.account();
    for (const [token, { pageId }] of world.network.state.access) {
      if (pageId === account.externalId) world.network.state.access.delete(token);
    }
    assert.equal((await world.publish(world.request(account))).outcome.kind, 'published');
    assert.equal(world.network.state.minted.get(account.externalId), 1);
  });

  t('a first comment that is refused with 100/33 on the fresh post is tried again, and is then under it', async () => {
    const account = await world.account();
    const { outcome } = await world.publish(world.request(account));
    assert.ok(outcome.kind === 'published');
    const { externalId } = outcome;
    const comment = { targetId: randomUUID(), platform: 'facebook', account, content: 'Hi', externalId } as const;
    const tried = () => world.adapter.comment(comment, AbortSignal.timeout(5_000));
    world.network.script({ route: 'POST /:id/comments', then: { answer: problems.object_missing } });
    const early = await tried();
    assert.ok(early.kind === 'deferred' && early.failure.retryable, JSON.stringify(early));
    assert.equal(early.failure.platformCode, '100/33');
    assert.equal(world.network.state.comments.length, 0);
    assert.equal((await tried()).kind, 'posted');
    assert.equal(world.network.state.comments.length, 1);
  });

  t('a usage that Facebook names in minutes is when the post is tried again; one of the app rests it', async () => {
    const usage = { type: 'pages', call_count: 100, total_cputime: 25, total_time: 25 };
    const headers = {
      'x-business-use-case-usage': JSON.stringify({ 17: [{ ...usage, estimated_time_to_regain_access: 19 }] }),
    };
    world.network.script({ route: 'POST /:id/feed', then: { answer: { ...problems.pages_limited, headers } } });
    const account = await world.account();
    const { outcome } = await world.publish(world.request(account));
    assert.ok(outcome.kind === 'rate_limited');
    const minutes = (Date.parse(outcome.retryAt) - world.network.state.now()) / 60_000;
    assert.ok(minutes > 18 && minutes <= 19, outcome.retryAt);
    world.network.script({ route: 'POST /:id/feed', then: { answer: problems.app_limited } });
    assert.equal((await world.publish(world.request(account))).outcome.kind, 'rate_limited');
    const calls = world.network.state.calls.length;
    assert.equal((await world.publish(world.request(await world.account()))).outcome.kind, 'rate_limited');
    assert.equal(world.network.state.calls.length, calls, 'the app rests as a whole');
  });
});
