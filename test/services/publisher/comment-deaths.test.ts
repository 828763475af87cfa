import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import type { Variant } from '#schemas/post.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('../../support/publisher-process.ts', import.meta.url));

suite('deaths around a first comment', { drawn: true, costs: 5, timeoutMs: 240_000 }, (t) => {
  let world: PublishingWorld;
  let account: Account;
  const mortals = new Mortals(script, () => [world.url]);

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    account = await world.connect(await world.client(), 'x');
  });
  // What a failed test leaves alive would take the work of the next one.
  t.after.each(async () => {
    await mortals.end();
    await world.stopAll();
  });
  t.after(() => world.close());

  const schedule = async (by: Account, comment = 'first'): Promise<string> => {
    const overrides = { firstComment: comment };
    const variant: Variant = { platform: by.platform, contentOverride: null, mediaIdsOverride: null, overrides };
    return (await world.schedule([by], { variants: [variant] })).targetIds[0] ?? '';
  };
  const commentStory = async (id: string) =>
    (await world.story(`target-${id}`))
      .filter((type) => type.startsWith('TargetFirstComment'))
      .map((type) => type.slice('TargetFirstComment'.length));
  const ended = (id: string) =>
    until(`the comment of ${id} has ended`, async () => {
      const last = (await commentStory(id)).at(-1);
      return last === 'Posted' || last === 'Failed';
    });
  const calls = async (id: string) => (await world.sandbox.comments([id])).map(({ outcome }) => outcome);

  /** The story of the comment, and its calls, after the next worker. */
  const deaths = [
    ['publisher:after-outcome', ['Scheduled', 'Started', 'Posted'], ['created']],
    ['publisher:after-comment-start', ['Scheduled', 'Started', 'Failed'], []],
    ['sandbox.comment_accepted', ['Scheduled', 'Started', 'Failed'], ['created']],
    ['publisher:after-comment-call', ['Scheduled', 'Started', 'Failed'], ['created']],
    ['publisher:after-comment', ['Scheduled', 'Started', 'Posted'], ['created']],
  ] as const;
  for (const [point, story, made] of deaths) {
    t(`killed at ${point}: the post stands, and there is one call at most`, async () => {
      const dying = await mortals.child(point);
      const id = await schedule(account);
      await mortals.died(dying);
      const publisher = world.publisher();
      await ended(id);
      assert.equal((await world.target(id)).status, 'published');
      assert.equal(await world.created(id), 1);
      assert.deepEqual(await commentStory(id), story);
      assert.deepEqual(await calls(id), made);
      await publisher.stop();
    });
  }

  t('killed after a refusal that may pass: the next worker tries again', async () => {
    const dying = await mortals.child('publisher:after-comment');
    const id = await schedule(account, 'soon [[sandbox:rate_limit once 100ms]]');
    await mortals.died(dying);
    assert.deepEqual(await commentStory(id), ['Scheduled', 'Started', 'Scheduled']);
    const publisher = world.publisher();
    await ended(id);
    assert.deepEqual(await commentStory(id), ['Scheduled', 'Started', 'Scheduled', 'Started', 'Posted']);
    assert.deepEqual(await calls(id), ['refused', 'created']);
    await publisher.stop();
  });

  t('killed between a refusal and the report of its token: the next call reports it', async () => {
    const lapsing = await world.connect(await world.client(), 'linkedin');
    const dying = await mortals.child('publisher:after-comment');
    const id = await schedule(lapsing, 'late [[sandbox:token_death]]');
    await mortals.died(dying);
    assert.deepEqual(await commentStory(id), ['Scheduled', 'Started', 'Failed']);
    assert.deepEqual(await world.story(`account-${lapsing.id}`), ['AccountConnected']);
    const publisher = world.publisher();
    await ended(await schedule(lapsing, 'late [[sandbox:token_death]]'));
    await until('reported', async () => (await world.story(`account-${lapsing.id}`)).length === 2);
    await publisher.stop();
  });

  for (const point of ['publisher:after-comment-start', 'publisher:after-comment-call']) {
    t(`asleep at ${point} past lease and deadline: unknown, and the sleeper neither calls nor writes`, async () => {
      const sleeper = await mortals.child(point, 'SIGSTOP');
      const id = await schedule(account);
      await mortals.asleep(sleeper);
      const publisher = world.publisher();
      await ended(id);
      const story = await world.story(`target-${id}`);
      assert.equal(story.at(-1), 'TargetFirstCommentFailed');
      const before = await calls(id);
      await mortals.wakeToEnd(sleeper);
      assert.deepEqual(await world.story(`target-${id}`), story, 'the sleeper wrote');
      assert.deepEqual(await calls(id), before, 'the sleeper called');
      await publisher.stop();
    });
  }

  t('no comment was made twice', async () => {
    assert.deepEqual(await world.sandbox.duplicateComments(), []);
  });
});
