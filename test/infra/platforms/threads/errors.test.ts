/** What each error that Threads can answer means for a post: to the call that makes its container, and to the one that publishes it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { type ProblemName, problems } from '#test/support/networks/threads/index.ts';
import { type ThreadsWorld, threadsWorld } from '#test/support/networks/threads/world.ts';
import { suite } from '#test/support/suite.ts';

/** Category, code, who acts, whether trying again can help. */
type Meaning = readonly [string, string, string, boolean];
/** Outcomes of the two calls, and what the failure of the first means. */
type Row = readonly [first: string, second: string, Meaning];

const content: Meaning = ['invalid_content', 'content_rejected', 'user', false];
const media: Meaning = ['media', 'content_rejected', 'user', false];
const lapsed: Meaning = ['reauth_required', 'reauth_required', 'user', true];
const unpermitted: Meaning = ['permission', 'reauth_required', 'user', true];
const limited: Meaning = ['rate_limited', 'network_rate_limited', 'platform', true];
const ofApp: Meaning = ['rate_limited', 'network_rate_limited', 'service', true];
const down: Meaning = ['platform_down', 'network_down', 'platform', true];
const later: Meaning = ['transient', 'network_down', 'platform', true];

const waits = (meaning: Meaning): Row => ['rate_limited', 'rate_limited', meaning];
const fails = (meaning: Meaning): Row => ['failed', 'failed', meaning];
/** Before the boundary it may be tried again; behind it the post may be out. */
const open: Row = ['deferred', 'unknown', down];

const table: Readonly<Record<ProblemName, Row>> = {
  token_expired: fails(lapsed),
  token_invalid: fails(lapsed),
  no_session: fails(lapsed),
  no_permission: fails(unpermitted),
  permission_of_scope: fails(unpermitted),
  no_capability: fails(['permission', 'content_rejected', 'service', false]),
  user_restricted: fails(['permission', 'account_not_permitted', 'user', true]),
  // Threads was seen to say so of a post that was out.
  action_blocked: ['rate_limited', 'unknown', limited],
  app_limited: waits(ofApp),
  user_limited: waits(limited),
  page_limited: waits(limited),
  calls_limited: waits(limited),
  too_many_requests: waits(limited),
  posts_limited: waits(limited),
  media_not_found: ['deferred', 'nothing_sent', later],
  not_there: ['deferred', 'nothing_sent', later],
  object_missing: fails(content),
  children_invalid: fails(media),
  media_not_fetched: fails(media),
  text_too_long: fails(content),
  links_exceeded: fails(content),
  feature_missing: fails(content),
  demographics_missing: fails(content),
  unknown_error: open,
  service_down: open,
  transient: open,
  internal: open,
  bad_gateway: open,
  unavailable: open,
};

const calls = ['POST /:id/threads', 'POST /:id/threads_publish'] as const;

suite('errors of threads', (t) => {
  let world: ThreadsWorld;
  // Each has an app of its own, since some of the errors rest it.
  t.before.each(async () => {
    world = await threadsWorld();
  });
  t.after.each(() => world.close());

  for (const [name, [first, second, meaning]] of Object.entries(table) as [ProblemName, Row][]) {
    t(`${name}: ${first} before the boundary, ${second} behind it, ${meaning[0]}`, async () => {
      for (const [place, route] of calls.entries()) {
        const says = randomUUID();
        // What may pass is met by three containers.
        world.network.script({ route, says, times: place === 0 ? 3 : 1, then: { answer: problems[name] } });
        // An app that does not rest yet.
        const adapter = world.open({ appLimits: new MemoryAppLimits() });
        const request = world.request(await world.account(), { content: says });
        const { outcome } = await world.publish(request, adapter);
        assert.equal(outcome.kind, place === 0 ? first : second, JSON.stringify(outcome));
        assert.ok('failure' in outcome);
        assert.notEqual(outcome.failure.message, '');
        assert.equal(world.network.state.posts.length, 0);
        if (place === 1) continue;
        const { category, code, actor, retryable } = outcome.failure;
        assert.deepEqual([category, code, actor, retryable], meaning);
      }
    });
  }

  t('what the simulated Threads refuses of its own accord means the same', async () => {
    const account = await world.account();
    const said = async (over: Parameters<ThreadsWorld['request']>[1]) => {
      const { outcome } = await world.publish(world.request(account, over));
      return 'failure' in outcome ? outcome.failure.category : outcome.kind;
    };
    assert.equal(await said({ content: 'ä'.repeat(500) }), 'published');
    assert.equal(await said({ content: 'ä'.repeat(501) }), 'invalid_content');
    assert.equal(await said({ content: '👩‍👩‍👧‍👦'.repeat(20) }), 'published');
    assert.equal(await said({ content: '👩‍👩‍👧‍👦'.repeat(21) }), 'invalid_content');
    const links = Array.from({ length: 6 }, (_, place) => `https://example.com/${place}`);
    assert.equal(await said({ content: links.slice(1).join(' ') }), 'published');
    assert.equal(await said({ content: links.join(' ') }), 'invalid_content');
    const scopes = ['threads_basic'];
    const { outcome } = await world.publish(world.request(await world.account(undefined, scopes)));
    assert.ok(outcome.kind === 'failed');
    assert.deepEqual([outcome.failure.category, outcome.failure.code], ['permission', 'reauth_required']);
  });

  t('an action that Threads takes for spam is not tried again within a day', async () => {
    world.network.script({ route: calls[0], then: { answer: problems.action_blocked } });
    const { outcome } = await world.publish(world.request(await world.account()));
    assert.ok(outcome.kind === 'rate_limited');
    const left = Date.parse(outcome.retryAt) - world.network.state.now();
    assert.ok(left > 86_300_000 && left <= 86_400_000, String(left));
  });

  t('a post that is not there after all, since its action was blocked, is not tried again within a day', async () => {
    world.network.script({ route: calls[1], then: { answer: problems.action_blocked } });
    const request = world.request(await world.account());
    const { outcome, steps } = await world.publish(request);
    assert.ok(outcome.kind === 'unknown' && outcome.retryAt !== undefined, JSON.stringify(outcome));
    const left = Date.parse(outcome.retryAt) - world.network.state.now();
    assert.ok(left > 86_300_000 && left <= 86_400_000, String(left));
    const crossed = steps.checkpoints.find(({ step }) => step === 'boundary');
    assert.ok(crossed !== undefined);
    // The container was finished, and nothing of it is out.
    assert.deepEqual(await world.adapter.reconcile({ ...request, checkpoints: steps.checkpoints }, crossed), {
      kind: 'absent',
    });
  });
});
