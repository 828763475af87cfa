/** What every network must do, done by the adapter of X on the simulated X. */
import { randomUUID } from 'node:crypto';
import { type Harness, platformSuite } from '#contracts/ports/platform.suite.ts';
import type { CommentRequest } from '#contracts/ports/platform.ts';
import { type InsightsHarness, insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import { XAdapter } from '#test/support/networks/x/adapter.ts';
import { problems } from '#test/support/networks/x/index.ts';
import type { Fault } from '#test/support/networks/x/state.ts';
import { xWorld } from '#test/support/networks/x/world.ts';
import { suite } from '#test/support/suite.ts';

const inSeconds = (ms: number): string => String(Math.ceil((Date.now() + ms) / 1_000));
const limited = (ms: number) => ({
  ...problems.too_many_requests,
  headers: { 'x-rate-limit-limit': '100', 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': inSeconds(ms) },
});

const thenOf = (fault: Parameters<Harness['scripted']>[0], ms: number): Pick<Fault, 'then' | 'times'> => {
  switch (fault) {
    case 'rate_limit':
      return { then: { answer: limited(ms) } };
    case 'reject':
      return { then: { answer: problems.legacy_too_long } };
    // The adapter asks once more with a new token.
    case 'token_death':
      return { then: { answer: problems.unauthorized }, times: 2 };
    case 'duplicate':
      return { then: { answer: problems.duplicate } };
    case 'timeout_before':
      return { then: 'silent_before' };
    case 'timeout_after':
      return { then: 'silent_after' };
    case 'error_after':
      return { then: { answerAfter: problems.over_capacity } };
    case 'late':
      return { then: { lateMs: ms, answer: problems.gateway_timeout } };
    case 'down':
      throw new Error('a text alone makes no call before the create');
  }
};

const harness = async (): Promise<Harness> => {
  const world = await xWorld();
  const { network } = world;
  const accounts: CommentRequest['account'][] = [];
  for (let at = 0; at < 100; at += 1) accounts.push(await world.account());
  const threads = new Set<string>();
  /** Knows which replies are segments of a thread; the others are comments. */
  class Watched extends XAdapter {
    override publish(...[request, steps]: Parameters<XAdapter['publish']>) {
      if (request.thread !== null) threads.add(request.targetId);
      return super.publish(request, steps);
    }
  }
  const made = async (targetId: string, wantsComments: boolean): Promise<readonly string[]> =>
    network.state.creates.flatMap(({ tag, postId, body }) => {
      if (tag !== targetId || postId === null) return [];
      const isComment = (body as { reply?: unknown }).reply !== undefined && !threads.has(targetId);
      return isComment === wantsComments ? [postId] : [];
    });
  return {
    open: async () => new Watched(world.options),
    close: async () => network.close(),
    posts: (targetId) => made(targetId, false),
    comments: (targetId) => made(targetId, true),
    scripted: (fault, ms = 0) => {
      const says = randomUUID();
      network.script({ route: 'POST /2/tweets', says, ...thenOf(fault, ms) });
      return `Hi ${says}`;
    },
    without: ['down'],
    refusesRepeats: true,
    platforms: ['x'],
    account: () => accounts.pop() as CommentRequest['account'],
    silent: () => null,
    overrides: () => ({}),
    media: async () => [],
  };
};

suite('x as a platform', (t) => {
  platformSuite(t, harness);
});

const insightsHarness = async (): Promise<InsightsHarness> => {
  const world = await xWorld({}, { clock: () => Date.now() });
  const { network, adapter } = world;
  const [account, other] = [await world.account(), await world.account()];
  const faults = {
    down: { then: { answer: problems.over_capacity } },
    rate_limit: { then: { answer: limited(60_000) } },
    token_death: { then: { answer: problems.unauthorized }, times: 2 },
  } as const;
  return {
    source: adapter,
    platforms: ['x'],
    close: async () => network.close(),
    account: () => account,
    other: () => other,
    publish: async (_platform, by, fault) => {
      const { outcome } = await world.publish(world.request(by, { content: randomUUID() }));
      if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
      const { externalId, publishedAt } = outcome;
      if (fault === 'nonsense') {
        const public_metrics = { like_count: 'many', reply_count: -1, impression_count: 1e308, retweet_count: {} };
        const post = { id: externalId, text: '', author_id: by.externalId, public_metrics };
        const answer = { status: 200, body: { data: [post] } };
        network.script({ route: 'GET /2/tweets', says: externalId, then: { answer } });
      } else if (fault !== undefined) {
        network.script({ route: 'GET /2/tweets', says: externalId, ...faults[fault] });
      }
      return { targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo: false };
    },
    remove: async (_platform, { externalId }) => {
      network.state.deleted.add(externalId);
    },
    pass: async () => network.state.advance(3_600_000),
  };
};

suite('x as a source of figures', (t) => {
  insightsSuite(t, insightsHarness);
});
