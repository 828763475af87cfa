/** What every network must do, done by the adapter of Pinterest on the simulated Pinterest. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Harness, platformSuite } from '#contracts/ports/platform.suite.ts';
import type { CommentRequest, PlatformAdapter } from '#contracts/ports/platform.ts';
import { type AccountFault, type AccountHarness, accountSuite } from '#contracts/ports/platform-account.suite.ts';
import { type AskedAccount, maxChoices } from '#contracts/ports/platform-account.ts';
import { type InsightsHarness, insightsSuite } from '#contracts/ports/platform-insights.suite.ts';
import { problems } from '#test/support/networks/pinterest/index.ts';
import type { Fault } from '#test/support/networks/pinterest/state.ts';
import { heldFiles, pinterestWorld } from '#test/support/networks/pinterest/world.ts';
import { suite } from '#test/support/suite.ts';

const limited = (ms: number) => ({
  ...problems.too_many_requests,
  headers: {
    'x-ratelimit-limit': '100, 100;w=1;name="safety_net_app_id_user_id", 100;w=60;name="org_write_app_id_user_id"',
    ...{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(Math.ceil(ms / 1_000)) },
  },
});

const thenOf = (fault: Parameters<Harness['scripted']>[0], ms: number): Pick<Fault, 'then' | 'times'> => {
  switch (fault) {
    case 'rate_limit':
      return { then: { answer: limited(ms) } };
    case 'reject':
      return { then: { answer: problems.invalid } };
    // The adapter asks once more with a new token.
    case 'token_death':
      return { then: { answer: problems.unauthorized }, times: 2 };
    case 'timeout_before':
      return { then: 'silent_before' };
    case 'timeout_after':
      return { then: 'silent_after' };
    case 'error_after':
      return { then: { answerAfter: problems.unavailable } };
    case 'late':
      return { then: { lateMs: ms, answer: problems.gateway_timeout } };
    case 'duplicate':
    case 'down':
      throw new Error('Pinterest takes a pin twice, and a picture makes no call before the create');
  }
};

const harness = async (): Promise<Harness> => {
  const world = await pinterestWorld();
  const { network } = world;
  const files = heldFiles();
  // Cases look at the board of their account, so each has one of its own.
  const board = network.board(network.person());
  const accounts: CommentRequest['account'][] = [];
  for (let at = 0; at < 100; at += 1) {
    const account = await world.account();
    network.state.boards.set(board.id, {
      ...board,
      collaborators: [...accounts, account].map((one) => one.externalId),
    });
    accounts.push(account);
  }
  // An app that may make two calls a day. The harness of all others has another app.
  const scarce = accounts.pop() as CommentRequest['account'];
  const few = () => world.another({ clock: Date.now }, { id: 'few', budget: 2 }).adapter;
  const open = (): PlatformAdapter => {
    const [usual, ofFew] = [world.another().adapter, few()];
    const publish: PlatformAdapter['publish'] = (asked, steps) =>
      (asked.account.id === scarce.id ? ofFew : usual).publish(asked, steps);
    return new Proxy(usual, { get: (of, name) => (name === 'publish' ? publish : Reflect.get(of, name)) });
  };
  return {
    open: async () => open(),
    dayLimited: () => scarce,
    close: async () => {
      files.remove();
      network.close();
    },
    posts: async (targetId) =>
      network.state.creates.flatMap(({ tag, pinId }) => (tag === targetId && pinId !== null ? [pinId] : [])),
    comments: async () => [],
    scripted: (fault, ms = 0) => {
      const says = randomUUID();
      network.script({ route: 'POST /v5/pins', says, ...thenOf(fault, ms) });
      return `Hi ${says}`;
    },
    without: ['down', 'duplicate'],
    platforms: ['pinterest'],
    account: () => accounts.pop() as CommentRequest['account'],
    silent: () => null,
    overrides: () => ({ boardId: board.id }),
    media: async () => [files.picture()],
  };
};

/** What strikes once at a list of boards. */
const atBoards: Readonly<Record<AccountFault, Pick<Fault, 'then' | 'times'>>> = {
  down: { then: { answer: problems.unavailable } },
  rate_limit: { then: { answer: limited(2_000) } },
  // The adapter asks once more with a new token.
  token_death: { then: { answer: problems.unauthorized }, times: 2 },
};

const accountHarness = async (): Promise<AccountHarness> => {
  const world = await pinterestWorld();
  const { network, accounts } = world;
  assert.ok(accounts !== undefined);
  const withBoards = async (count: number): Promise<AskedAccount> => {
    const person = network.person();
    for (let at = 0; at < count; at += 1) network.board(person);
    return world.account(person);
  };
  return {
    source: accounts,
    platforms: ['pinterest'],
    close: async () => network.close(),
    account: async (_platform, fault) => {
      const account = await withBoards(3);
      if (fault !== undefined) network.script({ route: 'GET /v5/boards', ...atBoards[fault] });
      return account;
    },
    other: () => withBoards(260),
    has: (_platform, { externalId }) =>
      new Map(
        [...network.state.boards.values()].flatMap(({ id, name, ownerId }) =>
          ownerId === externalId ? [[id, name] as const] : [],
        ),
      ),
    crowded: async () => ({ account: await withBoards(maxChoices + 1), key: 'boardId' }),
  };
};

suite('pinterest as a source of what accounts may choose', (t) => accountSuite(t, accountHarness));

suite('pinterest as a platform', (t) => {
  platformSuite(t, harness);
});

const insightsHarness = async (): Promise<InsightsHarness> => {
  const world = await pinterestWorld({}, { clock: () => Date.now() });
  const { network, source } = world;
  const files = heldFiles();
  const [account, other] = [await world.account(), await world.account()];
  const faults = {
    down: { then: { answer: problems.unavailable } },
    rate_limit: { then: { answer: limited(60_000) } },
    token_death: { then: { answer: problems.unauthorized }, times: 2 },
  } as const;
  const odd = {
    IMPRESSION: 'many',
    SAVE: -1,
    PIN_CLICK: 1e308,
    OUTBOUND_CLICK: {},
    USER_FOLLOW: [],
    PROFILE_VISIT: '',
  };
  return {
    source,
    platforms: ['pinterest'],
    close: async () => {
      files.remove();
      network.close();
    },
    account: () => account,
    other: () => other,
    publish: async (_platform, { externalId: id }, fault) => {
      const by = id === account.externalId ? account : other;
      const asked = world.request(by, { content: randomUUID(), media: [files.picture()] });
      const { outcome } = await world.publish(asked);
      if (outcome.kind !== 'published') throw new Error(JSON.stringify(outcome));
      const { externalId, publishedAt } = outcome;
      if (fault === 'nonsense') {
        const pin = { id: externalId, is_owner: true, pin_metrics: { lifetime_metrics: { impression: 'all' } } };
        const all = { summary_metrics: odd, lifetime_metrics: { TOTAL_COMMENTS: 'few', TOTAL_REACTIONS: -3 } };
        const says = externalId;
        network.script({ route: 'GET /v5/pins/:id', says, then: { answer: { status: 200, body: pin } } });
        network.script({ route: 'GET /v5/pins/:id/analytics', says, then: { answer: { status: 200, body: { all } } } });
      } else if (fault !== undefined) {
        network.script({ route: 'GET /v5/pins/:id', says: externalId, ...faults[fault] });
      }
      return { targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo: false };
    },
    remove: async (_platform, { externalId }) => {
      network.state.deleted.add(externalId);
    },
    pass: async () => network.state.advance(3_600_000),
  };
};

suite('pinterest as a source of figures', (t) => {
  insightsSuite(t, insightsHarness);
});
