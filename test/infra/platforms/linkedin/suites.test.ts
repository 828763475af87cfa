/** What every network must do, done by the adapter of LinkedIn on the simulated LinkedIn. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Harness, platformSuite } from '#contracts/ports/platform.suite.ts';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { type AccountFault, type AccountHarness, accountSuite } from '#contracts/ports/platform-account.suite.ts';
import { maxChoices } from '#contracts/ports/platform-account.ts';
import { type InsightsHarness, insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import { problems } from '#test/support/networks/linkedin/index.ts';
import type { Fault, Person } from '#test/support/networks/linkedin/state.ts';
import { type LinkedInAccount, linkedinWorld } from '#test/support/networks/linkedin/world.ts';
import { suite } from '#test/support/suite.ts';

/** LinkedIn promises no such header; where it comes, it counts. */
const limited = (ms: number) => ({ ...problems.burst, headers: { 'retry-after': String(Math.ceil(ms / 1_000)) } });

const thenOf = (fault: Parameters<Harness['scripted']>[0], ms: number): Pick<Fault, 'then' | 'times'> => {
  switch (fault) {
    case 'rate_limit':
      return { then: { answer: limited(ms) } };
    case 'reject':
      return { then: { answer: problems.too_long } };
    // The adapter asks once more with a new token.
    case 'token_death':
      return { then: { answer: problems.token_expired }, times: 2 };
    case 'duplicate':
      return { then: { answer: problems.duplicate } };
    case 'timeout_before':
      return { then: 'silent_before' };
    case 'timeout_after':
      return { then: 'silent_after' };
    case 'error_after':
      return { then: { answerAfter: problems.unavailable } };
    case 'late':
      return { then: { lateMs: ms, answer: problems.gateway_timeout } };
    case 'down':
      throw new Error('a text alone makes no call before the create');
  }
};

const harness = async (holder: 'organization' | 'member'): Promise<Harness> => {
  // A member's outcome is asked of nobody: the cases of its own calls are those of an organization, in less time.
  const world = await linkedinWorld({}, holder === 'member' ? { boundaryDeadlineMs: 500 } : {});
  const { state, script, close } = world.network;
  const member = await world.member();
  const accounts: LinkedInAccount[] = [];
  for (let at = 0; at < 100; at += 1) accounts.push(await world[holder]());
  // An app that may make two calls a day. The harness of all others has another app.
  const scarce = accounts.pop() as LinkedInAccount;
  const few = () => world.again({ LINKEDIN_APP_BUDGET: '2', LINKEDIN_CLIENT_ID: 'few' }, { clock: Date.now }).adapter;
  const open = (): PlatformAdapter => {
    const [usual, ofFew] = [world.again().adapter, few()];
    const publish: PlatformAdapter['publish'] = (asked, steps) =>
      (asked.account.id === scarce.id ? ofFew : usual).publish(asked, steps);
    return new Proxy(usual, { get: (of, name) => (name === 'publish' ? publish : Reflect.get(of, name)) });
  };
  return {
    open: async () => open(),
    ended: async () => world.again({ LINKEDIN_VERSION: '202511' }).adapter,
    dayLimited: () => scarce,
    close: async () => close(),
    posts: async (targetId) =>
      state.creates.flatMap(({ tag, postId }) => (tag === targetId && postId !== null ? [postId] : [])),
    comments: async (targetId) => state.comments.flatMap(({ tag, id }) => (tag === targetId ? [id] : [])),
    scripted: (fault, ms = 0) => {
      const says = randomUUID();
      for (const route of ['POST /rest/posts', 'POST /rest/socialActions/:id/comments']) {
        script({ route, says, ...thenOf(fault, ms) });
      }
      return `Hi ${says}`;
    },
    without: ['down'],
    refusesRepeats: true,
    ...(holder === 'member' ? { isUnreadable: true as const } : {}),
    platforms: ['linkedin'],
    account: () => accounts.pop() as LinkedInAccount,
    unreadable: () => member,
    silent: () => null,
    overrides: () => ({ visibility: 'PUBLIC' }),
    media: async () => [],
  };
};

suite('an organization of linkedin as a platform', (t) => {
  platformSuite(t, () => harness('organization'));
});

suite('a member of linkedin as a platform', (t) => {
  platformSuite(t, () => harness('member'));
});

const insightsHarness = async (): Promise<InsightsHarness> => {
  const world = await linkedinWorld({}, { clock: () => Date.now() });
  const { network, source } = world;
  const person = network.person();
  const of = () => world.accountOf(person, `urn:li:organization:${network.organization(person).id}`);
  const [account, other] = [await of(), await of()];
  const route = 'GET /rest/organizationalEntityShareStatistics';
  const faults = {
    down: { then: { answer: problems.unavailable } },
    rate_limit: { then: { answer: limited(60_000) } },
    token_death: { then: { answer: problems.token_expired }, times: 2 },
  } as const;
  return {
    source,
    platforms: ['linkedin'],
    close: async () => network.close(),
    account: () => account,
    other: () => other,
    publish: async (_platform, by, fault) => {
      const { outcome } = await world.publish(world.request(by, { content: randomUUID() }));
      if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
      const { externalId, publishedAt } = outcome;
      const says = encodeURIComponent(externalId);
      if (fault === 'nonsense') {
        const numbers = { impressionCount: 'many', uniqueImpressionsCount: -1, likeCount: 1e308, shareCount: {} };
        const totalShareStatistics = { ...numbers, commentCount: null, clickCount: 'none' };
        const answer = { status: 200, body: { elements: [{ share: externalId, totalShareStatistics }] } };
        network.script({ route, says, then: { answer } });
        network.script({ route: 'GET /rest/socialMetadata', says, then: { answer: problems.access_denied } });
      } else if (fault !== undefined) network.script({ route, says, ...faults[fault] });
      return { targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo: false };
    },
    remove: async (_platform, { externalId }) => {
      network.state.deleted.add(externalId);
    },
    pass: async () => network.state.advance(3_600_000),
  };
};

suite('an organization of linkedin as a source of figures', (t) => {
  insightsSuite(t, insightsHarness);
});

const accountHarness = async (): Promise<AccountHarness> => {
  const world = await linkedinWorld({}, { clock: () => Date.now() });
  const { network } = world;
  assert.ok(world.accounts !== undefined);
  const people = new Map<string, Person>();
  const loginOf = async (organizations: number): Promise<LinkedInAccount> => {
    const person = network.person();
    network.organization(person, 'ANALYST');
    for (let at = 0; at < organizations; at += 1) {
      network.organization(person, at % 2 === 0 ? 'ADMINISTRATOR' : 'CONTENT_ADMINISTRATOR');
    }
    const account = await world.member(person);
    people.set(account.id, person);
    return account;
  };
  const [account, other, crowd] = [await loginOf(3), await loginOf(1), await loginOf(maxChoices + 100)];
  const failing = {} as Record<AccountFault, LinkedInAccount>;
  const answers = { down: problems.unavailable, rate_limit: limited(60_000), token_death: problems.token_revoked };
  for (const fault of ['down', 'rate_limit', 'token_death'] as const) {
    failing[fault] = await loginOf(1);
    const personId = people.get(failing[fault].id)?.id ?? '';
    const route = 'GET /rest/organizationAcls';
    network.script({ route, personId, times: 100, then: { answer: answers[fault] } });
  }
  return {
    source: world.accounts,
    platforms: ['linkedin'],
    close: async () => network.close(),
    account: (_platform, fault) => (fault === undefined ? account : failing[fault]),
    other: () => other,
    has: (_platform, { id }) => {
      const roles = [...(people.get(id)?.roles ?? [])].filter(([, own]) => !own.includes('ANALYST'));
      return new Map(
        roles.map(([one]) => [`urn:li:organization:${one}`, network.state.organizations.get(one)?.name ?? '']),
      );
    },
    crowded: async () => ({ account: crowd, key: 'organization' }),
  };
};

suite('linkedin as it tells of an account', (t) => {
  accountSuite(t, accountHarness);

  t('a login whose list is refused has no choices that are empty', async () => {
    const world = await linkedinWorld();
    const account = await world.member(world.network.person(), ['openid', 'profile', 'w_member_social']);
    const answer = await world.accounts?.choices('linkedin', account, 'organization', AbortSignal.timeout(5_000));
    assert.equal(answer?.kind, 'unavailable');
    world.network.close();
  });
});
