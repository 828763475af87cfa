/** What the adapter of Instagram does beyond the suite of all networks. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { Checkpoint, PublishRequest } from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { problems } from '#test/support/networks/instagram/answer.ts';
import { scopesOf } from '#test/support/networks/instagram/index.ts';
import { type InstagramWorld, instagramWorld } from '#test/support/networks/instagram/world.ts';
import { suite } from '#test/support/suite.ts';

const publish = 'POST /:id/media_publish';
const create = 'POST /:id/media';
const look = 'GET /:id';
const within = () => AbortSignal.timeout(5_000);

suite('instagram', (t) => {
  let world: InstagramWorld;
  t.before.each(async () => {
    world = await instagramWorld();
  });
  t.after.each(() => world.close());

  const state = () => world.network.state;
  const image = (over = {}) => world.media(over);
  const video = (over = {}) =>
    world.media({ kind: 'video', use: 'reel', contentType: 'video/mp4', durationMs: 9_000, ...over });
  const carousel = (...all: readonly ReturnType<typeof image>[]) =>
    all.map((one) => ({ ...one, use: 'carousel' as const }));
  const containers = () => [...state().containers.values()];
  const params = (place = -1) => containers().at(place)?.params ?? {};
  const refusing = (answer: (typeof problems)[keyof typeof problems], route = publish, times = 1) =>
    world.network.script({ route, times, then: { answer } });
  /** As the publisher hands the checkpoints on. @param madeNothing the last call is known to have made nothing */
  const next = (request: PublishRequest, steps: RecordedSteps, madeNothing: boolean): PublishRequest => {
    const last = steps.checkpoints.findLast(({ step }) => step === 'boundary');
    const seen = (one: Checkpoint): Checkpoint => (one === last && madeNothing ? { ...one, madeNothing } : one);
    return { ...request, attempt: request.attempt + 1, checkpoints: steps.checkpoints.map(seen) };
  };
  const asked = async (over: Partial<PublishRequest> = {}) =>
    world.request(await world.account(), { media: [image()], ...over });
  const published = async (request: PublishRequest) => {
    const { outcome, steps } = await world.publish(request);
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    return { ...outcome, steps };
  };
  const failed = async (request: PublishRequest) => {
    const { outcome, steps } = await world.publish(request);
    assert.ok(outcome.kind === 'failed', JSON.stringify(outcome));
    return { ...outcome.failure, steps };
  };

  t(
    '1: of six pictures one cannot be fetched: it gets one new container, and then the post fails with that file',
    async () => {
      const media = carousel(...Array.from({ length: 6 }, () => image()));
      world.files.missing.set(media[3]?.mediaId ?? '', 1);
      await published(await asked({ media }));
      assert.equal(state().media.length, 1);
      assert.equal(containers().length, 7, 'what was made before is used again');
      const again = carousel(...Array.from({ length: 6 }, () => image()));
      world.files.missing.set(again[3]?.mediaId ?? '', 2);
      const failure = await failed(await asked({ media: again }));
      assert.deepEqual([failure.category, failure.mediaId, failure.retryable], ['media', again[3]?.mediaId, false]);
      assert.equal(failure.platformCode, '9004/2207052');
      assert.equal(state().fetched.filter((one) => one.endsWith(again[3]?.mediaId ?? '-')).length, 2);
      assert.ok(!failure.steps.log.includes('boundary'));
    },
  );

  t('1: a video that Instagram could not fetch is made anew once, and then it is at fault', async () => {
    const one = video();
    world.files.missing.set(one.mediaId, 1);
    await published(await asked({ media: [one] }));
    const other = video();
    world.files.missing.set(other.mediaId, 2);
    const failure = await failed(await asked({ media: [other] }));
    assert.deepEqual([failure.category, failure.platformCode, failure.mediaId], ['media', '2207052', other.mediaId]);
  });

  t('2: a fresh container that is not found for twenty looks is published once, and fails nothing', async () => {
    state().hidesContainers = [20];
    await published(await asked());
    assert.deepEqual(
      state().publishes.map(({ status }) => status),
      [200],
    );
    const looks = state().calls.filter(({ path }) => path.endsWith(`/${containers()[0]?.id}`)).length;
    assert.equal(looks, 20);
    assert.equal(containers().length, 1, 'no other is made beside it');
  });

  t(
    '2: a container that the call to publish does not find is no refusal: nobody knows, and no other is made',
    async () => {
      const request = await asked();
      refusing(problems.object_missing);
      const first = await world.publish(request);
      assert.equal(first.outcome.kind, 'unknown', JSON.stringify(first.outcome));
      refusing(problems.object_missing, look);
      assert.equal((await world.adapter.reconcile(request, first.steps.crossed)).kind, 'undecided');
      assert.equal((await world.adapter.reconcile(request, first.steps.crossed)).kind, 'absent', 'it is finished');
      await published(next(request, first.steps, false));
      assert.deepEqual([containers().length, state().media.length], [1, 1]);
    },
  );

  t('2: an account that a token does not see is one that needs a new consent, and no fault of the post', async () => {
    const request = await asked();
    const { externalId } = request.account;
    const { error } = problems.object_missing.body as { error: object };
    const body = { error: { ...error, message: `Object with ID '${externalId}' does not exist` } };
    world.network.script({ route: create, then: { answer: { status: 400, body } } });
    const { category, code } = await failed(request);
    assert.deepEqual([category, code], ['permission', 'reauth_required']);
    refusing(problems.object_missing, create);
    assert.equal((await world.publish(await asked())).outcome.kind, 'deferred');
  });

  t('3: a post whose permalink cannot be read is published all the same', async () => {
    world.network.script({ route: look, says: 'permalink', then: { answer: problems.object_missing } });
    const { permalink, externalId } = await published(await asked());
    assert.deepEqual([permalink, externalId], [null, state().media[0]?.id]);
  });

  t(
    '4: a post that Instagram blocks in its words and makes all the same is found, and is not published again',
    async () => {
      world.network.script({ route: publish, then: { answerAfter: problems.action_blocked } });
      const request = await asked();
      const { outcome, steps } = await world.publish(request);
      assert.equal(outcome.kind, 'unknown', JSON.stringify(outcome));
      const seen = await world.adapter.reconcile(request, steps.crossed);
      assert.ok(seen.kind === 'present', JSON.stringify(seen));
      assert.deepEqual([seen.externalId, state().publishes.length], [state().media[0]?.id, 1]);
      const blocked = await asked();
      refusing(problems.action_blocked);
      const second = await world.publish(blocked);
      assert.ok(second.outcome.kind === 'unknown' && second.outcome.retryAt !== undefined);
      assert.ok(Date.parse(second.outcome.retryAt) - state().now() > 86_000_000, 'no other try within the day');
      assert.equal((await world.adapter.reconcile(blocked, second.steps.crossed)).kind, 'absent');
    },
  );

  t('5: a carousel waits for its children and for itself, and its words stand on the parent alone', async () => {
    Object.assign(state().processing, { VIDEO: 3, CAROUSEL: 4 });
    const media = carousel(image({ altText: 'A cup' }), video({ altText: 'It pours' }), image());
    const overrides = { collaborators: ['ada'], locationId: '1234', userTags: ['bob'], shareToFeed: true };
    await published(await asked({ media, overrides, aiDisclosure: true, content: 'Rolls' }));
    const refused = state().calls.filter(({ status }) => status !== 200);
    assert.deepEqual(refused, []);
    const [first, second, , parent] = containers().map((one) => one.params);
    assert.deepEqual(
      [first?.alt_text, first?.media_type, second?.media_type, second?.alt_text],
      ['A cup', undefined, 'VIDEO', undefined],
    );
    for (const child of containers().slice(0, 3)) {
      assert.ok(
        !Object.keys(child.params).some((name) => ['caption', 'location_id', 'is_ai_generated'].includes(name)),
      );
    }
    assert.deepEqual([parent?.caption, parent?.location_id, parent?.is_ai_generated], ['Rolls', '1234', 'true']);
    assert.ok(world.pauses.includes(10_000), 'a video is not asked for every second');
  });

  t('6: collaborators stand on the parent alone, without an @ before them, and tags of people too', async () => {
    const collaborators = ['@ada', ' bob ', '@@eve'];
    const media = carousel(image(), image());
    await published(
      await asked({ media, overrides: { collaborators, userTags: ['@cy', { username: '@di', x: 0.2, y: 0.8 }] } }),
    );
    const [first, second, parent] = containers().map((one) => one.params);
    assert.deepEqual(JSON.parse(parent?.collaborators ?? ''), ['ada', 'bob', 'eve']);
    assert.deepEqual([first?.collaborators, second?.collaborators], [undefined, undefined]);
    const tags = [
      { username: 'cy', x: 1 / 3, y: 0.5 },
      { username: 'di', x: 0.2, y: 0.8 },
    ];
    assert.deepEqual(JSON.parse(first?.user_tags ?? ''), tags);
    state().unknownNames.add('zoe');
    const { category, retryable } = await failed(await asked({ overrides: { collaborators: ['zoe'] } }));
    assert.deepEqual([category, retryable], ['invalid_content', false]);
  });

  t('7: no picture but a JPEG is sent, and the rules ask for no other rendition', async () => {
    for (const contentType of ['image/png', 'image/webp', 'image/heic']) {
      const media = [image({ contentType })];
      const { category, mediaId } = await failed(await asked({ media }));
      assert.deepEqual([category, mediaId], ['media', media[0]?.mediaId]);
    }
    assert.deepEqual(state().calls, []);
    const { files } = rulesOf('instagram').media;
    for (const use of ['feed', 'carousel', 'story', 'cover'] as const) {
      assert.deepEqual(files[use]?.image?.formats, ['jpeg'], use);
    }
  });

  t('8: a permission that the owner took away is named, and a new consent mends it', async () => {
    const scopes = scopesOf.ig.filter((one) => !one.endsWith('content_publish'));
    const request = world.request(await world.account({ scopes }), { media: [image()] });
    const { category, code, actor, platformMessage } = await failed(request);
    assert.deepEqual([category, code, actor], ['permission', 'reauth_required', 'user']);
    assert.match(platformMessage ?? '', /instagram_content_publish/);
    refusing(problems.no_publish);
    assert.equal((await failed(await asked())).code, 'reauth_required');
  });

  t('9: a checkpoint is a consent that lapsed, and no missing permission', async () => {
    for (const answer of [problems.checkpoint, problems.password_changed, problems.no_session]) {
      refusing(answer, create);
      assert.equal((await failed(await asked())).category, 'reauth_required');
    }
  });

  t('12: media goes where containers are made, and a story to no reel: each kind has its own form', async () => {
    const story = (over = {}) => image({ use: 'story', altText: 'A cup', ...over });
    await published(await asked({ media: [story()], content: 'Not shown', overrides: { userTags: ['ada'] } }));
    assert.deepEqual(Object.keys(params()).sort(), ['image_url', 'media_type', 'user_tags']);
    assert.deepEqual([params().media_type, params().user_tags], ['STORIES', '[{"username":"ada"}]']);
    const clip = video({ use: 'story' });
    await published(await asked({ media: [clip], cover: image({ use: 'cover' }), aiDisclosure: true }));
    assert.deepEqual(Object.keys(params()).sort(), ['is_ai_generated', 'media_type', 'video_url']);
    await published(
      await asked({ media: [video({ use: 'feed' })], overrides: { userTags: [{ username: 'ada', x: 0.1, y: 0.1 }] } }),
    );
    assert.deepEqual([params().media_type, params().user_tags], ['REELS', '[{"username":"ada"}]']);
    const makes = state().calls.filter(({ method }) => method === 'POST');
    assert.ok(makes.every(({ path }) => /^\/ig\/v27\.0\/\d+\/(?:media|media_publish)$/.test(path)));
    assert.ok(state().calls.every(({ status }) => status === 200));
  });

  t(
    'of a reel an address of a cover wins, then its own cover, then the frame that was chosen, then the poster',
    async () => {
      const reel = video();
      const poster = image({ use: 'cover', mediaId: reel.mediaId });
      const own = image({ use: 'cover' });
      const shown = async (over: Partial<PublishRequest>) => {
        await published(await asked({ media: [reel], ...over }));
        const { cover_url: address, thumb_offset: offset } = params();
        return [address?.replace(world.files.origin, ''), offset];
      };
      const coverUrl = `${world.files.origin}/image-jpeg/mine`;
      assert.deepEqual(await shown({ cover: own, coverFrameMs: 1_500, overrides: { coverUrl } }), [
        '/image-jpeg/mine',
        undefined,
      ]);
      assert.deepEqual(await shown({ cover: own, coverFrameMs: 1_500 }), [`/image-jpeg/${own.mediaId}`, undefined]);
      assert.deepEqual(await shown({ cover: poster, coverFrameMs: 1_500 }), [undefined, '1500']);
      assert.deepEqual(await shown({ cover: poster }), [`/image-jpeg/${poster.mediaId}`, undefined]);
      assert.deepEqual(await shown({}), [undefined, undefined]);
    },
  );

  t(
    'a partnership is labelled by the login of Facebook, and by the other one the post fails before any call',
    async () => {
      const overrides = { paidPartnership: true };
      const { category, code } = await failed(await asked({ overrides }));
      assert.deepEqual([category, code, state().calls.length], ['permission', 'account_not_permitted', 0]);
      const account = await world.account({ by: 'fb' });
      await published(world.request(account, { media: [image()], overrides }));
      assert.equal(params().is_paid_partnership, 'true');
      await published(world.request(account, { media: [image()], overrides: { paidPartnership: false } }));
      assert.equal(params().is_paid_partnership, undefined);
    },
  );

  t('each account is acted for on the host of its login, with its proof there and none elsewhere', async () => {
    const [own, behind] = [await world.account(), await world.account({ by: 'fb' })];
    for (const account of [own, behind]) await published(world.request(account, { media: [image()] }));
    const hosts = state().calls.map(({ host }) => host);
    assert.deepEqual(
      [new Set(hosts.slice(0, hosts.length / 2)), new Set(hosts.slice(hosts.length / 2))],
      [new Set(['ig']), new Set(['fb'])],
    );
    assert.deepEqual([await world.adapter.canRemove(own), await world.adapter.canRemove(behind)], [false, true]);
    const proven = state().calls.map(({ params: { appsecret_proof: proof } }) => proof !== undefined);
    assert.deepEqual([...new Set(proven.slice(hosts.indexOf('fb')))], [true]);
  });

  t('a post beyond the quota waits for its slot before anything is made, and the cadence is told of it', async () => {
    world.close();
    const reported: unknown[] = [];
    world = await instagramWorld({ quota: 1 }, { onLimits: (_id, windows) => void reported.push(...windows) });
    const account = await world.account();
    const { publishedAt } = await published(world.request(account, { media: [image()] }));
    state().advance(82_900_000);
    const { outcome } = await world.publish(world.request(account, { media: [image()] }));
    assert.ok(outcome.kind === 'rate_limited', JSON.stringify(outcome));
    const slot = Math.floor(Date.parse(publishedAt) / 1_000) * 1_000 + 86_400_000;
    assert.equal(Date.parse(outcome.retryAt), slot);
    assert.equal(containers().length, 1);
    const window = { name: 'posts in 24 hours', seconds: 86_400, limit: 1 };
    assert.deepEqual(reported, [
      { ...window, used: 0, resetsAt: null },
      { ...window, used: 1, resetsAt: outcome.retryAt },
    ]);
  });

  t('a container whose call was lost is the proof: finished, it is used again; published, it is found', async () => {
    const request = await asked();
    world.network.script({ route: publish, then: 'silent_before' });
    const first = await world.publish(request);
    assert.equal(first.outcome.kind, 'unknown');
    assert.equal((await world.adapter.reconcile(request, first.steps.crossed)).kind, 'absent');
    world.network.script({ route: publish, then: 'drop_after' });
    const second = await world.publish(next(request, first.steps, false));
    assert.equal(second.outcome.kind, 'unknown');
    // The list is behind: the container is the only witness, and a second call with it makes nothing.
    state().listLagMs = 60_000;
    assert.equal((await world.adapter.reconcile(request, second.steps.crossed)).kind, 'undecided');
    const third = await world.publish(next(request, second.steps, false));
    assert.equal(third.outcome.kind, 'unknown');
    state().listLagMs = 0;
    const { externalId, steps } = await published(next(request, third.steps, false));
    assert.deepEqual([externalId, state().media.length, containers().length], [state().media[0]?.id, 1, 1]);
    assert.ok(!steps.log.includes('boundary'), 'nothing was called');
  });

  t(
    'a container that ended, or that Instagram broke after the call, is replaced even where the call was lost',
    async () => {
      for (const end of ['EXPIRED', 'ERROR'] as const) {
        world.network.script({ route: publish, then: 'silent_before' });
        const request = await asked({ content: end });
        const { steps } = await world.publish(request);
        const container = containers().at(-1);
        assert.ok(container !== undefined);
        container.status = end;
        assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'absent');
        await published(next(request, steps, false));
      }
      assert.equal(state().media.length, 2);
    },
  );

  t('a story whose answer was lost is found among the stories, and a reel among the posts of its words', async () => {
    const account = await world.account();
    await published(world.request(account, { content: 'Same', media: [image()] }));
    for (const media of [[image({ use: 'story' })], [video()], carousel(image(), image())]) {
      world.network.script({ route: publish, then: 'drop_after' });
      const request = world.request(account, { content: 'Same', media });
      const { steps } = await world.publish(request);
      const seen = await world.adapter.reconcile(request, steps.crossed);
      assert.ok(seen.kind === 'present', JSON.stringify(seen));
      assert.equal(seen.externalId, state().media.at(-1)?.id);
      const changed = { ...request, content: 'Changed' };
      assert.equal((await world.adapter.reconcile(changed, steps.crossed)).kind, 'undecided');
      const span = {
        from: new Date(state().now() - 60_000).toISOString(),
        until: new Date(state().now()).toISOString(),
      };
      const found = await world.adapter.findPosts({ ...request, ...span });
      assert.ok(found.kind === 'listed');
      assert.deepEqual(
        found.posts.map(({ externalId }) => externalId),
        [seen.externalId],
      );
    }
  });

  t('of two stories within a minute the later one is found as itself', async () => {
    const account = await world.account();
    const story = () => world.request(account, { media: [image({ use: 'story' })] });
    await published(story());
    state().advance(10_000);
    world.network.script({ route: publish, then: 'drop_after' });
    const request = story();
    const { steps } = await world.publish(request);
    const seen = await world.adapter.reconcile(request, steps.crossed);
    assert.ok(seen.kind === 'present', JSON.stringify(seen));
    assert.equal(seen.externalId, state().media[1]?.id);
  });

  t('a page that is short is not the last one: the list ends where Instagram names no next page', async () => {
    state().maxPage = 2;
    const account = await world.account();
    world.network.script({ route: publish, then: 'drop_after' });
    const request = world.request(account, { content: 'Lost', media: [image()] });
    const { steps } = await world.publish(request);
    for (const content of ['a', 'b', 'c', 'd']) await published(world.request(account, { content, media: [image()] }));
    const seen = await world.adapter.reconcile(request, steps.crossed);
    assert.ok(seen.kind === 'present', JSON.stringify(seen));
    assert.equal(seen.externalId, state().media[0]?.id);
  });

  t('what cannot be a post of Instagram fails before any call', async () => {
    assert.equal((await failed(await asked({ media: [] }))).category, 'invalid_content');
    assert.equal((await failed(await asked({ overrides: { locationId: 'Berlin' } }))).category, 'invalid_content');
    assert.deepEqual(state().calls, []);
    const account = await world.account();
    const comment = {
      targetId: randomUUID(),
      platform: 'instagram',
      account,
      content: 'Hi',
      externalId: '1/media',
    } as const;
    assert.equal((await world.adapter.comment(comment, within())).kind, 'failed');
    assert.deepEqual(state().calls, []);
  });

  t('what is no id of a container reaches no path and no call', async () => {
    for (const id of ['1/../me', '1?fields=id', '', '1'.repeat(21)]) {
      world.network.script({ route: create, then: { answer: { status: 200, body: { id } } } });
      const { outcome, steps } = await world.publish(await asked());
      assert.equal(outcome.kind, 'deferred', JSON.stringify(outcome));
      assert.ok(!steps.log.includes('boundary'), id);
    }
    assert.ok(state().calls.every(({ path }) => /^\/ig\/v27\.0\/(?:me|\d+)(?:\/\w+)?$/.test(path)));
  });

  t('neither a token nor the address of a file is in an outcome or a checkpoint', async () => {
    for (const by of ['ig', 'fb'] as const) {
      const account = await world.account({ by });
      const { steps, ...outcome } = await published(world.request(account, { media: carousel(image(), video()) }));
      const reported = JSON.stringify([outcome, steps.checkpoints]);
      const { secret } = (await world.credentials.read(account.id)) ?? {};
      for (const token of [secret?.accessToken, secret?.loginToken])
        assert.ok(token === undefined || !reported.includes(String(token)));
      assert.ok(!reported.includes(world.files.origin));
    }
  });

  t('a limit of the account names its end by the header of JSON', async () => {
    const usage = [
      { type: 'instagram', call_count: 100, total_cputime: 1, total_time: 1, estimated_time_to_regain_access: 7 },
    ];
    const headers = { 'x-business-use-case-usage': JSON.stringify({ 17: usage }) };
    world.network.script({ route: create, then: { answer: { ...problems.account_limited, headers } } });
    const { outcome } = await world.publish(await asked());
    assert.ok(outcome.kind === 'rate_limited');
    const inMs = Date.parse(outcome.retryAt) - state().now();
    assert.ok(inMs > 415_000 && inMs <= 420_000, String(inMs));
  });
});
