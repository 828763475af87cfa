/** What every network must do, done by the adapter of TikTok on the simulated TikTok. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { CredentialStore } from '#contracts/ports/credentials.ts';
import { type Harness, platformSuite } from '#contracts/ports/platform.suite.ts';
import type { CommentRequest, PlatformAdapter } from '#contracts/ports/platform.ts';
import { type AccountFault, type AccountHarness, accountSuite } from '#contracts/ports/platform-account.suite.ts';
import { type InsightsHarness, insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import { type ProcessingHarness, processingSuite } from '#contracts/ports/platform-processing.suite.ts';
import { problems } from '#test/support/networks/tiktok/index.ts';
import type { Fault } from '#test/support/networks/tiktok/state.ts';
import { type TikTokWorld, tiktokWorld } from '#test/support/networks/tiktok/world.ts';
import { suite } from '#test/support/suite.ts';

/** The documents name no time; where an answer has one, it counts. */
const limited = (ms: number) => ({
  ...problems.rate_limit_exceeded,
  headers: { 'retry-after': String(Math.ceil(ms / 1_000)) },
});

const init = 'POST /v2/post/publish/video/init/';
/** The call of the boundary brings the whole of a small file. */
const part = 'PUT /video/';

const faultOf = (fault: Parameters<Harness['scripted']>[0], ms: number): Omit<Fault, 'says'> => {
  switch (fault) {
    case 'rate_limit':
      return { route: init, then: { answer: limited(ms) } };
    case 'reject':
      return { route: init, then: { answer: problems.invalid_params } };
    // The adapter asks once more with a new token.
    case 'token_death':
      return { route: init, then: { answer: problems.access_token_invalid }, times: 2 };
    case 'down':
      return { route: init, then: { answer: problems.internal_error } };
    case 'timeout_before':
      return { route: part, then: 'silent_before' };
    case 'timeout_after':
      return { route: part, then: 'silent_after' };
    case 'error_after':
      return { route: part, then: { answerAfter: problems.bad_gateway } };
    case 'late':
      return { route: part, then: { lateMs: ms, answer: problems.unavailable } };
    case 'duplicate':
      throw new Error('TikTok takes a post twice');
  }
};

/** Another account of the same person, as far as credentials go. */
const lending = (of: CredentialStore, known: ReadonlySet<string>, lent: () => string): CredentialStore =>
  new Proxy(of, {
    get: (store, name) => {
      const member = Reflect.get(store, name);
      if (typeof member !== 'function') return member;
      return (id: unknown, ...others: readonly unknown[]) =>
        member.call(store, typeof id === 'string' && !known.has(id) ? lent() : id, ...others);
    },
  });

const harnessOf = async (world: TikTokWorld): Promise<ProcessingHarness> => {
  const { network, files } = world;
  const accounts: CommentRequest['account'][] = [];
  for (let at = 0; at < 60; at += 1) accounts.push(await world.account());
  // The harness of an app that may post for two accounts a day.
  const scarce = await world.account();
  const known = new Set([...accounts, scarce].map(({ id }) => id));
  const few = world.another(
    { credentials: lending(world.credentials, known, () => scarce.id) },
    { id: 'few', budget: 2 },
  ).adapter;
  const open = (): PlatformAdapter => {
    const usual = world.another().adapter;
    const publish: PlatformAdapter['publish'] = (asked, steps) =>
      (asked.account.externalId === `${scarce.externalId}1` ? few : usual).publish(asked, steps);
    return new Proxy(usual, { get: (of, name) => (name === 'publish' ? publish : Reflect.get(of, name)) });
  };
  const shownId = (publishId: string, postId: string, level: unknown): string =>
    level === 'PUBLIC_TO_EVERYONE' ? postId : publishId;
  return {
    open: async () => open(),
    dayLimited: () => scarce,
    close: async () => world.close(),
    posts: async (targetId) =>
      network.state.posts.flatMap((one) =>
        one.tag === targetId && one.takenAt !== null && one.failReason === null
          ? [shownId(one.publishId, one.postId, one.info.privacy_level)]
          : [],
      ),
    comments: async () => [],
    scripted: (fault, ms = 0) => {
      const says = randomUUID();
      network.script({ says, ...faultOf(fault, ms) });
      return `Hi ${says}`;
    },
    processed: (end, ms) => {
      const key = randomUUID();
      network.state.marked.set(key, { ms, failReason: end === 'shown' ? null : 'spam_risk_text' });
      return `Hi ${key}`;
    },
    unproven: async () => {
      const host = `https://${randomUUID()}.test/`;
      const content = randomUUID();
      network.script({
        route: 'POST /v2/post/publish/content/init/',
        says: content,
        then: { answer: problems.url_ownership_unverified },
      });
      network.state.proven.push(host);
      return { content, media: [files.picture({}, host)] };
    },
    without: ['duplicate'],
    platforms: ['tiktok'],
    account: () => accounts.pop() as CommentRequest['account'],
    silent: () => null,
    overrides: () => ({ privacyLevel: 'PUBLIC_TO_EVERYONE' }),
    media: async () => [files.video()],
  };
};

suite('tiktok as a platform', (t) => {
  platformSuite(t, async () => harnessOf(await tiktokWorld()));
});

suite('tiktok as a platform that looks at posts before it shows them', (t) => {
  processingSuite(t, async () => harnessOf(await tiktokWorld()));
});

/** What strikes once at a question about an account. */
const atCreator: Readonly<Record<AccountFault, Pick<Fault, 'then' | 'times'>>> = {
  down: { then: { answer: problems.internal_error } },
  rate_limit: { then: { answer: limited(2_000) } },
  token_death: { then: { answer: problems.access_token_invalid }, times: 2 },
};

const names: Readonly<Record<string, string>> = {
  ...{ PUBLIC_TO_EVERYONE: 'Everyone', FOLLOWER_OF_CREATOR: 'Followers' },
  ...{ MUTUAL_FOLLOW_FRIENDS: 'Friends', SELF_ONLY: 'Only you' },
};

const accountHarness = async (): Promise<AccountHarness> => {
  const world = await tiktokWorld();
  const { network, accounts } = world;
  assert.ok(accounts !== undefined);
  const personOf = (externalId: string) => {
    const person = network.state.people.get(externalId);
    assert.ok(person !== undefined);
    return person;
  };
  return {
    source: accounts,
    platforms: ['tiktok'],
    close: async () => world.close(),
    account: async (_platform, fault) => {
      if (fault !== undefined) {
        network.script({ route: 'POST /v2/post/publish/creator_info/query/', ...atCreator[fault] });
      }
      return world.account();
    },
    other: () => world.account(network.person({ isPrivate: true, maxSeconds: 180 })),
    has: (_platform, { externalId }) =>
      new Map(network.state.levelsOf(personOf(externalId)).map((one) => [one, names[one] ?? ''])),
    crowded: async () => null,
    facts: {
      has: (_platform, { externalId }) => {
        const person = personOf(externalId);
        return { allows: { privacyLevel: network.state.levelsOf(person) }, maxDurationMs: person.maxSeconds * 1_000 };
      },
      stopped: (_platform, until) =>
        world.account(network.person(until === 'an instant' ? { postsADay: 0 } : { isBanned: true })),
    },
  };
};

suite('tiktok as a source of what accounts may post', (t) => accountSuite(t, accountHarness));

const insightsHarness = async (): Promise<InsightsHarness> => {
  const world = await tiktokWorld();
  const { network, source } = world;
  const [account, other] = [await world.account(), await world.account()];
  const faults = {
    down: { then: { answer: problems.internal_error } },
    rate_limit: { then: { answer: limited(60_000) } },
    token_death: { then: { answer: problems.access_token_invalid }, times: 2 },
  } as const;
  return {
    source,
    platforms: ['tiktok'],
    close: async () => world.close(),
    account: () => account,
    other: () => other,
    publish: async (_platform, { externalId: id }, fault) => {
      const by = id === account.externalId ? account : other;
      const overrides = { privacyLevel: 'PUBLIC_TO_EVERYONE' };
      const { outcome } = await world.publish(world.request(by, { content: randomUUID(), overrides }));
      if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
      const { externalId, publishedAt } = outcome;
      const at = { route: 'POST /v2/video/query/', says: externalId } as const;
      if (fault === 'nonsense') {
        const odd = { view_count: 'many', like_count: -1, comment_count: {}, share_count: 1e308 };
        const data = { videos: [{ id: externalId, ...odd }] };
        network.script({ ...at, then: { answer: { status: 200, body: { data, error: { code: 'ok' } } } } });
      } else if (fault !== undefined) network.script({ ...at, ...faults[fault] });
      return { targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo: true };
    },
    remove: async (_platform, { externalId }) => {
      const post = network.state.posts.find(({ postId }) => postId === externalId);
      if (post !== undefined) post.isGone = true;
    },
    pass: async () => network.state.advance(3_600_000),
  };
};

suite('tiktok as a source of figures', (t) => insightsSuite(t, insightsHarness));
