/** What the adapter of X does beyond the suite of all networks. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import { budgetAt } from '#infra/platforms/shared/app-budgets.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { mediaOf } from '#test/support/networks/world-parts.ts';
import { XAdapter } from '#test/support/networks/x/adapter.ts';
import { problems } from '#test/support/networks/x/index.ts';
import { type XWorld, xWorld } from '#test/support/networks/x/world.ts';
import { suite } from '#test/support/suite.ts';

const route = 'POST /2/tweets';
const folder = mkdtempSync(path.join(tmpdir(), 'x-adapter-'));
const file = path.join(folder, 'video');
const videoBytes = 9_000_000;
const video = () => mediaOf(file, { kind: 'video', contentType: 'video/mp4', bytes: videoBytes });

const readsOf = (limit: number, now: number) =>
  budgetAt({ name: 'reads', limit, zone: 'UTC', every: 'month', isShared: true }, now);

suite('x', (t) => {
  let world: XWorld;
  t.before(() => {
    writeFileSync(file, '');
    truncateSync(file, videoBytes);
  });
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  t.before.each(async () => {
    world = await xWorld();
  });
  t.after.each(() => world.network.close());

  const made = () => world.network.state.posts.length;
  const routesOf = () =>
    world.network.state.calls.map(({ method, path: at }) => `${method} ${at.replace(/\d{19}/, ':id')}`);
  const counted = (name: string) => routesOf().filter((one) => one === name).length;
  const kept = async (accountId: string) => {
    const credential = await world.credentials.read(accountId);
    assert.ok(credential !== null);
    return credential;
  };

  t('a call that is accepted and dropped is unknown, is found, and is never sent again', async () => {
    for (const then of [
      'drop_after',
      { answerAfter: problems.over_capacity },
      { answerAfter: problems.internal },
    ] as const) {
      world.network.script({ route, then });
      const content = `See https://example.com/${randomUUID()} & <more> from example.org`;
      const request = world.request(await world.account(), { content });
      const before = made();
      const { outcome, steps } = await world.publish(request);
      assert.equal(outcome.kind, 'unknown');
      const creates = world.network.state.creates.length;
      const seen = await world.adapter.reconcile(request, steps.crossed);
      assert.ok(seen.kind === 'present', JSON.stringify(seen));
      assert.equal(seen.externalId, world.network.state.posts.at(-1)?.id);
      assert.match(seen.permalink ?? '', /^https:\/\/x\.com\/user_\d+\/status\/\d+$/);
      assert.deepEqual([world.network.state.creates.length, made()], [creates, before + 1]);
    }
  });

  t('a lost post is found by its text, whatever its addresses are', async () => {
    const author = world.network.person();
    const { outcome: other } = await world.publish(world.request(await world.account(author)));
    assert.ok(other.kind === 'published');
    const contents = [
      "Dollars https://example.com/a$&b$$c and https://example.com/$'d",
      'Entities https://example.com/?a=1&amp;b=2',
      `An address of a post https://x.com/${author.username}/status/${other.externalId}`,
    ];
    const missed: string[] = [];
    for (const content of contents) {
      world.network.script({ route, then: 'drop_after' });
      const request = world.request(await world.account(), { content });
      const { outcome, steps } = await world.publish(request);
      assert.equal(outcome.kind, 'unknown', content);
      const seen = await world.adapter.reconcile(request, steps.crossed);
      if (seen.kind !== 'present') missed.push(`${content}: ${seen.kind}`);
    }
    assert.deepEqual(missed, []);
  });

  t('a lost quote is found, also where its text ends with the address that it quotes', async () => {
    const { outcome: other } = await world.publish(world.request(await world.account()));
    assert.ok(other.kind === 'published');
    const address = `https://x.com/i/status/${other.externalId}`;
    for (const content of ['Quoted', `Quoted ${address}`]) {
      const account = await world.account(world.network.person({ tier: 'enterprise' }));
      world.network.script({ route, then: 'drop_after' });
      const request = world.request(account, { content, overrides: { quoteTweetId: address } });
      const { outcome, steps } = await world.publish(request);
      assert.equal(outcome.kind, 'unknown', content);
      assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'present', content);
    }
  });

  t('a lost answer to a post of files alone is found by the keys of its files', async () => {
    const account = await world.account();
    const picture = () => mediaOf(file, { kind: 'image', contentType: 'image/png', bytes: 900 });
    await world.publish(world.request(account, { content: '', media: [picture()] }));
    world.network.script({ route, then: 'drop_after' });
    const request = world.request(account, { content: '', media: [picture()] });
    const { outcome, steps } = await world.publish(request);
    assert.equal(outcome.kind, 'unknown');
    const seen = await world.adapter.reconcile(request, steps.crossed);
    assert.ok(seen.kind === 'present', JSON.stringify(seen));
    assert.equal(seen.externalId, world.network.state.posts.at(-1)?.id);
    const changed = await world.adapter.reconcile({ ...request, content: 'Changed' }, steps.crossed);
    assert.equal(changed.kind, 'undecided');
  });

  t('a call that was not sent, or that X refuses for now, has made nothing: the publisher makes it again', async () => {
    const account = await world.account();
    const answer = { status: 409, body: { title: 'Try again', detail: 'Later.', status: 409 } };
    for (const { status, body } of [problems.over_capacity, answer]) {
      world.network.script({ route, then: { answer: { status, body } } });
      const { outcome } = await world.publish(world.request(account));
      assert.notEqual(outcome.kind, 'deferred', 'that is said before the boundary alone');
    }
    const request = world.request(account);
    const steps = new RecordedSteps(request, world.adapter.boundaryDeadlineMs);
    steps.atBoundary = () => world.network.close();
    const outcome = await world.adapter.publish(request, steps);
    assert.ok(outcome.kind === 'nothing_sent', JSON.stringify(outcome));
    assert.deepEqual([outcome.failure.category, outcome.failure.retryable], ['platform_down', true]);
    assert.equal(made(), 0);
  });

  t('what X does not list in four pages is undecided, and a network that is down as well', async () => {
    const account = await world.account();
    world.network.script({ route, then: 'drop_before' });
    const request = world.request(account);
    const { steps } = await world.publish(request);
    assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'absent');
    world.network.script({ route: 'GET /2/users/:id/tweets', then: { answer: problems.over_capacity } });
    assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'undecided');
    const { posts } = world.network.state;
    const { outcome } = await world.publish(world.request(account, { content: 'Another' }));
    assert.equal(outcome.kind, 'published');
    const [one] = posts;
    assert.ok(one !== undefined);
    for (let at = 0; at < 500; at += 1) posts.push({ ...one, id: String(BigInt(one.id) + BigInt(at + 1_000)) });
    assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'undecided');
    assert.equal(counted('GET /2/users/:id/tweets'), 6);
  });

  t('a token with few minutes left is refreshed before it is used, and one that X refuses once', async () => {
    const account = await world.account();
    const first = await kept(account.id);
    world.network.state.advance(7_200_000 - 200_000);
    assert.equal((await world.publish(world.request(account))).outcome.kind, 'published');
    assert.deepEqual(routesOf(), ['POST /2/oauth2/token', route]);
    const second = await kept(account.id);
    assert.equal(second.version, 2);
    assert.notEqual(second.secret.refreshToken, first.secret.refreshToken);
    world.network.state.access.delete(String(second.secret.accessToken));
    const { outcome, steps } = await world.publish(world.request(account, { content: 'Again' }));
    assert.equal(outcome.kind, 'published');
    assert.equal(steps.log.filter((one) => one === 'boundary').length, 1);
    assert.deepEqual(routesOf().slice(2), [route, 'POST /2/oauth2/token', route]);
    assert.equal(made(), 2);
  });

  t('a refresh token that X no longer takes, or none, asks for a new consent; nothing is sent', async () => {
    for (const spoil of ['spent', 'none', 'missing'] as const) {
      const account = await world.account();
      const { secret } = await kept(account.id);
      world.network.state.advance(7_200_000);
      if (spoil === 'spent') world.network.state.refresh.delete(String(secret.refreshToken));
      const owner = world.credentials.kept.get(account.id)?.owner;
      const { refreshToken: _, ...rest } = secret;
      if (spoil === 'none' && owner !== undefined)
        await world.credentials.keep(owner, { secret: rest, expiresAt: null });
      if (spoil === 'missing') await world.credentials.destroy(account.id);
      const { outcome, steps } = await world.publish(world.request(account));
      assert.ok(outcome.kind === 'failed');
      assert.equal(outcome.failure.category, 'reauth_required');
      assert.ok(!steps.log.includes('boundary'));
    }
    assert.equal(counted(route), 0);
  });

  t(
    'a token that X refuses and that cannot be refreshed now makes the post wait, and not the account lapse',
    async () => {
      const account = await world.account();
      world.network.state.access.delete(String((await kept(account.id)).secret.accessToken));
      world.network.script({ route: 'POST /2/oauth2/token', then: { answer: problems.over_capacity } });
      const { outcome } = await world.publish(world.request(account));
      assert.ok(outcome.kind === 'rate_limited', JSON.stringify(outcome));
      assert.equal(outcome.failure.category, 'platform_down');
      assert.equal((await world.publish(world.request(account))).outcome.kind, 'published');
      assert.equal(made(), 1);
    },
  );

  t('a network that is down while a file is uploaded makes the post wait', async () => {
    const account = await world.account();
    const picture = mediaOf(file, { kind: 'image', contentType: 'image/png', bytes: 900 });
    for (const then of ['drop_before', { answer: problems.over_capacity }, 'drop_after'] as const) {
      world.network.script({ route: 'POST /2/media/upload', then });
      const { outcome, steps } = await world.publish(world.request(account, { media: [picture] }));
      assert.ok(outcome.kind === 'deferred', JSON.stringify(outcome));
      assert.equal(outcome.failure.category, 'platform_down');
      assert.equal(outcome.failure.mediaId, picture.mediaId);
      assert.ok(!steps.log.includes('boundary'));
    }
    const gone = new XAdapter({ ...world.options, api: 'http://127.0.0.1:9' });
    assert.equal((await world.publish(world.request(account, { media: [picture] }), gone)).outcome.kind, 'deferred');
  });

  t('an app without credit rests as a whole: other accounts wait without a call', async () => {
    const [one, other] = [await world.account(), await world.account()];
    world.network.state.isUnpaid = true;
    const first = await world.publish(world.request(one));
    assert.ok(first.outcome.kind === 'rate_limited');
    const calls = world.network.state.calls.length;
    const second = await world.publish(world.request(other));
    assert.ok(second.outcome.kind === 'rate_limited');
    assert.equal(second.outcome.failure.actor, 'service');
    assert.ok(!second.steps.log.includes('boundary'));
    const comment = { targetId: randomUUID(), platform: 'x', account: other, externalId: '1', content: 'C' } as const;
    assert.equal((await world.adapter.comment(comment, AbortSignal.timeout(1_000))).kind, 'rate_limited');
    assert.equal(world.network.state.calls.length, calls);
    world.network.state.isUnpaid = false;
    world.network.state.advance(900_001);
    assert.equal((await world.publish(world.request(other))).outcome.kind, 'published');
  });

  t('an app that has read as much as it may reads no more, and still posts', async () => {
    const account = await world.account();
    world.network.script({ route: 'GET /2/users/me', then: { answer: problems.usage_capped } });
    const figures = () => world.adapter.fetchAccountInsights('x', account, AbortSignal.timeout(5_000));
    for (let at = 0; at < 2; at += 1) assert.equal((await figures()).kind, 'rate_limited');
    assert.equal(counted('GET /2/users/me'), 1);
    assert.equal((await world.publish(world.request(account))).outcome.kind, 'published');
  });

  t('the empty bucket that is refilled last names the time; that of the app rests the app', async () => {
    const small = await xWorld({ limits: { person: { [route]: 1 }, personDay: 2, appDay: 3 } });
    try {
      const seen: [string, readonly ObservedWindow[]][] = [];
      const onLimits = (accountId: string, windows: readonly ObservedWindow[]) => seen.push([accountId, windows]);
      const adapter = new XAdapter({ ...small.options, appLimits: new MemoryAppLimits(), onLimits });
      const post = async (account: Parameters<XWorld['request']>[0]) =>
        (await small.publish(small.request(account, { content: randomUUID() }), adapter)).outcome;
      const inMs = (at: string) => Date.parse(at) - small.network.state.now();
      const [ann, bob, eve] = [await small.account(), await small.account(), await small.account()];
      assert.equal((await post(ann)).kind, 'published');
      const [accountId, windows] = seen[0] ?? ['', []];
      assert.equal(accountId, ann.id);
      assert.deepEqual(
        windows.map(({ seconds, limit, used }) => [seconds, limit, used]),
        [
          [900, 1, 1],
          [86_400, 2, 1],
        ],
      );
      const quarter = await post(ann);
      assert.ok(quarter.kind === 'rate_limited' && inMs(quarter.retryAt) < 902_000 && inMs(quarter.retryAt) > 890_000);
      small.network.state.advance(900_001);
      assert.equal((await post(ann)).kind, 'published');
      const day = await post(ann);
      assert.ok(day.kind === 'rate_limited' && inMs(day.retryAt) > 80_000_000, JSON.stringify(day));
      assert.equal((await post(bob)).kind, 'published');
      assert.equal((await post(eve)).kind, 'rate_limited');
      const calls = small.network.state.calls.length;
      const resting = await post(eve);
      assert.ok(resting.kind === 'rate_limited' && inMs(resting.retryAt) > 80_000_000);
      assert.equal(small.network.state.calls.length, calls);
    } finally {
      small.network.close();
    }
  });

  t('an upload goes on where it stopped, whatever stopped it', async () => {
    const account = await world.account();
    const media = video();
    const to = (step: string) => `POST /2/media/upload/${step}`;
    const stops = [
      { route: to('initialize'), says: 'tweet_video' },
      { route: to(':id/append') },
      { route: to(':id/finalize') },
      { route: 'GET /2/media/upload' },
      { route: 'GET /2/media/upload' },
    ];
    let request = world.request(account, { media: [media] });
    for (const [at, stop] of stops.entries()) {
      // A call that X has taken is as lost as one that never came.
      const then = at === 0 ? { answer: problems.over_capacity } : 'drop_after';
      world.network.script({ ...stop, then });
      const { outcome, steps } = await world.publish(request);
      assert.equal(outcome.kind, 'deferred', JSON.stringify(outcome));
      request = { ...request, attempt: request.attempt + 1, checkpoints: steps.checkpoints };
    }
    assert.equal((await world.publish(request)).outcome.kind, 'published');
    const uploads = [...world.network.state.uploads.values()];
    assert.equal(uploads.length, 1);
    assert.equal(counted(to('initialize')), 2);
    assert.equal(counted(to(':id/finalize')), 1);
    assert.equal(uploads[0]?.received, videoBytes + 4_000_000, 'one segment came twice');
  });

  t('an upload that X has forgotten, or that ends soon, is begun anew', async () => {
    const account = await world.account();
    const media = video();
    world.network.script({ route: 'POST /2/media/upload/:id/finalize', then: { answer: problems.over_capacity } });
    const request = world.request(account, { media: [media] });
    const { steps } = await world.publish(request);
    world.network.state.advance(15 * 86_400_000);
    const again = await world.publish({ ...request, attempt: 2, checkpoints: steps.checkpoints });
    assert.equal(again.outcome.kind, 'published', JSON.stringify(again.outcome));
    assert.equal(world.network.state.uploads.size, 2);
  });

  t('X is asked about a video when it says so, and what it cannot process fails with its words', async () => {
    const account = await world.account();
    assert.equal((await world.publish(world.request(account, { media: [video()] }))).outcome.kind, 'published');
    assert.deepEqual(world.pauses, [1_000, 5_000]);
    const error = { code: 3, name: 'UnsupportedMedia', message: 'Duration exceeds max duration' };
    for (const state of ['failed', 'in_progress'] as const) {
      world.network.state.processing = [
        { state: 'pending', check_after_secs: 1 },
        { state, error },
      ];
      const media = video();
      const { outcome } = await world.publish(world.request(account, { content: state, media: [media] }));
      assert.ok(outcome.kind === 'failed');
      const { category, platformCode, platformMessage, mediaId } = outcome.failure;
      assert.deepEqual(
        [category, platformCode, platformMessage, mediaId],
        ['media', error.name, error.message, media.mediaId],
      );
    }
  });

  t('a video that is processed for long makes the post wait; the next attempt asks about the same upload', async () => {
    const account = await world.account();
    world.network.state.processing = [{ state: 'in_progress', check_after_secs: 60 }];
    const pause = async (ms: number) => world.network.state.advance(ms);
    const adapter = new XAdapter({ ...world.options, pause, processingMs: 120_000 });
    const request = world.request(account, { media: [video()] });
    const { outcome, steps } = await world.publish(request, adapter);
    assert.ok(outcome.kind === 'deferred');
    assert.equal(outcome.failure.code, 'processing_timeout');
    // Signs of life, so that the publisher does not end the attempt.
    assert.ok(steps.checkpoints.filter(({ data }) => (data as { state?: string }).state === 'processing').length >= 4);
    for (const upload of world.network.state.uploads.values()) upload.processing = [{ state: 'succeeded' }];
    const next = { ...request, attempt: 2, checkpoints: steps.checkpoints };
    assert.equal((await world.publish(next, adapter)).outcome.kind, 'published');
    assert.equal(counted('POST /2/media/upload/initialize'), 1);
  });

  t('a create with a file that X still processes is refused', async () => {
    const account = await world.account();
    world.network.script({
      route: 'GET /2/media/upload',
      then: { answer: { status: 200, body: { data: { id: 'x', processing_info: { state: 'succeeded' } } } } },
    });
    const { outcome } = await world.publish(world.request(account, { media: [video()] }));
    assert.equal(outcome.kind, 'deferred', 'the answer is about another file');
    const { accessToken } = (await kept(account.id)).secret;
    const [upload] = [...world.network.state.uploads.values()];
    const answer = await fetch(`${world.network.origin}/2/tweets`, {
      method: 'POST',
      headers: { authorization: `Bearer ${String(accessToken)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ media: { media_ids: [upload?.id] } }),
    });
    assert.equal(answer.status, 400);
  });

  t('figures are read by the hundred, apart for posts older than 30 days, within a monthly budget', async () => {
    const account = await world.account();
    const content = () => randomUUID();
    const old = await world.publish(world.request(account, { content: content() }));
    // To the last minutes of a month, when no workspace has a share that is smaller than all.
    const day = new Date(world.network.state.now() + 31 * 86_400_000);
    const end = Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1) - 600_000;
    world.network.state.advance(end - world.network.state.now());
    const fresh = await world.publish(world.request(account, { content: content(), media: [video()] }));
    assert.ok(old.outcome.kind === 'published' && fresh.outcome.kind === 'published');
    const subject = ({ externalId, publishedAt }: { externalId: string; publishedAt: string }, hasVideo = false) => ({
      ...{ targetId: randomUUID(), externalId, publishedAt, use: 'feed' as const, hasVideo },
    });
    const missing = Array.from({ length: 120 }, (_, at) =>
      subject({ externalId: String(7_000 + at), publishedAt: fresh.steps.crossed.deadline ?? '' }),
    );
    const asked = [subject(old.outcome), subject(fresh.outcome, true), ...missing];
    const adapter = new XAdapter({ ...world.options, monthlyReads: 150 });
    const all = async () => {
      const answers = [];
      for await (const one of adapter.fetchPostInsights('x', account, asked, AbortSignal.timeout(5_000)))
        answers.push(one);
      return answers;
    };
    const answers = await all();
    assert.deepEqual(
      answers.map(({ kind }) => kind),
      ['reported', 'reported', ...missing.map(() => 'removed')],
    );
    const [first, second] = answers;
    assert.ok(first?.kind === 'reported' && second?.kind === 'reported');
    assert.ok(!first.fields?.includes('clicks') && second.fields?.includes('clicks'));
    assert.ok(second.fields?.includes('videoViews') && JSON.stringify(second.raw).includes('view_count'));
    const lookUps = world.network.state.calls
      .filter(({ path: at }) => at === '/2/tweets')
      .filter(({ method }) => method === 'GET');
    assert.equal(lookUps.length, 3);
    assert.ok(!JSON.stringify(answers).includes('not-authorized-for-field'));
    const later = await all();
    assert.ok(
      later.some(({ kind }) => kind === 'rate_limited'),
      'the second hundred is over the budget',
    );
    const { appLimits } = world.options;
    const reader = { app: `x:${world.options.app.clientId}`, workspaceId: account.workspaceId };
    const used = async () => {
      for (let reads = 0; ; reads += 1) {
        const budget = readsOf(150, world.options.clock());
        if ((await appLimits.take(reader, 150 - reads, budget, world.options.clock())) === 'taken') {
          await appLimits.giveBack(reader, 150 - reads, budget);
          return reads;
        }
      }
    };
    const before = await used();
    for (let n = 0; n < 2; n += 1)
      world.network.script({ route: 'GET /2/tweets', then: { answer: problems.over_capacity } });
    await all();
    assert.equal(await used(), before, 'X bills no answer in which it shows nothing');
  });

  t('a workspace with thousands of posts leaves another its reads of the month', async () => {
    let now = Date.parse('2026-03-01T00:00:00.000Z');
    const own = await xWorld({}, { clock: () => now, appLimits: new MemoryAppLimits(), monthlyReads: 2_223 });
    try {
      const [large, small] = [await own.account(), await own.account()];
      const posts = (length: number) =>
        Array.from({ length }, (_, at) => ({
          ...{ targetId: randomUUID(), externalId: String(7_000 + at), publishedAt: new Date(now).toISOString() },
          ...{ use: 'feed' as const, hasVideo: false },
        }));
      const read = async (account: typeof large, length: number) => {
        const answers = [];
        const signal = AbortSignal.timeout(20_000);
        for await (const one of own.adapter.fetchPostInsights('x', account, posts(length), signal)) answers.push(one);
        const refused = answers.find(({ kind }) => kind === 'rate_limited');
        const seen = answers.filter(({ kind }) => kind !== 'rate_limited').length;
        return [seen, refused?.kind === 'rate_limited' ? refused.retryAt : null];
      };
      assert.deepEqual(await read(large, 5_000), [1_000, '2026-03-02T00:00:00.000Z']);
      assert.deepEqual(await read(small, 400), [400, null]);
      now += 15 * 86_400_000;
      assert.deepEqual(await read(large, 5_000), [200, '2026-03-17T00:00:00.000Z']);
      assert.deepEqual(await read(small, 400), [400, null]);
      now += 16 * 86_400_000 - 1;
      assert.deepEqual(await read(large, 5_000), [0, '2026-04-01T00:00:00.000Z']);
    } finally {
      own.network.close();
    }
  });

  t('a reconcile reads the minutes around the call alone, and costs what X shows', async () => {
    const monthlyReads = 1_000;
    const adapter = new XAdapter({ ...world.options, monthlyReads });
    const account = await world.account();
    world.network.script({ route, then: 'drop_after' });
    const request = world.request(account);
    const { steps } = await world.publish(request, adapter);
    world.network.state.advance(3_600_000);
    const { posts } = world.network.state;
    const [one] = posts;
    assert.ok(one !== undefined);
    const at = world.network.state.now() - 600_000;
    for (let more = 0; more < 250; more += 1) posts.push({ ...one, at, id: String(BigInt(one.id) + BigInt(more + 1)) });
    assert.equal((await adapter.reconcile(request, steps.crossed)).kind, 'present');
    assert.equal(counted('GET /2/users/:id/tweets'), 1);
    const [asked] = world.http.calls.slice(-1);
    assert.ok(new URL(asked?.url ?? '').searchParams.has('end_time'));
    const { appLimits, app, clock } = world.options;
    const reader = { app: `x:${app.clientId}`, workspaceId: randomUUID() };
    const take = (amount: number, limit: number, workspaceId: string = reader.workspaceId) =>
      appLimits.take({ ...reader, workspaceId }, amount, readsOf(limit, clock()), clock());
    assert.equal(await take(1_000, monthlyReads), 'spent');
    assert.equal(await take(999, 2_000, request.workspaceId), 'taken');
    assert.equal(await take(1, monthlyReads), 'spent', 'one post was read');
  });

  t(
    'what reads is counted: without reads none is asked for; a lost answer has a tenth that figures leave',
    async () => {
      const account = await world.account();
      world.network.script({ route, then: 'drop_after' });
      const request = world.request(account);
      const { steps } = await world.publish(request);
      const reads = () => world.network.state.calls.filter(({ method }) => method === 'GET').length;
      const none = new XAdapter({ ...world.options, monthlyReads: 0 });
      const within = () => AbortSignal.timeout(5_000);
      const refused = await none.reconcile(request, steps.crossed);
      assert.ok(refused.kind === 'undecided');
      assert.match(JSON.stringify(refused), /X_MONTHLY_READS/);
      const from = new Date(world.options.clock() - 60_000).toISOString();
      const until = new Date(world.options.clock() + 60_000).toISOString();
      assert.equal((await none.findPosts({ ...request, from, until })).kind, 'undecided');
      assert.equal((await none.fetchAccountInsights('x', account, within())).kind, 'rate_limited');
      assert.equal(reads(), 0);

      const monthlyReads = 250;
      const some = new XAdapter({ ...world.options, appLimits: new MemoryAppLimits(), monthlyReads });
      const figures = () => some.fetchAccountInsights('x', account, within());
      let answers = 0;
      while ((await figures()).kind === 'reported') answers += 1;
      assert.ok(answers > 0 && answers * 2 <= 225, String(answers));
      assert.equal((await some.reconcile(request, steps.crossed)).kind, 'present');
      assert.equal((await figures()).kind, 'rate_limited');
    },
  );

  for (const [taken, first] of [
    ['post.fields', 'tweet.fields'],
    ['tweet.fields', 'post.fields'],
  ] as const) {
    t(`an X that refuses ${first} is asked with the other name once, which is remembered`, async () => {
      const other = await xWorld({ fieldsName: taken }, { fieldsName: first });
      try {
        const account = await other.account();
        other.network.script({ route, then: 'drop_after' });
        const request = other.request(account);
        const { steps } = await other.publish(request);
        const wrongTime = { title: 'Invalid Request', errors: [{ message: 'Invalid end_time' }] };
        const names = () =>
          other.http.calls.flatMap(({ url }) =>
            [...new URL(url).searchParams.keys()].filter((one) => /t\.fields$/.test(one)),
          );
        assert.equal((await other.adapter.reconcile(request, steps.crossed)).kind, 'present');
        assert.deepEqual(names(), [first, taken]);
        assert.equal((await other.adapter.reconcile(request, steps.crossed)).kind, 'present');
        assert.deepEqual(names(), [first, taken, taken]);
        other.network.script({ route: 'GET /2/users/:id/tweets', then: { answer: { status: 400, body: wrongTime } } });
        assert.equal((await other.adapter.reconcile(request, steps.crossed)).kind, 'undecided');
        assert.deepEqual(names(), [first, taken, taken, taken], 'a refusal that names no parameter is none of it');
      } finally {
        other.network.close();
      }
    });
  }

  t('the names of the OpenAPI document are asked for and read where an operator chooses them', async () => {
    const other = await xWorld({ fieldsName: 'post.fields' }, { fieldsName: 'post.fields' });
    try {
      const account = await other.account();
      const head = await other.publish(other.request(account));
      assert.ok(head.outcome.kind === 'published');
      other.network.script({ route, then: 'drop_after' });
      const { externalId } = head.outcome;
      const thread = { index: 1, of: 2, replyTo: { parent: externalId, head: externalId } };
      const request = other.request(account, { content: 'Second', thread });
      const { steps } = await other.publish(request);
      assert.equal((await other.adapter.reconcile(request, steps.crossed)).kind, 'present');
      const subject = { targetId: request.targetId, ...head.outcome, use: 'feed', hasVideo: false } as const;
      for await (const answer of other.adapter.fetchPostInsights('x', account, [subject], AbortSignal.timeout(5_000))) {
        assert.ok(answer.kind === 'reported' && JSON.stringify(answer.raw).includes('repost_count'));
      }
    } finally {
      other.network.close();
    }
  });

  t('no token is in an outcome or a checkpoint', async () => {
    const account = await world.account();
    const { secret } = await kept(account.id);
    const { outcome, steps } = await world.publish(world.request(account, { media: [video()] }));
    const reported = JSON.stringify([outcome, steps.checkpoints, steps instanceof RecordedSteps]);
    for (const token of [secret.accessToken, secret.refreshToken]) assert.ok(!reported.includes(String(token)));
  });
});
