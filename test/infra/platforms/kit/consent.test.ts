/** Logins with several accounts, and consents that must not outlive what they were for. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type OwnTokensHarness, ownTokensSuite } from '#contracts/ports/own-tokens.suite.ts';
import { consentOf, type OfferAccounts, type OfferedLogin } from '#infra/platforms/kit/consent.ts';
import { type NetworkMethods, networkOf } from '#infra/platforms/kit/network.ts';
import type { OAuthTable, RefreshStep, TokenStep } from '#infra/platforms/kit/oauth.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { suite } from '#test/support/suite.ts';
import { type KitWorld, kitWorld, oauthOf, within } from './world.ts';

const redirectUri = 'https://postline.test/connect/callback';
const profileOf = (externalId: string) => ({
  ...{ externalId, username: null, displayName: `Page ${externalId}`, avatarUrl: null },
});
const until = '2027-01-01T00:00:00.000Z';
const two: OfferedLogin = {
  ...{ kind: 'offered', person: 'person-1' },
  accounts: [
    { profile: profileOf('1'), holder: 'page', own: { token: 'page-1', until: null }, kept: { pageOf: 'business' } },
    { profile: profileOf('2'), holder: 'page', own: { token: 'page-2', until }, scopes: ['post', 'insights'] },
    { profile: profileOf('3'), holder: 'page', obstacle: 'Your role may not publish.' },
  ],
};

const refreshStep: Omit<RefreshStep, 'kind'> = {
  ...{ method: 'POST', url: '{tokens}/token', as: 'form', minAgeMs: 0 },
  params: { grant_type: 'refresh_token', refresh_token: '{refresh}' },
};
/** As Meta gives a page its token. */
const mint: TokenStep = {
  ...{ method: 'GET', url: '{api}/{account}', as: 'query', isBare: true },
  params: { fields: 'access_token', access_token: '{login}' },
};
/** The methods of a network of which a test needs none. */
const none = {} as NetworkMethods;

suite('consent of the kit', (t) => {
  let world: KitWorld;
  t.before.each(async () => {
    world = await kitWorld();
    world.on('POST /tokens/token', { body: { access_token: 'login', scope: 'post' } });
    world.on('POST /tokens/revoke', {});
  });
  t.after.each(() => world.close());

  const revoke = [{ method: 'POST', url: '{tokens}/revoke', as: 'form', params: { token: '{login}' } }] as const;
  const connectorOf = (offer: OfferAccounts, over: Partial<OAuthTable> = {}) => {
    const { http, clock, app, client, tables } = world.bound;
    const asked = { http, clock, app, client, offer, name: 'Threads', says: tables.doctor };
    return consentOf({ ...asked, oauth: oauthOf({ revoke, ...over }) });
  };
  const finish = async (offer: OfferAccounts, over: Partial<OAuthTable> = {}) => {
    const connector = connectorOf(offer, over);
    const answer = new Map([['code', 'c']]);
    return connector.finish({ answer, kept: { verifier: 'v' }, redirectUri, workspaceId: randomUUID() }, within());
  };
  const revoked = () => world.received.filter(({ path }) => path === '/tokens/revoke').length;

  t(
    'offers each account with its own token, keeps that of the login beside it, and says whose grant it is',
    async () => {
      const outcome = await finish(async () => two, { grant: 'person' });
      assert.ok(outcome.kind === 'accounts', JSON.stringify(outcome));
      const [one, other, third] = outcome.accounts;
      assert.deepEqual(one?.credential, {
        secret: {
          ...{ loginToken: 'login', loginUntil: '2026-11-01T13:00:00.000Z' },
          ...{ accessToken: 'page-1', accessUntil: null, pageOf: 'business' },
        },
        ...{ expiresAt: null, grant: 'person-1' },
      });
      assert.deepEqual([one?.holder, one?.profile.scopes, one?.obstacle], ['page', ['post'], undefined]);
      assert.deepEqual([other?.credential.expiresAt, other?.credential.secret.accessToken], [until, 'page-2']);
      assert.deepEqual(other?.profile.scopes, ['post', 'insights']);
      assert.deepEqual(
        [third?.obstacle, third?.credential.secret.accessToken],
        ['Your role may not publish.', 'login'],
      );
      assert.ok(outcome.accounts.every(({ credential }) => credential.grant === 'person-1'));
    },
  );

  t(
    'a consent that nothing came of is taken back, also when its time is over or its accounts could not be read',
    async () => {
      const over = new AbortController();
      const connector = connectorOf(async () => {
        over.abort(new Error('the time of the page is over'));
        return { kind: 'silent', reason: 'aborted' };
      });
      const asked = {
        answer: new Map([['code', 'c']]),
        kept: { verifier: 'v' },
        redirectUri,
        workspaceId: randomUUID(),
      };
      assert.equal((await connector.finish(asked, over.signal)).kind, 'refused');
      assert.equal(revoked(), 1);
      const broken = finish(async () => {
        throw new Error('an answer that nobody reads');
      });
      await assert.rejects(broken, /nobody reads/);
      assert.equal(revoked(), 2);
    },
  );

  t('a login that has one account shares no grant', async () => {
    const outcome = await finish(async () => ({ ...two, accounts: two.accounts.slice(0, 1) }));
    assert.ok(outcome.kind === 'accounts');
    assert.equal('grant' in (outcome.accounts[0]?.credential ?? {}), false);
  });

  t('a token of a page has no end, is used as it is and is not renewed', async () => {
    const { accountId } = await world.account({
      secret: { accessToken: 'page-1', accessUntil: null },
      expiresAt: null,
    });
    world.pass(400 * 86_400_000);
    const open = await world.client.open({ accountId, targetId: null }, within());
    assert.ok(open.kind === 'open' && open.token === 'page-1');
    assert.equal(world.received.length, 0);
  });

  t(
    'a token of a page that the network ended is minted anew, by that of the login and once for all who met it',
    async () => {
      const own = await kitWorld({
        oauth: oauthOf({ mint, grant: 'person' }),
        errors: [{ status: 401, means: 'lapsed', renews: true }],
      });
      own.on('POST /tokens/token', { body: { access_token: 'the-login-token', scope: 'post' } });
      const { http, clock, app, client, tables, credentials } = { ...own.bound };
      const offer: OfferAccounts = async () => two;
      const connector = consentOf({ http, clock, app, client, offer, name: 'Threads', oauth: tables.oauth });
      const asked = {
        answer: new Map([['code', 'c']]),
        kept: { verifier: 'v' },
        redirectUri,
        workspaceId: randomUUID(),
      };
      const outcome = await connector.finish(asked, within());
      assert.ok(outcome.kind === 'accounts', JSON.stringify(outcome));
      const pages = outcome.accounts.slice(0, 2).map(({ credential }) => ({ credential, accountId: randomUUID() }));
      for (const { accountId, credential } of pages) {
        const owner = { accountId, workspaceId: randomUUID(), clientId: randomUUID(), platform: 'threads' as const };
        await credentials.keep(owner, credential);
      }
      const [first, second] = pages.map(({ accountId }) => ({ accountId, targetId: null }));
      assert.ok(first !== undefined && second !== undefined);
      own.on('GET /api/things', { status: 401 }, { status: 401 }, { body: { data: [] } });
      own.on('GET /api/1', { body: { id: '1', access_token: 'page-1 anew' } });
      const ask = { method: 'GET', path: '/things' } as const;
      const answers = await Promise.all([1, 2].map(() => client.call(first, ask, within())));
      assert.deepEqual(
        answers.map(({ kind }) => kind),
        ['ok', 'ok'],
      );
      const minted = own.received.filter(({ path }) => path === '/api/1');
      assert.deepEqual(
        minted.map(({ query }) => [query.get('access_token'), query.get('fields')]),
        [['the-login-token', 'access_token']],
      );
      assert.deepEqual(minted[0]?.headers.authorization, undefined);
      const kept = await credentials.read(first.accountId);
      assert.deepEqual(
        [kept?.secret.accessToken, kept?.secret.loginToken, kept?.secret.accessUntil],
        ['page-1 anew', 'the-login-token', null],
      );
      // The other page has its own, of which nobody asked.
      assert.equal((await credentials.read(second.accountId))?.secret.accessToken, 'page-2');
      // The login has ended: only its owner can mend it.
      own.on('GET /api/things', { status: 401 });
      own.on('GET /api/1', { status: 400, body: { error: 'invalid_grant', error_description: 'of the-login-token' } });
      const ended = await client.call(first, ask, within());
      assert.ok(ended.kind === 'lapsed' && !ended.reason.includes('the-login-token'), JSON.stringify(ended));
      own.close();
    },
  );

  t('a refused consent is taken back, unless that ended the other accounts of the person', async () => {
    const none: OfferAccounts = async () => ({ ...two, accounts: [] });
    assert.equal((await finish(none)).kind, 'refused');
    assert.equal(revoked(), 1);
    assert.equal((await finish(none, { grant: 'person' })).kind, 'refused');
    const down: OfferAccounts = async () => ({ kind: 'unsent', reason: 'refused' });
    assert.equal((await finish(down, { grant: 'person' })).kind, 'refused');
    world.on('POST /tokens/token', { body: { access_token: 'login', scope: 'read' } });
    assert.equal((await finish(async () => two, { grant: 'person' })).kind, 'refused');
    assert.equal(revoked(), 1);
  });

  t('of accounts that share a grant the network is asked with the last alone', async () => {
    const credentials = new MemoryCredentials();
    const outcome = await finish(async () => two, { grant: 'person' });
    assert.ok(outcome.kind === 'accounts');
    const owners = outcome.accounts.map(() => ({
      ...{ accountId: randomUUID(), workspaceId: randomUUID(), clientId: randomUUID(), platform: 'threads' as const },
    }));
    for (const [at, owner] of owners.entries()) {
      const credential = outcome.accounts[at]?.credential;
      assert.ok(credential !== undefined);
      await credentials.keep(owner, credential);
    }
    const left = [];
    for (const { accountId } of owners) left.push(await credentials.leave(accountId, 1));
    assert.deepEqual(left, ['left', 'left', 'last']);
  });

  t('a refresh token that rotates is no token of several accounts', () => {
    const { tables, app, ...tools } = world.bound;
    const network = (grant: OAuthTable['grant'], kind: 'rotates' | 'keeps') => {
      const refresh = { ...refreshStep, kind };
      const parts = { offer: async () => two, methods: () => none };
      return networkOf({ ...parts, tables: { ...tables, oauth: oauthOf({ grant, refresh }) } }, tools, app);
    };
    for (const [grant, kind] of [
      ['person', 'keeps'],
      ['account', 'rotates'],
    ] as const)
      assert.equal(typeof network(grant, kind).refresher, 'function');
    assert.throws(() => network('person', 'rotates'), /cannot be shared/);
  });

  t('the guest is told which permission is missing, also where the network tells it apart from the code', async () => {
    const words = async (...given: Parameters<typeof finish>) => {
      const outcome = await finish(...given);
      return outcome.kind === 'refused' ? outcome.words : outcome.kind;
    };
    assert.equal(await words(async () => two), 'accounts');
    world.on('POST /tokens/token', { body: { access_token: 'login' } });
    assert.equal(await words(async () => two), 'accounts', 'RFC 6749: what was asked for is granted');
    assert.match(await words(async () => ({ ...two, granted: ['read'] })), /no permission for posting for you/);
    world.on('POST /tokens/token', { body: { access_token: 'login', scope: ['read'] } });
    let asked = 0;
    const offer: OfferAccounts = async () => {
      asked += 1;
      return two;
    };
    assert.match(await words(offer), /no permission for posting for you/);
    assert.equal(asked, 0, 'nobody asks whose account it is');
  });

  t(
    'a client that the network refuses in words of its own is told to the operator, and a code to the guest',
    async () => {
      const refusal = async (message: string) => {
        world.on('POST /tokens/token', { status: 401, body: { code: 2, message } });
        const outcome = await finish(async () => two);
        assert.ok(outcome.kind === 'refused');
        return [outcome.words, outcome.operator] as const;
      };
      const [later, operator] = await refusal('No such client.');
      assert.match(later, /does not answer now/);
      assert.equal(operator, 'Threads refuses our app: 401: No such client.');
      for (const words of ['This code has ended.', 'The client gave a wrong code.', 'No.']) {
        const [again, nobody] = await refusal(words);
        assert.match(again, /Start again/);
        assert.equal(nobody, undefined);
      }
    },
  );
  t('the network’s own words of its page are a refusal of the owner, or one of the app', async () => {
    const connector = connectorOf(async () => two, {
      pageErrors: { declined: ['user_cancelled'], scopes: ['bad_scope'] },
    });
    const said = async (error: string) => {
      const answer = new Map([['error', error]]);
      const outcome = await connector.finish({ answer, kept: {}, redirectUri, workspaceId: randomUUID() }, within());
      return outcome.kind === 'refused' ? outcome : null;
    };
    assert.match((await said('user_cancelled'))?.words ?? '', /did not allow/);
    assert.match((await said('bad_scope'))?.operator ?? '', /Threads refuses our app: bad_scope/);
    assert.equal((await said('server_error'))?.operator, undefined);
  });

  t('an offer is told when the grant ends', async () => {
    world.on('POST /tokens/token', { body: { access_token: 'login', scope: 'post', expires_in: 7_200 } });
    let ends: string | null = null;
    await finish(async ({ endsAt }) => {
      ends = endsAt;
      return two;
    });
    assert.equal(ends, new Date(world.bound.clock() + 7_200_000).toISOString());
  });

  t('accounts are asked for with the token of the login, which no account has yet', async () => {
    world.on('GET /api/me/accounts', { body: { data: [] } });
    await finish(async ({ call, token, said, scopes }) => {
      assert.deepEqual([token, said.access_token, scopes], ['login', 'login', ['post']]);
      assert.equal((await call({ method: 'GET', path: '/me/accounts' })).kind, 'ok');
      return two;
    });
    const asked = world.received.find(({ path }) => path === '/api/me/accounts');
    assert.equal(asked?.headers.authorization, 'Bearer login');
  });
});

/** A network of the kit whose login has pages. */
const pages = async (): Promise<OwnTokensHarness> => {
  const world = await kitWorld({ oauth: oauthOf({ mint, grant: 'person' }) });
  const { tables, app, ...tools } = world.bound;
  const { connectors, refresher } = networkOf({ tables, offer: async () => two, methods: () => none }, tools, app);
  const [connector] = connectors;
  assert.ok(connector !== undefined && refresher !== undefined);
  world.on('POST /tokens/token', { body: { access_token: 'the-login-token', scope: 'post' } });
  const tokens = new Map(two.accounts.flatMap(({ profile, own }) => (own ? [[profile.externalId, own.token]] : [])));
  const ids = [...tokens.keys()];
  const asks = (id: string) => `GET /api/${id}`;
  return {
    ...{ platform: 'threads', connector, refresher, store: world.credentials },
    returned: { answer: new Map([['code', 'c']]), kept: { verifier: 'v' } },
    takes: (id, token) => tokens.get(id) === token,
    endOwn: (id) => {
      tokens.set(id, `page-${id} ${randomUUID()}`);
      world.on(asks(id), { body: { id, access_token: tokens.get(id) } });
    },
    fail: () => {
      for (const id of ids) world.on(asks(id), { status: 503 });
    },
    endLogin: () => {
      const body = { error: 'invalid_grant', error_description: 'the-login-token has ended' };
      for (const id of ids) world.on(asks(id), { status: 400, body });
    },
    asked: (id) =>
      world.received.filter(
        ({ method, path, query }) =>
          `${method} ${path}` === asks(id) && query.get('access_token') === 'the-login-token',
      ).length,
    close: async () => world.close(),
  };
};

suite('tokens that accounts of a login have of their own', (t) => ownTokensSuite(t, pages));
