/** Consent at X: the page, the code, the tokens and their end. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  authorizeUrl,
  exchangeCode,
  lookUpAccount,
  newVerifier,
  refreshTokens,
  revokeTokens,
  xConsent,
} from '#test/support/networks/x/adapter.ts';
import { problems } from '#test/support/networks/x/index.ts';
import { type XWorld, xWorld } from '#test/support/networks/x/world.ts';
import { suite } from '#test/support/suite.ts';

const signal = () => AbortSignal.timeout(5_000);
const subject = { accountId: randomUUID(), targetId: null };

suite('oauth of x', (t) => {
  let world: XWorld;
  let options: Parameters<typeof xConsent>[0];
  t.before.each(async () => {
    world = await xWorld();
    options = optionsOf(world);
  });
  t.after.each(() => world.network.close());

  const optionsOf = ({ http, network, options: given }: XWorld): Parameters<typeof xConsent>[0] => ({
    ...{ http, app: given.app, clock: given.clock, api: network.origin, appLimits: given.appLimits },
    authorize: `${network.origin}/i/oauth2/authorize`,
  });

  /** Presses "Authorize app" as a new person. */
  const consent = async (given = world, verifier = newVerifier()) => {
    const { redirectUri } = given.network.state.app;
    const url = new URL(authorizeUrl(optionsOf(given), { redirectUri, state: 'the state', verifier }));
    assert.ok(!url.search.includes('+'), 'a space is %20');
    const person = given.network.person();
    url.searchParams.set('as', person.id);
    const page = await fetch(url, { redirect: 'manual' });
    assert.equal(page.status, 302, await page.text());
    const back = new URL(page.headers.get('location') ?? '');
    assert.equal(back.searchParams.get('state'), 'the state');
    return { person, verifier, redirectUri, code: back.searchParams.get('code') ?? '' };
  };
  const connected = async (given = world) => {
    const { person, ...asked } = await consent(given);
    const exchanged = await exchangeCode(optionsOf(given), asked, signal());
    assert.ok(exchanged.kind === 'exchanged', JSON.stringify(exchanged));
    return { person, ...exchanged, former: { ...exchanged.credential, version: 1 } };
  };

  for (const clientSecret of ['a:secret+of%', null]) {
    const kind = clientSecret === null ? 'public' : 'confidential';
    t(`a consent gives tokens and says whose they are, to a ${kind} client`, async () => {
      const other = await xWorld({ clientSecret });
      try {
        const { person, credential, scopes } = await connected(other);
        assert.deepEqual(scopes, ['tweet.read', 'tweet.write', 'users.read', 'media.write', 'offline.access']);
        const { accessToken, accessUntil, refreshToken } = credential.secret;
        assert.ok(typeof accessToken === 'string' && typeof refreshToken === 'string');
        const left = Date.parse(String(accessUntil)) - Date.now();
        assert.ok(left > 7_000_000 && left <= 7_200_000);
        assert.ok(Date.parse(credential.expiresAt ?? '') - Date.now() > 100 * 86_400_000);
        const found = await lookUpAccount(optionsOf(other), accessToken, signal());
        assert.ok(found.kind === 'found');
        assert.deepEqual([found.profile.externalId, found.profile.username], [person.id, person.username]);
        assert.equal(found.profile.subscription, 'None');
        const refreshed = await refreshTokens(optionsOf(other), { ...credential, version: 1 }, subject, signal());
        assert.equal(refreshed.kind, 'refreshed');
      } finally {
        other.network.close();
      }
    });
  }

  t('a code works once, for 30 seconds, and with its verifier alone', async () => {
    const exchange = async (asked: Parameters<typeof exchangeCode>[1]) =>
      (await exchangeCode(options, asked, signal())).kind;
    const first = await consent();
    assert.equal(await exchange(first), 'exchanged');
    assert.equal(await exchange(first), 'refused');
    assert.equal(await exchange({ ...(await consent()), verifier: newVerifier() }), 'refused');
    const late = await consent();
    world.network.state.advance(30_001);
    assert.equal(await exchange(late), 'refused');
  });

  t('a refresh token works once; its end is told from a mistake of ours by the description', async () => {
    const { former } = await connected();
    const next = await refreshTokens(options, former, subject, signal());
    assert.ok(next.kind === 'refreshed');
    assert.notEqual(next.credential.secret.refreshToken, former.secret.refreshToken);
    const spent = await refreshTokens(options, former, subject, signal());
    assert.deepEqual(
      [spent.kind, 'reason' in spent && spent.reason],
      ['refused', 'Value passed for the token was invalid.'],
    );
    const renewed = { ...next.credential, version: 2 };
    const route = 'POST /2/oauth2/token';
    const bodies = [
      [400, { error: 'invalid_grant', error_description: 'Ended.' }, 'refused'],
      [400, { error: 'invalid_request', error_description: 'Missing required parameter [client_id].' }, 'unavailable'],
      [401, { error: 'unauthorized_client', error_description: 'Missing valid authorization header' }, 'unavailable'],
      [429, problems.too_many_requests.body, 'unavailable'],
      [503, problems.over_capacity.body, 'unavailable'],
      [200, {}, 'unavailable'],
    ] as const;
    for (const [status, body, kind] of bodies) {
      world.network.script({ route, then: { answer: { status, body } } });
      assert.equal((await refreshTokens(options, renewed, subject, signal())).kind, kind, JSON.stringify(body));
    }
    const none = await refreshTokens(options, { ...renewed, secret: { accessToken: 'a' } }, subject, signal());
    assert.equal(none.kind, 'refused');
  });

  t('a refresh without a new refresh token keeps the old one and its end', async () => {
    world.network.state.keepsRefresh = true;
    const { former } = await connected();
    const next = await refreshTokens(options, former, subject, signal());
    assert.ok(next.kind === 'refreshed');
    assert.ok(!('refreshToken' in next.credential.secret));
    assert.equal(next.credential.expiresAt, former.expiresAt);
    const again = { ...former, secret: { ...former.secret, ...next.credential.secret } };
    assert.equal((await refreshTokens(options, again, subject, signal())).kind, 'refreshed');
  });

  t('a pair with an odd end is kept all the same: the refresh before it has spent the former one', async () => {
    const { former } = await connected();
    for (const expires_in of [1e300, 9e15, -1, 0, 'soon', null]) {
      const body = { token_type: 'bearer', access_token: 'next', refresh_token: 'other', expires_in };
      world.network.script({ route: 'POST /2/oauth2/token', then: { answer: { status: 200, body } } });
      const next = await refreshTokens(options, former, subject, signal());
      assert.ok(next.kind === 'refreshed', JSON.stringify(next));
      assert.equal(next.credential.secret.refreshToken, 'other');
      const left = Date.parse(String(next.credential.secret.accessUntil)) - Date.now();
      assert.ok(left > 7_000_000 && left <= 86_400_000, `${expires_in}: ${left}`);
    }
  });

  t('a refresh whose answer was lost says that the pair may be gone', async () => {
    const { former } = await connected();
    world.network.script({ route: 'POST /2/oauth2/token', then: 'drop_after' });
    const lost = await refreshTokens(options, former, subject, signal());
    assert.ok(lost.kind === 'unavailable' && lost.isSilent === true);
    assert.equal((await refreshTokens(options, former, subject, signal())).kind, 'refused');
    const down = await refreshTokens({ ...options, api: 'http://127.0.0.1:9' }, former, subject, signal());
    assert.ok(down.kind === 'unavailable' && down.isSilent !== true);
  });

  t('a revocation ends both tokens, and a repeat does no harm', async () => {
    const { former } = await connected();
    const before = world.network.state.refresh.size;
    for (let at = 0; at < 2; at += 1)
      assert.equal((await revokeTokens(options, former, subject, signal())).kind, 'revoked');
    assert.equal(world.network.state.refresh.size, before - 1);
    const found = await lookUpAccount(options, String(former.secret.accessToken), signal());
    assert.ok(found.kind === 'refused' && found.status === 401);
    world.network.script({ route: 'POST /2/oauth2/revoke', then: 'drop_before' });
    assert.equal((await revokeTokens(options, former, subject, signal())).kind, 'unavailable');
  });

  const workspaceId = randomUUID();
  /** What the connector makes of X's answer to a new person's consent. */
  const finished = async (given = options, change: (answer: Map<string, string>) => void = () => {}) => {
    const connector = xConsent(given);
    const { redirectUri } = world.network.state.app;
    const begun = await connector.begin({ username: null, redirectUri, state: 'the state' }, signal());
    assert.ok(begun.kind === 'begun');
    const person = world.network.person();
    const url = new URL(begun.url);
    url.searchParams.set('as', person.id);
    const page = await fetch(url, { redirect: 'manual' });
    const answer = new Map(new URL(page.headers.get('location') ?? '').searchParams);
    change(answer);
    const done = () => connector.finish({ answer, kept: begun.kept, redirectUri, workspaceId }, signal());
    return { person, done, outcome: await done() };
  };
  const refusal = async (...args: Parameters<typeof finished>) => {
    const { outcome } = await finished(...args);
    assert.ok(outcome.kind === 'refused', JSON.stringify(outcome));
    return outcome;
  };
  const error = (name: string) => (answer: Map<string, string>) => {
    answer.delete('code');
    answer.set('error', name);
  };

  t('a guest is connected by the code, once', async () => {
    const { person, outcome, done } = await finished();
    assert.ok(outcome.kind === 'accounts', JSON.stringify(outcome));
    const [made, ...others] = outcome.accounts;
    assert.deepEqual([made?.profile.externalId, made?.profile.username], [person.id, person.username]);
    assert.ok(made?.profile.scopes.includes('media.write'));
    assert.deepEqual(others, []);
    const again = await done();
    assert.match(again.kind === 'refused' ? again.words : '', /Start again/);
  });

  t('a guest is told in words what is wrong, and an operator what only they can mend', async () => {
    const denied = await refusal(options, error('access_denied'));
    assert.match(denied.words, /did not allow/);
    assert.equal(denied.operator, undefined);
    const scope = await refusal(options, error('invalid_scope'));
    assert.match(scope.operator ?? '', /refuses our app: invalid_scope/);
    const wrong = await refusal({ ...options, app: { ...options.app, clientSecret: 'wrong-secret' } });
    assert.match(wrong.operator ?? '', /refuses our app: unauthorized_client: Missing valid authorization header/);
    assert.doesNotMatch(JSON.stringify(wrong), /wrong-secret/);
    assert.match((await refusal(options, error('temporarily_unavailable'))).words, /a few minutes/);
    assert.match((await refusal(options, (answer) => answer.delete('code'))).words, /a few minutes/);
    world.network.script({ route: 'POST /2/oauth2/token', then: { answer: problems.over_capacity } });
    assert.match((await refusal()).words, /a few minutes/);
  });

  t('a consent from which nothing is connected does not stay alive at the network', async () => {
    const { access, refresh } = world.network.state;
    const left = () => [access.size, refresh.size];
    const before = left();
    world.network.script({ route: 'GET /2/users/me', then: { answer: problems.over_capacity } });
    assert.match((await refusal()).words, /a few minutes/);
    world.network.script({ route: 'GET /2/users/me', then: { answer: problems.user_suspended } });
    assert.match((await refusal()).words, /suspended/);
    assert.deepEqual(left(), before);
    const body = { token_type: 'bearer', access_token: 'short', expires_in: 7_200, scope: 'tweet.read users.read' };
    world.network.script({ route: 'POST /2/oauth2/token', then: { answer: { status: 200, body } } });
    assert.match((await refusal()).words, /posting for you, staying connected/);
    const [last] = world.http.calls.slice(-1);
    assert.match(`${last?.url} ${last?.body.map(String).join('')}`, /oauth2\/revoke token=short/);
  });

  t(
    'an account is not asked for whose reads the operator does not pay, and its consent does not stay alive',
    async () => {
      const { access, refresh } = world.network.state;
      const left = () => [access.size, refresh.size];
      const before = left();
      const none = await refusal({ ...options, monthlyReads: 1 });
      assert.match(none.words, /a few minutes/);
      assert.match(none.operator ?? '', /X_MONTHLY_READS/);
      assert.deepEqual(left(), before);
      assert.ok(!world.network.state.calls.some(({ path }) => path === '/2/users/me'));
      const { outcome } = await finished({ ...options, monthlyReads: 2 });
      assert.equal(outcome.kind, 'accounts');
      const another = await refusal({ ...options, monthlyReads: 3 });
      assert.match(another.operator ?? '', /X_MONTHLY_READS/, 'a person is two reads');
    },
  );

  t('a call that carries a token in its body is secret', async () => {
    const { former } = await connected();
    await refreshTokens(options, former, subject, signal());
    await revokeTokens(options, former, subject, signal());
    const reported = world.http.calls
      .filter(({ isSecret }) => isSecret !== true)
      .map(({ url, body }) => `${url} ${body.map(String).join('')}`)
      .join('\n');
    assert.ok(!reported.includes('token'));
    assert.equal(world.http.calls.filter(({ isSecret }) => isSecret === true).length, 4);
  });
});
