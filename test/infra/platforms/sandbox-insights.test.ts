import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import type { InsightsAccount, InsightsSubject, PostInsightsAnswer } from '#contracts/ports/platform-insights.ts';
import { capabilities } from '#domain/platforms/index.ts';
import { accountFiguresOf, postFiguresOf } from '#domain/platforms/read-figures.ts';
import { countingOf, followersOf } from '#infra/platforms/sandbox/curves.ts';
import { SandboxNetwork, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { postAnswer } from '#infra/platforms/sandbox/insights.ts';
import { x } from '#infra/platforms/sandbox/networks/x.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { PostFigures } from '#schemas/insights.ts';
import { clipForAdapter } from '#test/support/clip.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const hour = 3_600_000;
const day = 24 * hour;
const account = (platform: Platform, username = `acme-${randomUUID().slice(0, 8)}`): InsightsAccount => ({
  workspaceId: randomUUID(),
  id: randomUUID(),
  externalId: sandboxProfile(platform, username).externalId,
  username,
});
const required = (platform: Platform) =>
  platform === 'tiktok' ? { privacyLevel: 'SELF_ONLY' } : platform === 'pinterest' ? { boardId: '1' } : {};

/** A sandbox of its own, and what is published on it. */
const opened = async () => {
  const db = await preparedDatabase();
  const network = new SandboxNetwork({ database: { url: db.url, connections: 4 }, pollMs: 20 });
  const clip = await clipForAdapter();
  const media = (platform: Platform): readonly PublishMedia[] =>
    capabilities(platform).textOnly ? [] : [{ ...clip, use: platform === 'instagram' ? 'reel' : 'feed' }];
  const publish = async (
    platform: Platform,
    by: PublishRequest['account'],
    content = 'Good morning',
    workspaceId: string = randomUUID(),
  ): Promise<InsightsSubject> => {
    const request = {
      workspaceId,
      targetId: randomUUID(),
      attempt: 1,
      platform,
      account: by,
      content,
      overrides: required(platform),
      aiDisclosure: false,
      media: media(platform),
      cover: null,
      coverFrameMs: null,
      thread: null,
      checkpoints: [],
    };
    const attempt = (asked: PublishRequest) =>
      network.publish(asked, new RecordedSteps(asked, network.boundaryDeadlineMs));
    const first = await attempt(request);
    const outcome = first.kind === 'failed' ? await attempt({ ...request, attempt: 2 }) : first;
    ok(outcome.kind === 'published', JSON.stringify(outcome));
    const { externalId, publishedAt } = outcome;
    const use = platform === 'instagram' ? 'reel' : 'feed';
    return { targetId: request.targetId, externalId, publishedAt, use, hasVideo: request.media.length > 0 };
  };
  const close = async () => {
    await network.close();
    await db.drop();
  };
  return { network, publish, close };
};

suite('sandbox network as a source of figures', (t) => {
  insightsSuite(t, async () => {
    const { network, publish, close } = await opened();
    return {
      source: network,
      platforms,
      close,
      account,
      publish: (platform, by, fault) =>
        publish(platform, by, fault === undefined ? undefined : `Hi [[sandbox:metrics_${fault} once]]`),
      remove: (platform, { externalId }) => network.remove(platform, externalId),
      pass: () => network.advance(5 * day),
    };
  });
});

const shown = (platform: Platform, id: string, ageMs: number, over: Partial<InsightsSubject> = {}): PostFigures => {
  const post: InsightsSubject = {
    targetId: 't',
    externalId: id,
    publishedAt: '2026-01-01T00:00:00.000Z',
    use: platform === 'instagram' ? 'reel' : 'feed',
    hasVideo: true,
    ...over,
  };
  const raw = postAnswer({ platform, post, permalink: 'https://example.com/1', ageMs });
  const mapped = postFiguresOf(platform, post.use, raw, { hasVideo: post.hasVideo });
  ok(mapped.kind === 'figures', mapped.kind === 'nonsense' ? mapped.reason : '');
  return mapped.figures;
};

suite('sandbox figures', (t) => {
  const post = fc.record({
    platform: fc.constantFrom(...platforms),
    id: fc.uuid(),
    ageMs: fc.oneof(fc.nat(2 * day), fc.nat(90 * day)),
    use: fc.constantFrom('feed' as const, 'reel' as const, 'story' as const),
    hasVideo: fc.boolean(),
  });

  t('are consistent with each other at any age of any post', () => {
    fc.assert(
      fc.property(post, ({ platform, id, ageMs, use, hasVideo }) => {
        const of = shown(platform, id, ageMs, {
          use: platform === 'instagram' || use !== 'story' ? use : 'feed',
          hasVideo,
        });
        const { impressions, reach, likes } = of;
        if (typeof reach === 'number' && typeof impressions === 'number') ok(reach <= impressions);
        for (const name of ['likes', 'comments', 'shares', 'saves'] as const) {
          const [count, most] = [of[name], reach ?? impressions ?? of.videoViews];
          if (typeof count === 'number' && typeof most === 'number') ok(count <= most, `${name} of ${platform}`);
        }
        if (platform === 'facebook') {
          equal(
            Object.values(of.reactionsByType ?? {}).reduce((sum: number, one) => sum + (one ?? 0), 0),
            likes,
          );
          equal(
            Object.values(of.clicksByType ?? {}).reduce((sum, one) => sum + one, 0),
            of.clicks,
          );
        }
      }),
      { seed: seeded('consistent').seed, numRuns: 1_000 },
    );
  });

  t('grow except for rare corrections, and are a function of id and age', () => {
    let falls = 0;
    let steps = 0;
    for (let number = 0; number < 40; number += 1) {
      const id = `post ${number}`;
      let last = 0;
      for (let at = 0; at <= 60; at += 1) {
        const { views } = countingOf(x.spreadMs, id, at * day);
        equal(countingOf(x.spreadMs, id, at * day).views, views);
        if (views < last) {
          falls += 1;
          ok(views >= last * 0.97, `${id} fell from ${last} to ${views}`);
        }
        last = views;
        steps += 1;
      }
      ok(last > 100);
    }
    ok(falls > 0 && falls < steps / 8, `${falls} of ${steps}`);
  });

  t('of a story stop after a day, and reach is absent below five viewers', () => {
    const story = { use: 'story', hasVideo: false } as const;
    deepEqual(shown('instagram', 's', 9 * day, story), shown('instagram', 's', day, story));
    ok(!('reach' in shown('instagram', 's', 0, story)));
    ok('navigation' in shown('instagram', 's', day, story));
  });

  t('of YouTube’s reports appear after two to three days', () => {
    const early = shown('youtube', 'v', 47 * hour);
    ok((early.videoViews ?? 0) > 0 && !('watchTimeMinutes' in early) && !('trafficSources' in early));
    const late = shown('youtube', 'v', 10 * day);
    ok((late.watchTimeMinutes ?? 0) > 0);
    const sources = Object.values(late.trafficSources ?? {}).reduce((sum, one) => sum + one, 0);
    ok(sources > 0 && sources < (late.videoViews ?? 0), 'of some days ago');
  });

  t('of X that are not public exist for 30 days', () => {
    const [young, old] = [shown('x', 'p', 30 * day), shown('x', 'p', 31 * day)];
    ok((young.clicks ?? 0) > 0 && (young.totalInteractions ?? 0) > 0);
    ok(!('clicks' in old) && !('totalInteractions' in old) && (old.likes ?? 0) > 0);
  });

  t('of a video are null for posts without video', () => {
    equal(shown('facebook', 'p', 9 * day, { hasVideo: false }).videoViews, null);
    ok((shown('facebook', 'p', 9 * day).videoViews ?? 0) > 0);
  });

  t('followers grow over the months and fall on some days', () => {
    let falls = 0;
    for (let at = 0; at < 300; at += 1) {
      if (followersOf('a', Date.UTC(2026, 0, 2 + at)) < followersOf('a', Date.UTC(2026, 0, 1 + at))) falls += 1;
    }
    ok(falls > 0);
    ok(followersOf('a', Date.UTC(2027, 0, 1)) > followersOf('a', Date.UTC(2026, 0, 1)));
  });
});

const all = async (answers: AsyncIterable<PostInsightsAnswer>): Promise<readonly PostInsightsAnswer[]> => {
  const reported: PostInsightsAnswer[] = [];
  for await (const one of answers) reported.push(one);
  return reported;
};

suite('sandbox network and its figures', (t) => {
  let sandbox: Awaited<ReturnType<typeof opened>>;
  t.before(async () => {
    sandbox = await opened();
  });
  t.after(() => sandbox?.close());
  const never = new AbortController().signal;
  const ask = (platform: Platform, by: InsightsAccount, ...posts: readonly InsightsSubject[]) =>
    all(sandbox.network.fetchPostInsights(platform, by, posts, never));
  const kinds = (answers: readonly PostInsightsAnswer[]) => answers.map(({ kind }) => kind);

  t('its clock advances for all callers and never goes back', async () => {
    const before = await sandbox.network.now();
    await sandbox.network.advance(day);
    const after = await sandbox.network.now();
    ok(after.getTime() - before.getTime() >= day);
    for (const ms of [-1, 0, 0.5, Number.NaN]) await rejects(sandbox.network.advance(ms), RangeError);
    ok((await sandbox.network.now()) >= after);
  });

  t('the age of a post follows the network’s clock', async () => {
    const by = account('x');
    const post = await sandbox.publish('x', by);
    const [young] = await ask('x', by, post);
    ok(young?.kind === 'reported');
    const views = ({ raw }: { readonly raw: unknown }) => {
      const mapped = postFiguresOf('x', 'feed', raw);
      return mapped.kind === 'figures' ? (mapped.figures.impressions ?? -1) : -1;
    };
    ok(views(young) < 10, 'not as old as the clock is ahead');
    await sandbox.network.advance(7 * day);
    const [old] = await ask('x', by, post);
    ok(old?.kind === 'reported' && views(old) > 100);
    ok(Date.parse(old.observedAt) - Date.parse(young.observedAt) >= 7 * day);
  });

  t('the clock of one workspace advances alone', async () => {
    const [mine, theirs] = [randomUUID(), randomUUID()];
    const posts = async (workspaceId: string) => {
      const by = { ...account('x'), workspaceId };
      return { by, post: await sandbox.publish('x', by, 'Good morning', workspaceId) };
    };
    const [own, other] = [await posts(mine), await posts(theirs)];
    const views = async ({ by, post }: Awaited<ReturnType<typeof posts>>) => {
      const [answer] = await ask('x', by, post);
      ok(answer?.kind === 'reported', answer?.kind);
      const mapped = postFiguresOf('x', 'feed', answer.raw);
      return mapped.kind === 'figures' ? (mapped.figures.impressions ?? -1) : -1;
    };
    const before = await sandbox.network.now(theirs);
    await sandbox.network.advance(7 * day, mine);
    ok((await views(own)) > 100);
    ok((await views(other)) < 10);
    ok((await sandbox.network.now(mine)).getTime() - before.getTime() >= 7 * day);
    ok((await sandbox.network.now(theirs)).getTime() - before.getTime() < day);
    // A post that is made under the moved clock is as young as any other.
    ok((await views(await posts(mine))) < 10);
    await sandbox.network.advance(day, mine);
    ok((await sandbox.network.now(mine)).getTime() - before.getTime() >= 8 * day);
  });

  t('a post with a removal age is gone from that age on', async () => {
    const by = account('facebook');
    const post = await sandbox.publish('facebook', by, 'Sale [[sandbox:removed 3d]]');
    deepEqual(kinds(await ask('facebook', by, post)), ['reported']);
    await sandbox.network.advance(3 * day);
    deepEqual(kinds(await ask('facebook', by, post)), ['removed']);
    const gone = await sandbox.publish('facebook', by, '[[sandbox:removed]]');
    deepEqual(kinds(await ask('facebook', by, gone)), ['removed']);
  });

  t('a story is gone after a day', async () => {
    const by = account('instagram');
    const story = { ...(await sandbox.publish('instagram', by, 'Today only')), use: 'story' as const };
    deepEqual(kinds(await ask('instagram', by, story)), ['reported']);
    await sandbox.network.advance(day);
    deepEqual(kinds(await ask('instagram', by, story)), ['removed']);
  });

  t('a removed post stays removed, and only on its network', async () => {
    const by = account('bluesky');
    const post = await sandbox.publish('bluesky', by);
    await sandbox.network.remove('x', post.externalId);
    deepEqual(kinds(await ask('bluesky', by, post)), ['reported']);
    await sandbox.network.remove('bluesky', post.externalId);
    await sandbox.network.remove('bluesky', post.externalId);
    deepEqual(kinds(await ask('bluesky', by, post)), ['removed']);
  });

  t('a fault of an account fails all posts of a call, and counts once a call', async () => {
    const own = async (username: string) => {
      const by = account('threads', username);
      const posts = [await sandbox.publish('threads', by), await sandbox.publish('threads', by)];
      const first = kinds(await ask('threads', by, ...posts));
      return { first, second: kinds(await ask('threads', by, ...posts)), by };
    };
    deepEqual((await own('metrics-down-acme')).second, ['unavailable', 'unavailable']);
    const limited = await own('metrics-rate-limit-once-acme');
    deepEqual(
      [limited.first, limited.second],
      [
        ['rate_limited', 'rate_limited'],
        ['reported', 'reported'],
      ],
    );
    const dead = await own('metrics-token-death-acme');
    deepEqual(dead.second, ['reauth_required', 'reauth_required']);
    equal((await sandbox.network.fetchAccountInsights('threads', dead.by, never)).kind, 'reauth_required');
    const silly = await own('metrics-nonsense-acme');
    const answer = await sandbox.network.fetchAccountInsights('threads', silly.by, never);
    ok(answer.kind === 'reported');
    equal(accountFiguresOf('threads', answer.raw).kind, 'nonsense');
  });

  t('a rate limit names a time by the caller’s clock, and ends after the given number of calls', async () => {
    const by = account('x');
    const post = await sandbox.publish('x', by, 'Hi [[sandbox:metrics_rate_limit once 5m]]');
    const [limited] = await ask('x', by, post);
    ok(limited?.kind === 'rate_limited');
    const aheadMs = Date.parse(limited.retryAt) - Date.now();
    ok(aheadMs > 4 * 60_000 && aheadMs <= 5 * 60_000);
    equal((await ask('x', by, post))[0]?.kind, 'reported');
  });

  t('a directive that revokes the token at publication does not apply to insights', async () => {
    const by = account('x');
    const post = await sandbox.publish('x', by, 'Hi [[sandbox:token_death once]]');
    equal((await sandbox.network.creates(post.targetId))[0]?.outcome, 'refused');
    deepEqual(kinds(await ask('x', by, post)), ['reported']);
  });

  t('is unavailable when its database is', async () => {
    const lost = new SandboxNetwork({ database: { url: 'postgresql://nobody@127.0.0.1:1/none', connections: 1 } });
    try {
      const by = account('x');
      const post = { targetId: 't', externalId: '1', publishedAt: '', use: 'feed', hasVideo: false } as const;
      deepEqual(kinds(await all(lost.fetchPostInsights('x', by, [post, post], never))), ['unavailable', 'unavailable']);
      const answer = await lost.fetchAccountInsights('x', by, never);
      ok(answer.kind === 'unavailable');
      match(answer.reason, /sandbox network/);
    } finally {
      await lost.close();
    }
  });
});
