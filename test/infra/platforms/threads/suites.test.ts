/** What every network must do, done by the adapter of Threads on the simulated Threads. */
import { randomUUID } from 'node:crypto';
import { type Harness, platformSuite } from '#contracts/ports/platform.suite.ts';
import type { CommentRequest, PlatformAdapter } from '#contracts/ports/platform.ts';
import { type InsightsHarness, insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import { problems } from '#test/support/networks/threads/answer.ts';
import type { Fault } from '#test/support/networks/threads/state.ts';
import { threadsWorld } from '#test/support/networks/threads/world.ts';
import { suite } from '#test/support/suite.ts';

const publish = 'POST /:id/threads_publish';
const create = 'POST /:id/threads';
const limited = (ms: number) => ({
  ...problems.user_limited,
  headers: { 'retry-after': String(Math.ceil(ms / 1_000)) },
});

const faultOf = (fault: Parameters<Harness['scripted']>[0], ms: number): Pick<Fault, 'route' | 'then'> => {
  switch (fault) {
    case 'rate_limit':
      return { route: publish, then: { answer: limited(ms) } };
    case 'reject':
      return { route: create, then: { answer: problems.text_too_long } };
    case 'token_death':
      return { route: create, then: { answer: problems.token_expired } };
    case 'down':
      return { route: create, then: { answer: problems.internal } };
    case 'timeout_before':
      return { route: publish, then: 'silent_before' };
    case 'timeout_after':
      return { route: publish, then: 'silent_after' };
    case 'error_after':
      return { route: publish, then: { answerAfter: problems.internal } };
    case 'late':
      return { route: publish, then: { lateMs: ms, answer: problems.bad_gateway } };
    case 'duplicate':
      throw new Error('Threads publishes a text as often as it is asked');
  }
};

const harness = async (): Promise<Harness> => {
  const world = await threadsWorld();
  const { network } = world;
  const accounts: CommentRequest['account'][] = [];
  for (let at = 0; at < 100; at += 1) accounts.push(await world.account());
  const threads = new Set<string>();
  const made = async (targetId: string, wantsComments: boolean): Promise<readonly string[]> =>
    network.state.publishes.flatMap(({ tag, postId }) => {
      const post = postId === null ? null : network.state.post(postId);
      if (tag !== targetId || post === null) return [];
      const isComment = post.parent !== null && !threads.has(targetId);
      return isComment === wantsComments ? [post.id] : [];
    });
  return {
    open: async () => {
      const adapter = world.open();
      const watched: PlatformAdapter = {
        ...adapter,
        publish: (request, steps) => {
          if (request.thread !== null) threads.add(request.targetId);
          return adapter.publish(request, steps);
        },
      };
      return watched;
    },
    close: async () => world.close(),
    posts: (targetId) => made(targetId, false),
    comments: (targetId) => made(targetId, true),
    scripted: (fault, ms = 0) => {
      const says = randomUUID();
      network.script({ says, ...faultOf(fault, ms) });
      return `Hi ${says}`;
    },
    without: ['duplicate'],
    platforms: ['threads'],
    account: () => accounts.pop() as CommentRequest['account'],
    silent: () => null,
    overrides: () => ({}),
    media: async () => [],
  };
};

suite('threads as a platform', (t) => {
  platformSuite(t, harness);
});

const insightsHarness = async (): Promise<InsightsHarness> => {
  const world = await threadsWorld();
  const { network, adapter } = world;
  const [account, other] = [await world.account(), await world.account()];
  const route = 'GET /:id/insights';
  const faults = {
    down: { then: { answer: problems.unavailable } },
    rate_limit: { then: { answer: limited(60_000) } },
    token_death: { then: { answer: problems.token_invalid } },
  } as const;
  return {
    source: adapter,
    platforms: ['threads'],
    close: async () => world.close(),
    account: () => account,
    other: () => other,
    publish: async (_platform, by, fault) => {
      const { outcome } = await world.publish(world.request(by, { content: randomUUID() }));
      if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
      const { externalId, publishedAt } = outcome;
      if (fault === 'nonsense') {
        const values = ['many', -1, 1e308, {}, null, [1]];
        const names = ['views', 'likes', 'replies', 'reposts', 'quotes', 'shares'];
        const data = names.map((name, at) => ({ name, values: [{ value: values[at] }] }));
        network.script({ route, says: externalId, then: { answer: { status: 200, body: { data } } } });
      } else if (fault !== undefined) {
        network.script({ route, says: externalId, ...faults[fault] });
      }
      return { targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo: false };
    },
    remove: async (_platform, { externalId }) => {
      network.state.deleted.add(externalId);
    },
    pass: async () => network.state.advance(3_600_000),
  };
};

suite('threads as a source of figures', (t) => {
  insightsSuite(t, insightsHarness);
});
