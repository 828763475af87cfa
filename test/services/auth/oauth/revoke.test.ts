import assert from 'node:assert/strict';
import type { World } from '#test/support/http.ts';
import {
  type App,
  claimsOf,
  get,
  historyOf,
  type OAuth,
  oauthOf,
  oauthWorld,
  postForm,
  sendJson,
  type Tokens,
} from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';

suite('authorization server: revocation', (t) => {
  let world: World;
  let it: OAuth;
  let app: App;
  let secretApp: App;
  t.before(async () => {
    world = await oauthWorld();
    it = oauthOf(world);
    app = await it.register();
    secretApp = await it.register({ token_endpoint_auth_method: 'client_secret_post' });
  });
  t.after(() => world?.close());

  const url = (): string => `${world.origin()}/oauth/revoke`;
  const basic = ({ client_id, client_secret = '' }: App) => ({
    authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
  });
  const isAlive = async ({ access_token }: Tokens): Promise<boolean> =>
    (await historyOf(world, claimsOf(access_token).gid)).length === 1;
  const ok = async (form: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}) => {
    const { status, text } = await postForm(url(), form, headers);
    assert.deepEqual([status, text], [200, ''], JSON.stringify(form));
  };
  const tokensOf = (of: App): Promise<Tokens> =>
    of.client_secret === undefined ? it.tokensOf(of) : secretTokens(of, of.client_secret);
  const secretTokens = async (of: App, client_secret: string): Promise<Tokens> => {
    const { pkce } = await import('#test/support/oauth.ts');
    const proof = pkce();
    const code = await it.codeOf(of, proof);
    const { json, status, text } = await it.exchange(of, code, proof, { client_secret });
    assert.equal(status, 200, text);
    return json as unknown as Tokens;
  };

  t('ends the family: refresh token, rotated-out refresh token, with each way of naming the client', async () => {
    for (const [of, form, headers] of [
      [app, { client_id: app.client_id }, {}],
      [app, {}, {}],
      [secretApp, { client_id: secretApp.client_id, client_secret: secretApp.client_secret ?? '' }, {}],
      [secretApp, {}, basic(secretApp)],
    ] as const) {
      const tokens = await tokensOf(of);
      await ok({ token: tokens.refresh_token, token_type_hint: 'access_token', ...form }, headers);
      assert.deepEqual(await historyOf(world, claimsOf(tokens.access_token).gid), [
        'GrantGiven',
        'GrantRevoked client',
      ]);
    }
    const first = await it.tokensOf(app);
    await it.refresh(app, first.refresh_token);
    await ok({ token: first.refresh_token, client_id: app.client_id });
    assert.equal(await isAlive(first), false, 'the first token of the family, which was spent');
  });

  t('answers 200 to everything else, and revokes nothing', async () => {
    const tokens = await it.tokensOf(app);
    const kept = await tokensOf(secretApp);
    const other = await it.register();
    const { client_id } = app;
    for (const form of [
      {},
      { token: '' },
      { token: 'unknown' },
      { token: 'unknown', client_id },
      { token: tokens.access_token, client_id },
      { token: tokens.access_token },
      { token: tokens.refresh_token, client_id: other.client_id },
      { token: tokens.refresh_token, client_id: 'gone' },
      { token: kept.refresh_token },
      { token: kept.refresh_token, client_id: secretApp.client_id },
      { token: kept.refresh_token, client_id: secretApp.client_id, client_secret: 'wrong' },
      { token: 'x'.repeat(5_000), client_id },
      { token: '\0', client_id: '\0' },
      { client_id },
    ]) {
      await ok(form as Record<string, string>);
    }
    await ok({ token: tokens.refresh_token }, { authorization: 'Basic %%%' });
    await ok({ token: kept.refresh_token }, basic({ ...secretApp, client_secret: 'wrong' }));
    const twice = new URLSearchParams([
      ['token', tokens.refresh_token],
      ['token', kept.refresh_token],
      ['client_id', client_id],
    ]);
    assert.equal((await postForm(url(), twice)).status, 200);
    for (const body of [{ token: tokens.refresh_token, client_id }, 'no json', '']) {
      assert.equal((await sendJson('POST', url(), body)).status, 200);
    }
    const long = await postForm(url(), { token: 'x'.repeat(40_000), client_id });
    assert.equal(long.status, 200);
    assert.deepEqual([await isAlive(tokens), await isAlive(kept)], [true, true]);
  });

  t('is a POST: every other method is not there', async () => {
    assert.equal((await get(url())).status, 404);
    for (const method of ['PUT', 'DELETE', 'PATCH']) assert.equal((await sendJson(method, url(), {})).status, 404);
  });

  t('a page in a browser may call it, and the token endpoint, with any client', async () => {
    const tokens = await it.tokensOf(app);
    const headers = { origin: 'https://page.example' };
    const ended = await postForm(url(), { token: tokens.refresh_token, client_id: app.client_id }, headers);
    assert.equal(ended.headers.get('access-control-allow-origin'), 'https://page.example');
    assert.equal(ended.headers.get('access-control-allow-credentials'), null);
    const form = { grant_type: 'refresh_token', refresh_token: 'x', client_id: app.client_id };
    const refused = await postForm(`${world.origin()}/oauth/token`, form, headers);
    assert.deepEqual(
      [refused.json.error, refused.headers.get('access-control-allow-origin')],
      ['invalid_grant', 'https://page.example'],
    );
  });

  t('a fault of ours is no success', async () => {
    const tokens = await it.tokensOf(app);
    await world.pool.query('alter table auth.oauth_artifacts rename to away');
    try {
      const { status } = await postForm(url(), { token: tokens.refresh_token, client_id: app.client_id });
      assert.ok(status >= 500, String(status));
    } finally {
      await world.pool.query('alter table auth.away rename to oauth_artifacts');
    }
    await ok({ token: tokens.refresh_token, client_id: app.client_id });
    assert.equal(await isAlive(tokens), false);
  });
});
