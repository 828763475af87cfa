/** What every network must do, done by the adapter of YouTube on the simulated YouTube. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { platformSuite, type ScriptedFault } from '#contracts/ports/platform.suite.ts';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { type AccountFault, type AccountHarness, accountSuite } from '#contracts/ports/platform-account.suite.ts';
import { type AfterStepHarness, afterStepSuite } from '#contracts/ports/platform-after-step.suite.ts';
import { type InsightsHarness, insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import { type NativeFault, type NativeHarness, nativeSuite } from '#contracts/ports/platform-native.suite.ts';
import { type ProcessingHarness, processingSuite } from '#contracts/ports/platform-processing.suite.ts';
import { overrideRules } from '#domain/platforms/index.ts';
import { allScopes, problems } from '#test/support/networks/youtube/index.ts';
import type { Fault } from '#test/support/networks/youtube/state.ts';
import { categories } from '#test/support/networks/youtube/videos.ts';
import { type YouTubeAccount, type YouTubeWorld, youtubeWorld } from '#test/support/networks/youtube/world.ts';
import { suite } from '#test/support/suite.ts';

/** YouTube promises no such header; where it comes, it counts. */
const limited = (ms: number) => ({ ...problems.rate, headers: { 'retry-after': String(Math.ceil(ms / 1_000)) } });

type Then = Pick<Fault, 'then' | 'times'>;

/** A refusal is one of the beginning of an upload, or of the call of a comment; what is lost is the last byte. */
const thenOf = (fault: ScriptedFault, ms: number): Then => {
  switch (fault) {
    case 'rate_limit':
      return { then: { answer: limited(ms) } };
    case 'reject':
      return { then: { answer: problems.invalid_description } };
    // The adapter asks once more with a new token, which YouTube does not take either.
    case 'token_death':
      return { then: { answer: problems.auth_error }, times: 2 };
    case 'down':
      return { then: { answer: problems.unavailable } };
    case 'timeout_before':
      return { then: 'silent_before' };
    case 'timeout_after':
      return { then: 'silent_after' };
    case 'error_after':
      return { then: { answerAfter: problems.unavailable } };
    case 'late':
      return { then: { lateMs: ms, answer: problems.gateway_timeout } };
    case 'duplicate':
      throw new Error('YouTube says so after it has processed a video, and of no comment');
  }
};

const isOfBeginning = (fault: string): boolean => ['rate_limit', 'reject', 'token_death', 'down'].includes(fault);

const scriptedOn =
  ({ network: { script } }: YouTubeWorld) =>
  (fault: ScriptedFault, ms = 0): string => {
    const says = randomUUID();
    const post = isOfBeginning(fault) ? 'POST /upload/youtube/v3/videos' : 'PUT last';
    for (const route of [post, 'POST /youtube/v3/commentThreads']) script({ route, says, ...thenOf(fault, ms) });
    return `Hi ${says}`;
  };

const rich: Parameters<typeof youtubeWorld>[0] = { quota: { inserts: 100_000, units: 1_000_000 } };

const harness = async (): Promise<ProcessingHarness & AfterStepHarness & { readonly world: YouTubeWorld }> => {
  const world = await youtubeWorld(rich);
  const { state, fate, script } = world.network;
  const accounts: YouTubeAccount[] = [];
  for (let at = 0; at < 120; at += 1) accounts.push(await world.account());
  const silent = await world.account(
    {},
    allScopes.filter((one) => !one.endsWith('force-ssl')),
  );
  const coverless = await world.account({ isVerified: false });
  // A project that may begin two uploads a day. That of all others has more.
  const scarce = accounts.pop() as YouTubeAccount;
  const open = (): PlatformAdapter => {
    const usual = world.again({ YOUTUBE_APP_BUDGET: '100000', YOUTUBE_APP_UNITS: '1000000' }).adapter;
    const ofFew = world.again({ YOUTUBE_APP_BUDGET: '2', YOUTUBE_CLIENT_ID: 'few' }, { clock: Date.now }).adapter;
    const publish: PlatformAdapter['publish'] = (asked, steps) =>
      (asked.account.id === scarce.id ? ofFew : usual).publish(asked, steps);
    return new Proxy(usual, { get: (of, name) => (name === 'publish' ? publish : Reflect.get(of, name)) });
  };
  const posts = async (targetId: string) =>
    state.videos.flatMap(({ tag, id, ends, processedAt }) =>
      tag === targetId && !(ends === 'rejected' && processedAt <= state.now()) && !state.deleted.has(id) ? [id] : [],
    );
  return {
    ...{ world, posts },
    open: async () => open(),
    dayLimited: () => scarce,
    close: async () => world.close(),
    comments: async (targetId) => state.comments.flatMap(({ tag, id }) => (tag === targetId ? [id] : [])),
    scripted: scriptedOn(world),
    without: ['down', 'duplicate'],
    processed: (end, ms) => {
      const says = randomUUID();
      fate({ says, then: end === 'shown' ? 'processing' : 'rejected', ms });
      return `Look ${says}`;
    },
    cover: async () => world.cover(),
    covers: async (targetId) => state.videos.find(({ tag }) => tag === targetId)?.thumbnails ?? [],
    scriptedAfter: (fault, ms = 0) => {
      const says = randomUUID();
      script({ route: 'POST /upload/youtube/v3/thumbnails/set', says, ...thenOf(fault, ms) });
      return `Hi ${says}`;
    },
    coverless: () => coverless,
    platforms: ['youtube'],
    account: () => accounts.pop() as YouTubeAccount,
    silent: () => silent,
    overrides: () => ({ privacyStatus: 'public' }),
    media: async () => [world.video()],
  };
};

suite('youtube as a platform', { timeoutMs: 120_000 }, (t) => {
  platformSuite(t, harness);
});

suite('youtube as it looks at videos', { timeoutMs: 120_000 }, (t) => {
  processingSuite(t, harness);
});

suite('youtube as it takes a thumbnail', { timeoutMs: 120_000 }, (t) => {
  afterStepSuite(t, async () => {
    const made = await harness();
    return { ...made, without: ['duplicate'] };
  });
});

const nativeHarness = async (): Promise<NativeHarness> => {
  const made = await harness();
  const { network } = made.world;
  const scripted = (fault: NativeFault, ms = 0): string => {
    const says = randomUUID();
    const once = (route: string, then: Fault['then']) => network.script({ route, says, then });
    switch (fault) {
      case 'native_early':
      case 'native_never':
      case 'native_failed':
        network.fate({ says, then: fault, ms });
        break;
      case 'unreadable':
        once('GET /youtube/v3/videos', { answer: problems.unavailable });
        break;
      case 'undo_timeout_before':
      case 'undo_timeout_after':
        for (const route of ['DELETE /youtube/v3/videos', 'PUT /youtube/v3/videos']) {
          once(route, fault === 'undo_timeout_after' ? 'drop_after' : 'drop_before');
        }
        break;
      default:
        return made.scripted(fault, ms);
    }
    return `Hi ${says}`;
  };
  return {
    ...made,
    scripted,
    says: async (targetId, content) =>
      network.state.videos.find(({ tag }) => tag === targetId)?.snippet.description === content,
    now: async () => network.state.now(),
    pass: async (ms) => network.state.advance(ms),
  };
};

suite('youtube’s own scheduler', { timeoutMs: 120_000 }, (t) => {
  nativeSuite(t, nativeHarness);
});

const insightsHarness = async (): Promise<InsightsHarness> => {
  const world = await youtubeWorld(rich);
  const { network, source } = world;
  const [account, other] = [await world.account(), await world.account()];
  const route = 'GET /youtube/v3/videos';
  const faults = {
    down: { then: { answer: problems.unavailable } },
    rate_limit: { then: { answer: limited(60_000) } },
    token_death: { then: { answer: problems.auth_error }, times: 2 },
  } as const;
  return {
    source,
    platforms: ['youtube'],
    close: async () => network.close(),
    account: () => account,
    other: () => other,
    publish: async (_platform, by, fault) => {
      const { outcome } = await world.publish(world.request(by, { content: randomUUID() }));
      if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
      const { externalId, publishedAt } = outcome;
      if (fault === 'nonsense') {
        const statistics = { viewCount: 'many', likeCount: -1, commentCount: {} };
        const answer = { status: 200, body: { items: [{ id: externalId, statistics }] } };
        network.script({ route, says: externalId, then: { answer } });
        const none = { answer: { status: 200, body: { columnHeaders: [] } } };
        network.script({ route: 'GET /v2/reports', says: externalId, times: 6, then: none });
      } else if (fault !== undefined) network.script({ route, says: externalId, ...faults[fault] });
      return { targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo: true };
    },
    remove: async (_platform, { externalId }) => {
      network.state.deleted.add(externalId);
    },
    pass: async () => network.state.advance(4 * 86_400_000),
  };
};

suite('youtube as a source of figures', { timeoutMs: 120_000 }, (t) => {
  insightsSuite(t, insightsHarness);
});

const accountHarness = async (): Promise<AccountHarness> => {
  const world = await youtubeWorld(rich, { clock: () => Date.now() });
  const { network, accounts } = world;
  assert.ok(accounts !== undefined);
  const [account, other] = [await world.account(), await world.account({ country: null })];
  const failing = {} as Record<AccountFault, YouTubeAccount>;
  const answers = { down: problems.unavailable, rate_limit: limited(60_000), token_death: problems.auth_error };
  for (const fault of ['down', 'rate_limit', 'token_death'] as const) {
    failing[fault] = await world.account();
    const { externalId: channelId } = failing[fault];
    const then = { answer: answers[fault] };
    network.script({ route: 'GET /youtube/v3/videoCategories', channelId, times: 100, then });
  }
  const rule = overrideRules('youtube').categoryId;
  const taken = rule?.type === 'enum' ? rule.values : [];
  return {
    source: accounts,
    platforms: ['youtube'],
    close: async () => world.close(),
    account: (_platform, fault) => (fault === undefined ? account : failing[fault]),
    other: () => other,
    has: () =>
      new Map(
        Object.entries(categories).flatMap(([id, { title, assignable }]) =>
          assignable && taken.includes(id) ? [[id, title] as const] : [],
        ),
      ),
    crowded: async () => null,
  };
};

suite('youtube as it tells of an account', (t) => {
  accountSuite(t, accountHarness);
});
