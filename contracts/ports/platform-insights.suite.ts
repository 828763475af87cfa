/**
 * The behaviour of every source of figures. An adapter's test passes a harness: posts on a network whose faults the
 * harness controls. Each case has its own posts.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { accountFiguresOf, postFiguresOf } from '#domain/platforms/read-figures.ts';
import type { Platform } from '#schemas/common.ts';
import type { PostFigures } from '#schemas/insights.ts';
import type { Cases } from './platform.suite.ts';
import type { PublishRequest } from './platform.ts';
import {
  accountDays,
  type InsightsAccount,
  type InsightsSource,
  type InsightsSubject,
  type PostInsightsAnswer,
} from './platform-insights.ts';

/** How the network fails when it gets a request for the figures of one post. */
export type InsightsFault = 'nonsense' | 'down' | 'rate_limit' | 'token_death';

export interface InsightsHarness {
  readonly source: InsightsSource;
  readonly platforms: readonly Platform[];
  /** The network answers nothing about a single post: its figures are pushed in updates, and no call is made for one. */
  readonly onlyHears?: true;
  /** The network tells figures to anybody: a refusal for want of a token says nothing of the account. */
  readonly asksWithoutToken?: true;
  close(): Promise<void>;
  account(platform: Platform): PublishRequest['account'];
  /** Another account of the network; absent: the network tells accounts apart by our own id of them. */
  other?(platform: Platform): PublishRequest['account'];
  /** Publishes a post. `fault` strikes once. */
  publish(platform: Platform, account: PublishRequest['account'], fault?: InsightsFault): Promise<InsightsSubject>;
  /** Removes the post from the network. */
  remove(platform: Platform, post: InsightsSubject): Promise<void>;
  /** Lets some days pass on the network. */
  pass(): Promise<void>;
}

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const never = new AbortController().signal;
const all = async (answers: AsyncIterable<PostInsightsAnswer>): Promise<readonly PostInsightsAnswer[]> => {
  const all: PostInsightsAnswer[] = [];
  for await (const one of answers) all.push(one);
  return all;
};

const workspaceId = randomUUID();
const asking = (account: PublishRequest['account']): InsightsAccount => ({ ...account, workspaceId });

export function insightsSuite(t: Cases, start: () => Promise<InsightsHarness>): void {
  let harness: InsightsHarness;
  t.before(async () => {
    harness = await start();
  });
  t.after(() => harness?.close());

  const one = async (platform: Platform, account: PublishRequest['account'], post: InsightsSubject) => {
    const answers = await all(harness.source.fetchPostInsights(platform, asking(account), [post], never));
    assert.equal(answers.length, 1);
    return answers[0] as PostInsightsAnswer;
  };
  const figuresOf = (platform: Platform, post: InsightsSubject, answer: PostInsightsAnswer): PostFigures => {
    assert.equal(answer.kind, 'reported', `${platform}: ${JSON.stringify(answer)}`);
    if (answer.kind !== 'reported') throw new Error('unreachable');
    assert.match(answer.observedAt, instant);
    assert.deepEqual(JSON.parse(JSON.stringify(answer.raw)), answer.raw, 'raw is JSON');
    const mapped = postFiguresOf(platform, post.use, answer.raw, { hasVideo: post.hasVideo });
    assert.ok(mapped.kind === 'figures', mapped.kind === 'nonsense' ? `${platform}: ${mapped.reason}` : '');
    return mapped.figures;
  };

  t('reports figures of each post in order, and the network’s rules can read them', async () => {
    for (const platform of harness.platforms) {
      const account = harness.account(platform);
      const posts = [await harness.publish(platform, account), await harness.publish(platform, account)];
      await harness.pass();
      const asked = [posts[1], posts[0], posts[1]] as InsightsSubject[];
      const answers = await all(harness.source.fetchPostInsights(platform, asking(account), asked, never));
      assert.equal(answers.length, 3);
      const figures = asked.map((post, place) => figuresOf(platform, post, answers[place] as PostInsightsAnswer));
      assert.deepEqual(figures[0], figures[2], 'the same post');
      for (const { comments } of figures) assert.equal(typeof comments, 'number', platform);
    }
  });

  t('reports the followers of an account', async () => {
    for (const platform of harness.platforms) {
      const answer = await harness.source.fetchAccountInsights(platform, asking(harness.account(platform)), never);
      assert.ok(answer.kind === 'reported', platform);
      assert.match(answer.observedAt, instant);
      if (answer.figuresOf !== null) {
        assert.match(answer.figuresOf, /^\d{4}-\d\d-\d\d$/);
        assert.ok(Date.parse(answer.figuresOf) <= Date.parse(answer.observedAt), platform);
      }
      const mapped = accountFiguresOf(platform, answer.raw);
      assert.ok(mapped.kind === 'figures', mapped.kind === 'nonsense' ? `${platform}: ${mapped.reason}` : '');
      assert.equal(typeof mapped.figures.followerCount, 'number', platform);
      for (const shown of Object.values(answer.profile ?? {})) assert.ok(shown === null || shown !== '', platform);
      const { earlier = [], figuresOf: last } = answer;
      assert.ok(earlier.length < accountDays, platform);
      const days = earlier.map(({ day }) => day);
      assert.equal(new Set(days).size, days.length, platform);
      for (const { day, raw } of earlier) {
        assert.match(day, /^\d{4}-\d\d-\d\d$/);
        assert.ok(last !== null && day < last, `${platform}: ${day} is before ${last}`);
        const past = accountFiguresOf(platform, raw);
        assert.ok(past.kind === 'figures' && past.odd.length === 0, platform);
        assert.ok(typeof past.figures.followerCount !== 'number', `${platform}: followers are of now, not of a day`);
        assert.ok(
          Object.values(past.figures).some((figure) => typeof figure === 'number'),
          `${platform}: ${day}`,
        );
      }
    }
  });

  t('time goes on between two answers', async () => {
    const [platform] = harness.platforms as [Platform];
    const account = harness.account(platform);
    const post = await harness.publish(platform, account);
    const before = await one(platform, account, post);
    await harness.pass();
    const after = await one(platform, account, post);
    assert.ok(before.kind === 'reported' && after.kind === 'reported');
    assert.ok(before.observedAt < after.observedAt);
  });

  t('answers a request without posts with no answer', async () => {
    const [platform] = harness.platforms as [Platform];
    assert.deepEqual(
      await all(harness.source.fetchPostInsights(platform, asking(harness.account(platform)), [], never)),
      [],
    );
  });

  t('reports a removed post as removed and continues with the others', async () => {
    if (harness.onlyHears === true) return;
    for (const platform of harness.platforms) {
      const account = harness.account(platform);
      const [gone, stays] = [await harness.publish(platform, account), await harness.publish(platform, account)];
      await harness.remove(platform, gone);
      const answers = await all(harness.source.fetchPostInsights(platform, asking(account), [gone, stays], never));
      assert.deepEqual(
        answers.map(({ kind }) => kind),
        ['removed', 'reported'],
        platform,
      );
      assert.ok(answers[0]?.kind === 'removed');
      assert.match(answers[0].observedAt, instant);
    }
  });

  t('reports nothing of a post to another account', async () => {
    for (const platform of harness.platforms) {
      const post = await harness.publish(platform, harness.account(platform));
      const other = harness.other?.(platform) ?? { ...harness.account(platform), id: randomUUID() };
      const answer = await one(platform, other, post);
      // Who hears for an account needs its credentials, and another account has others.
      if (harness.onlyHears === true) assert.equal(answer.kind, 'reauth_required');
      else assert.ok(answer.kind === 'removed' && answer.raw === null, `${platform}: ${JSON.stringify(answer)}`);
    }
  });

  const faults: Readonly<Record<Exclude<InsightsFault, 'nonsense'>, (answer: PostInsightsAnswer) => void>> = {
    down: (answer) => assert.equal(answer.kind, 'unavailable'),
    token_death: (answer) =>
      assert.equal(answer.kind, harness.asksWithoutToken === true ? 'unavailable' : 'reauth_required'),
    rate_limit: (answer) => {
      assert.ok(answer.kind === 'rate_limited');
      assert.match(answer.retryAt, instant);
    },
  };
  for (const [fault, check] of Object.entries(faults) as [
    keyof typeof faults,
    (answer: PostInsightsAnswer) => void,
  ][]) {
    t(`answers when its network fails: ${fault}`, async () => {
      if (harness.onlyHears === true) return;
      for (const platform of harness.platforms) {
        const account = harness.account(platform);
        const [fails, stays] = [
          await harness.publish(platform, account, fault),
          await harness.publish(platform, account),
        ];
        const answers = await all(harness.source.fetchPostInsights(platform, asking(account), [fails, stays], never));
        check(answers[0] as PostInsightsAnswer);
        assert.equal((await one(platform, account, fails)).kind, 'reported', `${platform}: it struck once`);
      }
    });
  }

  t('passes nonsense on unchanged, and the network’s rules refuse it', async () => {
    if (harness.onlyHears === true) return;
    for (const platform of harness.platforms) {
      const account = harness.account(platform);
      const post = await harness.publish(platform, account, 'nonsense');
      await harness.pass();
      const answer = await one(platform, account, post);
      assert.ok(answer.kind === 'reported');
      const read = postFiguresOf(platform, post.use, answer.raw);
      // Facebook leaves out the shares of a post that has none: that figure is a true 0.
      const isUnshared = platform === 'facebook' && !JSON.stringify(answer.raw).includes('"shares"');
      const numbers = read.kind === 'figures' && Object.entries(read.figures).filter(([, n]) => typeof n === 'number');
      assert.deepEqual(numbers || read.kind, isUnshared ? [['shares', 0]] : 'nonsense', platform);
      figuresOf(platform, post, await one(platform, account, post));
    }
  });

  t('sends no request after its signal aborted', async () => {
    const [platform] = harness.platforms as [Platform];
    const account = harness.account(platform);
    const post = await harness.publish(platform, account);
    const stopped = AbortSignal.abort();
    const stops = all(harness.source.fetchPostInsights(platform, asking(account), [post], stopped));
    await assert.rejects(stops, { name: 'AbortError' });
    await assert.rejects(harness.source.fetchAccountInsights(platform, asking(account), stopped), {
      name: 'AbortError',
    });
  });
}
