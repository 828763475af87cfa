/** What the adapter of Pinterest does beyond the suite of all networks. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';
import { problems } from '#test/support/networks/pinterest/index.ts';
import {
  afterNothing,
  type HeldFiles,
  heldFiles,
  type PinterestWorld,
  pinterestWorld,
  pngOf,
} from '#test/support/networks/pinterest/world.ts';
import { suite } from '#test/support/suite.ts';

const route = 'POST /v5/pins';

suite('pinterest', { alone: true }, (t) => {
  let world: PinterestWorld;
  let files: HeldFiles;
  // Times of Pinterest have no zone: on a machine of another one they are of UTC all the same.
  const zone = process.env.TZ;
  t.before(() => {
    process.env.TZ = 'Asia/Tokyo';
    files = heldFiles();
  });
  t.after(() => {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
    files.remove();
  });
  t.before.each(async () => {
    world = await pinterestWorld();
  });
  t.after.each(() => world.network.close());

  const made = () => world.network.state.pins.length;
  const routesOf = () =>
    world.network.state.calls.map(({ method, path: at }) => `${method} ${at.replace(/\d{18}/, ':id')}`);
  const counted = (name: string) => routesOf().filter((one) => one === name).length;
  const kept = async (accountId: string) => {
    const credential = await world.credentials.read(accountId);
    assert.ok(credential !== null);
    return credential;
  };
  const uploads = () => [...world.network.state.uploads.values()];

  t('a call that is accepted and dropped is unknown, is found on its board, and is never sent again', async () => {
    for (const then of [
      'drop_after',
      { answerAfter: problems.unavailable },
      { answerAfter: problems.timeout },
    ] as const) {
      world.network.script({ route, then });
      const content = `Two  spaces,\na line & <more> ${randomUUID()}`;
      const account = await world.account();
      const overrides = { boardId: world.boardOf(account).id, title: 'Autumn', link: 'https://example.com' };
      const request = world.request(account, { content, overrides, media: [files.picture()] });
      const before = made();
      const { outcome, steps } = await world.publish(request);
      assert.equal(outcome.kind, 'unknown');
      const creates = world.network.state.creates.length;
      const seen = await world.adapter.reconcile(request, steps.crossed);
      assert.ok(seen.kind === 'present', JSON.stringify(seen));
      assert.equal(seen.externalId, world.network.state.pins.at(-1)?.id);
      assert.equal(seen.permalink, `https://www.pinterest.com/pin/${seen.externalId}/`);
      assert.ok(Math.abs(Date.parse(seen.publishedAt) - Date.now()) < 5_000, seen.publishedAt);
      assert.deepEqual([world.network.state.creates.length, made()], [creates, before + 1]);
      const changed = await world.adapter.reconcile({ ...request, content: 'Changed' }, steps.crossed);
      assert.equal(changed.kind, 'undecided');
    }
  });

  t('a pin of somebody else, of another kind or from before the call is none of a lost call', async () => {
    const [owner, guest] = [world.network.person(), world.network.person()];
    const board = world.network.board(owner, { collaborators: [guest.id] });
    const [ours, theirs] = [await world.account(owner), await world.account(guest)];
    const overrides = { boardId: board.id, title: 'Same' };
    const one = { overrides, media: [files.picture()] };
    assert.equal((await world.publish(world.request(ours, one))).outcome.kind, 'published');
    world.network.state.advance(120_000);
    assert.equal((await world.publish(world.request(theirs, one))).outcome.kind, 'published');
    const two = { overrides, media: [files.picture(), files.picture()] };
    assert.equal((await world.publish(world.request(ours, two))).outcome.kind, 'published');
    world.network.script({ route, then: 'drop_before' });
    const request = world.request(ours, one);
    const { steps } = await world.publish(request);
    assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'absent');
    const lost = world.request(ours, { ...one, content: 'Mine' });
    world.network.script({ route, then: 'drop_after' });
    const { steps: crossed } = await world.publish(lost);
    const seen = await world.adapter.reconcile(lost, crossed.crossed);
    assert.ok(seen.kind === 'present' && seen.externalId === world.network.state.pins.at(-1)?.id);
  });

  t('what a board does not list in four pages is undecided, and a network that is down as well', async () => {
    const account = await world.account();
    world.network.script({ route, then: 'drop_before' });
    const request = world.request(account, { media: [files.picture()] });
    const { steps } = await world.publish(request);
    assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'absent');
    world.network.script({ route: 'GET /v5/boards/:id/pins', then: { answer: problems.unavailable } });
    const down = await world.adapter.reconcile(request, steps.crossed);
    assert.ok(down.kind === 'undecided' && down.failure?.category === 'platform_down');
    await world.publish(world.request(account, { content: 'Another', media: [files.picture()] }));
    const { pins } = world.network.state;
    const [one] = pins;
    assert.ok(one !== undefined);
    for (let at = 0; at < 1_200; at += 1) pins.push({ ...one, id: String(BigInt(one.id) + BigInt(at + 1_000)) });
    assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'undecided');
    assert.equal(counted('GET /v5/boards/:id/pins'), 6);
    const [last] = world.http.calls.slice(-1);
    assert.equal(new URL(last?.url ?? '').searchParams.get('bookmark'), 'b750');
  });

  t('a lost pin that stands behind older ones on its board is found by its time, whatever the order', async () => {
    const account = await world.account();
    const media = [files.picture()];
    const { pins } = world.network.state;
    await world.publish(world.request(account, { content: 'Older', media }));
    const older = pins.at(-1) ?? assert.fail();
    world.network.state.advance(3_600_000);
    world.network.script({ route, then: 'drop_after' });
    const request = world.request(account, { content: 'Lost', media });
    const { steps } = await world.publish(request);
    const lost = pins.at(-1) ?? assert.fail();
    // Pinterest does not promise an order.
    for (let at = 0; at < 260; at += 1) pins.push({ ...older, id: String(BigInt(older.id) + BigInt(at + 1_000)) });
    const seen = await world.adapter.reconcile(request, steps.crossed);
    assert.ok(seen.kind === 'present', JSON.stringify(seen));
    assert.equal(seen.externalId, lost.id);
  });

  t('a list of boards that never ends is cut: by its bookmark that comes again, or by its pages', async () => {
    const account = await world.account();
    const items = [{ id: '549755885175', name: 'Recipes', privacy: 'PUBLIC' }];
    const ask = () => world.accounts?.choices('pinterest', account, 'boardId', AbortSignal.timeout(5_000));
    const boards = (bookmark: string) => ({
      route: 'GET /v5/boards',
      then: { answer: { status: 200, body: { items, bookmark } } },
    });
    for (let page = 0; page < 5; page += 1) world.network.script(boards(page % 2 === 0 ? 'one' : 'other'));
    const again = await ask();
    assert.ok(again?.kind === 'choices', JSON.stringify(again));
    assert.deepEqual([again.choices.length, again.isCut, counted('GET /v5/boards')], [1, true, 3]);
    world.network.state.faults.length = 0;
    for (let page = 0; page < 60; page += 1) world.network.script(boards(`b${page}`));
    const long = await ask();
    assert.ok(long?.kind === 'choices' && long.isCut, JSON.stringify(long));
    assert.ok(counted('GET /v5/boards') <= 3 + 20, String(counted('GET /v5/boards')));
  });

  t('a call that was not sent has made nothing: the publisher makes it again', async () => {
    const request = world.request(await world.account(), { media: [files.picture()] });
    const steps = new RecordedSteps(request, world.adapter.boundaryDeadlineMs);
    steps.atBoundary = () => world.network.close();
    const outcome = await world.adapter.publish(request, steps);
    assert.ok(outcome.kind === 'nothing_sent', JSON.stringify(outcome));
    assert.deepEqual([outcome.failure.category, outcome.failure.retryable], ['platform_down', true]);
    assert.equal(made(), 0);
  });

  t('a token with few minutes left is refreshed before it is used, and one that Pinterest refuses once', async () => {
    const account = await world.account();
    const first = await kept(account.id);
    world.network.state.advance(30 * 86_400_000 - 200_000);
    const media = [files.picture()];
    assert.equal((await world.publish(world.request(account, { media }))).outcome.kind, 'published');
    assert.deepEqual(routesOf(), ['POST /v5/oauth/token', route]);
    const second = await kept(account.id);
    assert.equal(second.version, 2);
    assert.notEqual(second.secret.refreshToken, first.secret.refreshToken);
    world.network.state.access.delete(String(second.secret.accessToken));
    const { outcome, steps } = await world.publish(world.request(account, { content: 'Again', media }));
    assert.equal(outcome.kind, 'published');
    assert.equal(steps.log.filter((one) => one === 'boundary').length, 1);
    assert.deepEqual(routesOf().slice(2), [route, 'POST /v5/oauth/token', route]);
    assert.equal(made(), 2);
  });

  t(
    'pictures are given by address, and where Pinterest cannot fetch them the next attempt sends the bytes',
    async () => {
      const account = await world.account();
      const address = `https://files.example/${randomUUID()}.png`;
      const media = [files.picture({ url: async () => address })];
      const request = world.request(account, { media });
      const first = await world.publish(request);
      assert.ok(first.outcome.kind === 'nothing_sent', JSON.stringify(first.outcome));
      assert.equal((await world.publish(afterNothing(request, first.steps))).outcome.kind, 'published');
      const sources = world.network.state.creates.map(({ body }) => (body as { media_source: object }).media_source);
      assert.deepEqual(
        sources.map((one) => (one as { source_type: string }).source_type),
        ['image_url', 'image_base64'],
      );
      assert.deepEqual(world.network.state.pins[0]?.pictures, [pngOf(1_000, 1_500)]);
      world.network.state.web.set(address, pngOf(600, 900));
      const later = world.request(account, { media });
      world.network.script({ route, then: { answer: problems.too_many_requests } });
      const { steps } = await world.publish(later);
      const limited = { ...later, attempt: 2, checkpoints: steps.checkpoints };
      assert.equal((await world.publish(limited)).outcome.kind, 'published');
      assert.deepEqual(
        world.network.state.pins[1]?.pictures,
        [pngOf(600, 900)],
        'a limit says nothing of the addresses',
      );
      assert.equal((await world.publish(world.request(account, { media }))).outcome.kind, 'published');
      assert.deepEqual(world.network.state.pins[2]?.pictures, [pngOf(600, 900)]);
    },
  );

  t('failure 25: a cover is the cover, and the file of the video alone goes where videos go', async () => {
    for (const isHosted of [false, true]) {
      const account = await world.account();
      const address = `https://files.example/${randomUUID()}.png`;
      const cover = files.picture({ use: 'cover', ...(isHosted ? { url: async () => address } : {}) }, [600, 900]);
      if (isHosted) world.network.state.web.set(address, pngOf(600, 900));
      const video = files.video({}, 300_000);
      const { outcome } = await world.publish(world.request(account, { media: [video], cover }));
      assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
      const upload = uploads().at(-1);
      assert.deepEqual([upload?.bytes, upload?.received], [300_000, 300_000]);
      assert.equal(upload?.head?.subarray(4, 8).toString(), 'ftyp');
      const pin = world.network.state.pins.at(-1);
      assert.deepEqual([pin?.kind, pin?.mediaId, pin?.pictures], ['video', upload?.id, [pngOf(600, 900)]]);
    }
    assert.equal(counted('POST /storage/'), 2);
    const storage = world.http.calls.filter(({ url }) => url.endsWith('/storage/'));
    assert.ok(
      storage.every(({ headers }) => headers.authorization === undefined),
      'the storage gets no token',
    );
  });

  t('failure 25: what is no video fails with the words of Pinterest, after a second try', async () => {
    const account = await world.account();
    const picture = files.picture({ kind: 'video', contentType: 'video/mp4' });
    const { outcome, steps } = await world.publish(world.request(account, { media: [picture] }));
    assert.ok(outcome.kind === 'failed');
    const { category, mediaId, platformMessage } = outcome.failure;
    assert.deepEqual([category, mediaId], ['media', picture.mediaId]);
    assert.match(platformMessage ?? '', /could not process/);
    assert.equal(counted('POST /v5/media'), 2);
    assert.ok(!steps.log.includes('boundary'));
  });

  t('a video that Pinterest forgot, or could process the second time, is published', async () => {
    const account = await world.account();
    const failed = { status: 200, body: { media_id: '1', media_type: 'video', status: 'failed' } };
    for (const answer of [failed, problems.media_not_found]) {
      world.network.script({ route: 'GET /v5/media/:id', then: { answer } });
      const before = uploads().length;
      const { outcome } = await world.publish(world.request(account, { media: [files.video()] }));
      assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
      assert.equal(uploads().length, before + 2);
      assert.equal(world.network.state.pins.at(-1)?.mediaId, uploads().at(-1)?.id);
    }
  });

  t('an upload goes on where it stopped, whatever stopped it', async () => {
    const account = await world.account();
    const stops = ['POST /v5/media', 'POST /storage/', 'GET /v5/media/:id', 'GET /v5/media/:id'];
    let request = world.request(account, { media: [files.video({}, 300_000)] });
    for (const [at, stop] of stops.entries()) {
      // A call that Pinterest has taken is as lost as one that never came.
      const then = at === 0 ? { answer: problems.unavailable } : 'drop_after';
      world.network.script({ route: stop, then });
      const { outcome, steps } = await world.publish(request);
      assert.ok(outcome.kind === 'deferred', JSON.stringify(outcome));
      assert.equal(outcome.failure.mediaId, request.media[0]?.mediaId);
      assert.ok(!steps.log.includes('boundary'));
      request = { ...request, attempt: request.attempt + 1, checkpoints: steps.checkpoints };
    }
    assert.equal((await world.publish(request)).outcome.kind, 'published');
    assert.deepEqual([uploads().length, counted('POST /v5/media'), counted('POST /storage/')], [1, 2, 1]);
    assert.equal(uploads()[0]?.received, 300_000, 'what arrived is not sent again');
  });

  t('an upload whose policy ended, or that the storage refuses, is registered anew', async () => {
    const account = await world.account();
    world.network.script({ route: 'POST /storage/', then: 'drop_before' });
    const request = world.request(account, { media: [files.video()] });
    const { steps } = await world.publish(request);
    world.network.state.advance(3_600_000);
    const again = { ...request, attempt: 2, checkpoints: steps.checkpoints };
    assert.equal((await world.publish(again)).outcome.kind, 'published');
    assert.equal(uploads().length, 2);
    const refusal = { status: 403, body: '<Error><Code>AccessDenied</Code></Error>' };
    world.network.script({ route: 'POST /storage/', then: { answer: refusal } });
    const next = world.request(account, { media: [files.video()] });
    const refused = await world.publish(next);
    assert.ok(refused.outcome.kind === 'deferred', JSON.stringify(refused.outcome));
    assert.match(refused.outcome.failure.platformMessage ?? '', /storage of Pinterest answers with 403/);
    const after = { ...next, attempt: 2, checkpoints: refused.steps.checkpoints };
    assert.equal((await world.publish(after)).outcome.kind, 'published');
    assert.equal(uploads().length, 4);
  });

  t('a video that is processed for long makes the post wait; the next attempt asks about the same upload', async () => {
    const slow = await pinterestWorld({}, {});
    try {
      const account = await slow.account();
      slow.network.state.processingLooks = 1_000;
      const adapter = slow.another({ pause: async (ms) => slow.network.state.advance(ms) }).adapter;
      const request = slow.request(account, { media: [files.video()] });
      const { outcome, steps } = await slow.publish(request, adapter);
      assert.ok(outcome.kind === 'deferred', JSON.stringify(outcome));
      assert.equal(outcome.failure.code, 'processing_timeout');
      // Signs of life, so that the publisher does not end the attempt.
      assert.ok(steps.checkpoints.length > 20);
      const looks = slow.network.state.calls.filter(({ method }) => method === 'GET').length;
      assert.ok(looks > 100 && looks < 130, `every five seconds for ten minutes, not ${looks}`);
      for (const upload of slow.network.state.uploads.values()) upload.looks = 0;
      const next = { ...request, attempt: 2, checkpoints: steps.checkpoints };
      assert.equal((await slow.publish(next, adapter)).outcome.kind, 'published');
      assert.equal(slow.network.state.uploads.size, 1);
    } finally {
      slow.network.close();
    }
  });

  t('the minute of an account names the time, and other accounts go on', async () => {
    const seen: [string, readonly ObservedWindow[]][] = [];
    const small = await pinterestWorld(
      { limits: { org_write: 2 } },
      { onLimits: (accountId, windows) => void seen.push([accountId, windows]) },
    );
    try {
      const [ann, bob] = [await small.account(), await small.account()];
      const post = async (account: typeof ann) =>
        (await small.publish(small.request(account, { media: [files.picture()] }))).outcome;
      assert.equal((await post(ann)).kind, 'published');
      const [accountId, windows] = seen[0] ?? ['', []];
      assert.deepEqual(
        [accountId, ...windows.map(({ name, seconds, limit, used }) => [name, seconds, limit, used])],
        [ann.id, ['calls in a minute', 60, 2, 1]],
      );
      assert.equal((await post(ann)).kind, 'published');
      const refused = await post(ann);
      assert.ok(refused.kind === 'rate_limited', JSON.stringify(refused));
      const left = Date.parse(refused.retryAt) - small.network.state.now();
      assert.ok(left > 50_000 && left <= 60_000, String(left));
      assert.equal((await post(bob)).kind, 'published');
      small.network.state.advance(60_001);
      assert.equal((await post(ann)).kind, 'published');
    } finally {
      small.network.close();
    }
  });

  t('the day of an app with trial access rests it: other accounts wait without a call', async () => {
    const trial = await pinterestWorld({ tier: 'trial', trialRefuses: false, limits: { org_write: 1 } });
    try {
      const [ann, bob] = [await trial.account(), await trial.account()];
      const post = async (account: typeof ann) =>
        (await trial.publish(trial.request(account, { media: [files.picture()] }))).outcome;
      assert.equal((await post(ann)).kind, 'published');
      assert.equal((await post(bob)).kind, 'rate_limited');
      const calls = trial.network.state.calls.length;
      const resting = await post(ann);
      assert.ok(resting.kind === 'rate_limited', JSON.stringify(resting));
      assert.equal(resting.failure.actor, 'service');
      assert.ok(Date.parse(resting.retryAt) - trial.network.state.now() > 86_000_000);
      assert.equal(trial.network.state.calls.length, calls);
      trial.network.state.advance(86_400_001);
      assert.equal((await post(ann)).kind, 'published');
    } finally {
      trial.network.close();
    }
  });

  t('a refusal without a time is asked again after a minute', async () => {
    world.network.script({ route, then: { answer: problems.too_many_requests } });
    const { outcome } = await world.publish(world.request(await world.account(), { media: [files.picture()] }));
    assert.ok(outcome.kind === 'rate_limited');
    const left = Date.parse(outcome.retryAt) - world.network.state.now();
    assert.ok(left > 55_000 && left <= 60_000, String(left));
  });

  t('what is secret of an upload and of an account is in no outcome and no checkpoint', async () => {
    const account = await world.account();
    const { secret } = await kept(account.id);
    const { outcome, steps } = await world.publish(world.request(account, { media: [files.video()] }));
    const reported = JSON.stringify([outcome, steps.checkpoints]);
    const [upload] = uploads();
    assert.ok(upload !== undefined && reported.includes(upload.id));
    for (const text of [secret.accessToken, secret.refreshToken, upload.signature, upload.policy].map(String)) {
      assert.ok(text.length > 20 && !reported.includes(text));
    }
  });

  t('the call that makes a pin has half a minute, since pictures are part of it', () => {
    assert.equal(world.another({ boundaryDeadlineMs: undefined }).adapter.boundaryDeadlineMs, 30_000);
  });
});
