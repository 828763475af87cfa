/** What is TikTok's own: the plan of a file's parts, creator info, what it accepts, and what is known where an answer is lost. */
import assert from 'node:assert/strict';
import type { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { PublishOutcome, PublishRequest } from '#contracts/ports/platform.ts';
import { planOf } from '#infra/platforms/tiktok/media.ts';
import { problems } from '#test/support/networks/tiktok/index.ts';
import { type TikTokWorld, tiktokWorld } from '#test/support/networks/tiktok/world.ts';
import { suite } from '#test/support/suite.ts';

const [init, part, photos] = [
  ...['POST /v2/post/publish/video/init/', 'PUT /video/', 'POST /v2/post/publish/content/init/'],
] as [string, string, string];
const status = 'POST /v2/post/publish/status/fetch/';

const next = (request: PublishRequest, { checkpoints }: RecordedSteps): PublishRequest => ({
  ...request,
  attempt: request.attempt + 1,
  checkpoints,
});
const is = <K extends PublishOutcome['kind']>(outcome: PublishOutcome, kind: K) => {
  assert.equal(outcome.kind, kind, JSON.stringify(outcome));
  return outcome as Extract<PublishOutcome, { kind: K }>;
};

suite('posts on tiktok', (t) => {
  let world: TikTokWorld;
  t.before.each(async () => {
    world = await tiktokWorld();
  });
  t.after.each(() => world.close());

  const callsTo = (path: string) =>
    world.network.state.calls.filter((one) => `${one.method} ${one.path}` === path).length;
  const reconcile = (
    request: PublishRequest,
    steps: RecordedSteps,
    handle?: Parameters<typeof world.adapter.reconcile>[2],
  ) => world.adapter.reconcile(next(request, steps), steps.crossed, handle);

  t(
    '17: the plan of parts at 5, 10, 15, 19.99, 20, 64, 66.26, 77.36 and 4,000 MB is one that TikTok takes',
    async () => {
      const plans = [1, 5e6, 10e6, 15e6, 19_999_999, 20e6, 64e6, 66_260_000, 77_360_000, 4e9].map((bytes) =>
        planOf(bytes),
      );
      assert.deepEqual(
        plans.map(({ part: size, count }) => [size, count]),
        [
          ...[[1, 1] as const, [5e6, 1] as const, [10e6, 1] as const, [15e6, 1] as const, [19_999_999, 1] as const],
          ...[[10e6, 2] as const, [10e6, 6] as const, [10e6, 6] as const, [10e6, 7] as const, [10e6, 400] as const],
        ],
      );
      // The simulated network holds each against the documents, and takes the parts themselves in their order alone.
      const account = await world.account();
      for (const bytes of [5_000_000, 15_000_000, 20_000_000, 66_260_000]) {
        const request = world.request(account, { media: [world.files.video({}, bytes)] });
        is((await world.publish(request)).outcome, 'published');
        const upload = world.network.state.posts.at(-1)?.upload;
        assert.deepEqual([upload?.received, upload?.arrived], [bytes, bytes]);
      }
    },
  );

  t('16: an id beyond 2^53 arrives as it is written', async () => {
    const overrides = { privacyLevel: 'PUBLIC_TO_EVERYONE' };
    const { externalId, permalink } = is(
      (await world.publish(world.request(await world.account(), { overrides }))).outcome,
      'published',
    );
    const [post] = world.network.state.posts;
    assert.ok(post !== undefined && !Number.isSafeInteger(Number(post.postId)));
    assert.equal(externalId, post.postId);
    assert.match(String(permalink), new RegExp(`^https://www\\.tiktok\\.com/@user_\\d+/video/${post.postId}$`));
  });

  t(
    '19: what TikTok still works on is accepted and asked for, however long, and never published a second time',
    async () => {
      world.network.state.lookMs = 7_200_000;
      const request = world.request(await world.account());
      const { outcome, steps } = await world.publish(request);
      const { handle, askAt } = is(outcome, 'accepted');
      assert.ok(Date.parse(askAt) - world.network.state.now() < 6_000);
      world.network.state.advance(3_600_000);
      const seen = await reconcile(request, steps, handle);
      assert.ok(seen.kind === 'processing');
      const rest = Date.parse(seen.askAt) - world.network.state.now();
      assert.ok(rest > 50_000 && rest <= 60_000, 'it is asked less often as time goes by');
      world.network.state.advance(3_600_001);
      assert.equal((await reconcile(request, steps, handle)).kind, 'present');
      assert.deepEqual([callsTo(init), callsTo(part), world.network.state.posts.length], [1, 1, 1]);
      assert.ok((world.adapter.processingLimitMs?.('tiktok') ?? 0) > 86_400_000);
    },
  );

  t(
    'a private post has no id that the public sees: it is published all the same, by the id of its upload',
    async () => {
      const request = world.request(await world.account());
      const { outcome, steps } = await world.publish(request);
      const { externalId, permalink } = is(outcome, 'published');
      assert.deepEqual([externalId, permalink], [world.network.state.posts[0]?.publishId, null]);
      const seen = await reconcile(request, steps);
      assert.ok(seen.kind === 'present' && seen.externalId === externalId);
    },
  );

  t(
    'creator info is asked right before the post: what the account has off is off, whatever the post asks for',
    async () => {
      const person = world.network.person({ noComment: true, noDuet: true });
      const account = await world.account(person);
      is((await world.publish(world.request(account))).outcome, 'published');
      person.noDuet = false;
      person.noStitch = true;
      is((await world.publish(world.request(account, { media: [world.files.picture()] }))).outcome, 'published');
      is((await world.publish(world.request(account))).outcome, 'published');
      const infos = world.network.state.posts.map(({ info }) => [
        info.disable_comment,
        info.disable_duet,
        info.disable_stitch,
      ]);
      assert.deepEqual(infos, [
        [true, true, false],
        [true, undefined, undefined],
        [true, false, true],
      ]);
    },
  );

  t('no byte is sent of what the account may not post now, and no privacy is chosen for its owner', async () => {
    const account = await world.account(world.network.person({ maxSeconds: 60 }));
    const said = async (over: Partial<PublishRequest>) =>
      is((await world.publish(world.request(account, over))).outcome, 'failed').failure;
    const level = await said({ overrides: { privacyLevel: 'FOLLOWER_OF_CREATOR' } });
    assert.match(
      level.platformMessage ?? '',
      /FOLLOWER_OF_CREATOR; .*PUBLIC_TO_EVERYONE, MUTUAL_FOLLOW_FRIENDS, SELF_ONLY$/,
    );
    assert.match((await said({ overrides: { privacyLevel: '' } })).platformMessage ?? '', /is not set/);
    const video = world.files.video({ durationMs: 61_000 });
    const long = await said({ media: [video] });
    assert.deepEqual([long.category, long.mediaId], ['media', video.mediaId]);
    assert.match((await said({ overrides: { brandedContent: true } })).platformMessage ?? '', /cannot be private/);
    assert.match((await said({ media: [] })).platformMessage ?? '', /needs a video or pictures/);
    assert.deepEqual([callsTo(init), callsTo(photos), world.network.state.posts.length], [0, 0, 0]);
  });

  t(
    'a part that is sent twice, or comes out of its order, is found out by the status, and the file goes on',
    async () => {
      const request = world.request(await world.account(), { media: [world.files.video({}, 45_000_000)] });
      world.network.script({ route: part, then: 'drop_after' });
      const { outcome, steps } = await world.publish(request);
      is(outcome, 'deferred');
      is((await world.publish(next(request, steps))).outcome, 'published');
      const upload = world.network.state.posts[0]?.upload;
      assert.deepEqual([callsTo(init), upload?.arrived], [1, 45_000_000], 'what arrived is not sent again');
    },
  );

  t('an address that has ended begins the file anew, and only before its last byte', async () => {
    const request = world.request(await world.account(), { media: [world.files.video({}, 45_000_000)] });
    world.network.script({ route: part, then: { answer: { status: 403, body: '' } } });
    const { outcome, steps } = await world.publish(request);
    is(outcome, 'deferred');
    is((await world.publish(next(request, steps))).outcome, 'published');
    assert.deepEqual(
      [callsTo(init), world.network.state.posts.filter(({ takenAt }) => takenAt !== null).length],
      [2, 1],
    );
  });

  t(
    'an upload that TikTok has ended is begun anew by the next attempt; a question without an answer ends none',
    async () => {
      const request = world.request(await world.account(), { media: [world.files.video({}, 45_000_000)] });
      world.network.script({ route: part, then: 'drop_before' });
      const first = await world.publish(request);
      is(first.outcome, 'deferred');
      world.network.script({ route: status, then: 'drop_before' });
      const second = await world.publish(next(request, first.steps));
      is(second.outcome, 'deferred');
      const body = { data: { status: 'FAILED', fail_reason: 'internal' }, error: { code: 'ok' } };
      world.network.script({ route: status, then: { answer: { status: 200, body } } });
      const third = await world.publish(next(request, second.steps));
      is(third.outcome, 'deferred');
      assert.equal(callsTo(init), 1);
      is((await world.publish(next(request, third.steps))).outcome, 'published');
      assert.equal(callsTo(init), 2);
    },
  );

  t('a last part without an answer: the status says that it came, or that it did not, which is proof', async () => {
    const request = world.request(await world.account(), { media: [world.files.video({}, 25_000_000)] });
    const isLast = { run: () => world.network.script({ route: part, then: 'drop_before' }) };
    world.network.script({ route: part, then: isLast });
    const { outcome, steps } = await world.publish(request);
    is(outcome, 'unknown');
    assert.equal((await reconcile(request, steps)).kind, 'absent');
    assert.equal(world.adapter.absenceIsProof('tiktok', request.account), true);
    // Whoever has not the file at hand, or another one, proves nothing by its size.
    for (const media of [[], [world.files.video({}, 90_000_000)]]) {
      assert.equal((await reconcile({ ...request, media }, steps)).kind, 'undecided');
    }
    world.network.script({ route: status, then: { answer: problems.internal_error } });
    assert.equal((await reconcile(request, steps)).kind, 'undecided');
  });

  t('a last part that TikTok has already, or does not want, is what the status says of it', async () => {
    const request = world.request(await world.account());
    world.network.state.lookMs = 600_000;
    world.network.script({ route: part, then: 'drop_after' });
    const { outcome, steps } = await world.publish(request);
    is(outcome, 'unknown');
    is((await world.publish(next(request, steps))).outcome, 'accepted');
    assert.deepEqual([world.network.state.posts.length, callsTo(init)], [1, 1]);
    const other = world.request(await world.account());
    world.network.script({ route: part, then: { answer: { status: 416, body: '' } } });
    is((await world.publish(other)).outcome, 'unknown');
  });

  t('what TikTok refuses after it has looked at it says why, and whose doing it is', async () => {
    const account = await world.account();
    const ended = async (failReason: string) => {
      world.network.state.marked.set(failReason, { ms: 0, failReason });
      const { outcome } = await world.publish(world.request(account, { content: failReason }));
      const { category, actor, retryable, mediaId, platformCode } = is(outcome, 'failed').failure;
      assert.equal(platformCode, failReason);
      return [category, actor, retryable, mediaId !== null];
    };
    assert.deepEqual(await ended('picture_size_check_failed'), ['media', 'user', false, true]);
    assert.deepEqual(await ended('video_pull_failed'), ['transient', 'platform', true, false]);
    assert.deepEqual(await ended('internal'), ['platform_down', 'platform', true, false]);
    assert.deepEqual(await ended('auth_removed'), ['reauth_required', 'user', true, false]);
    assert.deepEqual(await ended('spam_risk_too_many_posts'), ['rate_limited', 'platform', true, false]);
    assert.deepEqual(await ended('spam_risk_user_banned_from_posting'), ['permission', 'user', true, false]);
    assert.deepEqual(await ended('spam_risk_text'), ['invalid_content', 'user', false, false]);
    assert.deepEqual(await ended('something_new'), ['invalid_content', 'user', false, false]);
  });

  t('pictures whose answer is lost are found among the public posts; what is not there proves nothing', async () => {
    const account = await world.account();
    for (const [privacyLevel, fault, kind] of [
      ['PUBLIC_TO_EVERYONE', 'drop_after', 'present'],
      ['PUBLIC_TO_EVERYONE', 'drop_before', 'undecided'],
      ['SELF_ONLY', 'drop_after', 'undecided'],
    ] as const) {
      const media = [world.files.picture(), world.files.picture()];
      const request = world.request(account, {
        content: `${privacyLevel} ${fault}`,
        media,
        overrides: { privacyLevel },
      });
      world.network.script({ route: photos, then: fault });
      const { outcome, steps } = await world.publish(request);
      is(outcome, 'unknown');
      assert.equal((await reconcile(request, steps)).kind, kind);
    }
    assert.equal(callsTo(photos), 2);
  });

  t('an address of pictures that leads nowhere is refused by TikTok itself, and may be tried again', async () => {
    const gone = world.files.picture();
    world.network.state.web.clear();
    const { failure } = is(
      (await world.publish(world.request(await world.account(), { media: [gone] }))).outcome,
      'failed',
    );
    assert.deepEqual([failure.platformCode, failure.retryable], ['photo_pull_failed', true]);
  });
});
