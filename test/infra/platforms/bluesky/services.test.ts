/** Videos and figures of Bluesky: the real server of repositories, and its two services from their lexicons. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { PublishMedia } from '#contracts/ports/platform.ts';
import { insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import type { InsightsSubject } from '#contracts/ports/platform-insights.ts';
import { BlueskyInsights } from '#infra/platforms/bluesky/index.ts';
import { clipForAdapter } from '#test/support/clip.ts';
import { orMissing } from '#test/support/missing.ts';
import { type BlueskyServices, startBlueskyServices } from '#test/support/networks/bluesky-services.ts';
import { type BlueskyWorld, blueskyWorld } from '#test/support/networks/bluesky-world.ts';
import { type Pds, sharedPds } from '#test/support/networks/pds.ts';
import { suite } from '#test/support/suite.ts';

/** Where no registry answers, the tests are left out, and say so. */
const opened = await orMissing(sharedPds().then((pds) => ({ pds })));

const withServices = async (pds: Pds) => {
  const services = await startBlueskyServices(pds);
  const { origin } = services;
  const quick = { videoPollMs: 5, videoWaitMs: 5_000 };
  const world = await blueskyWorld(pds, {
    ...{ appView: origin, videoService: origin, ...quick },
    clock: () => Date.now() + services.aheadMs,
  });
  return { services, world };
};

suite('bluesky as a source of figures', { timeoutMs: 60_000 }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  const { pds } = opened;
  insightsSuite(t, async () => {
    const { services, world } = await withServices(pds);
    const identity = await pds.identity();
    const account = await world.connected(identity);
    const others = await world.connected(await pds.identity());
    return {
      source: new BlueskyInsights(world.options),
      platforms: ['bluesky'],
      asksWithoutToken: true,
      close: async () => services.close(),
      account: () => account,
      other: () => others,
      publish: async (_platform, by, fault) => {
        const { outcome } = await world.publish(world.request(by));
        assert.ok(outcome.kind === 'published');
        const { externalId, publishedAt } = outcome;
        if (fault !== undefined) services.faults.set(externalId, fault);
        return { targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo: false };
      },
      remove: async (_platform, { externalId }) => {
        const [, , repo = '', collection = '', rkey = ''] = externalId.split('/');
        const input = { repo, collection, rkey };
        await pds.call('com.atproto.repo.deleteRecord', { input, auth: `Bearer ${identity.accessJwt}` });
      },
      pass: async () => {
        services.aheadMs += 86_400_000;
      },
    };
  });
});

suite('bluesky: figures', { timeoutMs: 60_000 }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  const { pds } = opened;
  let services: BlueskyServices;
  let world: BlueskyWorld;
  t.before(async () => {
    ({ services, world } = await withServices(pds));
  });
  t.after(() => services?.close());

  t('sixty posts cost three calls, of the app view alone, without a token', async () => {
    const account = await world.connected(await pds.identity());
    const posts: InsightsSubject[] = [];
    for (let at = 0; at < 60; at += 1) {
      const { outcome } = await world.publish(world.request(account));
      assert.ok(outcome.kind === 'published');
      const { externalId, publishedAt } = outcome;
      posts.push({ targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo: false });
    }
    const before = world.http.calls.length;
    const kinds: string[] = [];
    const source = new BlueskyInsights(world.options);
    for await (const { kind } of source.fetchPostInsights('bluesky', account, posts, AbortSignal.timeout(20_000))) {
      kinds.push(kind);
    }
    assert.deepEqual(new Set(kinds), new Set(['reported']));
    const calls = world.http.calls.slice(before);
    assert.equal(calls.length, 3);
    assert.ok(
      calls.every(({ url, headers }) => url.startsWith(services.origin) && headers.authorization === undefined),
    );
  });
});

suite('bluesky: videos, by a service without uploads in parts', { timeoutMs: 60_000 }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  const { pds } = opened;
  let services: BlueskyServices;
  let world: BlueskyWorld;
  let clip: PublishMedia;
  t.before(async () => {
    ({ services, world } = await withServices(pds));
    services.parts.isOffered = false;
    clip = { ...(await clipForAdapter()), altText: 'Coffee is roasted' };
  });
  t.after(() => services?.close());

  t(
    'a video is made ready by its service and shown with its text; the same file goes up once more at most',
    async () => {
      const identity = await pds.identity();
      const account = await world.connected(identity);
      const { outcome, steps } = await world.publish(world.request(account, { media: [clip] }));
      assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
      assert.deepEqual(
        steps.log.filter((entry) => !entry.endsWith(':begin')),
        ['video:end', 'record:end', 'boundary'],
      );
      assert.ok(steps.bytes >= clip.bytes);
      const [post] = await world.postsOf(identity.did);
      const embed = post?.value.embed as {
        readonly $type: string;
        readonly alt: string;
        readonly video: { readonly size: number };
      };
      assert.deepEqual(
        [embed.$type, embed.alt, embed.video.size],
        ['app.bsky.embed.video', 'Coffee is roasted', clip.bytes],
      );
      // The service knows the file, and says so with an error that names its job.
      const again = await world.publish(world.request(account, { media: [clip], content: 'Again' }));
      assert.equal(again.outcome.kind, 'published', JSON.stringify(again.outcome));
    },
  );

  t('a worker that stops while the video is made ready leaves the job to the next, which uploads nothing', async () => {
    const account = await world.connected(await pds.identity());
    const asked = world.request(account, { media: [clip] });
    const before = services.uploads();
    let steps: Awaited<ReturnType<typeof world.publish>>['steps'] | undefined;
    const stopped = world.publish(asked, (one) => {
      steps = one;
      const { checkpoint } = one;
      one.checkpoint = async (step, data) => {
        await checkpoint.call(one, step, data);
        one.worker.abort(new Error('lease lost'));
      };
    });
    await assert.rejects(stopped);
    const next = await world.publish({ ...asked, attempt: 2, checkpoints: steps?.checkpoints ?? [] });
    assert.equal(next.outcome.kind, 'published', JSON.stringify(next.outcome));
    assert.equal(services.uploads(), before + 1);
  });

  t('a video that cannot be shown fails and names its file; a fault of the service makes the post wait', async () => {
    const account = await world.connected(await pds.identity());
    services.failNext('encoding_failure');
    const asked = world.request(account, { media: [clip] });
    const refused = await world.publish(asked);
    assert.ok(refused.outcome.kind === 'failed', JSON.stringify(refused.outcome));
    const { category, mediaId, platformMessage, actor } = refused.outcome.failure;
    assert.deepEqual([category, mediaId, platformMessage, actor], ['media', clip.mediaId, 'it went wrong', 'user']);
    services.failNext('pds_upload_failure');
    const other = world.request(account, { media: [clip] });
    const waits = await world.publish(other);
    assert.ok(waits.outcome.kind === 'deferred', JSON.stringify(waits.outcome));
    const next = await world.publish({ ...other, attempt: 2, checkpoints: waits.steps.checkpoints });
    assert.equal(next.outcome.kind, 'published', JSON.stringify(next.outcome));
  });

  t('what the service refuses is a limit, a permission, its own matter or the file, and never the text', async () => {
    const account = await world.connected(await pds.identity());
    const refused = async (status: number, body: unknown) => {
      services.refuseNext(status, body);
      const { outcome, steps } = await world.publish(world.request(account, { media: [clip] }));
      assert.ok('failure' in outcome && !steps.log.includes('boundary'), JSON.stringify(outcome));
      const { category, code, mediaId } = outcome.failure;
      assert.equal(mediaId, clip.mediaId);
      return [outcome.kind, category, code, outcome.kind === 'rate_limited' ? outcome.retryAt.slice(10) : null];
    };
    const named = (error: string) => refused(400, { error, message: 'it says so' });
    const tomorrow = 'T00:00:00.000Z';
    assert.deepEqual(await named('DailyLimitExceeded'), [
      'rate_limited',
      'rate_limited',
      'network_rate_limited',
      tomorrow,
    ]);
    const later = ['deferred', 'platform_down', 'network_down', null];
    for (const error of ['ServiceOverloaded', 'TooManyOpenUploads', 'InvalidRequest', 'SomethingNew', 'InvalidToken']) {
      assert.deepEqual(await named(error), later, error);
    }
    assert.deepEqual(await refused(401, { error: 'AuthenticationRequired' }), later);
    assert.deepEqual(await refused(403, null), later);
    for (const error of ['UploadForbidden', 'unconfirmed_email']) {
      assert.deepEqual(await named(error), ['failed', 'permission', 'account_not_permitted', null], error);
    }
    for (const error of ['VideoTooLarge', 'VideoTooLong', 'BadAspectRatio', 'UnsupportedContentType']) {
      assert.deepEqual(await named(error), ['failed', 'media', 'content_rejected', null], error);
    }
  });

  t('an account that may send no video today sends none; a service that tells no limits is tried', async () => {
    const account = await world.connected(await pds.identity());
    const before = services.uploads();
    const asked = () => world.publish(world.request(account, { media: [clip] }));
    const spent = { canUpload: true, remainingDailyVideos: 3, remainingDailyBytes: clip.bytes - 1 };
    for (const limits of [
      spent,
      { canUpload: false, remainingDailyVideos: 0 },
      { canUpload: true, remainingDailyVideos: 0 },
    ]) {
      services.limits = limits;
      const { outcome } = await asked();
      assert.ok(outcome.kind === 'rate_limited' && outcome.retryAt.endsWith('T00:00:00.000Z'), JSON.stringify(outcome));
      assert.ok(Date.parse(outcome.retryAt) - Date.now() <= 86_400_000);
    }
    for (const error of ['unconfirmed_email', 'anything', undefined]) {
      services.limits = {
        canUpload: false,
        message: 'Please confirm your address',
        ...(error === undefined ? {} : { error }),
      };
      const { outcome } = await asked();
      assert.ok(outcome.kind === 'failed', JSON.stringify(outcome));
      const { category, platformMessage, actor } = outcome.failure;
      assert.deepEqual([category, platformMessage, actor], ['permission', 'Please confirm your address', 'user']);
    }
    assert.equal(services.uploads(), before, 'no byte was sent');
    for (const limits of [null, {}, { canUpload: true, remainingDailyVideos: 'many' }]) {
      services.limits = limits;
      const { outcome } = await asked();
      assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
    }
    services.limits = { canUpload: true };
  });

  t('a service that is not there makes the post wait, and nothing was written', async () => {
    const gone = await blueskyWorld(pds, { videoService: 'http://127.0.0.1:9' });
    const account = await gone.connected(await pds.identity());
    const { outcome, steps } = await gone.publish(gone.request(account, { media: [clip] }));
    assert.ok(outcome.kind === 'deferred');
    assert.ok(!steps.log.includes('boundary'));
  });
});
