/** Videos of Bluesky in parts: the service from its lexicons, the real server of repositories behind it. */
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { NetworkCall, NetworkHttp, NetworkResult } from '#contracts/ports/network-http.ts';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { BlueskyAdapter } from '#infra/platforms/bluesky/index.ts';
import { clipForAdapter } from '#test/support/clip.ts';
import { mediaFolder } from '#test/support/media/folder.ts';
import { orMissing } from '#test/support/missing.ts';
import { type BlueskyServices, startBlueskyServices } from '#test/support/networks/bluesky-services.ts';
import type { BlueskyUploads } from '#test/support/networks/bluesky-uploads.ts';
import { type BlueskyWorld, blueskyWorld, boundaryDeadlineMs } from '#test/support/networks/bluesky-world.ts';
import { sharedPds } from '#test/support/networks/pds.ts';
import { suite } from '#test/support/suite.ts';

/** Where no registry answers, the tests are left out, and say so. */
const opened = await orMissing(sharedPds().then((pds) => ({ pds })));

suite('bluesky: videos in parts', { timeoutMs: 120_000 }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  const { pds } = opened;
  let services: BlueskyServices;
  let parts: BlueskyUploads;
  let world: BlueskyWorld;
  let account: PublishRequest['account'];
  let whole: PublishMedia;

  /** The clip with an end of its own: the service does not know this file yet. */
  const newClip = async (): Promise<PublishMedia> => {
    const file = path.join(mediaFolder(), `${randomUUID()}.mp4`);
    const body = Buffer.concat([readFileSync(await whole.file()), randomBytes(16)]);
    writeFileSync(file, body);
    const sha256 = createHash('sha256').update(body).digest('hex');
    return { ...whole, mediaId: randomUUID(), bytes: body.length, sha256, file: async () => file };
  };
  const sent = (since: number) => parts.calls.slice(since);
  const numbers = (since: number) => sent(since).flatMap(({ partNumber }) => (partNumber === null ? [] : [partNumber]));
  const methods = (since: number) => sent(since).map(({ method }) => method);
  const stepsOf = (log: readonly string[]) => log.filter((entry) => !entry.endsWith(':begin'));
  /** One attempt; the next is given what it kept. */
  const attempt = async (asked: PublishRequest, adapter = world.adapter) => {
    const since = parts.calls.length;
    const steps = new RecordedSteps(asked, boundaryDeadlineMs);
    const outcome = await adapter.publish(asked, steps);
    const next = { ...asked, attempt: asked.attempt + 1, checkpoints: steps.checkpoints };
    return { outcome, steps, since, next };
  };
  const published = (made: { readonly outcome: { readonly kind: string } }) =>
    assert.equal(made.outcome.kind, 'published', JSON.stringify(made.outcome));
  const deferred = (made: { readonly outcome: { readonly kind: string } }) =>
    assert.equal(made.outcome.kind, 'deferred', JSON.stringify(made.outcome));

  t.before(async () => {
    services = await startBlueskyServices(pds);
    ({ parts } = services);
    const { origin } = services;
    world = await blueskyWorld(pds, {
      ...{ videoService: origin, videoPollMs: 5, videoWaitMs: 5_000 },
      clock: () => Date.now() + services.aheadMs,
    });
    account = await world.connected(await pds.identity());
    whole = await clipForAdapter();
    parts.partSizeBytes = Math.ceil((whole.bytes + 16) / 4);
  });
  t.after(() => services?.close());

  t('go up part after part with the token of an upload, and are shown with their text', async () => {
    const clip = await newClip();
    const before = services.uploads();
    const made = await attempt(world.request(account, { media: [clip] }));
    published(made);
    assert.deepEqual(methods(made.since), ['startUpload', ...Array(4).fill('uploadPart'), 'finishUpload']);
    assert.deepEqual(numbers(made.since), [1, 2, 3, 4]);
    assert.deepEqual(
      new Set(sent(made.since).map(({ tokenFor }) => tokenFor)),
      new Set(['com.atproto.repo.uploadBlob']),
    );
    assert.deepEqual(stepsOf(made.steps.log), ['parts:end', 'video:end', 'record:end', 'boundary']);
    assert.ok(made.steps.bytes >= clip.bytes);
    assert.equal(services.uploads(), before);
    const [post] = await world.postsOf(account.externalId);
    const embed = post?.value.embed as { readonly video: { readonly size: number } } | undefined;
    assert.equal(embed?.video.size, clip.bytes);
    // The service has this file already, and names another job than that of the upload.
    const again = await attempt(world.request(account, { media: [clip], content: 'Again' }));
    published(again);
    const uploaded = parts.calls.at(-1)?.jobId;
    const job = again.steps.checkpoints.find(({ step }) => step === 'video')?.data as { readonly jobId: string };
    assert.notEqual(job.jobId, uploaded);
  });

  t('a service that is busy gets a part again; after three times the next attempt goes on with that part', async () => {
    const asked = world.request(account, { media: [await newClip()] });
    const busy = { method: 'uploadPart', partNumber: 2, error: 'ServiceOverloaded' };
    parts.faults.push(busy, { ...busy, isSilent: true });
    const once = await attempt(asked);
    published(once);
    assert.deepEqual(numbers(once.since), [1, 2, 2, 2, 3, 4]);
    const other = world.request(account, { media: [await newClip()] });
    parts.faults.push({ ...busy, partNumber: 3 }, { ...busy, partNumber: 3, status: 503 });
    parts.faults.push({ ...busy, partNumber: 3, isSilent: true });
    const waits = await attempt(other);
    deferred(waits);
    assert.ok(!waits.steps.log.includes('boundary'));
    const next = await attempt(waits.next);
    published(next);
    assert.deepEqual(methods(next.since).slice(0, 2), ['getUploadStatus', 'uploadPart']);
    assert.deepEqual(numbers(next.since), [3, 4]);
  });

  t('a part that was kept although its answer was lost is not sent by the next attempt', async () => {
    const asked = world.request(account, { media: [await newClip()] });
    const lost = { method: 'uploadPart', partNumber: 2, isCarriedOut: true, isSilent: true } as const;
    parts.faults.push(lost, lost, lost);
    const waits = await attempt(asked);
    deferred(waits);
    const next = await attempt(waits.next);
    published(next);
    assert.deepEqual(numbers(next.since), [3, 4]);
  });

  t('an upload that expired, was aborted or is unknown between two attempts begins anew in the second', async () => {
    const ends = [
      () => parts.expireAll(),
      () => parts.uploads.clear(),
      () => {
        for (const one of parts.uploads.values()) if (one.state === 'created') one.state = 'aborted';
      },
    ];
    for (const end of ends) {
      const asked = world.request(account, { media: [await newClip()] });
      const busy = { method: 'uploadPart', partNumber: 3, error: 'ServiceOverloaded' };
      parts.faults.push(busy, busy, busy);
      const waits = await attempt(asked);
      deferred(waits);
      end();
      const next = await attempt(waits.next);
      published(next);
      assert.deepEqual(methods(next.since).slice(0, 2), ['getUploadStatus', 'startUpload']);
      assert.deepEqual(numbers(next.since), [1, 2, 3, 4]);
    }
  });

  t('an upload that ends under its worker makes the post wait, and the next attempt begins anew', async () => {
    for (const fault of [
      { method: 'uploadPart', partNumber: 2, error: 'UploadExpired' },
      { method: 'uploadPart', partNumber: 4, error: 'UploadNotFound' },
      { method: 'finishUpload', error: 'UploadFailed' },
      { method: 'finishUpload', error: 'UploadExpired' },
    ]) {
      parts.faults.push(fault);
      const waits = await attempt(world.request(account, { media: [await newClip()] }));
      deferred(waits);
      const next = await attempt(waits.next);
      published(next);
      assert.equal(methods(next.since)[0], 'startUpload');
    }
  });

  t('a finish without an answer is not taken for one that failed: the state of the upload says', async () => {
    const lost = { method: 'finishUpload', isCarriedOut: true } as const;
    for (const fault of [{ ...lost, isSilent: true } as const, { ...lost, status: 502, error: '' }]) {
      parts.faults.push(fault);
      const made = await attempt(world.request(account, { media: [await newClip()] }));
      published(made);
      assert.deepEqual(methods(made.since).slice(-2), ['finishUpload', 'getUploadStatus']);
      assert.deepEqual(numbers(made.since), [1, 2, 3, 4]);
    }
    parts.finishAsks = 3;
    const slow = await attempt(world.request(account, { media: [await newClip()] }));
    parts.finishAsks = 0;
    published(slow);
    assert.equal(methods(slow.since).filter((one) => one === 'finishUpload').length, 1);
    assert.equal(methods(slow.since).filter((one) => one === 'getUploadStatus').length, 4);
  });

  t(
    'a service that takes long to put the file together makes the post wait, and is asked by the next attempt',
    async () => {
      const hurried = new BlueskyAdapter({ ...world.options, videoWaitMs: 0 });
      parts.finishAsks = 2;
      const waits = await attempt(world.request(account, { media: [await newClip()] }), hurried);
      parts.finishAsks = 0;
      assert.ok(waits.outcome.kind === 'deferred' && waits.outcome.failure.code === 'processing_timeout');
      const next = await attempt(waits.next);
      published(next);
      assert.deepEqual(new Set(methods(next.since)), new Set(['getUploadStatus']));
    },
  );

  t(
    'parts that the service lost are sent again, and a service that loses them each time ends the attempt',
    async () => {
      const clip = await newClip();
      const adapter = world.adapter;
      let losses = 0;
      const losing = (times: number): NetworkHttp => ({
        send: (call: NetworkCall, signal: AbortSignal) => {
          if (call.url.includes('finishUpload') && losses < times) {
            losses += 1;
            for (const jobId of parts.open()) parts.uploads.get(jobId)?.parts.delete(2);
          }
          return world.http.send(call, signal);
        },
      });
      const once = await attempt(
        world.request(account, { media: [clip] }),
        new BlueskyAdapter({ ...world.options, http: losing(1) }),
      );
      published(once);
      assert.deepEqual(numbers(once.since), [1, 2, 3, 4, 2]);
      losses = 0;
      const never = new BlueskyAdapter({ ...world.options, http: losing(100) });
      const waits = await attempt(world.request(account, { media: [await newClip()] }), never);
      deferred(waits);
      assert.ok(losses < 6, `asked ${losses} times to finish`);
      published(await attempt(waits.next, adapter));
    },
  );

  t('a job that failed is not asked for again: the next attempt opens another upload', async () => {
    services.failNext('pds_upload_failure');
    const waits = await attempt(world.request(account, { media: [await newClip()] }));
    deferred(waits);
    const next = await attempt(waits.next);
    published(next);
    assert.equal(methods(next.since)[0], 'startUpload');
  });

  t('a service without such uploads gets the whole file, also where its plan is of no use', async () => {
    const byWhole = async (prepare: () => void) => {
      const before = services.uploads();
      const open = parts.open().length;
      prepare();
      const made = await attempt(world.request(account, { media: [await newClip()] }));
      published(made);
      assert.equal(services.uploads(), before + 1);
      assert.equal(parts.open().length, open, 'nothing stays open');
      return methods(made.since);
    };
    parts.isOffered = false;
    await byWhole(() => {});
    parts.isOffered = true;
    for (const status of [404, 400]) {
      const error = status === 400 ? 'InvalidRequest' : 'XRPCNotSupported';
      await byWhole(() => parts.faults.push({ method: 'startUpload', status, error }));
    }
    const plans = [{ partCount: 0 }, { partSizeBytes: 1, partCount: whole.bytes + 16 }, { partCount: 5 }];
    for (const plan of plans) {
      const made = await byWhole(() => {
        parts.planNext = plan;
      });
      assert.deepEqual(made, ['startUpload', 'abortUpload']);
    }
    for (const error of ['PartSizeMismatch', 'InvalidPartNumber']) {
      const made = await byWhole(() => parts.faults.push({ method: 'uploadPart', partNumber: 1, error }));
      assert.deepEqual(made, ['startUpload', 'uploadPart', 'abortUpload']);
    }
  });

  t('what the service refuses at the start is a limit, a permission, its own matter or the file', async () => {
    const refused = async (error: string, status = 400) => {
      const whole = services.uploads();
      parts.faults.push({ method: 'startUpload', error, status });
      const { outcome, steps } = await attempt(world.request(account, { media: [await newClip()] }));
      assert.ok('failure' in outcome && !steps.log.includes('boundary'), JSON.stringify(outcome));
      assert.equal(services.uploads(), whole, 'the whole file would be refused as well');
      return [outcome.kind, outcome.failure.category];
    };
    assert.deepEqual(await refused('DailyLimitExceeded'), ['rate_limited', 'rate_limited']);
    assert.deepEqual(await refused('RateLimitExceeded', 429), ['rate_limited', 'rate_limited']);
    for (const error of ['ServiceOverloaded', 'TooManyOpenUploads']) {
      assert.deepEqual(await refused(error), ['deferred', 'platform_down']);
    }
    assert.deepEqual(await refused('', 500), ['deferred', 'platform_down']);
    assert.deepEqual(await refused('UploadForbidden'), ['failed', 'permission']);
    for (const error of ['UnsupportedContentType', 'VideoTooLarge', 'VideoTooLong', 'BadAspectRatio']) {
      assert.deepEqual(await refused(error), ['failed', 'media']);
    }
  });

  t('another file in place of the first ends the first upload and opens its own', async () => {
    const first = await newClip();
    const busy = { method: 'uploadPart', partNumber: 2, error: 'ServiceOverloaded' };
    parts.faults.push(busy, busy, busy);
    const waits = await attempt(world.request(account, { media: [first] }));
    deferred(waits);
    const next = await attempt({ ...waits.next, media: [{ ...(await newClip()), mediaId: first.mediaId }] });
    published(next);
    assert.deepEqual(methods(next.since).slice(0, 2), ['abortUpload', 'startUpload']);
    assert.deepEqual(numbers(next.since), [1, 2, 3, 4]);
  });

  /** The account's server as it answers for a consent without the permissions of uploads in parts. */
  const asOlderConsent: NetworkHttp = {
    send: async (call: NetworkCall, signal: AbortSignal): Promise<NetworkResult> => {
      const asked = new URL(call.url);
      const method = asked.searchParams.get('lxm') ?? '';
      if (!asked.pathname.endsWith('getServiceAuth') || !method.startsWith('app.bsky.video.')) {
        return world.http.send(call, signal);
      }
      const message = `Missing required scope "rpc:${method}?aud=${asked.searchParams.get('aud')}"`;
      return { kind: 'answered', status: 403, headers: {}, body: Buffer.from(JSON.stringify({ error: '', message })) };
    },
  };

  t(
    'a service that wants a token for each method gets one; an older consent, which has none, sends the whole file',
    async () => {
      parts.wantsOwnTokens = true;
      const made = await attempt(world.request(account, { media: [await newClip()] }));
      published(made);
      const calls = sent(made.since);
      assert.deepEqual(
        calls.map(({ method, tokenFor }) => [method, tokenFor]),
        [
          ['startUpload', 'com.atproto.repo.uploadBlob'],
          ['startUpload', 'app.bsky.video.startUpload'],
          ...Array(4).fill(['uploadPart', 'app.bsky.video.uploadPart']),
          ['finishUpload', 'com.atproto.repo.uploadBlob'],
        ],
        'one refusal is enough, and the service uploads with the last token',
      );
      const before = services.uploads();
      const older = new BlueskyAdapter({ ...world.options, http: asOlderConsent });
      const whole = await attempt(world.request(account, { media: [await newClip()] }), older);
      parts.wantsOwnTokens = false;
      published(whole);
      assert.equal(services.uploads(), before + 1);
      // The service that takes the token of an upload takes it of an older consent as well.
      const usual = await attempt(world.request(account, { media: [await newClip()] }), older);
      published(usual);
      assert.equal(services.uploads(), before + 1);
    },
  );

  t(
    'a long upload finishes with a new token, and one that outlives the session waits for the next attempt',
    async () => {
      let isEnded = false;
      const tokens: string[] = [];
      const slow: NetworkHttp = {
        send: async (call: NetworkCall, signal: AbortSignal): Promise<NetworkResult> => {
          const asked = new URL(call.url);
          if (asked.pathname.endsWith('uploadPart') && asked.searchParams.get('partNumber') === '4') {
            services.aheadMs += 15 * 60_000;
          }
          if (asked.pathname.startsWith('/xrpc/app.bsky.video.') && call.method === 'POST') {
            tokens.push(call.headers.authorization ?? '');
          }
          if (isEnded && asked.pathname.endsWith('getServiceAuth') && services.aheadMs > 0) {
            const body = Buffer.from(JSON.stringify({ error: 'ExpiredToken', message: 'Token has expired' }));
            return { kind: 'answered', status: 400, headers: {}, body };
          }
          return world.http.send(call, signal);
        },
      };
      const adapter = new BlueskyAdapter({ ...world.options, http: slow });
      published(await attempt(world.request(account, { media: [await newClip()] }), adapter));
      assert.equal(new Set(tokens.slice(0, -1)).size, 1);
      assert.notEqual(tokens.at(-1), tokens[0], 'the service keeps this one for its own upload');
      services.aheadMs = 0;
      isEnded = true;
      const waits = await attempt(world.request(account, { media: [await newClip()] }), adapter);
      services.aheadMs = 0;
      assert.ok(waits.outcome.kind === 'deferred', JSON.stringify(waits.outcome));
      const next = await attempt(waits.next);
      published(next);
      assert.deepEqual(numbers(next.since), []);
    },
  );
});
