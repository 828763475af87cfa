/** What the adapter of YouTube does beside what every network must: sessions, words, times, comments, limits. */
import assert from 'node:assert/strict';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { Json, PublishRequest } from '#contracts/ports/platform.ts';
import { partBytesOf } from '#infra/platforms/kit/resumable.ts';
import { allScopes, problems } from '#test/support/networks/youtube/index.ts';
import { type YouTubeWorld, youtubeWorld } from '#test/support/networks/youtube/world.ts';
import { suite } from '#test/support/suite.ts';

const within = () => AbortSignal.timeout(5_000);
const MiB = 1_024 * 1_024;

suite('an upload to youtube', { timeoutMs: 90_000 }, (t) => {
  let world: YouTubeWorld;
  t.before.each(async () => {
    world = await youtubeWorld();
  });
  t.after.each(() => world.close());

  const next = (asked: PublishRequest, { checkpoints }: Pick<PublishRequest, 'checkpoints'>): PublishRequest => ({
    ...{ ...asked, attempt: asked.attempt + 1, checkpoints },
  });
  const puts = (one = world) =>
    one.network.state.calls.filter(({ method, range }) => method === 'PUT' && range !== null);
  const begun = (one = world) => one.network.state.sessions.size;

  t('goes in parts of one size, of which the last is small and is the boundary call', async () => {
    const account = await world.account();
    const bytes = 20 * MiB + 12_345;
    const { outcome, steps } = await world.publish(world.request(account, { media: [world.video(bytes)] }));
    assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
    const part = partBytesOf(bytes);
    assert.equal(part % (256 * 1_024), 0);
    const ranges = puts().map(
      ({ range }) =>
        /(\d+)-(\d+)/
          .exec(range ?? '')
          ?.slice(1)
          .map(Number) ?? [],
    );
    assert.equal(
      puts().reduce((sum, { sent }) => sum + sent, 0),
      bytes,
    );
    const sizes = ranges.map(([first = 0, last = 0]) => last - first + 1);
    assert.ok(sizes.slice(0, -1).every((one) => one === part));
    assert.ok((sizes.at(-1) ?? 0) <= MiB);
    assert.equal(steps.bytes, bytes);
    assert.deepEqual([steps.log.at(-1), begun()], ['boundary', 1]);
  });

  t('has parts that grow with the file, so that no file has more than some hundreds, and a small last one', () => {
    for (const bytes of [1, 5 * MiB, 8 * MiB, 8 * MiB + 1, 2_000 * MiB, 50_000 * MiB, 256_000 * MiB - 7]) {
      const part = partBytesOf(bytes);
      const last = ((bytes - 1) % part) + 1;
      assert.ok(part % (256 * 1_024) === 0 && last <= MiB, `${bytes}: ${part}, ${last}`);
      assert.ok(bytes / part <= 100, `${bytes}: ${bytes / part} parts`);
    }
  });

  t('20: a last byte whose answer was lost is asked for by its session, and no second session begins', async () => {
    for (const then of ['drop_after', 'silent_after', { answerAfter: problems.unavailable }] as const) {
      const [account, before] = [await world.account(), begun()];
      const asked = world.request(account, { content: `Lost ${begun()}` });
      world.network.script({ route: 'PUT last', then });
      const first = await world.publish(asked);
      assert.equal(first.outcome.kind, 'unknown');
      const made = world.network.state.videos.length;
      const second = await world.publish(next(asked, first.steps));
      assert.ok(second.outcome.kind === 'published', JSON.stringify(second.outcome));
      assert.deepEqual([begun(), world.network.state.videos.length], [before + 1, made]);
      assert.ok(!second.steps.log.includes('boundary'), 'there was nothing to send');
    }
  });

  t('20: a last byte that did not arrive is sent to the same session', async () => {
    const account = await world.account();
    const asked = world.request(account, { media: [world.video(9 * MiB)] });
    world.network.script({ route: 'PUT last', then: 'drop_before' });
    const first = await world.publish(asked);
    assert.equal(first.outcome.kind, 'unknown');
    const seen = await world.adapter.reconcile(next(asked, first.steps), first.steps.crossed);
    assert.equal(seen.kind, 'absent');
    const second = await world.publish(next(asked, first.steps));
    assert.equal(second.outcome.kind, 'published', JSON.stringify(second.outcome));
    assert.deepEqual([begun(), world.network.state.videos.length], [1, 1]);
    assert.equal(puts().filter(({ range }) => range?.startsWith('bytes 0-')).length, 1, 'no part was sent again');
  });

  t(
    '20: a session that ended after a lost last byte: the channel’s own videos may show one, and never that there is none',
    async () => {
      const account = await world.account();
      for (const then of ['drop_after', 'drop_before'] as const) {
        const asked = world.request(account, { content: `Gone ${then}` });
        world.network.script({ route: 'PUT last', then });
        const first = await world.publish(asked);
        assert.equal(first.outcome.kind, 'unknown');
        const [sessions, made] = [begun(), world.network.state.videos.length];
        world.network.script({ route: 'PUT probe', times: 9, then: { answer: problems.session_gone } });
        const seen = await world.adapter.reconcile(next(asked, first.steps), first.steps.crossed);
        assert.equal(seen.kind, then === 'drop_after' ? 'present' : 'undecided', JSON.stringify(seen));
        const second = await world.publish(next(asked, first.steps));
        assert.equal(
          second.outcome.kind,
          then === 'drop_after' ? 'published' : 'deferred',
          JSON.stringify(second.outcome),
        );
        assert.ok(!second.steps.log.includes('boundary'));
        assert.deepEqual([begun(), world.network.state.videos.length], [sessions, made]);
        world.network.state.faults.length = 0;
      }
    },
  );

  t(
    'a session that ended after a call that sent nothing is given up, and the next attempt begins another one',
    async () => {
      const account = await world.account();
      const asked = world.request(account);
      const steps = new RecordedSteps(asked, 1_500);
      steps.lateAtBoundary = true;
      assert.equal((await world.adapter.publish(asked, steps)).kind, 'nothing_sent');
      const checkpoints = steps.checkpoints.map((one) =>
        one.step === 'boundary' ? ({ ...one, madeNothing: true } as const) : one,
      );
      world.network.state.sessions.clear();
      const second = await world.publish(next(asked, { checkpoints }));
      assert.equal(second.outcome.kind, 'deferred', JSON.stringify(second.outcome));
      const third = await world.publish(next(asked, second.steps));
      assert.equal(third.outcome.kind, 'published', JSON.stringify(third.outcome));
      assert.equal(world.network.state.videos.length, 1);
    },
  );

  t(
    '20: a video that its session names and that YouTube does not show is never taken for one that is not there',
    async () => {
      const account = await world.account();
      const asked = world.request(account);
      world.network.script({ route: 'PUT last', then: 'drop_after' });
      const first = await world.publish(asked);
      world.network.state.deleted.add(world.network.state.videos[0]?.id ?? '');
      const seen = await world.adapter.reconcile(next(asked, first.steps), first.steps.crossed);
      assert.equal(seen.kind, 'undecided', JSON.stringify(seen));
      const second = await world.publish(next(asked, first.steps));
      assert.ok(second.outcome.kind === 'deferred' && !second.steps.log.includes('boundary'));
      assert.deepEqual([begun(), world.network.state.videos.length], [1, 1]);
    },
  );

  t('20: while nobody answers for a lost last byte, nothing is sent', async () => {
    const account = await world.account();
    const asked = world.request(account);
    world.network.script({ route: 'PUT last', then: 'drop_after' });
    const first = await world.publish(asked);
    world.network.script({ route: 'PUT probe', then: { answer: problems.unavailable } });
    const second = await world.publish(next(asked, first.steps));
    assert.equal(second.outcome.kind, 'deferred', JSON.stringify(second.outcome));
    assert.ok(!second.steps.log.includes('boundary'));
    assert.deepEqual([begun(), world.network.state.videos.length], [1, 1]);
  });

  t('a session whose address was sealed under another secret is not begun anew after a lost last byte', async () => {
    const account = await world.account();
    const asked = world.request(account);
    world.network.script({ route: 'PUT last', then: 'drop_after' });
    const first = await world.publish(asked);
    Object.assign(world.network.state.app, { clientSecret: 'GOCSPX-other' });
    const { adapter } = world.again({ YOUTUBE_CLIENT_SECRET: 'GOCSPX-other' });
    const second = await world.publish(next(asked, first.steps), adapter);
    assert.equal(second.outcome.kind, 'published', JSON.stringify(second.outcome));
    assert.deepEqual([begun(), world.network.state.videos.length], [1, 1]);
  });

  t('goes on where the session is, which may have kept less of a part than was sent', async () => {
    const own = await youtubeWorld({ keeps: (sent) => (sent > MiB ? sent - MiB : sent) });
    const account = await own.account();
    const { outcome } = await own.publish(own.request(account, { media: [own.video(20 * MiB)] }));
    assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
    assert.equal(own.network.state.videos[0]?.bytes, 20 * MiB);
    own.close();
  });

  t('a part that is lost costs the next attempt that part alone', async () => {
    const account = await world.account();
    const bytes = 30 * MiB;
    const asked = world.request(account, { media: [world.video(bytes)] });
    let parts = 0;
    world.network.script({
      route: 'PUT part',
      times: 2,
      then: {
        run: () => {
          parts += 1;
        },
      },
    });
    world.network.script({ route: 'PUT part', then: 'drop_before' });
    const first = await world.publish(asked);
    assert.deepEqual([first.outcome.kind, parts], ['deferred', 2]);
    const second = await world.publish(next(asked, first.steps));
    assert.equal(second.outcome.kind, 'published', JSON.stringify(second.outcome));
    assert.equal(begun(), 1);
    assert.equal(
      puts().reduce((sum, { sent }) => sum + sent, 0),
      bytes,
    );
  });

  t('a session that ends before the last byte is begun anew', async () => {
    const account = await world.account();
    const asked = world.request(account, { media: [world.video(20 * MiB)] });
    world.network.script({ route: 'PUT part', then: 'drop_before' });
    const first = await world.publish(asked);
    world.network.state.sessions.clear();
    const second = await world.publish(next(asked, first.steps));
    assert.equal(second.outcome.kind, 'deferred', JSON.stringify(second.outcome));
    const third = await world.publish(next(asked, second.steps));
    assert.equal(third.outcome.kind, 'published', JSON.stringify(third.outcome));
  });

  t(
    'with other words, or for another time, begins anew: YouTube has them from the beginning of a session',
    async () => {
      const account = await world.account();
      const asked = world.request(account, { media: [world.video(20 * MiB)] });
      world.network.script({ route: 'PUT part', then: 'drop_before' });
      const first = await world.publish(asked);
      const { outcome } = await world.publish({ ...next(asked, first.steps), content: 'Another text' });
      assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
      assert.equal(world.network.state.videos[0]?.snippet.description, 'Another text');
    },
  );

  t('keeps the address of a session sealed: no checkpoint and no boundary shows it', async () => {
    const account = await world.account();
    const { steps } = await world.publish(world.request(account, { media: [world.video(20 * MiB)] }));
    const [key = ''] = world.network.state.sessions.keys();
    assert.ok(key !== '' && steps.checkpoints.length > 2);
    assert.ok(!JSON.stringify(steps.checkpoints).includes(key));
  });
});

suite('a video on youtube', { timeoutMs: 90_000 }, (t) => {
  let world: YouTubeWorld;
  t.before.each(async () => {
    world = await youtubeWorld();
  });
  t.after.each(() => world.close());

  const publishedAs = async (over: Partial<PublishRequest>) => {
    const { outcome } = await world.publish(world.request(await world.account(), over));
    assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
    return { outcome, video: world.network.state.videos.at(-1) };
  };

  t(
    'is public unless the post says who sees it, not made for children, and in the category of people and blogs',
    async () => {
      const { video } = await publishedAs({ content: 'First line\nand more' });
      assert.deepEqual(video?.snippet, { title: 'First line', description: 'First line\nand more', categoryId: '22' });
      assert.deepEqual(video?.status, { privacyStatus: 'public', selfDeclaredMadeForKids: false });
    },
  );

  t('that YouTube makes more private than was asked is published and says so, asked about later too', async () => {
    const account = await world.account();
    for (const [privacyStatus, then, seen] of [
      ['public', 'locked', 'private'],
      ['unlisted', 'locked', 'private'],
      ['private', 'locked', null],
      ['unlisted', 'processing', null],
    ] as const) {
      const content = `${privacyStatus} ${then}`;
      world.network.fate({ says: content, then, ms: 0 });
      const asked = world.request(account, { content, overrides: { privacyStatus } });
      const { outcome, steps } = await world.publish(asked);
      const later = await world.adapter.reconcile({ ...asked, checkpoints: steps.checkpoints }, steps.crossed);
      for (const said of [outcome, later]) {
        assert.ok(said.kind === 'published' || said.kind === 'present', JSON.stringify(said));
        const { narrowed } = said;
        assert.deepEqual(
          [narrowed?.platformCode ?? null, narrowed?.code],
          [seen, seen ? 'visibility_reduced' : undefined],
        );
        assert.equal(narrowed?.platformMessage?.includes(`${privacyStatus} was asked for`), seen ? true : undefined);
      }
    }
  });

  t('that an AI made says so, and only then', async () => {
    assert.equal((await publishedAs({ aiDisclosure: true })).video?.status.containsSyntheticMedia, true);
    assert.ok(!('containsSyntheticMedia' in ((await publishedAs({})).video?.status ?? {})));
  });

  t('has the link of a Short where it is one: square or upright, and of three minutes at most', async () => {
    for (const [width, height, durationMs, isShort] of [
      [1_080, 1_920, 180_000, true],
      [1_080, 1_080, 1_000, true],
      [1_920, 1_080, 1_000, false],
      [1_080, 1_920, 180_001, false],
    ] as const) {
      const { outcome } = await publishedAs({ media: [world.video(1_000, { width, height, durationMs })] });
      assert.ok(outcome.kind === 'published');
      assert.equal(outcome.permalink?.includes('/shorts/'), isShort, String(outcome.permalink));
    }
  });

  t('without a title, and a post without a video, are refused before a call', async () => {
    const account = await world.account();
    for (const over of [{ content: 'a<b' }, { media: [] }, { content: 'x'.repeat(101) }]) {
      const { outcome, steps } = await world.publish(world.request(account, over));
      assert.ok(outcome.kind === 'failed' && outcome.failure.category === 'invalid_content', JSON.stringify(outcome));
      assert.deepEqual(steps.log, []);
    }
    assert.deepEqual(world.network.state.calls, []);
  });

  t('that YouTube rejects as a duplicate after it has processed it has failed as one', async () => {
    const account = await world.account();
    world.network.fate({ says: 'Twice', then: 'rejected', ms: 500 });
    const asked = world.request(account, { content: 'Twice' });
    const { outcome, steps } = await world.publish(asked);
    assert.ok(outcome.kind === 'accepted', JSON.stringify(outcome));
    const looked = await world.adapter.reconcile(asked, steps.crossed, outcome.handle);
    assert.ok(looked.kind === 'processing');
    assert.ok(Date.parse(looked.askAt) - world.network.state.now() <= 500, 'YouTube says how long it takes');
    const [video] = world.network.state.videos;
    Object.assign(video ?? {}, { reason: 'duplicate' });
    world.network.state.advance(1_000);
    const seen = await world.adapter.reconcile(asked, steps.crossed, outcome.handle);
    assert.ok(seen.kind === 'failed' && seen.failure.code === 'duplicate_content', JSON.stringify(seen));
  });

  t('that is accepted and then deleted by its owner is not made again', async () => {
    const account = await world.account();
    world.network.fate({ says: 'Slow', then: 'processing', ms: 60_000 });
    const asked = world.request(account, { content: 'Slow' });
    const { outcome, steps } = await world.publish(asked);
    assert.ok(outcome.kind === 'accepted');
    world.network.state.deleted.add(String((outcome.handle as { id: Json }).id));
    assert.equal((await world.adapter.reconcile(asked, steps.crossed, outcome.handle)).kind, 'absent');
    const again = await world.publish({ ...asked, attempt: 2, checkpoints: steps.checkpoints });
    assert.notEqual(again.outcome.kind, 'published');
    assert.equal(world.network.state.videos.length, 1);
  });

  t('21: whose thumbnail YouTube refuses to a channel without a telephone number stays published', async () => {
    const account = await world.account({ isVerified: false });
    const asked = world.request(account);
    const { outcome } = await world.publish(asked);
    assert.ok(outcome.kind === 'published');
    const step = { step: 'cover', targetId: asked.targetId, platform: 'youtube', account, content: '' } as const;
    const { externalId } = outcome;
    const set = await world.adapter.afterStep({ ...step, externalId, cover: world.cover() }, within());
    assert.ok(set.kind === 'failed' && set.failure.code === 'cover_not_permitted', JSON.stringify(set));
    assert.equal(world.network.state.video(externalId)?.id, externalId);
  });

  t('takes no comment without the permission, and none where its channel turned them off', async () => {
    const scopes = allScopes.filter((one) => !one.endsWith('force-ssl'));
    const few = await world.account({}, scopes);
    const all = await world.account();
    for (const [account, overrides] of [
      [few, {}],
      [all, { madeForKids: true }],
      [all, { privacyStatus: 'private' }],
    ] as const) {
      const asked = world.request(account, { overrides });
      const { outcome } = await world.publish(asked);
      assert.ok(outcome.kind === 'published');
      const { externalId } = outcome;
      const comment = { targetId: asked.targetId, platform: 'youtube', account, externalId, content: 'Hi' } as const;
      const said = await world.adapter.comment(comment, within());
      assert.ok(said.kind === 'failed' && said.failure.code === 'comment_not_permitted', JSON.stringify(said));
    }
    assert.deepEqual(world.network.state.comments, []);
  });
});

suite('what a project of youtube may do in a day', { timeoutMs: 90_000 }, (t) => {
  const dayMs = 86_400_000;

  t('a hundred uploads are counted before YouTube is asked, until midnight in California', async () => {
    const world = await youtubeWorld();
    const account = await world.account();
    const { adapter } = world.again({ YOUTUBE_APP_BUDGET: '1' });
    assert.equal((await world.publish(world.request(account), adapter)).outcome.kind, 'published');
    const { outcome } = await world.publish(world.request(account), adapter);
    assert.ok(outcome.kind === 'rate_limited', JSON.stringify(outcome));
    const { now } = { now: world.network.state.now() };
    assert.ok(Date.parse(outcome.retryAt) > now && Date.parse(outcome.retryAt) <= now + dayMs + 3_600_000);
    assert.match(
      new Date(outcome.retryAt).toLocaleTimeString('en-GB', { timeZone: 'America/Los_Angeles' }),
      /^00:00:00/,
    );
    assert.equal(world.network.state.sessions.size, 1);
    world.network.state.advance(dayMs + 3_600_000);
    assert.equal((await world.publish(world.request(account), adapter)).outcome.kind, 'published');
    world.close();
  });

  t('our count of units is YouTube’s: a read costs one, a comment and a thumbnail fifty, an upload none', async () => {
    const world = await youtubeWorld();
    const account = await world.account();
    const asked = world.request(account);
    const { outcome, steps } = await world.publish(asked);
    assert.ok(outcome.kind === 'published');
    const { externalId } = outcome;
    const follow = { targetId: asked.targetId, platform: 'youtube', account, externalId, content: 'Hi' } as const;
    await world.adapter.comment(follow, within());
    await world.adapter.afterStep({ ...follow, step: 'cover', cover: world.cover() }, within());
    await world.adapter.reconcile(asked, steps.crossed);
    await world.accounts?.choices('youtube', account, 'categoryId', within());
    await world.adapter.removePost({ platform: 'youtube', account, externalId }, within());
    assert.deepEqual([...world.network.state.used.values()], [{ inserts: 1, units: 50 + 50 + 1 + 2 + 50 }]);
    const spent = async (units: number) => {
      const { adapter } = world.again({ YOUTUBE_APP_UNITS: String(units), YOUTUBE_CLIENT_ID: `u${units}` });
      return adapter.removePost?.({ platform: 'youtube', account, externalId }, within());
    };
    assert.equal((await spent(49))?.kind, 'not_removed');
    assert.equal((await spent(50))?.kind, 'removed');
    world.close();
  });

  t('figures leave half of the units to what is not optional', async () => {
    const world = await youtubeWorld();
    const account = await world.account();
    const { source, adapter } = world.again({ YOUTUBE_APP_UNITS: '2' });
    assert.equal((await source.fetchAccountInsights('youtube', account, within())).kind, 'reported');
    assert.equal((await source.fetchAccountInsights('youtube', account, within())).kind, 'rate_limited');
    assert.equal((await adapter.findPosts?.({ ...world.request(account), from: '', until: '' }))?.kind, 'undecided');
    world.close();
  });

  t('once YouTube says that the day is used up no other call of that kind is made, and uploads go on', async () => {
    const world = await youtubeWorld({ quota: { inserts: 100, units: 60 } });
    const account = await world.account();
    const externalId = 'AAAAAAAAAAA';
    const remove = () => world.adapter.removePost({ platform: 'youtube', account, externalId }, within());
    assert.equal((await remove()).kind, 'removed');
    assert.equal((await remove()).kind, 'not_removed');
    const { length } = world.network.state.calls;
    assert.equal((await remove()).kind, 'not_removed');
    assert.equal(world.network.state.calls.length, length, 'nobody asked YouTube again');
    assert.equal((await world.publish(world.request(account))).outcome.kind, 'published');
    world.close();
  });
});

suite('youtube’s own scheduler, beside the suite', { timeoutMs: 90_000 }, (t) => {
  let world: YouTubeWorld;
  t.before.each(async () => {
    world = await youtubeWorld();
  });
  t.after.each(() => world.close());

  const handed = async (over: Partial<PublishRequest> = {}, aheadMs = 3_600_000) => {
    const account = await world.account();
    const dueAt = new Date(world.network.state.now() + aheadMs).toISOString();
    const asked = { ...world.request(account, over), dueAt };
    const steps = new RecordedSteps(asked, 1_500);
    return { asked, steps, outcome: await world.scheduler.handOver(asked, steps) };
  };

  t('a change of the time keeps what else YouTube has of the video', async () => {
    const overrides = { license: 'creativeCommon', madeForKids: true };
    const { asked, outcome } = await handed({ overrides, aiDisclosure: true });
    assert.ok(outcome.kind === 'handed_over', JSON.stringify(outcome));
    const dueAt = new Date(world.network.state.now() + 7_200_000).toISOString();
    assert.equal((await world.scheduler.reschedule({ ...asked, dueAt }, outcome.nativeId)).kind, 'rescheduled');
    const { status } = world.network.state.videos[0] ?? {};
    assert.deepEqual(status, {
      ...{ license: 'creativeCommon', embeddable: true, publicStatsViewable: true, selfDeclaredMadeForKids: true },
      ...{ containsSyntheticMedia: true, privacyStatus: 'private', publishAt: dueAt },
    });
  });

  t('an upload that takes until the time of the video sends no last byte', async () => {
    world.network.script({
      route: 'POST /upload/youtube/v3/videos',
      then: { run: () => world.network.state.advance(3_600_000 - 30_000) },
    });
    const { outcome, steps } = await handed();
    assert.equal(outcome.kind, 'outside_window', JSON.stringify(outcome));
    assert.ok(!steps.log.includes('boundary'));
    assert.deepEqual(world.network.state.videos, []);
  });

  t('a video whose time its owner took away will not be published, and is said to have failed', async () => {
    const { asked, steps, outcome } = await handed();
    assert.ok(outcome.kind === 'handed_over');
    const [video] = world.network.state.videos;
    Object.assign(video ?? {}, { status: { privacyStatus: 'private' }, visibleAt: null });
    const seen = await world.scheduler.verify(asked, { boundary: steps.crossed, nativeId: outcome.nativeId });
    assert.ok(seen.kind === 'failed' && seen.failure.code === 'native_publish_failed', JSON.stringify(seen));
    assert.equal((await world.scheduler.undo(asked, outcome.nativeId)).kind, 'too_late');
  });

  t(
    'a hand-over without the permission to change videos can be neither changed nor taken back, and says so',
    async () => {
      const { asked, outcome } = await handed();
      assert.ok(outcome.kind === 'handed_over');
      world.network.script({ route: 'DELETE /youtube/v3/videos', then: { answer: problems.no_scope } });
      const undone = await world.scheduler.undo(asked, outcome.nativeId);
      assert.ok(undone.kind === 'unknown' && undone.failure.category === 'permission', JSON.stringify(undone));
    },
  );
});
