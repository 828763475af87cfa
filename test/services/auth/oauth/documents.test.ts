import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { pendingConsent } from '#services/auth/pending-consent.ts';
import { certificateFor, trust } from '#test/support/egress-certificate.ts';
import type { World } from '#test/support/http.ts';
import {
  Browser,
  callback,
  claimsOf,
  historyOf,
  many,
  type OAuth,
  oauthOf,
  oauthWorld,
  pkce,
  postForm,
} from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const certificate = certificateFor(['app.example.com', 'private.example.com']);
trust(certificate);
const publicAddress = '93.184.215.14';

suite('authorization server: clients by metadata document', (t) => {
  let world: World;
  let it: OAuth;
  const asked: string[] = [];
  const documents = new Map<
    string,
    { readonly status?: number; readonly body: string; readonly headers?: Record<string, string> }
  >();
  const dialled: string[] = [];
  const server = createServer(certificate, (request, response) => {
    asked.push(request.url ?? '');
    if (request.url === '/drip.json') {
      response.writeHead(200, { 'content-type': 'application/json' });
      const drip = setInterval(() => response.write(' '), 50);
      response.once('close', () => clearInterval(drip));
      return;
    }
    const { status = 200, body, headers = {} } = documents.get(request.url ?? '') ?? { status: 404, body: '' };
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  });
  t.before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const guard = new EgressGuard({
      privateTargets: [],
      ownHosts: () => ['own.example.com'],
      resolve: async (name) => (name === 'private.example.com' ? ['10.0.0.7'] : [publicAddress]),
    });
    world = await oauthWorld({
      egress: () => guard,
      documents: {
        rate: many,
        // The guard has judged the address; the server behind it is ours.
        connectTo: ({ addresses }) => {
          dialled.push(...addresses);
          return { addresses: ['127.0.0.1'], port };
        },
      },
    });
    it = oauthOf(world);
  });
  t.after(async () => {
    server.close();
    server.closeAllConnections();
    await world?.close();
  });

  const idOf = (path: string): string => `https://app.example.com${path}`;
  const serve = (path: string, more: Readonly<Record<string, unknown>> = {}): string => {
    const document = { client_id: idOf(path), client_name: 'By document', redirect_uris: [callback], ...more };
    documents.set(path, { body: JSON.stringify({ token_endpoint_auth_method: 'none', ...document }) });
    return idOf(path);
  };
  const refused = async (client_id: string): Promise<void> => {
    const { status, location, text } = await new Browser().open(it.authorizeUrl({ client_id }, pkce()));
    assert.ok(status === 400 || status === 401, `${client_id}: ${status} ${text}`);
    assert.equal(location, '');
  };

  t('a client is what its document says, and the consent shows the host that vouches for it', async () => {
    const client_id = serve('/client.json');
    const browser = new Browser();
    const secret = pkce();
    const uid = await it.begin(browser, it.authorizeUrl({ client_id }, secret));
    const pending = await pendingConsent(world.pool, uid, world.deps.clock());
    assert.deepEqual(
      [pending?.clientName, pending?.documentHost, pending?.clientId],
      ['By document', 'app.example.com', client_id],
    );
    const code = (await it.finish(browser, uid, it.consent(uid))).get('code') ?? '';
    const { json, status, text } = await it.exchange({ client_id }, code, secret);
    assert.equal(status, 200, text);
    const { gid, client_id: named } = claimsOf(String(json.access_token));
    assert.equal(named, client_id);
    const [given] = await world.store.readStream(`grant-${gid}`);
    assert.deepEqual([given?.data.clientId, given?.data.clientName], [client_id, 'By document']);
    assert.equal((await it.refresh({ client_id }, String(json.refresh_token))).status, 200);
    // Fetched once, from the judged address, and kept.
    assert.deepEqual(
      asked.filter((path) => path === '/client.json'),
      ['/client.json'],
    );
    assert.deepEqual(new Set(dialled), new Set([publicAddress]));
    assert.deepEqual(await historyOf(world, gid), ['GrantGiven']);
    const { rows } = await world.pool.query('select 1 from auth.oauth_clients');
    assert.equal(rows.length, 0);
  });

  t('our policy for clients holds for documents too', async () => {
    await refused(serve('/evil-redirect.json', { redirect_uris: ['http://evil.example.com/cb'] }));
    await refused(serve('/script.json', { redirect_uris: ['javascript:alert(1)'] }));
    await refused(serve('/secret.json', { token_endpoint_auth_method: 'client_secret_post' }));
    await refused(serve('/has-secret.json', { client_secret: 'x'.repeat(40) }));
    await refused(serve('/other-id.json', { client_id: idOf('/client.json') }));
  });

  t('an address that is not public, ours, or no place of a document is never called', async () => {
    dialled.length = 0;
    for (const id of [
      'https://private.example.com/client.json',
      'https://10.0.0.7/client.json',
      'https://127.0.0.1/client.json',
      'https://[::1]/client.json',
      'https://169.254.169.254/latest/meta-data',
      'https://localhost/client.json',
      'https://intranet/client.json',
      'https://own.example.com/client.json',
      'https://app.example.com:8443/client.json',
      `https://${publicAddress}/client.json`,
      'https://app.example.com/',
      'https://app.example.com',
      'https://app.example.com/client.json?x=1',
      'https://user@app.example.com/client.json',
      'https://app.example.com/a/../client.json',
      'http://app.example.com/client.json',
      `https://app.example.com/${'x'.repeat(600)}`,
    ]) {
      await refused(id);
    }
    assert.deepEqual(dialled, []);
  });

  t(
    'a document that is broken, too long, moved or missing is no client, and is not asked for again at once',
    async () => {
      documents.set('/text.json', { body: 'no json' });
      documents.set('/long.json', { body: JSON.stringify({ x: 'x'.repeat(40_000) }) });
      documents.set('/middle.json', { body: JSON.stringify({ x: 'x'.repeat(6_000) }) });
      documents.set('/moved.json', { status: 302, body: '', headers: { location: 'https://10.0.0.7/' } });
      for (const path of ['/text.json', '/long.json', '/middle.json', '/moved.json', '/missing.json'])
        await refused(idOf(path));
      const before = asked.length;
      for (const path of ['/long.json', '/moved.json', '/missing.json']) await refused(idOf(path));
      assert.equal(asked.length, before);
      assert.ok(!dialled.includes('10.0.0.7'));
    },
  );

  t('a document that drips is given up, and its connection is closed', async () => {
    const began = performance.now();
    await refused(idOf('/drip.json'));
    const took = performance.now() - began;
    assert.ok(took < 8_000, `${took} ms`);
    assert.deepEqual(
      asked.filter((path) => path === '/drip.json'),
      ['/drip.json'],
    );
    await until('it is closed', async () => {
      const open = await new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)));
      return open === 0;
    });
  });

  t('keys that an app does not serve are not asked for again at once', async () => {
    const client_id = serve('/keyless.json', {
      token_endpoint_auth_method: 'private_key_jwt',
      jwks_uri: idOf('/no-keys.json'),
    });
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const audience = { aud: world.origin(), exp: Math.floor(Date.now() / 1_000) + 60 };
    const claims = { iss: client_id, sub: client_id, jti: 'one', ...audience };
    const assertion = `${part({ alg: 'ES256', kid: 'one' })}.${part(claims)}.${part({})}`;
    const spend = () =>
      postForm(`${world.origin()}/oauth/token`, {
        ...{ grant_type: 'authorization_code', code: 'x', redirect_uri: callback, code_verifier: 'x'.repeat(43) },
        client_id,
        client_assertion: assertion,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      });
    for (let at = 0; at < 4; at += 1) assert.equal((await spend()).status, 401);
    assert.deepEqual(
      asked.filter((path) => path === '/no-keys.json'),
      ['/no-keys.json'],
    );
  });

  t('its metadata name the feature', async () => {
    const found = await fetch(`${world.origin()}/.well-known/oauth-authorization-server`);
    const metadata = (await found.json()) as Record<string, unknown>;
    assert.equal(metadata.client_id_metadata_document_supported, true);
    assert.ok((metadata.token_endpoint_auth_methods_supported as string[]).includes('private_key_jwt'));
  });
});
