/** What a network takes of a post once it is out: the cover of a video on youtube, and of a reel on facebook. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { account } from '#domain/account.ts';
import { media } from '#domain/media.ts';
import { target } from '#domain/post-target/target.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { holdPublishing, resumePublishing } from '#runtime/work/publishing-hold.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { Failure } from '#schemas/target.ts';
import { type ReadyAsset, readyAsset } from '#test/support/assets.ts';
import { rowsOfRun } from '#test/support/drawing.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { withMembers } from '#test/support/with-members.ts';

const script = fileURLToPath(new URL('../../support/publisher-process.ts', import.meta.url));

suite('what follows a published post', { timeoutMs: 240_000 }, (t) => {
  let world: PublishingWorld;
  let cover: ReadyAsset;
  let youtube: Account;
  let mortals: Mortals;
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    mortals = new Mortals(script, () => [world.url]);
    youtube = await world.connect(await world.client(), 'youtube');
    cover = await image();
  });
  const image = async (): Promise<ReadyAsset> => {
    const size = { width: 1_280, height: 720 };
    const body = await sharp({ create: { ...size, channels: 3, background: '#28a' } })
      .jpeg()
      .toBuffer();
    const needs = platforms.map((platform) => ({ platform, use: 'cover' as const }));
    const probe = { kind: 'image', digitalSourceType: null, ...size } as const;
    return readyAsset(world.store, world.workspaceId, 'image', { body, blobs: world.blobs, probe, needs });
  };
  t.after(async () => {
    await mortals?.end();
    await world?.close();
  });

  const schedule = async (
    by: Account,
    text = 'Look',
    overrides: Readonly<Record<string, unknown>> = {},
    of = cover,
  ) => {
    const own = { title: 'Look', ...overrides };
    const variant = { platform: by.platform, contentOverride: null, mediaIdsOverride: null, overrides: own };
    const body = { mediaIds: [(await world.clip()).id], coverMediaId: of.id };
    return (await world.schedule([by], { variants: [variant], text, body })).targetIds[0] ?? '';
  };
  const stepStory = async (id: string) =>
    (await world.story(`target-${id}`))
      .filter((type) => type.startsWith('TargetAfterStep'))
      .map((type) => type.slice('TargetAfterStep'.length));
  const ended = (id: string) =>
    until(`the cover of ${id} has its end`, async () => {
      const last = (await stepStory(id)).at(-1);
      return last === 'Completed' || last === 'Failed';
    });
  const calls = async (id: string) => (await world.sandbox.afterSteps([id])).map(({ outcome }) => outcome);
  const issueIn = async (id: string) => {
    const { events } = await world.store.load(target, id);
    const data = events.findLast(({ type }) => type === 'TargetAfterStepFailed')?.data;
    return (data as { readonly code: string } | undefined)?.code ?? null;
  };
  const published = async (id: string) => {
    assert.equal((await world.target(id)).status, 'published');
    assert.equal(await world.created(id), 1, 'one post');
  };
  const row = async (id: string) => {
    const sql = `select after_step_issues as issues, follow_ups as "followUps", next_action_at as "nextAt"
      from ${view('post_targets')} where id = $1`;
    return (await world.pool.query(sql, [id])).rows[0];
  };

  t('a cover is set once the video is out, with the file of the post, and the video did not carry it', async () => {
    const publisher = world.publisher();
    const id = await schedule(youtube);
    await ended(id);
    await published(id);
    assert.deepEqual(await stepStory(id), ['Scheduled', 'Started', 'Completed']);
    const [step] = await world.sandbox.afterSteps([id]);
    const [post] = await world.sandbox.creates(id);
    assert.deepEqual([step?.step, step?.mediaId, step?.postId], ['cover', cover.id, post?.postId]);
    assert.deepEqual(
      post?.media.filter(({ use }) => use === 'cover'),
      [],
    );
    await until('the row rests', async () => (await row(id))?.nextAt === null && (await row(id)).followUps === null);
    assert.equal((await row(id)).issues, null);
    await publisher.stop();
  });

  t('a reel of facebook has its cover behind it, a video of its feed with it', async () => {
    const facebook = await world.connect(await world.client(), 'facebook');
    const publisher = world.publisher();
    const [reel, video] = [await schedule(facebook, 'a reel', { contentType: 'reel' }), await schedule(facebook)];
    await ended(reel);
    await world.all([video], 'published');
    const coverOf = async (id: string) =>
      (await world.sandbox.creates(id))[0]?.media.filter(({ use }) => use === 'cover').map(({ mediaId }) => mediaId);
    assert.deepEqual([await coverOf(reel), await calls(reel)], [[], ['done']]);
    assert.deepEqual([await coverOf(video), await calls(video)], [[cover.id], []]);
    await publisher.stop();
  });

  t('a comment and a cover both follow, and the failure of one leaves the other', async () => {
    const publisher = world.publisher();
    const both = await schedule(youtube, 'both', { firstComment: 'first' });
    const one = await schedule(youtube, 'one [[sandbox:cover_reject]]', { firstComment: 'first' });
    for (const id of [both, one]) {
      await ended(id);
      await until('the comment is there', async () => (await world.sandbox.comments([id])).length === 1);
      await published(id);
    }
    assert.deepEqual([await issueIn(both), await issueIn(one)], [null, 'content_rejected']);
    await publisher.stop();
  });

  const refusals: readonly (readonly [string, string | null, readonly string[]])[] = [
    ['Look [[sandbox:cover_reject]]', 'content_rejected', ['refused']],
    ['Look [[sandbox:cover_token_death]]', 'reauth_required', ['refused']],
    ['Look [[sandbox:cover_rate_limit once 100ms]]', null, ['refused', 'done']],
    ['Look [[sandbox:cover_down 2x]]', null, ['done']],
    ['Look [[sandbox:cover_error_after once]]', null, ['done', 'done']],
    ['Look [[sandbox:cover_timeout_before once]]', null, ['refused', 'done']],
  ];
  for (const [text, code, made] of refusals) {
    t(`${text}: the target stays published, with one post`, async () => {
      const by = await world.connect(await world.client(), 'youtube');
      const publisher = world.publisher();
      const id = await schedule(by, text);
      await ended(id);
      await published(id);
      assert.deepEqual([await issueIn(id), await calls(id)], [code, made]);
      await publisher.stop();
    });
  }

  t('what never has an answer is an issue after six tries', async () => {
    const publisher = world.publisher();
    const id = await schedule(youtube, 'Look [[sandbox:cover_down]]');
    await ended(id);
    await published(id);
    assert.equal((await stepStory(id)).filter((one) => one === 'Started').length, 6);
    assert.equal(await issueIn(id), 'network_down');
    await until('a person reads it', async () => (await row(id))?.issues?.[0]?.retryAt === null);
    const [issue] = (await row(id)).issues;
    assert.deepEqual([issue.step, issue.code], ['cover', 'network_down']);
    await publisher.stop();
  });

  t(
    'a post that its network shows to fewer people is published, with the words of the network as an issue',
    async () => {
      const failure: Failure = {
        ...({ category: 'permission', retryable: false, actor: 'user', mediaId: null } as const),
        ...{ code: 'visibility_reduced', message: 'Fewer.', platformCode: 'private', platformMessage: 'it is private' },
      };
      const adapter = withMembers<PlatformAdapter>(world.sandbox, {
        publish: async (request, steps) => {
          const outcome = await world.sandbox.publish(request, steps);
          return outcome.kind === 'published' ? { ...outcome, narrowed: failure } : outcome;
        },
      });
      const publisher = world.publisher({}, { adapterOf: () => adapter });
      const id = await schedule(youtube);
      await until('the cover is set', async () => (await stepStory(id)).includes('Completed'));
      await published(id);
      assert.deepEqual(await stepStory(id), ['Scheduled', 'Failed', 'Started', 'Completed']);
      // The row comes after the story.
      await until('a person reads it', async () => (await row(id))?.issues && (await row(id)).followUps === null);
      const [issue, ...more] = (await row(id)).issues;
      assert.deepEqual([issue.step, issue.code, issue.retryAt, more], ['privacy', 'visibility_reduced', null, []]);
      assert.match(issue.message, /it is private/);
      await publisher.stop();
    },
  );

  t('an account that may set no cover has an issue with its owner', async () => {
    const barred = await world.connect(await world.client(), 'youtube', 'no-covers-acme');
    const publisher = world.publisher();
    const id = await schedule(barred);
    await ended(id);
    await published(id);
    assert.equal(await issueIn(id), 'cover_not_permitted');
    await publisher.stop();
  });

  /** Published, and its worker died before the cover. */
  const uncovered = async (by: Account, of = cover) => {
    const dying = await mortals.child('publisher:after-outcome');
    const id = await schedule(by, 'Look', {}, of);
    await mortals.died(dying);
    assert.deepEqual(await stepStory(id), ['Scheduled']);
    return id;
  };

  t('what changed between the publication and the cover is its issue, and no call is made', async () => {
    const clientId = await world.client();
    const left = await world.connect(await world.client(), 'youtube');
    const disconnected = await uncovered(left);
    await execute(world.store, account, left.id, { type: 'Disconnect', reason: 'left' }, world.context());
    const archived = await uncovered(await world.connect(clientId, 'youtube'));
    await world.archive(clientId);
    const other = await image();
    const deleted = await uncovered(youtube, other);
    for (const type of ['Delete', 'RemoveFiles'] as const) {
      await execute(world.store, media, other.id, { type }, world.context());
    }
    const publisher = world.publisher();
    for (const [id, code] of [
      [disconnected, 'account_disconnected'],
      [archived, 'after_step_interrupted'],
      [deleted, 'media_missing'],
    ] as const) {
      await ended(id);
      await published(id);
      assert.deepEqual([await issueIn(id), await calls(id)], [code, []], code);
    }
    await publisher.stop();
  });

  t('while publishing is held no cover is set, and no try is used up', async () => {
    const id = await uncovered(youtube);
    await holdPublishing(world.pool, world.workspaceId, 'ann');
    const publisher = world.publisher();
    const since = performance.now();
    await until('a publisher would have set it long since', async () => performance.now() > since + 1_500);
    assert.deepEqual([await stepStory(id), await calls(id)], [['Scheduled'], []]);
    await resumePublishing(world.pool, world.workspaceId);
    await ended(id);
    assert.deepEqual([await stepStory(id), await calls(id)], [['Scheduled', 'Started', 'Completed'], ['done']]);
    await publisher.stop();
  });

  // The story of the cover, and its calls, after the next worker.
  const deaths = [
    ['publisher:after-outcome', ['Scheduled', 'Started', 'Completed'], ['done']],
    ['publisher:after-step-start', ['Scheduled', 'Started', 'Scheduled', 'Started', 'Completed'], ['done']],
    ['sandbox.step_accepted', ['Scheduled', 'Started', 'Scheduled', 'Started', 'Completed'], ['done', 'done']],
    ['publisher:after-step-call', ['Scheduled', 'Started', 'Scheduled', 'Started', 'Completed'], ['done', 'done']],
    ['publisher:after-step', ['Scheduled', 'Started', 'Completed'], ['done']],
  ] as const;
  for (const [point, story, made] of rowsOfRun('deaths around a cover', deaths, ([point]) => point)) {
    t(`killed at ${point}: one post, and the cover is set`, async () => {
      const dying = await mortals.child(point);
      const id = await schedule(youtube);
      await mortals.died(dying);
      const publishers = [world.publisher(), world.publisher()];
      await ended(id);
      await published(id);
      assert.deepEqual(await stepStory(id), story);
      assert.deepEqual(await calls(id), made);
      assert.equal(new Set((await world.sandbox.afterSteps([id])).map(({ sha256 }) => sha256)).size, 1);
      for (const one of publishers) await one.stop();
    });
  }

  t('nothing was posted twice', async () => {
    assert.deepEqual(await world.sandbox.duplicates(), []);
    const all: readonly Platform[] = (await world.sandbox.afterSteps()).map(({ platform }) => platform);
    assert.deepEqual([...new Set(all)].sort(), ['facebook', 'youtube']);
  });
});
