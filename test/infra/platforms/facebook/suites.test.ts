/** What every network must do, done by the adapter of Facebook on the simulated Facebook. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type OwnTokensHarness, ownTokensSuite } from '#contracts/ports/own-tokens.suite.ts';
import { type Harness, platformSuite, type ScriptedFault } from '#contracts/ports/platform.suite.ts';
import { type AfterStepHarness, afterStepSuite } from '#contracts/ports/platform-after-step.suite.ts';
import { type InsightsHarness, insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import { type NativeFault, type NativeHarness, nativeSuite } from '#contracts/ports/platform-native.suite.ts';
import { type ProcessingHarness, processingSuite } from '#contracts/ports/platform-processing.suite.ts';
import { allScopes, problems } from '#test/support/networks/facebook/index.ts';
import type { Fault } from '#test/support/networks/facebook/state.ts';
import { type FacebookAccount, type FacebookWorld, facebookWorld } from '#test/support/networks/facebook/world.ts';
import { suite } from '#test/support/suite.ts';

/** Facebook names minutes alone; where a proxy names seconds, they count. */
const limited = (ms: number) => ({
  ...problems.pages_limited,
  headers: { 'retry-after': String(Math.ceil(ms / 1_000)) },
});

type Then = Pick<Fault, 'then' | 'times'>;

const thenOf = (fault: ScriptedFault, ms: number): Then => {
  switch (fault) {
    case 'rate_limit':
      return { then: { answer: limited(ms) } };
    case 'reject':
      return { then: { answer: problems.link_refused } };
    // The adapter asks once more with another token of the page.
    case 'token_death':
      return { then: { answer: problems.token_ended }, times: 2 };
    case 'down':
      return { then: { answer: problems.unavailable } };
    case 'duplicate':
      return { then: { answer: problems.duplicate } };
    case 'timeout_before':
      return { then: 'silent_before' };
    case 'timeout_after':
      return { then: 'silent_after' };
    case 'error_after':
      return { then: { answerAfter: problems.internal } };
    case 'late':
      return { then: { lateMs: ms, answer: problems.bad_gateway } };
  }
};

const scriptedAt =
  ({ network: { script } }: FacebookWorld, ...routes: readonly string[]) =>
  (fault: ScriptedFault, ms = 0): string => {
    const says = randomUUID();
    for (const route of routes) script({ route, says, ...thenOf(fault, ms) });
    return `Hi ${says}`;
  };

const harness = async (): Promise<Harness & { readonly world: FacebookWorld }> => {
  const world = await facebookWorld();
  const { state } = world.network;
  const accounts: FacebookAccount[] = [];
  for (let at = 0; at < 120; at += 1) accounts.push(await world.account());
  const silent = await world.account(
    {},
    allScopes.filter((one) => one !== 'pages_manage_engagement'),
  );
  return {
    world,
    open: async () => world.again().adapter,
    close: async () => world.close(),
    posts: async (targetId) =>
      state.made.flatMap((one) => {
        if (one.tag !== targetId || one.end !== 'shown' || state.deleted.has(one.id)) return [];
        const [file] = one.files;
        // Until it is out, a video has no post.
        return [file?.kind === 'video' && !state.isOut(one) ? file.id : state.idOf(one)];
      }),
    comments: async (targetId) => state.comments.flatMap(({ tag, id }) => (tag === targetId ? [id] : [])),
    scripted: scriptedAt(world, 'POST /:id/feed', 'POST /:id/comments'),
    // A text alone makes no call before the one that publishes it.
    without: ['down'],
    refusesRepeats: true,
    knowsLate: true,
    platforms: ['facebook'],
    account: () => accounts.pop() as FacebookAccount,
    silent: () => silent,
    overrides: () => ({}),
    media: async () => [],
  };
};

suite('facebook as a platform', { timeoutMs: 120_000 }, (t) => {
  platformSuite(t, harness);
});

const ofReels = async (): Promise<ProcessingHarness & AfterStepHarness & { readonly world: FacebookWorld }> => {
  const made = await harness();
  const { world } = made;
  const coverless = await world.account(
    {},
    allScopes.filter((one) => one !== 'business_management'),
  );
  world.network.state.coverless.add(coverless.externalId);
  return {
    ...made,
    scripted: scriptedAt(world, 'POST /:id/video_reels finish'),
    overrides: () => ({ contentType: 'reel' }),
    media: async () => [world.reel(1_000, { use: 'reel' })],
    processed: (end, ms) => {
      const says = randomUUID();
      world.network.fate({ says, then: end, ms });
      return `Look ${says}`;
    },
    cover: async () => world.photo({ use: 'cover' }),
    covers: async (targetId) =>
      [...world.network.state.videos.values()].find(({ made: one }) => one?.tag === targetId)?.thumbnails ?? [],
    scriptedAfter: scriptedAt(world, 'POST /:id/thumbnails'),
    coverless: () => coverless,
  };
};

suite('facebook as it looks at videos', { timeoutMs: 120_000 }, (t) => {
  processingSuite(t, ofReels);
});

suite('facebook as it takes the cover of a reel', { timeoutMs: 120_000 }, (t) => {
  afterStepSuite(t, async () => ({ ...(await ofReels()), without: ['duplicate'] }));
});

const nativeHarness = (how: 'photo' | 'video' | 'reel') => async (): Promise<NativeHarness> => {
  const made = await harness();
  const { world } = made;
  const { network } = world;
  const edge = { photo: 'feed', video: 'videos', reel: 'video_reels' }[how];
  const finish = how === 'photo' ? 'POST /:id/feed' : `POST /:id/${edge} finish`;
  const scripted = (fault: NativeFault, ms = 0): string => {
    const says = randomUUID();
    const at = (route: string, then: Fault['then']) => network.script({ route, says, then });
    switch (fault) {
      case 'native_early':
      case 'native_never':
      case 'native_failed':
        network.fate({ says, then: fault, ms });
        break;
      case 'unreadable':
        at('GET /:id', { answer: problems.service_down });
        break;
      case 'undo_timeout_before':
      case 'undo_timeout_after':
        for (const route of ['DELETE /:id', 'POST /:id']) {
          at(route, fault === 'undo_timeout_after' ? 'drop_after' : 'drop_before');
        }
        break;
      // The first call of a file, which has no words of the post.
      case 'down':
        network.script({
          route: how === 'photo' ? 'POST /:id/photos' : `POST /:id/${edge} start`,
          then: { answer: problems.unavailable },
        });
        break;
      default:
        return scriptedAt(world, finish)(fault, ms);
    }
    return `Hi ${says}`;
  };
  return {
    ...made,
    scripted,
    overrides: () => (how === 'reel' ? { contentType: 'reel' } : {}),
    media: async () => [how === 'photo' ? world.photo() : how === 'video' ? world.video() : world.reel()],
    says: async (targetId, content) => world.network.state.made.find(({ tag }) => tag === targetId)?.text === content,
    now: async () => network.state.now(),
    pass: async (ms) => network.state.advance(ms),
  };
};

suite('facebook’s own scheduler, with photos', { timeoutMs: 120_000 }, (t) => {
  nativeSuite(t, nativeHarness('photo'));
});

suite('facebook’s own scheduler, with videos', { timeoutMs: 120_000 }, (t) => {
  nativeSuite(t, nativeHarness('video'));
});

suite('facebook’s own scheduler, with reels', { timeoutMs: 120_000 }, (t) => {
  nativeSuite(t, nativeHarness('reel'));
});

const insightsHarness = async (): Promise<InsightsHarness> => {
  const world = await facebookWorld();
  const { network, source } = world;
  const [account, other] = [await world.account(), await world.account()];
  const faults = {
    down: { then: { answer: problems.unavailable } },
    rate_limit: { then: { answer: limited(60_000) } },
    token_death: { then: { answer: problems.token_ended }, times: 2 },
  } as const;
  return {
    source,
    platforms: ['facebook'],
    close: async () => world.close(),
    account: () => account,
    other: () => other,
    publish: async (_platform, by, fault) => {
      const { outcome } = await world.publish(world.request(by, { content: randomUUID() }));
      if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
      const { externalId, publishedAt } = outcome;
      if (fault === 'nonsense') {
        const summary = { total_count: 'many' };
        const node = { id: externalId, reactions: { summary }, comments: { summary }, shares: { count: -1 } };
        network.script({ route: 'GET /:id', says: externalId, then: { answer: { status: 200, body: node } } });
        const insights = [{ name: 'post_media_view', values: [{ value: 'many' }] }];
        const answer = { status: 200, body: { data: insights } };
        network.script({ route: 'GET /:id/insights', says: externalId, then: { answer } });
      } else if (fault !== undefined) network.script({ route: 'GET /:id', says: externalId, ...faults[fault] });
      return { targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo: false };
    },
    remove: async (_platform, { externalId }) => {
      network.state.deleted.add(externalId.split('_')[1] ?? '');
    },
    pass: async () => network.state.advance(4 * 86_400_000),
  };
};

suite('facebook as a source of figures', { timeoutMs: 120_000 }, (t) => {
  insightsSuite(t, insightsHarness);
});

const ownTokens = async (): Promise<OwnTokensHarness> => {
  const world = await facebookWorld();
  const { network } = world;
  const { state } = network;
  const person = network.person();
  network.pageOf(person);
  network.pageOf(person);
  const [connector] = world.connectors;
  assert.ok(connector !== undefined && world.refresher !== undefined);
  const begun = await connector.begin(
    { username: null, redirectUri: state.app.redirectUri, state: 's' },
    AbortSignal.timeout(5_000),
  );
  assert.ok(begun.kind === 'begun');
  const page = await fetch(`${begun.url}&as=${person.id}`, { redirect: 'manual' });
  const answer = new URL(page.headers.get('location') ?? '').searchParams;
  return {
    ...{ platform: 'facebook', connector, refresher: world.refresher, store: world.credentials },
    returned: { answer: new Map(answer), kept: begun.kept },
    takes: (externalId, token) => {
      const access = state.access.get(String(token));
      return access?.pageId === externalId && (access.until === null || access.until > state.now());
    },
    endOwn: (externalId) => {
      state.faults.length = 0;
      for (const [token, { pageId }] of state.access) if (pageId === externalId) state.access.delete(token);
    },
    fail: () => network.script({ route: 'GET /:id', times: 100, then: { answer: problems.unavailable } }),
    endLogin: () => {
      for (const [token, { pageId }] of state.access) if (pageId === null) state.access.delete(token);
    },
    asked: (externalId) => state.minted.get(externalId) ?? 0,
    close: async () => world.close(),
  };
};

suite('tokens that pages of facebook have of their own', (t) => {
  ownTokensSuite(t, ownTokens);
});
