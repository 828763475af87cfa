import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { CommentOutcome, PlatformAdapter } from '#contracts/ports/platform.ts';
import { account as accountDecider } from '#domain/account.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { view } from '#projections/shapes.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { PostBody, Variant } from '#schemas/post.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld, quick } from '#test/support/publishing.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { withMembers } from '#test/support/with-members.ts';

/** Overrides without which the network publishes nothing. */
const required: Readonly<Partial<Record<Platform, Readonly<Record<string, unknown>>>>> = {
  tiktok: { privacyLevel: 'SELF_ONLY' },
  pinterest: { boardId: '1' },
};
const commented: readonly Platform[] = platforms.filter(
  (platform) => platform !== 'tiktok' && platform !== 'pinterest',
);
const reported = (platform: Platform, firstComment: unknown): Variant => ({
  platform,
  contentOverride: null,
  mediaIdsOverride: null,
  overrides: { ...required[platform], firstComment },
});
const posted = 'TargetFirstCommentPosted';
const failed = 'TargetFirstCommentFailed';

suite('first comments', { timeoutMs: 240_000 }, (t) => {
  let world: PublishingWorld;
  let clientId: string;
  let x: Account;

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
    x = await world.connect(clientId, 'x');
  });
  t.after(() => world?.close());

  /** A post whose first comment has this text. */
  const schedule = async (account: Account, comment: string, body: Partial<PostBody> = {}): Promise<string> => {
    const variants = [reported(account.platform, comment)];
    return (await world.schedule([account], { variants, body })).targetIds[0] ?? '';
  };
  const commentStory = async (id: string) =>
    (await world.story(`target-${id}`))
      .filter((type) => type.startsWith('TargetFirstComment'))
      .map((type) => type.slice('TargetFirstComment'.length));
  /** Waits for the end of the comment; returns its event's data. */
  const ended = async (id: string, as: typeof posted | typeof failed): Promise<Record<string, unknown>> => {
    const ends = async () =>
      (await world.store.load(target, id)).events.find(({ type }) => type === posted || type === failed);
    await until(`the comment of ${id} has ended`, async () => (await ends()) !== undefined);
    const end = await ends();
    assert.equal(end?.type, as, JSON.stringify(end?.data));
    assert.equal((await world.target(id)).status, 'published', 'the post stands');
    return end.data as Record<string, unknown>;
  };
  const made = async (id: string) =>
    (await world.sandbox.comments([id])).filter(({ outcome }) => outcome === 'created').length;
  /** Its row shows the end of the comment. */
  const row = async (id: string) => {
    const sql = `select first_comment_id as id, first_comment_issue as issue, next_action_at as "nextAt", status
      from ${view('post_targets')} where id = $1`;
    const read = async () => (await world.pool.query(sql, [id])).rows[0];
    await until('the row shows it', async () => {
      const now = await read();
      return now?.id !== null || (now?.issue?.retryAt === null && now.nextAt === null);
    });
    return read();
  };
  /** Published without a publisher; its comment is due now. */
  const publishedByHand = async (account: Account): Promise<string> => {
    const variants = [reported(account.platform, 'hi')];
    const { targetIds, postId } = await world.schedule([account], { variants, dueAt: Date.now() + 600_000 });
    const [id = ''] = targetIds;
    const now = new Date(Date.now() + 600_000).toISOString();
    const claim = { attempt: 1, takeover: 0 };
    const past = new Date().toISOString();
    const commands: readonly TargetCommand[] = [
      { type: 'Start', now },
      { type: 'Checkpoint', ...claim, step: 'boundary', data: null, deadline: now },
      {
        ...{ type: 'RecordPublished', ...claim, externalId: 'e', permalink: null, publishedAt: past },
        commentDueAt: past,
      },
    ];
    for (const command of commands) {
      await execute(world.store, target, id, command, world.context(), { partitionKey: postId });
    }
    return id;
  };

  t('follow the post once on each network that takes them, and are ignored on the others', async () => {
    const publisher = world.publisher({ leaseTtlMs: 10_000, boundaryDeadlineMs: 5_000 });
    const accounts: Account[] = [];
    for (const platform of platforms) accounts.push(await world.connect(clientId, platform));
    const variants = platforms.map((platform) => reported(platform, `first on ${platform}`));
    const { targetIds } = await world.schedule(accounts, { variants });
    await world.all(targetIds, 'published');
    for (const [index, id] of targetIds.entries()) {
      const platform = accounts[index]?.platform ?? 'x';
      const calls = await world.sandbox.comments([id]);
      if (!commented.includes(platform)) {
        assert.deepEqual(await commentStory(id), [], platform);
        assert.deepEqual(calls, []);
        continue;
      }
      const { externalId } = await ended(id, posted);
      assert.deepEqual(await commentStory(id), ['Scheduled', 'Started', 'Posted']);
      const state = await world.target(id);
      assert.ok(state.status === 'published');
      assert.deepEqual(
        (await world.sandbox.comments([id])).map((one) => [one.accountId, one.postId, one.content, one.commentId]),
        [[accounts[index]?.id, state.externalId, `first on ${platform}`, externalId]],
      );
      const shown = await row(id);
      assert.deepEqual([shown.id, shown.issue, shown.nextAt], [externalId, null, null]);
    }
    await publisher.stop();
  });

  t('of a thread follow its head once every segment is out', async () => {
    const publisher = world.publisher();
    const thread = { segments: ['one', 'two'].map((content) => ({ content, mediaIds: [] })) };
    for (const platform of ['x', 'threads'] as const) {
      const account = await world.connect(clientId, platform);
      const id = await schedule(account, 'and more below', { thread });
      await ended(id, posted);
      const [head, second] = (await world.sandbox.creates(id)).filter(({ outcome }) => outcome === 'created');
      const [comment] = await world.sandbox.comments([id]);
      assert.ok(head && second && comment);
      assert.equal(comment.postId, head.postId);
      assert.ok(comment.seenAt > second.seenAt, 'the comment comes last');
      assert.deepEqual((await world.story(`target-${id}`)).slice(-4), [
        'TargetPublished',
        ...['Scheduled', 'Started', 'Posted'].map((one) => `TargetFirstComment${one}`),
      ]);
    }
    await publisher.stop();
  });

  t('are tried again after a refusal that may pass, three times in all', async () => {
    const publisher = world.publisher();
    const limited = await schedule(x, 'soon [[sandbox:rate_limit once 200ms]]');
    const away = await schedule(x, 'soon [[sandbox:down 2x]]');
    const never = await schedule(x, 'never [[sandbox:rate_limit 100ms]]');
    const gone = await schedule(x, 'never [[sandbox:down]]');
    await ended(limited, posted);
    const tries = ['Scheduled', 'Started'];
    assert.deepEqual(await commentStory(limited), [...tries, ...tries, 'Posted']);
    const { events } = await world.store.load(target, limited);
    const [, again] = events.filter(({ type }) => type === 'TargetFirstCommentScheduled');
    assert.ok(again);
    const { refusal, dueAt } = again.data as { readonly refusal: { readonly code: string }; readonly dueAt: string };
    assert.equal(refusal.code, 'network_rate_limited');
    const [first, second] = await world.sandbox.comments([limited]);
    assert.deepEqual([first?.outcome, second?.outcome], ['refused', 'created']);
    assert.ok(
      (second?.callStartedAt.getTime() ?? 0) >= Date.parse(dueAt),
      'no call before the time that the network named',
    );
    await ended(away, posted);
    assert.deepEqual(await commentStory(away), [...tries, ...tries, ...tries, 'Posted']);
    for (const [id, why] of [[never, 'network_rate_limited'] as const, [gone, 'network_down'] as const]) {
      assert.equal((await ended(id, failed)).code, why);
      assert.deepEqual(await commentStory(id), [...tries, ...tries, ...tries, 'Failed']);
      const shown = await row(id);
      assert.deepEqual(
        [shown.issue.code, shown.issue.retryAt, shown.nextAt, shown.status],
        [why, null, null, 'published'],
      );
    }
    assert.deepEqual(await Promise.all([limited, away, never, gone].map(made)), [1, 1, 0, 0]);
    await publisher.stop();
  });

  t('refused for good are not tried again, and the words of the network are kept', async () => {
    const publisher = world.publisher();
    const id = await schedule(x, 'no [[sandbox:reject]]');
    assert.deepEqual(await ended(id, failed), {
      code: 'content_rejected',
      message: 'The network refused the content for good. The network: The content was rejected',
      platformCode: '403 not permitted to perform this action',
    });
    assert.deepEqual(await commentStory(id), ['Scheduled', 'Started', 'Failed']);
    await publisher.stop();
  });

  t('without an answer are unknown and are not repeated, whether the network made them or not', async () => {
    const publisher = world.publisher();
    const cases = [
      ['timeout_before', 0],
      ['timeout_after', 1],
      ['error_before', 0],
      ['error_after', 1],
    ] as const;
    const ids = await Promise.all(cases.map(([fault]) => schedule(x, `lost [[sandbox:${fault} once]]`)));
    for (const [index, id] of ids.entries()) {
      assert.equal((await ended(id, failed)).code, 'first_comment_unknown');
      assert.deepEqual(await commentStory(id), ['Scheduled', 'Started', 'Failed']);
      assert.equal((await world.sandbox.comments([id])).length, 1, 'one call');
      assert.equal(await made(id), cases[index]?.[1]);
    }
    await publisher.stop();
  });

  t('need a permission on instagram, facebook and youtube; without it the post stands', async () => {
    const publisher = world.publisher();
    for (const platform of commented) {
      const account = await world.connect(clientId, platform, `no-comments-${randomUUID()}`);
      const id = await schedule(account, 'may I');
      const asking = platform === 'instagram' || platform === 'facebook' || platform === 'youtube';
      const end = await ended(id, asking ? failed : posted);
      assert.equal(end.code, asking ? 'comment_not_permitted' : undefined, platform);
      if (asking) assert.match(`${end.platformCode} ${end.message}`, /403/, platform);
      assert.equal(await made(id), asking ? 0 : 1);
      assert.deepEqual(await world.story(`account-${account.id}`), ['AccountConnected']);
    }
    await publisher.stop();
  });

  t('refused for an expired token report the account', async () => {
    const publisher = world.publisher();
    const account = await world.connect(clientId, 'linkedin');
    const id = await schedule(account, 'late [[sandbox:token_death]]');
    assert.equal((await ended(id, failed)).code, 'reauth_required');
    await until('reported', async () => (await world.story(`account-${account.id}`)).includes('AccountReauthRequired'));
    await publisher.stop();
  });

  t('are given up without a call once the client is archived or the account is not connected', async () => {
    const archived = await world.client();
    const ofArchived = await publishedByHand(await world.connect(archived, 'x'));
    await world.archive(archived);
    const lapsed = await world.connect(clientId, 'x');
    const ofLapsed = await publishedByHand(lapsed);
    const gone = await world.connect(clientId, 'x');
    const ofGone = await publishedByHand(gone);
    const change = (id: string, type: 'RequireReauth' | 'Disconnect') =>
      execute(world.store, accountDecider, id, { type, reason: 'test' }, world.context());
    await change(lapsed.id, 'RequireReauth');
    await change(gone.id, 'Disconnect');
    const publisher = world.publisher();
    for (const [id, code] of [
      [ofArchived, 'first_comment_interrupted'],
      [ofLapsed, 'account_reauth_required'],
      [ofGone, 'account_disconnected'],
    ] as const) {
      assert.equal((await ended(id, failed)).code, code);
      assert.deepEqual(await commentStory(id), ['Scheduled', 'Failed']);
      assert.deepEqual(await world.sandbox.comments([id]), []);
    }
    await publisher.stop();
    const without = world.publisher({}, { adapterOf: () => null });
    const nowhere = await publishedByHand(x);
    assert.equal((await ended(nowhere, failed)).code, 'network_not_supported');
    await without.stop();
  });

  t('follow a post that the network is found to have', async () => {
    const publisher = world.publisher();
    const found = await schedule(x, 'found', { content: 'lost [[sandbox:timeout_after once]]' });
    await ended(found, posted);
    const story = await world.story(`target-${found}`);
    assert.ok(story.includes('TargetOutcomeSettled'));
    assert.equal(await made(found), 1);
    await publisher.stop();
  });

  t('wait for their turn behind posts that are due', async () => {
    const second = await world.connect(clientId, 'bluesky');
    const dueAt = Date.now() + 1_500;
    const one = (await world.schedule([x], { dueAt, variants: [reported('x', 'later')] })).targetIds[0] ?? '';
    const two =
      (await world.schedule([second], { dueAt, variants: [reported('bluesky', 'later')] })).targetIds[0] ?? '';
    const publisher = world.publisher({ publishConcurrency: 1 });
    await Promise.all([ended(one, posted), ended(two, posted)]);
    const calls = await Promise.all(
      [one, two].map(async (id) => (await world.sandbox.creates(id))[0]?.seenAt ?? new Date()),
    );
    const lastPost = Math.max(...calls.map((at) => at.getTime()));
    for (const { seenAt } of await world.sandbox.comments([one, two])) assert.ok(seenAt.getTime() >= lastPost);
    await publisher.stop();
  });

  t('of adapters that misbehave end all the same', async () => {
    const over = (comment: PlatformAdapter['comment']): PlatformAdapter => ({
      boundaryDeadlineMs: world.sandbox.boundaryDeadlineMs,
      settleWindowMs: () => world.sandbox.settleWindowMs(),
      absenceIsProof: (...asked) => world.sandbox.absenceIsProof(...asked),
      listsOwnPosts: (...asked) => world.sandbox.listsOwnPosts(...asked),
      publish: (...asked) => world.sandbox.publish(...asked),
      reconcile: (...asked) => world.sandbox.reconcile(...asked),
      comment,
    });
    const answered = async (comment: PlatformAdapter['comment'], as: typeof posted | typeof failed) => {
      const publisher = world.publisher({}, { adapterOf: () => over(comment) });
      const id = await schedule(x, 'hi');
      const end = await ended(id, as);
      await publisher.stop();
      return end;
    };
    const says = (outcome: CommentOutcome) => async () => outcome;
    assert.equal((await answered(() => Promise.reject(new Error('broken')), failed)).code, 'first_comment_unknown');
    const late = Promise.withResolvers<CommentOutcome>();
    assert.equal((await answered(() => late.promise, failed)).code, 'first_comment_unknown');
    late.resolve({ kind: 'posted', externalId: 'late' });
    assert.deepEqual(await answered(says({ kind: 'posted', externalId: '' }), posted), { externalId: 'unknown' });
    const long = await answered(says({ kind: 'posted', externalId: 'a\0'.repeat(600) }), posted);
    assert.equal(String(long.externalId).length, 500);
    const words = {
      ...failure,
      code: '',
      message: 'm'.repeat(3_000),
      platformMessage: 'p\udc00',
      platformCode: 'c'.repeat(300),
    };
    const cut = await answered(says({ kind: 'failed', failure: words }), failed);
    assert.deepEqual([cut.code, String(cut.message).length, String(cut.platformCode).length], ['unknown', 2_000, 200]);
    const retried = await answered(says({ kind: 'rate_limited', retryAt: 'tomorrow', failure }), failed);
    assert.equal(retried.code, failure.code);
    const past = says({ kind: 'rate_limited', retryAt: '1970-01-01T00:00:00Z', failure });
    const limiting = world.publisher({}, { adapterOf: () => over(past), random: () => 0 });
    const refused = await schedule(x, 'hi');
    await ended(refused, failed);
    const tries = (await world.store.readStream(`target-${refused}`)).filter(({ data }) => data.refusal);
    const waits = tries.map(({ data, metadata }) => Date.parse(String(data.dueAt)) - Date.parse(metadata.occurredAt));
    assert.ok(waits.length === 2 && waits.every((ms, at) => ms > (quick.deferDelaysMs[at] ?? 0) - 50), waits.join());
    await limiting.stop();
    const far = world.publisher(
      {},
      {
        adapterOf: () => over(says({ kind: 'rate_limited', retryAt: '2036-01-01T00:00:00Z', failure })),
      },
    );
    const parked = await schedule(x, 'hi');
    await until('it is tried again', async () => (await commentStory(parked)).at(-1) === 'Scheduled');
    await until('its first try has ended', async () => (await commentStory(parked)).length === 3);
    const next = (await world.store.readStream(`target-${parked}`)).at(-1);
    assert.ok(Date.parse(String(next?.data.dueAt)) <= Date.now() + 86_400_000);
    assert.match(JSON.stringify(next?.data.refusal), /2036-01-01/);
    await far.stop();
  });

  t('whose post is removed during the call keep their outcome', async () => {
    const answers = [
      [{ kind: 'posted', externalId: 'c1' }, posted],
      [{ kind: 'failed', failure }, failed],
      [{ kind: 'unknown', failure }, failed],
    ] as const;
    for (const [answer, as] of answers) {
      const asked = Promise.withResolvers<string>();
      const answered = Promise.withResolvers<CommentOutcome>();
      const slow: PlatformAdapter = {
        boundaryDeadlineMs: 3_000,
        settleWindowMs: () => 0,
        absenceIsProof: () => false,
        listsOwnPosts: () => false,
        publish: (...call) => world.sandbox.publish(...call),
        reconcile: async () => ({ kind: 'undecided' }),
        comment: ({ targetId }) => {
          asked.resolve(targetId);
          return answered.promise;
        },
      };
      const publisher = world.publisher({}, { adapterOf: () => slow });
      const id = await schedule(x, 'hi');
      await asked.promise;
      const removed = { type: 'RecordRemoved', observedAt: new Date().toISOString() } as const;
      const live = await world.target(id);
      const partitionKey = live.status === 'none' ? '' : live.common.postId;
      await execute(world.store, target, id, removed, world.context(), { partitionKey });
      answered.resolve(answer);
      const end = await ended(id, as);
      if (answer.kind === 'posted') assert.equal(end.externalId, answer.externalId);
      if (answer.kind === 'failed') assert.equal(end.code, failure.code);
      assert.deepEqual((await world.story(`target-${id}`)).slice(-2), ['TargetRemovedOnPlatform', as]);
      const state = await world.target(id);
      assert.ok(state.status === 'published' && state.removedAt === removed.observedAt);
      await publisher.stop();
    }
  });

  t('under way when the worker drains end, and are not begun any more', async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<CommentOutcome>();
    const slow: PlatformAdapter = {
      boundaryDeadlineMs: 20_000,
      settleWindowMs: () => 0,
      absenceIsProof: () => false,
      listsOwnPosts: () => false,
      publish: async (_request, steps) => {
        await steps.boundary({});
        return { kind: 'published', externalId: 'e', permalink: null, publishedAt: new Date().toISOString() };
      },
      reconcile: async () => ({ kind: 'undecided' }),
      comment: (_request, signal) => {
        assert.ok(!signal.aborted);
        asked.resolve();
        return answer.promise;
      },
    };
    const draining = world.publisher({}, { adapterOf: () => slow });
    const id = await schedule(x, 'hi');
    await asked.promise;
    const stopped = draining.stop();
    const other = await publishedByHand(x);
    answer.resolve({ kind: 'posted', externalId: 'c' });
    await stopped;
    assert.deepEqual(await commentStory(id), ['Scheduled', 'Started', 'Posted']);
    assert.deepEqual(await commentStory(other), ['Scheduled']);
    const next = world.publisher();
    // The network has no such post.
    assert.equal((await ended(other, failed)).code, 'content_rejected');
    await next.stop();
  });

  t('are not made by a worker whose store answers too late', async () => {
    let calls = 0;
    const boundaryDeadlineMs = 20;
    const eager: PlatformAdapter = {
      boundaryDeadlineMs,
      settleWindowMs: () => 0,
      absenceIsProof: () => false,
      listsOwnPosts: () => false,
      publish: async () => ({ kind: 'failed', failure }),
      reconcile: async () => ({ kind: 'undecided' }),
      comment: async () => {
        calls += 1;
        return { kind: 'posted', externalId: 'c' };
      },
    };
    const append: DomainStore['append'] = async (...args) => {
      const appended = await world.store.append(...args);
      await delay(2 * boundaryDeadlineMs);
      return appended;
    };
    const store = withMembers(world.store, { append });
    const publisher = world.publisher({ deferDelaysMs: [] }, { adapterOf: () => eager, store });
    const id = await publishedByHand(x);
    assert.equal((await ended(id, failed)).code, 'publish_interrupted');
    assert.equal(calls, 0);
    await publisher.stop();
  });

  t('no comment was made twice', async () => {
    assert.deepEqual(await world.sandbox.duplicateComments(), []);
    assert.deepEqual(await world.sandbox.duplicates(), []);
  });
});
