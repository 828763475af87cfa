/** What each error that Pinterest can answer means for a pin. */
import assert from 'node:assert/strict';
import { type ProblemName, problems } from '#test/support/networks/pinterest/index.ts';
import {
  type HeldFiles,
  heldFiles,
  type PinterestWorld,
  pinterestWorld,
} from '#test/support/networks/pinterest/world.ts';
import { suite } from '#test/support/suite.ts';

/** Outcome, category, code, who acts, whether trying again can help. */
type Row = readonly [string, string, string, string, boolean];

const content = ['failed', 'invalid_content', 'content_rejected', 'user', false] as const;
const media = ['failed', 'media', 'content_rejected', 'user', false] as const;
const permission = ['failed', 'permission', 'content_rejected', 'user', false] as const;
const ofApp = ['failed', 'permission', 'content_rejected', 'service', false] as const;
const lapsed = ['failed', 'reauth_required', 'reauth_required', 'user', true] as const;
const unpermitted = ['failed', 'permission', 'reauth_required', 'user', true] as const;
const later = ['nothing_sent', 'transient', 'network_down', 'platform', true] as const;
const unknown = ['unknown', 'unknown', 'outcome_unknown', 'platform', false] as const;

const table: Readonly<Record<ProblemName, Row>> = {
  unauthorized: lapsed,
  authorization_failed: lapsed,
  scope_missing: unpermitted,
  restricted_feature: ofApp,
  trial_access: ofApp,
  not_permitted: permission,
  forbidden: permission,
  board_not_found: content,
  board_not_found_by_status: content,
  pin_not_found: content,
  pin_not_found_by_status: content,
  media_not_found: content,
  too_many_requests: ['rate_limited', 'rate_limited', 'network_rate_limited', 'platform', true],
  invalid: content,
  image_unreachable: later,
  url_unreachable: later,
  ratios: media,
  image_format: media,
  image_small: media,
  media_not_ready: later,
  media_failed: content,
  link_blocked: content,
  site_refuses: content,
  conflict: content,
  timeout: unknown,
  internal: unknown,
  bad_gateway: unknown,
  unavailable: unknown,
  gateway_timeout: unknown,
};

suite('errors of pinterest', (t) => {
  let world: PinterestWorld;
  let files: HeldFiles;
  t.before(() => {
    files = heldFiles();
  });
  t.after(() => files.remove());
  t.before.each(async () => {
    world = await pinterestWorld();
  });
  t.after.each(() => world.network.close());

  for (const [name, row] of Object.entries(table) as [ProblemName, Row][]) {
    t(`${name}: ${row.slice(0, 3).join(', ')}`, async () => {
      const request = world.request(await world.account(), { media: [files.picture()] });
      world.network.script({ route: 'POST /v5/pins', times: 2, then: { answer: problems[name] } });
      const { outcome } = await world.publish(request);
      assert.ok('failure' in outcome);
      const { category, code, actor, retryable, message, platformMessage } = outcome.failure;
      assert.deepEqual([outcome.kind, category, code, actor, retryable], row);
      assert.notEqual(message, '');
      const { message: said } = problems[name].body as { readonly message?: string };
      if (said !== undefined) assert.ok(platformMessage?.includes(said), 'the words of Pinterest are kept');
      const creates = world.network.state.creates.length;
      assert.equal(creates, row === lapsed ? 2 : 1, 'a call after the end of a token alone is repeated');
      assert.equal(world.network.state.pins.length, 0);
    });
  }

  t('what the simulated Pinterest refuses of its own accord means the same', async () => {
    const account = await world.account();
    const own = world.boardOf(account);
    const theirs = world.network.board(world.network.person());
    const said = async (over: Parameters<PinterestWorld['request']>[1]) => {
      const { outcome } = await world.publish(world.request(account, { media: [files.picture()], ...over }));
      return 'failure' in outcome ? `${outcome.kind} ${outcome.failure.category}` : outcome.kind;
    };
    assert.equal(await said({}), 'published');
    assert.equal(await said({}), 'published', 'Pinterest takes a pin twice');
    assert.equal(await said({ overrides: { boardId: '1' } }), 'failed invalid_content');
    assert.equal(await said({ overrides: { boardId: theirs.id } }), 'failed permission');
    assert.equal(await said({ overrides: { boardId: own.id, title: 'ä'.repeat(101) } }), 'failed invalid_content');
    assert.equal(await said({ content: '☕'.repeat(800) }), 'published');
    assert.equal(await said({ content: '☕'.repeat(801) }), 'failed invalid_content');
    assert.equal(await said({ media: [files.picture({}, [199, 800])] }), 'failed media');
    assert.equal(await said({ media: [files.picture(), files.picture({}, [900, 900])] }), 'failed media');
    const six = Array.from({ length: 6 }, () => files.picture());
    assert.equal(await said({ media: six }), 'failed invalid_content');
  });

  t('what is no pin is refused before anything is sent', async () => {
    const account = await world.account();
    for (const over of [
      { media: [files.picture()], overrides: {} },
      { media: [files.picture()], overrides: { boardId: '12/../13' } },
      { media: [] },
    ]) {
      const { outcome, steps } = await world.publish(world.request(account, over));
      assert.ok(outcome.kind === 'failed');
      assert.equal(outcome.failure.category, 'invalid_content');
      assert.deepEqual(steps.log, []);
    }
    assert.deepEqual(world.network.state.calls, []);
  });

  t('a token without a scope asks the owner for a new consent, with the words of Pinterest', async () => {
    const scopes = ['user_accounts:read', 'boards:read', 'pins:read'];
    const account = await world.account(undefined, scopes);
    const { outcome } = await world.publish(world.request(account, { media: [files.picture()] }));
    assert.ok(outcome.kind === 'failed');
    assert.deepEqual([outcome.failure.category, outcome.failure.code], ['permission', 'reauth_required']);
    assert.match(outcome.failure.platformMessage ?? '', /sufficient permissions/);
  });

  t('an app with trial access is told to the operator; one whose pins its creator alone sees publishes', async () => {
    for (const trialRefuses of [true, false]) {
      const trial = await pinterestWorld({ tier: 'trial', trialRefuses });
      const { outcome } = await trial.publish(trial.request(await trial.account(), { media: [files.picture()] }));
      if (trialRefuses) {
        assert.ok(outcome.kind === 'failed');
        assert.deepEqual([outcome.failure.category, outcome.failure.actor], ['permission', 'service']);
        assert.match(outcome.failure.platformMessage ?? '', /Trial access.*Sandbox/);
      } else assert.equal(outcome.kind, 'published');
      trial.network.close();
    }
  });
});
