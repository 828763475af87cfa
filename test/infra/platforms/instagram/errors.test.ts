/** What each error that Instagram can answer means for a post: to the call that makes its container, and to the one that publishes it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type ProblemName, problems } from '#test/support/networks/instagram/index.ts';
import { type InstagramWorld, instagramWorld } from '#test/support/networks/instagram/world.ts';
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
const limited: Meaning = ['rate_limited', 'network_rate_limited', 'platform', true];
const ofApp: Meaning = ['rate_limited', 'network_rate_limited', 'service', true];
const down: Meaning = ['platform_down', 'network_down', 'platform', true];
const later: Meaning = ['transient', 'network_down', 'platform', true];

const waits = (meaning: Meaning): Row => ['rate_limited', 'rate_limited', meaning];
const fails = (meaning: Meaning): Row => ['failed', 'failed', meaning];
/** It passes: before the boundary and behind it nothing was made. */
const passes: Row = ['deferred', 'nothing_sent', later];
/** Before the boundary it may be tried again; behind it the post may be out. */
const open: Row = ['deferred', 'unknown', down];

const table: Readonly<Record<ProblemName, Row>> = {
  token_expired: fails(lapsed),
  token_invalid: fails(lapsed),
  password_changed: fails(lapsed),
  checkpoint: fails(lapsed),
  no_session: fails(lapsed),
  no_publish: fails(unpermitted),
  no_permission: fails(unpermitted),
  permission_of_scope: fails(unpermitted),
  no_capability: fails(['permission', 'content_rejected', 'service', false]),
  account_restricted: fails(forbidden),
  policy_block: fails(forbidden),
  // Instagram was seen to say so of a post that was out.
  action_blocked: ['rate_limited', 'unknown', limited],
  app_limited: waits(ofApp),
  user_limited: waits(limited),
  calls_limited: waits(limited),
  account_limited: waits(limited),
  too_many_requests: waits(limited),
  posts_limited: waits(limited),
  // What was made a moment ago may not be found, and may be out all the same.
  object_missing: ['deferred', 'unknown', later],
  container_missing: passes,
  not_ready: passes,
  download_timeout: fails(media),
  media_not_fetched: fails(media),
  image_too_large: fails(media),
  image_format: fails(media),
  image_ratio: fails(media),
  video_format: fails(media),
  caption_too_long: fails(content),
  collaborator_invalid: fails(content),
  carousel_size: fails(content),
  thumb_offset: fails(content),
  upload_failed: passes,
  duplicate: fails(['duplicate', 'duplicate_content', 'user', false]),
  unknown_error: open,
  media_publish_failed: open,
  service_down: open,
  transient: open,
  internal: open,
  bad_gateway: open,
  unavailable: open,
};

const calls = ['POST /:id/media', 'POST /:id/media_publish'] as const;

suite('errors of instagram', (t) => {
  let world: InstagramWorld;
  // Each has an app of its own, since some of the errors rest it.
  t.before.each(async () => {
    world = await instagramWorld();
  });
  t.after.each(() => world.close());

  for (const [name, [first, second, meaning]] of Object.entries(table) as [ProblemName, Row][]) {
    t(`${name}: ${first} before the boundary, ${second} behind it, ${meaning[0]}`, async () => {
      for (const [place, route] of calls.entries()) {
        const says = randomUUID();
        // What another container may not meet is met by two.
        world.network.script({ route, says, times: place === 0 ? 2 : 1, then: { answer: problems[name] } });
        // An app that does not rest yet.
        const adapter = world.open({ appLimits: new MemoryAppLimits() });
        const request = world.request(await world.account(), { content: says, media: [world.media()] });
        const { outcome } = await world.publish(request, adapter);
        assert.equal(outcome.kind, place === 0 ? first : second, JSON.stringify(outcome));
        assert.ok('failure' in outcome);
        assert.notEqual(outcome.failure.message, '');
        assert.equal(world.network.state.media.length, 0);
        if (place === 1) continue;
        const { category, code, actor, retryable } = outcome.failure;
        assert.deepEqual([category, code, actor, retryable], meaning);
      }
    });
  }

  /** What a container says of how it broke, and how many are made of it within an attempt. */
  const broken: Readonly<Record<number, readonly [containers: number, category: string]>> = {
    2207003: [2, 'media'],
    2207052: [2, 'media'],
    2207053: [2, 'media'],
    2207026: [1, 'media'],
    2207077: [1, 'media'],
  };
  for (const [code, [containers, category]] of Object.entries(broken)) {
    t(
      `a reel that ends with ${code} is made ${containers === 2 ? 'anew once' : 'no second time'}, and is ${category} then`,
      async () => {
        const { state } = world.network;
        const media = [world.media({ kind: 'video', use: 'reel', contentType: 'video/mp4' })];
        for (let at = 0; at < 2; at += 1) state.breaks.push({ type: 'REELS', error: Number(code) });
        const { outcome } = await world.publish(world.request(await world.account(), { media }));
        assert.ok(outcome.kind === 'failed', JSON.stringify(outcome));
        assert.deepEqual([outcome.failure.category, outcome.failure.platformCode], [category, code]);
        assert.deepEqual([outcome.failure.mediaId, state.containers.size], [media[0]?.mediaId, containers]);
      },
    );
  }

  t('what the simulated Instagram refuses of its own accord means the same', async () => {
    const account = await world.account();
    const said = async (over: Parameters<InstagramWorld['request']>[1]) => {
      const { outcome } = await world.publish(world.request(account, { media: [world.media()], ...over }));
      return 'failure' in outcome ? outcome.failure.category : outcome.kind;
    };
    assert.equal(await said({ content: 'ä'.repeat(2_200) }), 'published');
    assert.equal(await said({ content: 'ä'.repeat(2_201) }), 'invalid_content');
    assert.equal(
      await said({ content: Array.from({ length: 31 }, (_, at) => `#t${at}`).join(' ') }),
      'invalid_content',
    );
    assert.equal(await said({ media: [world.media({ altText: 'a'.repeat(1_001) })] }), 'invalid_content');
    assert.equal(await said({ overrides: { locationId: '12' } }), 'published');
  });

  t('an action that Instagram takes for spam is not tried again within a day', async () => {
    world.network.script({ route: calls[0], then: { answer: problems.action_blocked } });
    const { outcome } = await world.publish(world.request(await world.account(), { media: [world.media()] }));
    assert.ok(outcome.kind === 'rate_limited');
    const left = Date.parse(outcome.retryAt) - world.network.state.now();
    assert.ok(left > 86_300_000 && left <= 86_400_000, String(left));
  });

  t(
    'a first comment that is refused with 100/33 on the fresh post is undecided, and a later try is under it',
    async () => {
      const account = await world.account();
      const { outcome } = await world.publish(world.request(account, { media: [world.media()] }));
      assert.ok(outcome.kind === 'published');
      const { externalId } = outcome;
      const comment = { targetId: randomUUID(), platform: 'instagram', account, content: 'Hi', externalId } as const;
      const tried = () => world.adapter.comment(comment, AbortSignal.timeout(5_000));
      world.network.script({ route: 'POST /:id/comments', then: { answer: problems.object_missing } });
      const early = await tried();
      assert.ok(early.kind === 'deferred' && early.failure.retryable, JSON.stringify(early));
      assert.equal(world.network.state.comments.length, 0);
      assert.equal((await tried()).kind, 'posted');
      assert.equal(world.network.state.comments.length, 1);
    },
  );

  t('a comment without the permission, and one that is refused, leave the post as it is', async () => {
    const account = await world.account();
    const { outcome } = await world.publish(world.request(account, { media: [world.media()] }));
    assert.ok(outcome.kind === 'published');
    const comment = { targetId: randomUUID(), platform: 'instagram', account, content: 'Hi' } as const;
    const said = async (name: ProblemName) => {
      world.network.script({ route: 'POST /:id/comments', then: { answer: problems[name] } });
      const result = await world.adapter.comment(
        { ...comment, externalId: outcome.externalId },
        AbortSignal.timeout(5_000),
      );
      return [result.kind, 'failure' in result ? result.failure.code : null];
    };
    assert.deepEqual(await said('no_permission'), ['failed', 'comment_not_permitted']);
    assert.deepEqual(await said('action_blocked'), ['unknown', 'outcome_unknown']);
    assert.deepEqual(await said('internal'), ['unknown', 'outcome_unknown']);
    assert.equal(world.network.state.comments.length, 0);
  });
});
