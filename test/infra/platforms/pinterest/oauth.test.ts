/** Consent at Pinterest: the page, the code, the tokens and their end. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { Credential } from '#contracts/ports/credentials.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { allScopes, problems } from '#test/support/networks/pinterest/index.ts';
import { heldFiles, type PinterestWorld, pinterestWorld } from '#test/support/networks/pinterest/world.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

const within = () => AbortSignal.timeout(5_000);
const dayMs = 86_400_000;
const tokenRoute = 'POST /v5/oauth/token';

suite('oauth of pinterest', (t) => {
  let world: PinterestWorld;
  t.before.each(async () => {
    world = await pinterestWorld();
  });
  t.after.each(() => world.network.close());

  const redirectUri = () => world.network.state.app.redirectUri;
  /** What the connector makes of Pinterest's answer to a new person's consent. */
  const finished = async (change: (answer: Map<string, string>) => void = () => {}) => {
    const asked = { username: null, redirectUri: redirectUri(), state: 'the state' };
    const begun = await world.connector.begin(asked, within());
    assert.ok(begun.kind === 'begun');
    const url = new URL(begun.url);
    assert.deepEqual(url.searchParams.get('scope')?.split(','), allScopes);
    const person = world.network.person({ businessName: 'Acme' });
    url.searchParams.set('as', person.id);
    const page = await fetch(url, { redirect: 'manual' });
    assert.equal(page.status, 302, await page.text());
    const answer = new Map(new URL(page.headers.get('location') ?? '').searchParams);
    assert.equal(answer.get('state'), 'the state');
    change(answer);
    const given = { answer, kept: begun.kept, redirectUri: redirectUri(), workspaceId: randomUUID() };
    return { person, outcome: await world.connector.finish(given, within()) };
  };
  const connected = async () => {
    const { person, outcome } = await finished();
    assert.ok(outcome.kind === 'accounts', JSON.stringify(outcome));
    const [account, ...others] = outcome.accounts;
    assert.ok(account !== undefined && others.length === 0);
    return { person, account, former: { ...account.credential, version: 1 } satisfies Credential };
  };
  const refresh = (former: Credential) => {
    assert.ok(world.refresher !== undefined);
    return world.refresher(former, within(), { accountId: randomUUID() } as Parameters<typeof world.refresher>[2]);
  };
  const words = async (change?: Parameters<typeof finished>[0]) => {
    const { outcome } = await finished(change);
    assert.ok(outcome.kind === 'refused', outcome.kind);
    return outcome;
  };

  t('a consent gives tokens and says whose they are; each is renewed well before its end', async () => {
    const { person, account } = await connected();
    const { profile, credential } = account;
    assert.deepEqual(
      [profile.externalId, profile.username, profile.displayName, profile.scopes],
      [person.id, person.username, 'Acme', allScopes],
    );
    const { accessToken, accessUntil, refreshToken } = credential.secret;
    assert.ok(world.network.state.access.has(String(accessToken)));
    assert.ok(world.network.state.refresh.has(String(refreshToken)));
    const now = world.network.state.now();
    const [access, ends] = [Date.parse(String(accessUntil)) - now, Date.parse(credential.expiresAt ?? '') - now];
    assert.ok(access > 29.9 * dayMs && access <= 30 * dayMs);
    assert.ok(ends > 59.9 * dayMs && ends <= 60 * dayMs);
    // One that nobody uses is refreshed at an age of 25 days, while its access token still works.
    const age = ends - (world.refreshWindowMs ?? 0);
    assert.ok(age > 24.9 * dayMs && age <= 25 * dayMs);
  });

  t('an app that Pinterest made before September 2025 asks for a refresh token without a last day', async () => {
    await connected();
    const exchange = world.http.calls.find(({ url }) => url.endsWith('/oauth/token'));
    assert.match(String(exchange?.body.map(String).join('')), /continuous_refresh=true/);
    assert.match(exchange?.headers.authorization ?? '', /^Basic /);
    assert.equal(exchange?.isSecret, true);
  });

  t('a refresh token works once, and each refresh begins its sixty days anew', async () => {
    const { former } = await connected();
    world.network.state.advance(25 * dayMs);
    const next = await refresh(former);
    assert.ok(next.kind === 'refreshed', JSON.stringify(next));
    assert.notEqual(next.credential.secret.refreshToken, former.secret.refreshToken);
    const ends = Date.parse(next.credential.expiresAt ?? '') - world.network.state.now();
    assert.ok(ends > 59.9 * dayMs);
    assert.deepEqual(await refresh(former), { kind: 'refused', reason: 'The authorization grant is invalid' });
  });

  t('what is about our app, or passes, ends no account', async () => {
    const { former } = await connected();
    for (const [answer, kind] of [
      [problems.unauthorized, 'unavailable'],
      [problems.too_many_requests, 'unavailable'],
      [problems.internal, 'unavailable'],
      [problems.not_permitted, 'unavailable'],
      [{ status: 200, body: {} }, 'unavailable'],
      // Mistakes of ours, which a new consent does not mend.
      ...["Invalid request: 'refresh_token' is a required property", 'refresh_token must be a string'].map(
        (message) => [{ status: 400, body: { code: 1, message } }, 'unavailable'] as const,
      ),
      [{ status: 401, body: { code: 2, message: 'Missing refresh_token or client credentials' } }, 'unavailable'],
      [{ status: 400, body: { code: 1, message: 'legacy refresh tokens are not supported here' } }, 'unavailable'],
      [{ status: 400, body: { code: 1, message: 'Invalid refresh token.' } }, 'refused'],
      [{ status: 401, body: { code: 1, message: 'The refresh_token has expired' } }, 'refused'],
      [{ status: 400, body: { code: 283, message: 'The authorization grant is invalid' } }, 'refused'],
    ] as const) {
      world.network.script({ route: tokenRoute, then: { answer } });
      assert.equal((await refresh(former)).kind, kind, JSON.stringify(answer));
    }
    assert.equal((await refresh(former)).kind, 'refreshed');
    assert.equal((await refresh({ ...former, secret: { accessToken: 'a' } })).kind, 'refused');
  });

  t('a refresh whose answer was lost says that the pair may be gone', async () => {
    const { former } = await connected();
    world.network.script({ route: tokenRoute, then: 'drop_after' });
    const lost = await refresh(former);
    assert.ok(lost.kind === 'unavailable' && lost.isSilent === true);
    assert.equal((await refresh(former)).kind, 'refused');
  });

  t('a disconnect asks Pinterest, which takes back tokens of system users alone, and is done', async () => {
    const { former } = await connected();
    const revoke = () => world.revoker?.(former, randomUUID(), within());
    assert.equal(await revoke(), 'revoked');
    const asked = world.network.state.calls.filter(({ path }) => path.endsWith('/revoke'));
    assert.deepEqual(
      asked.map(({ status }) => status),
      [403, 403],
    );
    world.network.script({ route: 'POST /v5/oauth/token/revoke', then: 'drop_before' });
    assert.equal(await revoke(), 'unavailable');
    world.network.script({
      route: 'POST /v5/oauth/token/revoke',
      times: 2,
      then: { answer: { status: 200, body: '' } },
    });
    assert.equal(await revoke(), 'revoked');
  });

  t('a guest is told why, in words; a client that Pinterest refuses is told to the operator', async () => {
    assert.match((await words((answer) => answer.set('code', 'another'))).words, /Start again/);
    const denied = (answer: Map<string, string>) => {
      answer.delete('code');
      answer.set('error', 'access_denied');
    };
    assert.match((await words(denied)).words, /did not allow/);
    world.network.script({ route: tokenRoute, then: { answer: problems.unauthorized } });
    const ofClient = await words();
    assert.match(ofClient.words, /a few minutes/);
    assert.match(ofClient.operator ?? '', /Pinterest refuses our app: 401: Authentication failed\./);
    world.network.script({ route: 'GET /v5/user_account', then: { answer: problems.unavailable } });
    assert.match((await words()).words, /a few minutes/);
    const scope = 'user_accounts:read,boards:read,pins:read';
    const body = {
      access_token: 'pina_x',
      refresh_token: 'pinr_x',
      token_type: 'bearer',
      expires_in: 2_592_000,
      scope,
    };
    world.network.script({ route: tokenRoute, then: { answer: { status: 200, body } } });
    assert.match((await words()).words, /no permission for adding to your boards, posting for you/);
  });
});

suite('tokens of pinterest that rotate', { timeoutMs: 60_000 }, (t) => {
  t('failure 25: two processes whose token ends at once refresh it once, and the consent lives on', async () => {
    const { url } = await preparedDatabase();
    const secrets = new Secrets(`v1:${randomBytes(32).toString('base64')}`);
    const pools = [openPool({ url, max: 4 }), openPool({ url, max: 4 })];
    const stores = pools.map(
      (pool) => new PostgresCredentials({ pool, keys: new PostgresDataKeys({ pool, secrets }) }),
    );
    const world = await pinterestWorld();
    const files = heldFiles();
    try {
      const account = await world.account();
      const kept = await world.credentials.read(account.id);
      const owner = { accountId: account.id, workspaceId: account.workspaceId, clientId: randomUUID() };
      assert.ok(kept !== null);
      const expiresAt = new Date(Date.now() + 60 * dayMs).toISOString();
      await stores[0]?.keep({ ...owner, platform: 'pinterest' }, { secret: kept.secret, expiresAt });
      const adapters = stores.map((credentials) => world.another({ credentials }).adapter);
      for (let round = 1; round <= 3; round += 1) {
        // All access tokens end: by their time, or since Pinterest refuses them.
        if (round === 2) world.network.state.access.clear();
        else world.network.state.advance(30 * dayMs - 1_000);
        const outcomes = await Promise.all(
          adapters.map((by, at) =>
            world.publish(world.request(account, { content: `${round} ${at}`, media: [files.picture()] }), by),
          ),
        );
        for (const { outcome } of outcomes) assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
        const refreshes = world.network.state.calls.filter(({ path }) => path === '/v5/oauth/token');
        assert.deepEqual([refreshes.length, world.network.state.refresh.size], [round, 1]);
      }
      assert.equal(world.network.state.pins.length, 6);
    } finally {
      files.remove();
      world.network.close();
      await Promise.all(pools.map((pool) => pool.end()));
    }
  });
});
