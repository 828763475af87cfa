/** Uploads of the kit: what a worker that died leaves to the next, by each way in which networks take a file. */
import assert from 'node:assert/strict';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { PublishMedia } from '#contracts/ports/platform.ts';
import { failureOf, type Meaning, type NotOk } from '#infra/platforms/kit/errors.ts';
import type { Look } from '#infra/platforms/kit/upload.ts';
import { isUploadFailed, type Uploader, type UploadItem, upload } from '#infra/platforms/kit/upload.ts';
import { suite } from '#test/support/suite.ts';
import { appAt, type KitWorld, kitWorld, requestOf, videoOf } from './world.ts';

const dayMs = 86_400_000;
const partBytes = 4;

/** Parts with tags at secret addresses, as LinkedIn takes a video. */
type Parts = { readonly urn: string; readonly token: string; readonly tags: readonly string[] };

/** The network: what it has of each file. */
class PartsNetwork {
  readonly calls: string[] = [];
  readonly received: string[] = [];
  finished: readonly string[] | null = null;
  looks: Look[] = [{ kind: 'ready' }];
  /** Name of the call that fails next, after it was taken. */
  fails: string | null = null;
  until: string | null = null;

  #lost(call: string): boolean {
    this.calls.push(call);
    const isLost = this.fails === call;
    if (isLost) this.fails = null;
    return isLost;
  }

  readonly silent = { kind: 'silent', reason: 'connection lost' } as const;

  uploader(): Uploader<Parts> {
    return {
      secrets: ['token'],
      start: async () => {
        if (this.#lost('start')) return this.silent;
        const urn = `urn:${this.calls.filter((one) => one === 'start').length}`;
        return { kind: 'started', own: { urn, token: 'secret-address', tags: [] }, until: this.until };
      },
      send: async (media, own, sent, keep) => {
        let tags = own.tags;
        for (let at = sent; at < media.bytes; at += partBytes) {
          const part = at / partBytes;
          if (this.#lost(`part ${part}`)) return this.silent;
          this.received.push(`${own.urn} ${own.token} ${part}`);
          tags = [...tags, `"etag-${part}"`];
          await keep({ ...own, tags }, Math.min(at + partBytes, media.bytes));
        }
        return null;
      },
      finish: async (_media, own, mayBeDone) => {
        if (mayBeDone && this.finished !== null) return { kind: 'finished', own, look: null };
        this.finished = own.tags;
        if (this.#lost('finish')) return this.silent;
        return { kind: 'finished', own: { ...own, tags: [] }, look: null };
      },
      look: async () => {
        if (this.#lost('look')) return this.silent;
        return (this.looks.length > 1 ? this.looks.shift() : this.looks[0]) ?? { kind: 'ready' };
      },
      everyMs: 5_000,
    };
  }
}

suite('uploads of the kit', (t) => {
  let world: KitWorld;
  let network: PartsNetwork;
  t.before.each(async () => {
    world = await kitWorld();
    network = new PartsNetwork();
  });
  t.after.each(() => world.close());

  let request = requestOf({ accountId: '1' });
  const media: PublishMedia = videoOf(partBytes * 10);
  /** One attempt, which goes on from the checkpoints of those before it. */
  const attempt = async (by = network.uploader(), of: PublishMedia = media) => {
    const steps = new RecordedSteps(request, 1_000);
    const result = await upload({ bound: world.bound, request, steps, waitMs: 60_000 }, of, by);
    request = { ...request, attempt: request.attempt + 1, checkpoints: [...request.checkpoints, ...steps.checkpoints] };
    return { result, steps };
  };
  t.before.each(() => {
    request = requestOf({ accountId: '1' });
  });

  t('parts keep their tags over attempts, and none that arrived is sent again', async () => {
    for (const lost of ['part 2', 'part 7', 'finish']) {
      network.fails = lost;
      const { result } = await attempt();
      assert.ok(isUploadFailed(result) && result.kind === 'deferred', lost);
      assert.equal(result.failure.mediaId, media.mediaId);
    }
    const { result } = await attempt();
    assert.ok(!isUploadFailed(result), JSON.stringify(result));
    assert.equal(result.urn, 'urn:1');
    assert.deepEqual(
      network.received,
      Array.from({ length: 10 }, (_, at) => `urn:1 secret-address ${at}`),
    );
    assert.deepEqual(
      network.finished,
      Array.from({ length: 10 }, (_, at) => `"etag-${at}"`),
    );
    assert.equal(network.calls.filter((one) => one === 'finish').length, 1, 'it is asked before it is finished again');
  });

  t('a worker that dies costs the parts of one checkpoint', async () => {
    const killed = new AbortController();
    const steps = new RecordedSteps(request, 1_000);
    const by = network.uploader();
    const dies: Uploader<Parts> = {
      ...by,
      send: (of, own, sent, keep) =>
        by.send?.(of, own, sent, async (...kept) => {
          await keep(...kept);
          if (kept[1] === partBytes * 7) killed.abort(new Error('killed'));
          killed.signal.throwIfAborted();
        }) ?? Promise.resolve(null),
    };
    await assert.rejects(upload({ bound: world.bound, request, steps }, media, dies), /killed/);
    request = { ...request, checkpoints: steps.checkpoints };
    assert.ok(!isUploadFailed((await attempt()).result));
    const again = network.received.length - 10;
    assert.equal(again, 3, 'of seven parts four were kept');
  });

  t('an upload that ended between two attempts begins anew, and is not the fault of the file', async () => {
    const refused = (means: Meaning, status: number): NotOk => ({
      ...{ kind: 'refused', status, headers: {}, body: null, row: { means }, named: 0 },
      failure: failureOf(means, String(status), 'no such upload'),
    });
    const ends = (step: 'send' | 'finish' | 'look', answer: NotOk): Uploader<Parts> => ({
      ...network.uploader(),
      [step]: async () => answer,
    });
    for (const [step, lost, means, status] of [
      ['send', 'part 6', 'gone', 404],
      ['send', 'part 6', 'content', 400],
      ['finish', 'finish', 'media', 400],
      ['look', 'look', 'gone', 404],
    ] as const) {
      [request, network] = [requestOf({ accountId: '1' }), new PartsNetwork()];
      network.fails = lost;
      await attempt();
      const { result: ended } = await attempt(ends(step, refused(means, status)));
      assert.ok(isUploadFailed(ended), step);
      assert.deepEqual(
        [ended.kind, ended.failure.retryable, ended.failure.mediaId],
        ['deferred', true, media.mediaId],
        step,
      );
      network.finished = null;
      const { result } = await attempt();
      assert.ok(!isUploadFailed(result) && result.urn === 'urn:2', step);
    }
    // One that has just begun has not ended: the file is at fault.
    request = requestOf({ accountId: '1' });
    const { result } = await attempt(ends('send', refused('media', 400)));
    assert.ok(isUploadFailed(result) && result.kind === 'failed');
    // An address that is not taken now is asked for anew.
    const { result: later } = await attempt(ends('send', refused('later', 403)));
    assert.ok(isUploadFailed(later) && later.kind === 'deferred');
    const begun = network.calls.filter((one) => one === 'start').length;
    await attempt();
    assert.equal(network.calls.filter((one) => one === 'start').length, begun + 1);
  });

  t('an address that takes a file is in no checkpoint, and another app opens none', async () => {
    network.fails = 'part 9';
    const { steps } = await attempt();
    assert.ok(steps.checkpoints.length > 0 && !JSON.stringify(steps.checkpoints).includes('secret-address'));
    const bound = { ...world.bound, app: appAt(world.origin, { secret: 'another' }) };
    const other = new RecordedSteps(request, 1_000);
    const result = await upload({ bound, request, steps: other }, media, network.uploader());
    assert.ok(!isUploadFailed(result) && result.urn === 'urn:2', 'it begins anew');
  });

  t('an upload that ends soon is begun anew, unless the network gave it more time', async () => {
    network.until = new Date(world.bound.clock() + 700_000).toISOString();
    network.fails = 'part 5';
    await attempt();
    world.pass(200_000);
    network.until = new Date(world.bound.clock() + 700_000).toISOString();
    network.fails = 'part 9';
    await attempt();
    assert.equal(network.calls.filter((one) => one === 'start').length, 2);
    const by = network.uploader();
    const later = new Date(world.bound.clock() + dayMs).toISOString();
    const given: Uploader<Parts> = {
      ...by,
      send: (of, own, sent, keep) =>
        by.send?.(of, own, sent, (next, bytes) => keep(next, bytes, later)) ?? Promise.resolve(null),
    };
    network.fails = 'finish';
    await attempt(given);
    world.pass(dayMs / 2);
    assert.ok(!isUploadFailed((await attempt()).result));
    assert.equal(network.calls.filter((one) => one === 'start').length, 2);
  });

  t('the network names the next look; else the uploader does; an attempt waits for so long and no longer', async () => {
    network.looks = [
      { kind: 'wait', ms: 100 },
      { kind: 'wait', ms: null },
      { kind: 'wait', ms: 90_000 },
      { kind: 'ready' },
    ];
    assert.ok(!isUploadFailed((await attempt()).result));
    assert.deepEqual(world.pauses, [1_000, 5_000, 25_000]);
    request = requestOf({ accountId: '1' });
    network.looks = [{ kind: 'wait', ms: null }];
    const { result, steps } = await attempt();
    assert.ok(isUploadFailed(result) && result.kind === 'deferred');
    assert.equal(result.failure.code, 'processing_timeout');
    const alive = steps.checkpoints.filter(({ data }) => (data as { state?: string }).state === 'processing');
    assert.ok(alive.length >= 3, 'signs of life');
    network.looks = [{ kind: 'ready' }];
    network.calls.splice(0);
    assert.ok(!isUploadFailed((await attempt()).result));
    assert.deepEqual(network.calls, ['look'], 'the next attempt asks about the same file at once');
  });

  t('what the network cannot make ready fails with its words, and the next attempt uploads it anew', async () => {
    network.looks = [
      { kind: 'wait', ms: null },
      { kind: 'broken', code: 'BAD', said: 'Too short' },
    ];
    const { result } = await attempt();
    assert.ok(isUploadFailed(result) && result.kind === 'failed');
    const { category, platformCode, platformMessage, mediaId } = result.failure;
    assert.deepEqual([category, platformCode, platformMessage, mediaId], ['media', 'BAD', 'Too short', media.mediaId]);
    network.looks = [{ kind: 'ready' }];
    const { result: second } = await attempt();
    assert.ok(!isUploadFailed(second) && second.urn === 'urn:2');
  });

  t('a file that the network fetches is registered once and looked at until it is there', async () => {
    const calls: string[] = [];
    let looks = 0;
    const fetched: Uploader<{ readonly container: string }> = {
      start: async (of) => {
        calls.push(`container of ${await of.url(1_000)}`);
        return { kind: 'started', own: { container: '17' }, until: null };
      },
      look: async ({ container }) => {
        looks += 1;
        calls.push(`look at ${container}`);
        return looks === 1 ? network.silent : { kind: 'ready' };
      },
    };
    const run = async () => {
      const steps = new RecordedSteps(request, 1_000);
      const result = await upload({ bound: world.bound, request, steps }, media, fetched);
      request = { ...request, checkpoints: [...request.checkpoints, ...steps.checkpoints] };
      return result;
    };
    assert.ok(isUploadFailed(await run()));
    assert.deepEqual(await run(), { container: '17' });
    assert.deepEqual(await run(), { container: '17' });
    assert.deepEqual(calls, ['container of ', 'look at 17', 'look at 17']);
  });

  t(
    'a process of the release before finds no upload of ours in the step that it reads, and we none of its own',
    async () => {
      const { steps } = await attempt();
      assert.ok(steps.checkpoints.length > 0 && steps.checkpoints.every((one) => one.step !== 'upload'));
      const { mediaId, sha256 } = media;
      const until = new Date(world.bound.clock() + dayMs).toISOString();
      const former = { mediaId, sha256, id: '17', until, segmentBytes: 4, next: 1, state: 'ready' };
      const kept = { attempt: 1, step: 'upload', data: former, deadline: null };
      request = { ...requestOf({ accountId: '1' }), checkpoints: [kept, { ...kept, step: 'file' }] };
      const { result } = await attempt();
      assert.ok(!isUploadFailed(result) && result.urn === 'urn:2');
    },
  );

  t('what is made of files before the post is kept like a file, and no failure of it names one', async () => {
    const calls: string[] = [];
    let look: Look | typeof network.silent = { kind: 'wait', ms: null };
    const container: Uploader<{ readonly id: string }, UploadItem> = {
      start: async ({ sha256 }) => {
        calls.push(sha256);
        return { kind: 'started', own: { id: String(calls.length) }, until: null };
      },
      look: async () => look,
    };
    const run = async (sha256: string, name = 'carousel') => {
      const steps = new RecordedSteps(request, 1_000);
      const item = { mediaId: null, name, sha256, bytes: 0 };
      const result = await upload({ bound: world.bound, request, steps, waitMs: 5_000 }, item, container);
      request = { ...request, checkpoints: [...request.checkpoints, ...steps.checkpoints] };
      return result;
    };
    const waits = await run('a');
    assert.ok(isUploadFailed(waits) && waits.failure.mediaId === null && waits.failure.code === 'processing_timeout');
    look = { kind: 'ready' };
    assert.deepEqual([await run('a'), await run('a')], [{ id: '1' }, { id: '1' }]);
    assert.deepEqual([await run('b'), await run('b', 'cover')], [{ id: '2' }, { id: '3' }]);
    assert.deepEqual(calls, ['a', 'b', 'b']);
  });

  t('a file of another content is another file', async () => {
    await attempt();
    await attempt(network.uploader(), { ...media, sha256: '1'.repeat(64) });
    await attempt(network.uploader(), { ...videoOf(partBytes) });
    assert.equal(network.calls.filter((one) => one === 'start').length, 3);
  });
});
