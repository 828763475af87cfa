/** What each error that YouTube can answer means at the beginning of an upload, at its last byte, and for a comment. */
import assert from 'node:assert/strict';
import { type ProblemName, problems } from '#test/support/networks/youtube/index.ts';
import { type YouTubeWorld, youtubeWorld } from '#test/support/networks/youtube/world.ts';
import { suite } from '#test/support/suite.ts';

/** Outcome, category, code, who acts, whether trying again can help. */
type Row = readonly [string, string, string, string, boolean];

const content = ['failed', 'invalid_content', 'content_rejected', 'user', false] as const;
const permission = ['failed', 'permission', 'content_rejected', 'user', false] as const;
const forbidden = ['failed', 'permission', 'account_not_permitted', 'user', true] as const;
const unpermitted = ['failed', 'permission', 'reauth_required', 'user', true] as const;
const lapsed = ['failed', 'reauth_required', 'reauth_required', 'user', true] as const;
const limited = ['rate_limited', 'rate_limited', 'network_rate_limited', 'platform', true] as const;
const noComment = ['failed', 'permission', 'comment_not_permitted', 'user', false] as const;
const down = ['deferred', 'platform_down', 'network_down', 'platform', true] as const;
const later = ['deferred', 'transient', 'network_down', 'platform', true] as const;
const ours = ['deferred', 'transient', 'network_down', 'service', true] as const;
const unknown = ['unknown', 'unknown', 'outcome_unknown', 'platform', false] as const;
const nothing = ['nothing_sent', 'transient', 'network_down', 'platform', true] as const;

/** At the beginning of an upload, which makes nothing. */
const table: Readonly<Record<ProblemName, Row>> = {
  auth_error: lapsed,
  no_channel: unpermitted,
  no_scope: unpermitted,
  quota: limited,
  daily_limit: limited,
  rate: limited,
  user_rate: limited,
  upload_limit: limited,
  thumbnail_limit: limited,
  invalid_title: content,
  invalid_description: content,
  invalid_tags: content,
  invalid_category: content,
  invalid_publish_at: content,
  forbidden_privacy: permission,
  forbidden,
  suspended: forbidden,
  not_configured: ours,
  comments_disabled: noComment,
  comment_too_long: content,
  comment_not_processed: later,
  invalid_image: content,
  thumbnail_forbidden: forbidden,
  not_found: content,
  no_report: content,
  internal: down,
  unavailable: down,
  gateway_timeout: down,
  session_gone: content,
};

/** At the last byte: an error of a server may hide a video, and so may one in words that are none of YouTube’s. */
const atLast: Readonly<Partial<Record<ProblemName, Row>>> = {
  ...{ internal: unknown, unavailable: unknown, gateway_timeout: unknown },
  // The session took no byte of it.
  ...{ session_gone: nothing, not_found: nothing, comment_not_processed: nothing },
  not_configured: ['nothing_sent', 'transient', 'network_down', 'service', true],
};

/** At a comment: YouTube has one word for what the channel and what the owner does not allow. */
const atComment: Readonly<Partial<Record<ProblemName, Row>>> = {
  ...{ internal: unknown, unavailable: unknown, gateway_timeout: unknown },
  ...{ no_scope: noComment, forbidden: noComment, suspended: noComment, forbidden_privacy: noComment },
  ...{ thumbnail_forbidden: noComment, session_gone: unknown },
};

const rowOf = (outcome: object): Row => {
  assert.ok('kind' in outcome && 'failure' in outcome, JSON.stringify(outcome));
  const { category, code, actor, retryable } = outcome.failure as Record<string, string> & { retryable: boolean };
  return [String(outcome.kind), String(category), String(code), String(actor), retryable];
};

suite('errors of youtube', { timeoutMs: 120_000 }, (t) => {
  let world: YouTubeWorld;
  t.before(async () => {
    world = await youtubeWorld({ quota: { inserts: 10_000, units: 100_000 } });
  });
  t.after(() => world.close());

  let apps = 0;
  /** Each has an app of its own, since some of the errors rest it. */
  const adapterOf = (name: ProblemName) => {
    // A new token is asked for with the app's own name.
    if (problems[name].status === 401) return world.adapter;
    apps += 1;
    return world.again({ YOUTUBE_CLIENT_ID: `app-${apps}` }).adapter;
  };
  const names = Object.keys(problems) as ProblemName[];
  const times = (name: ProblemName) => (name === 'auth_error' ? 2 : 1);

  t('each means one thing at the beginning of an upload, and makes nothing', async () => {
    for (const name of names) {
      const account = await world.account();
      world.network.script({
        route: 'POST /upload/youtube/v3/videos',
        times: times(name),
        then: { answer: problems[name] },
      });
      const { outcome, steps } = await world.publish(world.request(account), adapterOf(name));
      assert.deepEqual(rowOf(outcome), table[name], name);
      assert.ok(!steps.log.includes('boundary'), name);
    }
    assert.deepEqual(world.network.state.videos, []);
  });

  t('each means the same at the last byte, except where it may hide a video', async () => {
    for (const name of names) {
      const account = await world.account();
      world.network.script({ route: 'PUT last', times: times(name), then: { answer: problems[name] } });
      const { outcome } = await world.publish(world.request(account), adapterOf(name));
      assert.deepEqual(rowOf(outcome), atLast[name] ?? table[name], name);
    }
  });

  t('each means one thing for a comment, of which YouTube has a few more refusals', async () => {
    const account = await world.account();
    const asked = world.request(account);
    const { outcome } = await world.publish(asked);
    assert.ok(outcome.kind === 'published');
    const comment = { targetId: asked.targetId, platform: 'youtube', account, content: 'Hi' } as const;
    for (const name of names) {
      const route = 'POST /youtube/v3/commentThreads';
      world.network.script({ route, times: times(name), then: { answer: problems[name] } });
      const { externalId } = outcome;
      const said = await adapterOf(name).comment({ ...comment, externalId }, AbortSignal.timeout(5_000));
      assert.deepEqual(rowOf(said), atComment[name] ?? table[name], name);
    }
  });

  t('a limit of the project names midnight in California, and one of a channel the same time tomorrow', async () => {
    const account = await world.account();
    const dayMs = 86_400_000;
    for (const [name, at] of [
      ['quota', null],
      ['upload_limit', dayMs],
    ] as const) {
      world.network.script({ route: 'POST /upload/youtube/v3/videos', then: { answer: problems[name] } });
      const { outcome } = await world.publish(world.request(account), adapterOf(name));
      assert.ok(outcome.kind === 'rate_limited');
      const ms = Date.parse(outcome.retryAt) - world.network.state.now();
      if (at === null)
        assert.match(
          new Date(outcome.retryAt).toLocaleTimeString('en-GB', { timeZone: 'America/Los_Angeles' }),
          /^00:00:00/,
        );
      else assert.ok(Math.abs(ms - at) < 10_000, String(ms));
    }
  });
});
