/** What every network must do, done by both logins of Instagram on the simulated Instagram. */
import { randomUUID } from 'node:crypto';
import { type Harness, platformSuite } from '#contracts/ports/platform.suite.ts';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { type InsightsHarness, insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import { problems } from '#test/support/networks/instagram/answer.ts';
import { scopesOf } from '#test/support/networks/instagram/index.ts';
import type { Fault, Host } from '#test/support/networks/instagram/state.ts';
import { type InstagramAccount, instagramWorld } from '#test/support/networks/instagram/world.ts';
import { suite } from '#test/support/suite.ts';

const publish = 'POST /:id/media_publish';
const create = 'POST /:id/media';
const comments = 'POST /:id/comments';
const limited = (ms: number) => ({
  ...problems.account_limited,
  headers: { 'retry-after': String(Math.ceil(ms / 1_000)) },
});

/** The call that makes a post visible; what is refused before it is refused where the container is made. */
const faultOf = (
  fault: Parameters<Harness['scripted']>[0],
  ms: number,
  by: Host,
): Pick<Fault, 'route' | 'then' | 'times'> => {
  switch (fault) {
    case 'down':
      throw new Error('a comment has no call before the one that makes it');
    case 'rate_limit':
      return { route: publish, then: { answer: limited(ms) } };
    case 'reject':
      return { route: create, then: { answer: problems.caption_too_long } };
    case 'token_death':
      // By the login of Facebook the page gets another token, and is asked once more.
      return { route: create, then: { answer: problems.token_expired }, times: by === 'fb' ? 2 : 1 };
    case 'timeout_before':
      return { route: publish, then: 'silent_before' };
    case 'timeout_after':
      return { route: publish, then: 'silent_after' };
    case 'error_after':
      return { route: publish, then: { answerAfter: problems.internal } };
    case 'late':
      return { route: publish, then: { lateMs: ms, answer: problems.bad_gateway } };
    case 'duplicate':
      return { route: publish, then: { answer: problems.duplicate } };
  }
};

const harness = async (by: Host): Promise<Harness> => {
  const world = await instagramWorld({}, {}, by);
  const { network, media } = world;
  const { state } = network;
  const accounts: InstagramAccount[] = [];
  for (let at = 0; at < 100; at += 1) accounts.push(await world.account());
  const silent = await world.account({ scopes: scopesOf[by].filter((one) => !one.endsWith('manage_comments')) });
  return {
    open: async (): Promise<PlatformAdapter> => world.open(),
    close: async () => world.close(),
    posts: async (targetId) =>
      state.publishes.flatMap(({ tag, mediaId }) =>
        tag === targetId && mediaId !== null && state.post(mediaId) !== null ? [mediaId] : [],
      ),
    comments: async (targetId) => state.comments.flatMap(({ tag, id }) => (tag === targetId ? [id] : [])),
    scripted: (fault, ms = 0) => {
      const says = randomUUID();
      const { route, then, times = 1 } = faultOf(fault, ms, by);
      // The text of a comment has no container: whatever meets it, meets its one call.
      for (const one of [route, comments]) network.script({ says, times, route: one, then });
      return `Hi ${says}`;
    },
    // A comment has one call, which an error of the server may follow: `errors.test.ts` has it before a post.
    without: ['down'],
    knowsLate: true,
    platforms: ['instagram'],
    account: () => accounts.pop() as InstagramAccount,
    silent: () => silent,
    overrides: () => ({}),
    media: async () => [media()],
  };
};

suite('an account of instagram, by its own login, as a platform', (t) => {
  platformSuite(t, () => harness('ig'));
});

suite('an account of instagram, by the login of facebook, as a platform', (t) => {
  platformSuite(t, () => harness('fb'));
});

const insightsHarness = async (by: Host): Promise<InsightsHarness> => {
  const world = await instagramWorld({}, {}, by);
  const { network, adapter } = world;
  const [account, other] = [await world.account(), await world.account()];
  const route = 'GET /:id/insights';
  const faults = {
    down: { then: { answer: problems.unavailable } },
    rate_limit: { then: { answer: limited(60_000) } },
    token_death: { then: { answer: problems.token_invalid }, times: by === 'fb' ? 2 : 1 },
  } as const;
  return {
    source: adapter,
    platforms: ['instagram'],
    close: async () => world.close(),
    account: () => account,
    other: () => other,
    publish: async (_platform, of, fault) => {
      const { outcome } = await world.publish(world.request(of, { content: randomUUID(), media: [world.media()] }));
      if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
      const { externalId, publishedAt } = outcome;
      if (fault === 'nonsense') {
        const values = ['many', -1, 1e308, {}, null, [1]];
        const names = ['views', 'reach', 'likes', 'comments', 'shares', 'saved'];
        const data = names.map((name, at) => ({ name, values: [{ value: values[at] }] }));
        // Both calls of a post.
        network.script({ route, says: externalId, times: 2, then: { answer: { status: 200, body: { data } } } });
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

suite('an account of instagram, by its own login, as a source of figures', (t) => {
  insightsSuite(t, () => insightsHarness('ig'));
});

suite('an account of instagram, by the login of facebook, as a source of figures', (t) => {
  insightsSuite(t, () => insightsHarness('fb'));
});
