/** What Facebook alone does: ways of a post, drafts, uploads that died, stories, lists, and ways that closed to new apps. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { Json, PublishRequest } from '#contracts/ports/platform.ts';
import { tables } from '#infra/platforms/facebook/tables.ts';
import { closedToNewApps, graphVersion } from '#infra/platforms/meta/graph.ts';
import { allScopes, problems } from '#test/support/networks/facebook/index.ts';
import { type FacebookAccount, type FacebookWorld, facebookWorld } from '#test/support/networks/facebook/world.ts';
import { suite } from '#test/support/suite.ts';

const within = () => AbortSignal.timeout(5_000);
const MiB = 1_024 * 1_024;

/** Dies once it has stored one step. */
class Dying extends RecordedSteps {
  override async checkpoint(step: string, data: Json): Promise<void> {
    await super.checkpoint(step, data);
    throw new Error('killed');
  }
}

suite('facebook', { timeoutMs: 90_000 }, (t) => {
  let world: FacebookWorld;
  let account: FacebookAccount;
  t.before.each(async () => {
    world = await facebookWorld();
    account = await world.account();
  });
  t.after.each(() => world.close());

  const made = () => world.network.state.made;
  const request = (over: Partial<PublishRequest> = {}) => world.request(account, { content: randomUUID(), ...over });
  const calls = (method: string, end: string) =>
    world.network.state.calls.filter((one) => one.method === method && one.path.endsWith(end));
  /** Another worker goes on with what an earlier one recorded. */
  const again = async (asked: PublishRequest, { checkpoints }: RecordedSteps) => {
    const steps = new RecordedSteps({ ...asked, attempt: 2, checkpoints }, world.adapter.boundaryDeadlineMs);
    return { outcome: await world.adapter.publish({ ...asked, attempt: 2, checkpoints }, steps), steps };
  };

  t('photos go out in one post in their order, with texts for people who do not see them', async () => {
    const media = [world.photo({ altText: 'A cup' }), world.photo(), world.photo({ altText: 'Ä saucer' })];
    const { outcome } = await world.publish(request({ media }));
    assert.ok(outcome.kind === 'published');
    const [one, ...others] = made();
    assert.ok(one !== undefined && others.length === 0);
    assert.deepEqual(
      one.files.map((file) => (file.kind === 'photo' ? file.altText : '')),
      ['A cup', null, 'Ä saucer'],
    );
    assert.equal(outcome.permalink, `https://www.facebook.com/${account.externalId}/posts/${one.id}`);
  });

  t('a permalink that cannot be read leaves the post published', async () => {
    world.network.script({ route: 'GET /:id', then: { answer: problems.internal } });
    const { outcome } = await world.publish(request());
    assert.ok(outcome.kind === 'published');
    assert.equal(outcome.permalink, `https://www.facebook.com/${outcome.externalId}`);
  });

  t('a worker that died after its photos uses them again, and none is taken twice', async () => {
    const asked = request({ media: [world.photo(), world.photo()] });
    world.network.script({ route: 'POST /:id/feed', then: { answer: problems.fetch_failed } });
    const first = await world.publish(asked);
    assert.equal(first.outcome.kind, 'nothing_sent');
    const { outcome } = await again(asked, first.steps);
    assert.equal(outcome.kind, 'published');
    assert.equal(world.network.state.photos.size, 2);
  });

  t('a photo whose text for people who do not see it was changed is taken anew', async () => {
    const asked = request({ media: [world.photo({ altText: 'A cup' })] });
    world.network.script({ route: 'POST /:id/feed', then: { answer: problems.fetch_failed } });
    const { steps } = await world.publish(asked);
    const [photo] = asked.media;
    assert.ok(photo !== undefined);
    assert.equal((await again({ ...asked, media: [{ ...photo, altText: 'A mug' }] }, steps)).outcome.kind, 'published');
    const [file] = made()[0]?.files ?? [];
    assert.equal(file?.kind === 'photo' ? file.altText : '', 'A mug');
  });

  t('a video in parts goes on where Facebook says that an earlier worker stopped', async () => {
    const asked = request({ media: [world.video(3 * MiB + 7)] });
    world.network.script({ route: 'POST /:id/videos transfer', then: 'drop_after' });
    const first = await world.publish(asked);
    assert.equal(first.outcome.kind, 'deferred');
    const { outcome } = await again(asked, first.steps);
    assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
    assert.equal(calls('POST', '/videos').filter(({ params }) => params.upload_phase === 'start').length, 1);
    assert.equal([...world.network.state.videos.values()][0]?.got, 3 * MiB + 7);
  });

  t('a worker that dies after each step of an upload begins no video anew, and one post is out', async () => {
    const { state } = world.network;
    const starts = () => state.calls.filter(({ params }) => params.upload_phase === 'start').length;
    const ways = [
      ['videos', { media: [world.video(5 * MiB + 7)] }],
      ['video_reels', { media: [world.reel()], overrides: { contentType: 'reel' } }],
      ['video_stories', { media: [world.reel(1_000, { use: 'story' })], overrides: { contentType: 'story' } }],
    ] as const;
    for (const [way, over] of ways) {
      const [before, out] = [starts(), state.videos.size];
      let asked = request(over);
      let deaths = 0;
      for (;;) {
        const steps = new Dying(asked, world.adapter.boundaryDeadlineMs);
        const outcome = await world.adapter.publish(asked, steps).catch(() => null);
        if (outcome !== null) {
          assert.ok(['published', 'accepted'].includes(outcome.kind), JSON.stringify(outcome));
          break;
        }
        deaths += 1;
        assert.ok(deaths < 20, way);
        asked = { ...asked, attempt: asked.attempt + 1, checkpoints: steps.checkpoints };
      }
      assert.ok(deaths >= (way === 'videos' ? 3 : 1), `${way}: ${deaths} deaths`);
      assert.deepEqual([starts() - before, state.videos.size - out], [1, 1], way);
    }
  });

  t('a reel whose bytes arrived before its worker died is not sent again', async () => {
    const asked = request({ media: [world.reel(500_000)], overrides: { contentType: 'reel' } });
    world.network.script({ route: 'POST /video-upload/:id', then: 'drop_after' });
    const first = await world.publish(asked);
    assert.equal(first.outcome.kind, 'deferred');
    assert.equal((await again(asked, first.steps)).outcome.kind, 'published');
    assert.equal(world.network.state.calls.filter(({ path }) => path.startsWith('/rupload/')).length, 1);
    assert.equal(made().length, 1);
  });

  t('11: a video that Facebook keeps as a draft is not published, and its owner is told', async () => {
    world.network.fate({ says: 'a draft', then: 'draft', ms: 0 });
    const { outcome } = await world.publish(request({ content: 'a draft', media: [world.video()] }));
    assert.ok(outcome.kind === 'failed', JSON.stringify(outcome));
    assert.match(outcome.failure.platformMessage ?? '', /keeps the video as a draft/);
    const later = request({ content: 'a draft later', media: [world.video()] });
    world.network.state.fates[0] = { says: 'a draft', then: 'draft', ms: 2_000 };
    const { outcome: accepted, steps } = await world.publish(later);
    assert.ok(accepted.kind === 'accepted');
    world.network.state.advance(3_000);
    assert.equal((await world.adapter.reconcile(later, steps.crossed, accepted.handle)).kind, 'failed');
  });

  t(
    '11: a vertical video of the feed goes the way of reels, one that is too long for them that of videos',
    async () => {
      for (const [over, edge] of [
        [{}, 'video_reels'],
        [{ durationMs: 91_000 }, 'videos'],
        [{ durationMs: 2_000 }, 'videos'],
        [{ width: 1_080, height: 1_080 }, 'videos'],
      ] as const) {
        const { outcome } = await world.publish(request({ media: [world.reel(1_000, over)] }));
        assert.equal(outcome.kind, 'published');
        const [file] = made().at(-1)?.files ?? [];
        assert.equal(file?.kind === 'video' ? file.edge : '', edge);
      }
    },
  );

  t('12: bytes go to the address that Facebook names and never to the node; the token to no other host', async () => {
    const { outcome } = await world.publish(request({ media: [world.reel()] }));
    assert.equal(outcome.kind, 'published');
    assert.ok(calls('POST', '/video_reels').every(({ params }) => params.upload_phase !== 'transfer'));
    const stranger = { video_id: '12345', upload_url: 'https://rupload.example.com/video-upload/v27.0/12345' };
    world.network.script({ route: 'POST /:id/video_reels start', then: { answer: { status: 200, body: stranger } } });
    const before = world.http.calls.length;
    assert.equal((await world.publish(request({ media: [world.reel()] }))).outcome.kind, 'deferred');
    assert.ok(world.http.calls.slice(before).every(({ url }) => !url.includes('rupload.example.com')));
  });

  t('a finish whose answer was lost, and that never arrived, is made once more for the same video', async () => {
    const asked = request({ media: [world.reel()], overrides: { contentType: 'reel' } });
    world.network.script({ route: 'POST /:id/video_reels finish', then: 'drop_before' });
    const first = await world.publish(asked);
    assert.equal(first.outcome.kind, 'unknown');
    assert.equal((await world.adapter.reconcile(asked, first.steps.crossed)).kind, 'absent');
    const { outcome } = await again(asked, first.steps);
    assert.equal(outcome.kind, 'published');
    assert.deepEqual([world.network.state.videos.size, made().length], [1, 1]);
  });

  t('stories: a photo and a video are found by their file where the answer was lost', async () => {
    for (const [media, route] of [
      [[world.photo()], 'POST /:id/photo_stories'],
      [[world.reel()], 'POST /:id/video_stories finish'],
    ] as const) {
      const asked = request({ media, overrides: { contentType: 'story' } });
      world.network.script({ route, then: 'drop_after' });
      const { outcome, steps } = await world.publish(asked);
      assert.equal(outcome.kind, 'unknown');
      const found = await world.adapter.reconcile(asked, steps.crossed);
      assert.ok(found.kind === 'present', JSON.stringify(found));
      assert.equal(found.externalId, made().at(-1)?.id);
      assert.match(found.permalink ?? '', /^https:\/\/facebook\.com\/stories\//);
    }
    const behind = request({ media: [world.reel()], overrides: { contentType: 'story' } });
    const empty = { answer: { status: 200, body: { data: [] } } };
    world.network.script({ route: 'GET /:id/stories', times: 2, then: empty });
    const { outcome: accepted, steps: of } = await world.publish(behind);
    assert.ok(accepted.kind === 'accepted', JSON.stringify(accepted));
    assert.equal((await world.adapter.reconcile(behind, of.crossed, accepted.handle)).kind, 'undecided');
    assert.equal((await world.adapter.reconcile(behind, of.crossed, accepted.handle)).kind, 'present');
    const lost = request({ media: [world.photo()], overrides: { contentType: 'story' } });
    world.network.script({ route: 'POST /:id/photo_stories', then: 'drop_before' });
    const { steps } = await world.publish(lost);
    assert.equal((await world.adapter.reconcile(lost, steps.crossed)).kind, 'absent');
  });

  t('a lost post is told from another of the same text by its photos, over pages of the list', async () => {
    world.network.state.maxPage = 1;
    const content = randomUUID();
    await world.publish(request({ content, media: [world.photo()] }));
    const asked = request({ content, media: [world.photo()] });
    world.network.script({ route: 'POST /:id/feed', then: 'drop_after' });
    const { outcome, steps } = await world.publish(asked);
    assert.equal(outcome.kind, 'unknown');
    await world.publish(request({ content: 'another' }));
    const found = await world.adapter.reconcile(asked, steps.crossed);
    const wanted = made()[1];
    assert.ok(found.kind === 'present' && wanted !== undefined);
    assert.equal(found.externalId, `${account.externalId}_${wanted.id}`);
  });

  t('a lost text is not taken for a photo of the same words, and one with a link is found with its card', async () => {
    const content = `See https://example.com/${randomUUID()}`;
    await world.publish(request({ content, media: [world.photo()] }));
    const asked = request({ content });
    world.network.script({ route: 'POST /:id/feed', then: 'drop_before' });
    const lost = await world.publish(asked);
    assert.equal(lost.outcome.kind, 'unknown');
    assert.equal((await world.adapter.reconcile(asked, lost.steps.crossed)).kind, 'absent');
    world.network.script({ route: 'POST /:id/feed', then: 'drop_after' });
    const { steps } = await world.publish(asked);
    const found = await world.adapter.reconcile(asked, steps.crossed);
    assert.ok(found.kind === 'present');
    assert.equal(found.externalId, `${account.externalId}_${made().at(-1)?.id}`);
  });

  t(
    'finds posts that nobody remembers by text, time and files, and says that stories cannot be looked for',
    async () => {
      const asked = request({ media: [world.photo()] });
      const { outcome } = await world.publish(asked);
      assert.ok(outcome.kind === 'published');
      const now = world.network.state.now();
      const span = { from: new Date(now - 60_000).toISOString(), until: new Date(now + 60_000).toISOString() };
      const found = await world.adapter.findPosts({ ...asked, ...span });
      assert.ok(found.kind === 'listed');
      assert.deepEqual(
        found.posts.map(({ externalId }) => externalId),
        [outcome.externalId],
      );
      const other = await world.adapter.findPosts({ ...asked, content: 'other', ...span });
      assert.ok(other.kind === 'listed' && other.posts.length === 0);
      const story = { ...asked, overrides: { contentType: 'story' }, ...span };
      assert.equal((await world.adapter.findPosts(story)).kind, 'not_askable');
    },
  );

  t('a comment without its permission is refused without a call, and by Facebook with its words', async () => {
    const few = allScopes.filter((one) => one !== 'pages_manage_engagement');
    const silent = await world.account({}, few);
    const { outcome } = await world.publish(world.request(silent));
    assert.ok(outcome.kind === 'published');
    const asked = {
      targetId: randomUUID(),
      platform: 'facebook',
      externalId: outcome.externalId,
      content: 'Hi',
    } as const;
    const before = world.network.state.calls.length;
    const refused = await world.adapter.comment({ ...asked, account: silent }, within());
    assert.ok(refused.kind === 'failed' && refused.failure.code === 'comment_not_permitted');
    assert.equal(world.network.state.calls.length, before);
    const late = await world.adapter.comment({ ...asked, account: { ...silent, scopes: allScopes } }, within());
    assert.ok(late.kind === 'failed' && late.failure.code === 'comment_not_permitted');
    assert.match(late.failure.platformMessage ?? '', /pages_manage_engagement/);
  });

  t('a file that takes until the time of a scheduled post is not handed over', async () => {
    const dueAt = new Date(world.network.state.now() + 11 * 60_000).toISOString();
    const native = { ...request({ media: [world.photo()] }), dueAt };
    const steps = new RecordedSteps(native, 1_500);
    const slow = world.again({}, { clock: () => world.network.state.now() });
    const scheduler = slow.adapter.nativeScheduler?.('facebook');
    assert.ok(scheduler);
    const { checkpoint } = steps;
    steps.checkpoint = async (...asked) => {
      world.network.state.advance(5 * 60_000);
      await checkpoint.apply(steps, asked);
    };
    const handed = await scheduler.handOver(native, steps);
    assert.equal(handed.kind, 'outside_window', JSON.stringify(handed));
    assert.equal(made().length, 0);
  });

  t('none of the six ways that closed to new apps leaves the adapter', async () => {
    for (const query of [
      { ids: '1,2' },
      { date_format: 'U' },
      { method: 'delete' },
      { callback: 'jsonp' },
      { asyncbatch: '[]' },
      { fields: 'comments.limit(1).as(first)' },
    ]) {
      assert.notEqual(closedToNewApps({ method: 'GET', path: '{api}/v27.0/1', query }), null, JSON.stringify(query));
    }
    assert.notEqual(closedToNewApps({ method: 'POST', path: '{api}/v27.0/act_1/async_batch_requests' }), null);
    const harmless = { message: 'ids and method .as(they) are', fields: 'id,message' };
    assert.equal(closedToNewApps({ method: 'POST', path: '{api}/v27.0/1/feed', fields: harmless }), null);
    await world.publish(request({ content: 'callback.as(is)' }));
    const names = new Set(world.network.state.calls.flatMap(({ params }) => Object.keys(params)));
    for (const name of ['ids', 'date_format', 'method', 'callback', 'batch']) assert.ok(!names.has(name), name);
  });

  t('a version tells when Meta ends it', () => {
    assert.equal(graphVersion('v21.0').endsAt, '2027-01-21');
    assert.equal(graphVersion('v27.0').endsAt, null);
  });

  t('of a post only its time and its words are changed without making something visible', () => {
    const [ofPost] = tables.makes.filter(({ path }) => path === '/:version/:post');
    const isMade = (fields: Readonly<Record<string, string>>) => ofPost?.when?.({ method: 'POST', path: '', fields });
    assert.deepEqual(
      [
        {},
        { message: 'a' },
        { description: 'a', scheduled_publish_time: '1' },
        { message: 'a', published: 'true' },
      ].map(isMade),
      [true, false, false, true],
    );
  });
});
