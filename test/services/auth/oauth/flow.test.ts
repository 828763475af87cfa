import assert from 'node:assert/strict';
import * as oauth from 'oauth4webapi';
import type { World } from '#test/support/http.ts';
import {
  type App,
  Browser,
  callback,
  claimsOf,
  historyOf,
  type OAuth,
  oauthOf,
  oauthWorld,
  pkce,
} from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';

const insecure = { [oauth.allowInsecureRequests]: true };

suite('authorization server: a strict client', (t) => {
  let world: World;
  let it: OAuth;
  let server: oauth.AuthorizationServer;
  t.before(async () => {
    world = await oauthWorld();
    it = oauthOf(world);
    const issuer = new URL(world.origin());
    const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
    server = await oauth.processDiscoveryResponse(issuer, found);
  });
  t.after(() => world?.close());

  const registered = async (metadata: oauth.OmitSymbolProperties<Partial<oauth.Client>>): Promise<oauth.Client> => {
    const sent = { client_name: 'Strict', redirect_uris: [callback], ...metadata };
    const answer = await oauth.dynamicClientRegistrationRequest(server, sent as Partial<oauth.Client>, insecure);
    return oauth.processDynamicClientRegistrationResponse(answer);
  };

  const codeFor = async (client: oauth.Client, secret: ReturnType<typeof pkce>, query: Record<string, string>) => {
    const browser = new Browser();
    const uid = await it.begin(browser, it.authorizeUrl(client as unknown as App, secret, query));
    const params = await it.finish(browser, uid, it.consent(uid));
    return oauth.validateAuthResponse(server, client, params, 'a state');
  };

  for (const method of ['none', 'client_secret_basic', 'client_secret_post'] as const) {
    t(`discover, register, authorize, code, token, refresh, revoke: ${method}`, async () => {
      const client = await registered({ token_endpoint_auth_method: method });
      const secret = String(client.client_secret ?? '');
      const auth =
        method === 'none'
          ? oauth.None()
          : method === 'client_secret_basic'
            ? oauth.ClientSecretBasic(secret)
            : oauth.ClientSecretPost(secret);
      const proof = pkce();
      const api = world.deps.baseUrl();
      const params = await codeFor(client, proof, { resource: api, scope: 'posts.read posts.compose clients.read' });
      const codeAnswer = await oauth.authorizationCodeGrantRequest(
        server,
        client,
        auth,
        params,
        callback,
        proof.verifier,
        insecure,
      );
      const tokens = await oauth.processAuthorizationCodeResponse(server, client, codeAnswer);
      // The person left two of the three.
      assert.equal(tokens.scope, 'posts.read posts.compose');
      assert.equal(tokens.expires_in, 900);
      const request = new Request(`${api}/agency`, { headers: { authorization: `Bearer ${tokens.access_token}` } });
      const claims = await oauth.validateJwtAccessToken(server, request, api, insecure);
      const { gid, sub, client_id: app } = claims as unknown as Record<string, string>;
      assert.deepEqual([sub, app, claims.aud], [it.personId, client.client_id, api]);
      assert.deepEqual(await historyOf(world, gid), ['GrantGiven']);
      const [given] = await world.store.readStream(`grant-${gid}`);
      assert.deepEqual(given?.data, {
        clientId: client.client_id,
        clientName: 'Strict',
        personId: it.personId,
        memberId: world.memberId,
        mode: 'test',
        scopes: ['posts.read', 'posts.compose'],
        resource: api,
        expiresAt: given?.data.expiresAt,
      });
      assert.equal(given?.metadata.workspaceId, world.workspaceId);
      const first = tokens.refresh_token ?? '';
      const again = await oauth.refreshTokenGrantRequest(server, client, auth, first, insecure);
      const renewed = await oauth.processRefreshTokenResponse(server, client, again);
      assert.notEqual(renewed.refresh_token, first);
      assert.equal(claimsOf(renewed.access_token).gid, gid);
      const ended = await oauth.revocationRequest(server, client, auth, renewed.refresh_token ?? '', insecure);
      await oauth.processRevocationResponse(ended);
      assert.deepEqual(await historyOf(world, gid), ['GrantGiven', 'GrantRevoked client']);
      const dead = await oauth.refreshTokenGrantRequest(server, client, auth, renewed.refresh_token ?? '', insecure);
      await assert.rejects(oauth.processRefreshTokenResponse(server, client, dead), { error: 'invalid_grant' });
    });
  }

  t('metadata name what is served, on this host, and nothing of OpenID Connect', async () => {
    const issuer = world.origin();
    assert.deepEqual(
      { ...server },
      {
        issuer,
        authorization_endpoint: `${issuer}/oauth/authorize`,
        token_endpoint: `${issuer}/oauth/token`,
        registration_endpoint: `${issuer}/oauth/register`,
        revocation_endpoint: `${issuer}/oauth/revoke`,
        jwks_uri: `${issuer}/.well-known/jwks.json`,
        authorization_response_iss_parameter_supported: true,
        code_challenge_methods_supported: ['S256'],
        grant_types_supported: ['authorization_code', 'refresh_token'],
        response_types_supported: ['code'],
        response_modes_supported: ['query'],
        scopes_supported: server.scopes_supported,
        token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
        revocation_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
      },
    );
    assert.equal(server.scopes_supported?.length, 17);
  });
});
