import assert from 'node:assert/strict';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { SignJWT, UnsecuredJWT } from 'jose';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Role } from '#schemas/common.ts';
import { revokeGrant } from '#services/auth/grants.ts';
import { SigningKeys } from '#services/auth/oauth/keys.ts';
import { contextOf } from '#services/workflows/provision.ts';
import type { World } from '#test/support/http.ts';
import { type App, claimsOf, oauthOf, oauthWorld } from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** Access tokens at the api: what they are, for whom they act, and how soon they lose their power. */

suite('access tokens at the api', (t) => {
  let world: World;
  let app: App;
  t.before(async () => {
    world = await oauthWorld();
    app = await oauthOf(world).register();
  });
  t.after(() => world?.close());

  const tokenOf = async (
    more: { memberId?: string; scopes?: readonly string[]; resource?: string; mode?: 'live' | 'test' } = {},
  ) => {
    const { memberId = world.memberId, scopes = ['agency.read', 'clients.read', 'posts.read', 'posts.compose'] } = more;
    const { resource = world.deps.baseUrl(), mode = 'live' } = more;
    const { access_token: token } = await oauthOf(world).tokensOf(app, {
      query: { scope: scopes.join(' '), ...(resource === '' ? {} : { resource }) },
      result: { memberId, scopes, mode },
    });
    await world.settled();
    return token;
  };
  const by = (token: string) => world.callerWith(token);
  const codeOf = async (token: string): Promise<string> => (await by(token).get('/agency')).body.code ?? 'ok';
  const grantOf = (token: string): string => String(claimsOf(token).gid);

  t('act in the workspace and the mode that the person chose', async () => {
    const [live, test] = [await tokenOf(), await tokenOf({ mode: 'test' })];
    assert.equal((await by(live).get('/agency')).data.mode, 'live');
    assert.equal((await by(test).get('/agency')).data.mode, 'test');
    const made = await world.tester.post('/clients', { name: 'Sandboxed', type: 'brand' });
    await world.settled();
    assert.equal((await by(test).get(`/clients/${made.data.id}`)).status, 200);
    assert.equal((await by(live).get(`/clients/${made.data.id}`)).status, 404);
  });

  t('name the member in events, and the grant beside', async () => {
    const client = (await world.tester.post('/clients', { name: 'Audited', type: 'brand' })).data.id;
    const token = await tokenOf({ mode: 'test', scopes: ['posts.compose', 'posts.read'] });
    const draft = {
      clientId: client,
      content: 'By an app',
      saveDraft: true,
      targets: { mode: 'group', clientId: client },
    };
    const { status, data, text } = await by(token).post('/posts', { ...draft, schedule: { type: 'now' } });
    assert.equal(status, 200, text);
    assert.deepEqual(data.createdBy, { type: 'member', id: world.memberId });
    const [created] = await world.store.readStream(`post-${data.id}`);
    assert.deepEqual(created?.metadata.actor, { type: 'member', id: world.memberId, grantId: grantOf(token) });
  });

  t('are refused for another resource, in words', async () => {
    const token = await tokenOf({ resource: '' });
    const { status, body, headers } = await by(token).get('/agency');
    assert.deepEqual([status, body.code], [401, 'wrong_audience']);
    assert.match(headers.get('www-authenticate') ?? '', /^Bearer error="invalid_token", resource_metadata="/);
  });

  t('are challenged with the document that names the authorization server', async () => {
    const { headers } = await world.anonymous.get('/agency');
    const challenge = headers.get('www-authenticate') ?? '';
    assert.ok(!challenge.includes('error='), challenge);
    const [, url = ''] = /resource_metadata="([^"]+)"/.exec(challenge) ?? [];
    const document = (await (await fetch(url)).json()) as { resource: string; authorization_servers: string[] };
    assert.equal(document.resource, world.deps.baseUrl());
    assert.deepEqual(document.authorization_servers, [world.deps.authUrl()]);
    assert.match(challenge, /scope="agency\.read .*media\.manage"$/);
    const found = await fetch(`${document.authorization_servers[0]}/.well-known/oauth-authorization-server`);
    assert.equal(((await found.json()) as { issuer: string }).issuer, world.deps.authUrl());
  });

  t('lack a scope: 403 says which, with what to ask for; what no app is given needs a key', async () => {
    const token = await tokenOf({ scopes: ['agency.read'] });
    const lacking = await by(token).get('/posts');
    assert.deepEqual([lacking.status, lacking.body.code], [403, 'insufficient_scope']);
    assert.match(
      lacking.headers.get('www-authenticate') ?? '',
      /error="insufficient_scope".*scope="agency\.read posts\.read"/,
    );
    const never = await by(token).get('/webhooks');
    assert.equal(never.body.code, 'insufficient_scope');
    assert.match(String(never.body.detail), /API key or a session/);
    assert.equal(never.headers.get('www-authenticate'), null);
  });

  t('lose their power within a second of the revocation', async () => {
    const token = await tokenOf();
    assert.equal(await codeOf(token), 'ok');
    await revokeGrant(world.deps, grantOf(token), 'person');
    const begun = performance.now();
    await until('the change has its effect', async () => (await codeOf(token)) === 'token_revoked');
    assert.ok(performance.now() - begun < 1_500, `${performance.now() - begun} ms`);
  });

  t('do what the role of the member carries now, and nothing once the member has left', async () => {
    const memberId = await world.memberOf(world.workspaceId, 'manager');
    await world.settled();
    const token = await tokenOf({ memberId });
    const { data: client } = await world.owner.post('/clients', { name: 'Roles', type: 'brand' });
    const post = () =>
      by(token).post('/posts/preview', {
        clientId: client.id,
        content: 'x',
        targets: { mode: 'group', clientId: client.id },
        schedule: { type: 'now' },
      });
    assert.notEqual((await post()).status, 403);
    const command = (
      what: { type: 'ChangeRole'; memberId: string; role: Role } | { type: 'RemoveMember'; memberId: string },
    ) => execute(world.store, workspace, world.workspaceId, what, contextOf(world.operator, world.workspaceId));
    await command({ type: 'ChangeRole', memberId, role: 'viewer' });
    await until('the change has its effect', async () => (await post()).body.code === 'role_required');
    await command({ type: 'RemoveMember', memberId });
    await until('the change has its effect', async () => (await codeOf(token)) === 'token_revoked');
  });

  t('expire', async () => {
    const token = await tokenOf();
    world.clock.shiftMs += 16 * 60_000;
    assert.equal(await codeOf(token), 'token_expired');
    world.clock.shiftMs -= 16 * 60_000;
  });

  t('are ours alone: forged, altered and borrowed ones are unknown', async () => {
    const token = await tokenOf();
    const claims = claimsOf(token);
    const [own] = await new SigningKeys(world.pool, world.secrets).current();
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const [head = '', , mac = ''] = token.split('.');
    const other = Buffer.from(JSON.stringify({ ...claims, scope: 'clients.manage' })).toString('base64url');
    const sign = (payload: object, header: object = {}) =>
      new SignJWT({ ...payload })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: own?.kid ?? '', ...header })
        .sign(privateKey);
    const withOwnKey = async (payload: object, header: object) => {
      const { importJWK } = await import('jose');
      const key = await importJWK({ ...own, kty: 'EC' } as never, 'ES256');
      return new SignJWT({ ...payload })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: own?.kid ?? '', ...header })
        .sign(key);
    };
    const wrong = {
      signature: `${token.slice(0, -4)}AAAA`,
      payload: `${head}.${other}.${mac}`,
      'no signature': new UnsecuredJWT({ ...claims }).encode(),
      'another key': await sign(claims),
      'an unknown key': await sign(claims, { kid: 'unknown' }),
      'another type': await withOwnKey(claims, { typ: 'JWT' }),
      'another issuer': await withOwnKey({ ...claims, iss: 'https://evil.example' }, {}),
      'no grant': await withOwnKey({ ...claims, gid: undefined }, {}),
      'an unknown grant': await withOwnKey({ ...claims, gid: randomUUID() }, {}),
      'another person': await withOwnKey({ ...claims, sub: randomUUID() }, {}),
      'another app': await withOwnKey({ ...claims, client_id: 'other' }, {}),
    };
    for (const [what, forged] of Object.entries(wrong)) assert.equal(await codeOf(forged), 'invalid_token', what);
    const wide = await withOwnKey({ ...claims, scope: 'agency.read clients.manage webhooks.manage' }, {});
    assert.equal((await by(wide).post('/clients', { name: 'No', type: 'brand' })).body.code, 'insufficient_scope');
  });
});
