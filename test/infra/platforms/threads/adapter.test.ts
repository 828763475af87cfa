/** What the adapter of Threads does beyond the suite of all networks. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { Checkpoint, CommentRequest, PublishRequest } from '#contracts/ports/platform.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { problems } from '#test/support/networks/threads/answer.ts';
import { allScopes } from '#test/support/networks/threads/index.ts';
import { type ThreadsWorld, threadsWorld } from '#test/support/networks/threads/world.ts';
import { suite } from '#test/support/suite.ts';

const publish = 'POST /:id/threads_publish';
const create = 'POST /:id/threads';
const dayMs = 86_400_000;
const within = () => AbortSignal.timeout(5_000);

suite('threads', (t) => {
  let world: ThreadsWorld;
  t.before.each(async () => {
    world = await threadsWorld();
  });
  t.after.each(() => world.close());

  const state = () => world.network.state;
  const image = (over = {}) => world.media(over);
  const video = (over = {}) => world.media({ kind: 'video', contentType: 'video/mp4', durationMs: 3_000, ...over });
  const containers = (type?: string) =>
    [...state().containers.values()].filter((one) => (type ?? one.type) === one.type);
  const statuses = () => state().publishes.map(({ status }) => status);
  const refusing = (answer: (typeof problems)[keyof typeof problems], route = publish, times = 1) =>
    world.network.script({ route, times, then: { answer } });
  const counted = (route: string): number => {
    const [method, path = ''] = route.split(' ');
    const pattern = new RegExp(`^/v1.0${path.replaceAll(':id', '(?:me|\\d+)')}$`);
    return state().calls.filter((one) => one.method === method && pattern.test(one.path)).length;
  };
  /** As the publisher hands the checkpoints on. @param madeNothing the last call is known to have made nothing */
  const next = (request: PublishRequest, steps: RecordedSteps, madeNothing: boolean): PublishRequest => {
    const last = steps.checkpoints.findLast(({ step }) => step === 'boundary');
    const seen = (one: Checkpoint): Checkpoint => (one === last && madeNothing ? { ...one, madeNothing } : one);
    return { ...request, attempt: request.attempt + 1, checkpoints: steps.checkpoints.map(seen) };
  };
  const published = async (request: PublishRequest) => {
    const { outcome, steps } = await world.publish(request);
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    return { ...outcome, steps };
  };
  const replyTo = (parent: string, index = 1) => ({ index, of: 3, replyTo: { parent, head: parent } });
  const commentOn = (
    account: CommentRequest['account'],
    externalId: string,
    content = 'And below',
  ): CommentRequest => ({
    ...{ targetId: randomUUID(), platform: 'threads', account, externalId, content },
  });

  t('5: a carousel is published when its parent is finished too, and once', async () => {
    state().processing.CAROUSEL = 4;
    const request = world.request(await world.account(), { media: [image({ altText: 'A cup' }), image(), image()] });
    const { permalink } = await published(request);
    assert.deepEqual(statuses(), [200]);
    const [post] = state().posts;
    assert.deepEqual(
      post?.files.map(({ type, altText }) => [type, altText]),
      [
        ['IMAGE', 'A cup'],
        ['IMAGE', null],
        ['IMAGE', null],
      ],
    );
    assert.equal(permalink, `https://www.threads.com/@${request.account.username}/post/${post?.code}`);
    const parent = post?.container.id ?? '';
    const looks = state().calls.filter(({ path }) => path.endsWith(parent)).length;
    assert.equal(looks, 5, 'four that say that it is in progress, and one that it is finished');
  });

  t('15: a carousel with a video is made when the video is finished', async () => {
    state().processing.VIDEO = 5;
    await published(world.request(await world.account(), { content: '', media: [video(), image()] }));
    assert.deepEqual(statuses(), [200]);
    assert.equal(containers('CAROUSEL').length, 1);
    const refused = state().calls.filter(({ status }) => status !== 200);
    assert.deepEqual(refused, []);
    assert.ok(world.pauses.includes(10_000), 'a video is not asked for every second');
  });

  t('14: a container that Threads does not find though it is finished is replaced, three times at most', async () => {
    refusing(problems.media_not_found, publish, 5);
    let request = world.request(await world.account());
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const { outcome, steps } = await world.publish(request);
      assert.equal(outcome.kind, 'nothing_sent', JSON.stringify(outcome));
      assert.equal(containers().length, Math.min(attempt, 4));
      request = next(request, steps, true);
    }
    await published(request);
    assert.equal(state().posts.length, 1);
    assert.equal(containers().length, 4);
  });

  t('14: a container whose call was lost is never replaced while it could be published', async () => {
    world.network.script({ route: publish, then: 'silent_before' });
    const request = world.request(await world.account());
    const first = await world.publish(request);
    assert.equal(first.outcome.kind, 'unknown');
    assert.equal((await world.adapter.reconcile(request, first.steps.crossed)).kind, 'absent');
    refusing(problems.media_not_found);
    const second = await world.publish(next(request, first.steps, false));
    assert.equal(second.outcome.kind, 'unknown', 'what is not found may have been published');
    assert.equal(containers().length, 1);
    const third = await world.publish(next(request, second.steps, false));
    assert.equal(third.outcome.kind, 'published');
    assert.deepEqual([containers().length, state().posts.length], [1, 1]);
  });

  t(
    'a container that ended, or that Threads broke after the call, is replaced even where the call was lost',
    async () => {
      for (const end of ['EXPIRED', 'ERROR'] as const) {
        world.network.script({ route: publish, then: 'silent_before' });
        const request = world.request(await world.account(), { content: end });
        const { steps } = await world.publish(request);
        const container = containers().at(-1);
        assert.ok(container !== undefined);
        container.status = end;
        assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'absent');
        await published(next(request, steps, false));
        assert.equal(state().posts.at(-1)?.container.id === container.id, false);
      }
      assert.equal(state().posts.length, 2);
    },
  );

  t(
    'a post that is out is published without a permalink, whatever cannot be read or kept behind the call',
    async () => {
      const unreadable = Object.assign(Object.create(world.credentials), {
        read: async (accountId: string) => {
          if (state().posts.length > 0) throw new Error('the database is away');
          return world.credentials.read(accountId);
        },
      });
      const request = world.request(await world.account());
      const { outcome } = await world.publish(request, world.open({ credentials: unreadable }));
      assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
      assert.deepEqual([outcome.externalId, outcome.permalink], [state().posts[0]?.id, null]);
      // The answer says too that the app has asked for much, and that cannot be kept.
      const appLimits = new MemoryAppLimits();
      appLimits.rest = async () => {
        throw new Error('the database is away');
      };
      const headers = { 'x-app-usage': JSON.stringify({ call_count: 95, total_time: 1, total_cputime: 1 }) };
      world.network.script({ route: publish, then: { answerAfter: { status: 200, body: { id: '1789' }, headers } } });
      const second = await world.publish(world.request(await world.account()), world.open({ appLimits }));
      assert.ok(second.outcome.kind === 'published', JSON.stringify(second.outcome));
      assert.equal(second.outcome.externalId, '1789');
    },
  );

  t(
    '4: a post that Threads blocks in its words and makes all the same is found, and is not published again',
    async () => {
      world.network.script({ route: publish, then: { answerAfter: problems.action_blocked } });
      const request = world.request(await world.account());
      const { outcome, steps } = await world.publish(request);
      assert.equal(outcome.kind, 'unknown', JSON.stringify(outcome));
      const seen = await world.adapter.reconcile(request, steps.crossed);
      assert.ok(seen.kind === 'present', JSON.stringify(seen));
      assert.deepEqual([seen.externalId, state().posts.length], [state().posts[0]?.id, 1]);
      const account = await world.account();
      const head = await published(world.request(account));
      world.network.script({ route: publish, then: { answerAfter: problems.action_blocked } });
      const said = await world.adapter.comment(commentOn(account, head.externalId), within());
      assert.equal(said.kind, 'unknown', 'a comment that may be out is not repeated');
    },
  );

  t('a page that is short is not the last one: the list ends where Threads names no next page', async () => {
    state().maxPage = 2;
    const account = await world.account();
    world.network.script({ route: publish, then: 'drop_after' });
    const request = world.request(account, { content: 'Lost' });
    const { steps } = await world.publish(request);
    for (const content of ['a', 'b', 'c', 'd']) await published(world.request(account, { content }));
    const seen = await world.adapter.reconcile(request, steps.crossed);
    assert.ok(seen.kind === 'present', JSON.stringify(seen));
    assert.equal(seen.externalId, state().posts[0]?.id);
    assert.equal(counted('GET /:id/threads'), 3);
  });

  t('what is no id of a container reaches no path and no call', async () => {
    for (const id of ['1/../me', '1?fields=id', '', '1'.repeat(21)]) {
      world.network.script({ route: create, then: { answer: { status: 200, body: { id } } } });
      const { outcome, steps } = await world.publish(world.request(await world.account()));
      assert.equal(outcome.kind, 'deferred', JSON.stringify(outcome));
      assert.ok(!steps.log.includes('boundary') && !JSON.stringify(steps.checkpoints).includes('fields='), id);
    }
    assert.ok(state().calls.every(({ path }) => /^\/v1\.0\/(?:me|\d+)(?:\/\w+)?$/.test(path)));
  });

  t('a post that is out already is found by the next attempt, and is not published again', async () => {
    world.network.script({ route: publish, then: 'drop_after' });
    const request = world.request(await world.account());
    const first = await world.publish(request);
    assert.equal(first.outcome.kind, 'unknown');
    // The list is behind: the container is the only witness, and a second call with it makes nothing.
    state().listLagMs = 60_000;
    assert.equal((await world.adapter.reconcile(request, first.steps.crossed)).kind, 'undecided');
    const second = await world.publish(next(request, first.steps, true));
    assert.equal(second.outcome.kind, 'unknown');
    state().listLagMs = 0;
    const third = await world.publish(next(request, second.steps, false));
    assert.ok(third.outcome.kind === 'published');
    assert.equal(third.outcome.externalId, state().posts[0]?.id);
    assert.ok(!third.steps.log.includes('boundary'), 'nothing was called');
    assert.equal(state().posts.length, 1);
  });

  t('a Threads that answers a second call with the post that is out is believed', async () => {
    world.network.script({ route: publish, then: 'drop_after' });
    state().answersTwice = true;
    state().listLagMs = 60_000;
    const request = world.request(await world.account());
    const { steps } = await world.publish(request);
    const { externalId } = await published(next(request, steps, false));
    assert.deepEqual([externalId, state().posts.length], [state().posts[0]?.id, 1]);
  });

  t('a lost answer is found by the list where the container became a post, or is not there any more', async () => {
    for (const forget of [true, false]) {
      world.network.script({ route: publish, then: 'drop_after' });
      const content = `See https://example.com/${randomUUID()} #coffee  and\nmore`;
      const request = world.request(await world.account(), { content });
      const { steps } = await world.publish(request);
      state().forgetsContainers = forget;
      state().takesTags = true;
      if (!forget) state().containers.clear();
      const seen = await world.adapter.reconcile(request, steps.crossed);
      assert.ok(seen.kind === 'present', JSON.stringify(seen));
      assert.equal(seen.externalId, state().posts.at(-1)?.id);
      const changed = await world.adapter.reconcile({ ...request, content: 'Changed' }, steps.crossed);
      assert.equal(changed.kind, 'undecided');
      refusing(problems.unavailable, 'GET /:id');
      assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'undecided');
    }
  });

  t('of posts with one text the one with the files, and the reply to that post, is found', async () => {
    const account = await world.account();
    const head = await published(world.request(account, { content: 'Same' }));
    const other = await published(world.request(account, { content: 'Other' }));
    await published(world.request(account, { content: 'Same', thread: replyTo(other.externalId) }));
    for (const over of [{ media: [image(), image()] }, { thread: replyTo(head.externalId) }]) {
      world.network.script({ route: publish, then: 'drop_after' });
      const request = world.request(account, { content: 'Same', ...over });
      const { steps } = await world.publish(request);
      const seen = await world.adapter.reconcile(request, steps.crossed);
      assert.ok(seen.kind === 'present');
      assert.equal(seen.externalId, state().posts.at(-1)?.id);
    }
  });

  t('a container that Threads does not know yet is asked for again, and one that it forgets is made anew', async () => {
    const account = await world.account();
    state().hidesContainers = [4];
    await published(world.request(account));
    assert.equal(containers().length, 1);
    state().hidesContainers = [99, 0];
    await published(world.request(account));
    assert.equal(containers().length, 3);
  });

  t('what is finished is published two seconds later: Threads was seen not to know it at once', async () => {
    await published(world.request(await world.account()));
    assert.deepEqual(world.pauses, [2_000]);
  });

  t('a permission that is missing makes the list of replies empty: that proves nothing', async () => {
    const scopes = allScopes.filter((one) => one !== 'threads_read_replies');
    const account = await world.account(undefined, scopes);
    const head = await published(world.request(account));
    world.network.script({ route: publish, then: 'drop_after' });
    const request = world.request(account, { content: 'Second', thread: replyTo(head.externalId) });
    const { steps } = await world.publish(request);
    assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'undecided');
  });

  t('what an attempt has prepared the next one goes on with', async () => {
    world.network.script({ route: 'GET /:id', says: 'error_message', then: 'drop_before' });
    const media = [image(), video(), image()];
    const request = world.request(await world.account(), { media });
    const first = await world.publish(request);
    assert.equal(first.outcome.kind, 'deferred');
    // The second stops when the parent is made.
    const parent = () => containers('CAROUSEL')[0]?.id ?? 'none';
    state().processing.CAROUSEL = 100;
    const second = await world.publish(next(request, first.steps, false), world.open({ clock: clockThatRuns() }));
    assert.ok(second.outcome.kind === 'deferred', JSON.stringify(second.outcome));
    assert.equal(second.outcome.failure.code, 'processing_timeout');
    const made = containers().length;
    for (const one of containers('CAROUSEL')) one.looks = 0;
    await published(next(request, second.steps, false));
    assert.equal(containers().length, made);
    assert.deepEqual([made, state().posts[0]?.container.id], [4, parent()]);
    assert.equal(state().fetched.length, 3);
  });
  /** Each look at it is a minute later. */
  const clockThatRuns = () => {
    let looks = 0;
    return () => {
      looks += 1;
      return state().now() + looks * 20_000;
    };
  };

  t('a container that was made a day before is made anew', async () => {
    world.network.script({ route: 'GET /:id', says: 'error_message', then: 'drop_before' });
    const request = world.request(await world.account());
    const { steps } = await world.publish(request);
    state().advance(dayMs + 1_000);
    await published(next(request, steps, false));
    assert.equal(containers().length, 2);
  });

  t('what Threads breaks for reasons of its own is made anew, twice, and then fails with its word', async () => {
    const account = await world.account();
    const broken = (error: string) => state().breaks.push({ type: 'VIDEO', error });
    for (const error of ['FAILED_DOWNLOADING_VIDEO', 'UNKNOWN']) broken(error);
    await published(world.request(account, { media: [video()] }));
    assert.equal(containers('VIDEO').length, 3);
    for (let time = 0; time < 3; time += 1) broken('FAILED_PROCESSING_VIDEO');
    const media = video();
    const { outcome } = await world.publish(world.request(account, { media: [media] }));
    assert.ok(outcome.kind === 'failed');
    const { category, platformCode, mediaId } = outcome.failure;
    assert.deepEqual([category, platformCode, mediaId], ['media', 'FAILED_PROCESSING_VIDEO', media.mediaId]);
    assert.equal(containers('VIDEO').length, 6);
  });

  t('a file that Threads does not take fails at once, and names the file', async () => {
    state().breaks.push({ type: 'VIDEO', error: 'INVALID_FRAME_RATE' });
    const media = [image(), video()];
    const { outcome } = await world.publish(world.request(await world.account(), { media }));
    assert.ok(outcome.kind === 'failed');
    const { category, platformCode, mediaId } = outcome.failure;
    assert.deepEqual([category, platformCode, mediaId], ['media', 'INVALID_FRAME_RATE', media[1]?.mediaId]);
    assert.equal(containers('VIDEO').length, 1);
  });

  t('a file that its server does not give is asked for again, and fails as that file', async () => {
    const account = await world.account();
    const [late, never] = [image(), image()];
    world.files.missing.set(late.mediaId, 1);
    await published(world.request(account, { media: [late] }));
    world.files.missing.set(never.mediaId, 99);
    const { outcome } = await world.publish(world.request(account, { media: [image(), never] }));
    assert.ok(outcome.kind === 'failed', JSON.stringify(outcome));
    assert.deepEqual([outcome.failure.category, outcome.failure.mediaId], ['media', never.mediaId]);
    assert.equal(state().posts.length, 1);
  });

  t('a carousel whose children Threads does not know any more is made anew with new ones', async () => {
    world.network.script({ route: create, says: 'CAROUSEL', then: { answer: problems.children_invalid } });
    await published(world.request(await world.account(), { media: [image(), image()] }));
    assert.deepEqual([containers('IMAGE').length, containers('CAROUSEL').length], [4, 1]);
  });

  t('a file that is twice in a carousel is two children', async () => {
    const one = image();
    await published(world.request(await world.account(), { media: [one, one] }));
    assert.equal(state().posts[0]?.files.length, 2);
  });

  t('a reply waits until the post before it is known, and fails where that is gone', async () => {
    const account = await world.account();
    state().hidesPosts = [3];
    const head = await published(world.request(account));
    const second = world.request(account, { content: 'Second', thread: replyTo(head.externalId) });
    await published(second);
    assert.deepEqual(
      world.pauses.filter((ms) => ms === 5_000),
      [5_000, 5_000, 5_000],
    );
    assert.equal(state().posts[1]?.parent, head.externalId);
    state().hidesPosts = [99];
    const hidden = await published(world.request(account, { content: 'Hidden' }));
    const later = await world.publish(world.request(account, { content: 'L', thread: replyTo(hidden.externalId) }));
    assert.equal(later.outcome.kind, 'deferred');
    state().deleted.add(head.externalId);
    const gone = await world.publish(world.request(account, { content: 'Third', thread: replyTo(head.externalId, 2) }));
    assert.ok(gone.outcome.kind === 'failed');
    assert.match(gone.outcome.failure.platformMessage ?? '', /does not have the post to reply to/);
  });

  t('a quote needs the id of a post that is there', async () => {
    const account = await world.account();
    const quote = async (quotePostId: string) =>
      (await world.publish(world.request(account, { overrides: { quotePostId } }))).outcome;
    const calls = state().calls.length;
    assert.equal((await quote('https://www.threads.com/@a/post/DAbc')).kind, 'failed');
    assert.equal(state().calls.length, calls);
    const gone = await quote('17');
    assert.ok(gone.kind === 'failed');
    assert.equal(gone.failure.category, 'invalid_content');
    const { externalId } = await published(world.request(account));
    assert.equal((await quote(` ${externalId} `)).kind, 'published');
    assert.equal(state().posts.at(-1)?.quoted, externalId);
  });

  t('a post too many waits for the slot that the first one leaves; nothing is made', async () => {
    world.close();
    world = await threadsWorld({ quota: { posts: 2, replies: 1 } });
    const limits: unknown[] = [];
    const adapter = world.open({ onLimits: (accountId, windows) => limits.push([accountId, ...windows]) });
    const account = await world.account();
    const post = async (over: Partial<PublishRequest> = {}) =>
      (await world.publish(world.request(account, over), adapter)).outcome;
    const head = await post();
    assert.ok(head.kind === 'published');
    const slot = Math.floor(Date.parse(head.publishedAt) / 1_000) * 1_000 + dayMs;
    state().advance(dayMs - 1_800_000);
    await post();
    const made = containers().length;
    const waits = await post();
    assert.ok(waits.kind === 'rate_limited', JSON.stringify(waits));
    assert.equal(waits.retryAt, new Date(slot).toISOString());
    assert.deepEqual([waits.failure.category, waits.failure.retryable], ['rate_limited', true]);
    assert.equal(containers().length, made);
    const thread = replyTo(head.externalId);
    assert.equal((await post({ thread, content: 'Reply' })).kind, 'published', 'replies have a quota of their own');
    assert.equal((await post({ thread, content: 'Another' })).kind, 'rate_limited');
    const comment = await adapter.comment(commentOn(account, head.externalId), within());
    assert.equal(comment.kind, 'rate_limited');
    const window = { name: 'posts in 24 hours', seconds: 86_400, limit: 2 };
    assert.deepEqual(limits, [
      [account.id, { ...window, used: 0, resetsAt: null }],
      [account.id, { ...window, used: 1, resetsAt: null }],
      [account.id, { ...window, used: 2, resetsAt: waits.retryAt }],
    ]);
    state().advance(1_900_000);
    assert.equal((await post()).kind, 'published');
  });

  t(
    'of an account that is over its quota as many posts leave as are too many, and none sooner than 15 minutes',
    async () => {
      world.close();
      world = await threadsWorld({ quota: { posts: 3, replies: 3 } });
      const account = await world.account();
      const times: number[] = [];
      for (const minutes of [0, 2, 10]) {
        state().advance(minutes * 60_000);
        const { publishedAt } = await published(world.request(account));
        times.push(Math.floor(Date.parse(publishedAt) / 1_000) * 1_000);
      }
      const retryAt = async (): Promise<number> => {
        const { outcome } = await world.publish(world.request(account));
        assert.ok(outcome.kind === 'rate_limited', JSON.stringify(outcome));
        return Date.parse(outcome.retryAt);
      };
      state().advance(dayMs - 40 * 60_000);
      assert.equal(await retryAt(), (times[0] ?? 0) + dayMs);
      Object.assign(state().quota, { posts: 2 });
      assert.equal(await retryAt(), (times[1] ?? 0) + dayMs);
      state().advance(20 * 60_000);
      const left = (await retryAt()) - state().now();
      assert.ok(left > 890_000 && left <= 900_000, String(left));
    },
  );

  t('an account that made its posts by hand is asked again within the hour', async () => {
    const account = await world.account();
    const quota = { quota_usage: 250, config: { quota_total: 250, quota_duration: 86_400 } };
    const route = 'GET /:id/threads_publishing_limit';
    world.network.script({ route, then: { answer: { status: 200, body: { data: [quota] } } } });
    const { outcome } = await world.publish(world.request(account));
    assert.ok(outcome.kind === 'rate_limited');
    const inMs = Date.parse(outcome.retryAt) - state().now();
    assert.ok(inMs > 3_590_000 && inMs <= 3_600_000, String(inMs));
  });

  t('a quota that cannot be asked for holds no post up, unless nothing may be asked at all', async () => {
    const route = 'GET /:id/threads_publishing_limit';
    const account = await world.account();
    for (const answer of [problems.no_permission, problems.unavailable, { status: 200, body: { data: [] } }]) {
      world.network.script({ route, then: { answer } });
      await published(world.request(account));
    }
    for (const [answer, kind] of [
      [problems.user_limited, 'rate_limited'],
      [problems.token_expired, 'failed'],
    ] as const) {
      world.network.script({ route, then: { answer } });
      assert.equal((await world.publish(world.request(account))).outcome.kind, kind);
    }
    const scopes = allScopes.filter((one) => one !== 'threads_manage_replies');
    const other = await world.account(undefined, scopes);
    const head = await published(world.request(other));
    await published(world.request(other, { thread: replyTo(head.externalId) }));
  });

  t('a comment whose container is not ready in time is made by a later try, and only once', async () => {
    const account = await world.account();
    const { externalId } = await published(world.request(account));
    state().processing.TEXT = 100;
    const slow = world.open({ clock: clockThatRuns() });
    const late = await slow.comment(commentOn(account, externalId), within());
    assert.equal(late.kind, 'deferred');
    state().processing.TEXT = 0;
    const posted = await world.adapter.comment(commentOn(account, externalId), within());
    assert.ok(posted.kind === 'posted');
    const aborted = world.open({ pause: (_ms, signal) => Promise.reject(signal.reason ?? new Error('no reason')) });
    state().processing.TEXT = 100;
    const stopped = new AbortController();
    state().hidesContainers = [1];
    const ends = aborted.comment(commentOn(account, externalId), stopped.signal);
    stopped.abort(new Error('the time is over'));
    assert.equal((await ends).kind, 'deferred');
    assert.equal(state().posts.length, 2);
  });

  t('a post whose permalink cannot be read is published all the same', async () => {
    world.network.script({ route: 'GET /:id', says: 'permalink', then: { answer: problems.unavailable } });
    const { permalink } = await published(world.request(await world.account()));
    assert.equal(permalink, null);
  });

  t('an app that has used much of its calls rests its figures, and posts go on', async () => {
    const account = await world.account();
    const { externalId, publishedAt } = await published(world.request(account));
    const headers = { 'x-app-usage': '{"call_count":85,"total_time":2,"total_cputime":2}' };
    const route = 'GET /:id/threads_publishing_limit';
    world.network.script({ route, then: { answer: { status: 200, body: { data: [] }, headers } } });
    await published(world.request(account));
    const subject = { targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo: false } as const;
    for await (const one of world.adapter.fetchPostInsights('threads', account, [subject], within())) {
      assert.equal(one.kind, 'rate_limited');
    }
    await published(world.request(account));
  });

  t('a limit of the account names its end by the header of JSON', async () => {
    const usage = [
      { type: 'threads', call_count: 100, total_time: 1, total_cputime: 1, estimated_time_to_regain_access: 7 },
    ];
    const headers = { 'x-business-use-case-usage': JSON.stringify({ 17: usage }) };
    refusing({ ...problems.user_limited, headers } as typeof problems.user_limited, create);
    const { outcome } = await world.publish(world.request(await world.account()));
    assert.ok(outcome.kind === 'rate_limited');
    const inMs = Date.parse(outcome.retryAt) - state().now();
    assert.ok(inMs > 415_000 && inMs <= 420_000, String(inMs));
  });

  t('a limit of the app rests it as a whole', async () => {
    refusing(problems.app_limited, create);
    const [one, other] = [await world.account(), await world.account()];
    assert.equal((await world.publish(world.request(one))).outcome.kind, 'rate_limited');
    const calls = state().calls.length;
    assert.equal((await world.publish(world.request(other))).outcome.kind, 'rate_limited');
    assert.equal(state().calls.length, calls);
  });

  t('of a token that ended Threads is not asked for a new one: only a consent helps', async () => {
    const account = await world.account();
    state().advance(61 * dayMs);
    const { outcome } = await world.publish(world.request(account));
    assert.ok(outcome.kind === 'failed');
    assert.equal(outcome.failure.category, 'reauth_required');
    assert.equal(containers().length, 0);
  });

  t('neither a token nor the address of a file is in an outcome or a checkpoint', async () => {
    const account = await world.account();
    const { steps, ...outcome } = await published(world.request(account, { media: [image(), video()] }));
    const reported = JSON.stringify([outcome, steps.checkpoints]);
    const { secret } = (await world.credentials.read(account.id)) ?? {};
    assert.ok(!reported.includes(String(secret?.accessToken)));
    assert.ok(!reported.includes(world.files.origin));
  });

  t('an id that is none reaches no address', async () => {
    const account = await world.account();
    const calls = state().calls.length;
    const removal = { platform: 'threads', account, externalId: '1/threads' } as const;
    assert.equal((await world.adapter.removePost(removal, within())).kind, 'not_removed');
    assert.equal(state().calls.length, calls);
    assert.equal(counted('DELETE /:id'), 0);
  });
});
