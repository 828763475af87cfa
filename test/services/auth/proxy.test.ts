import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as plainRequest } from 'node:http';
import { createServer, request as secureRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { readTrustedProxies } from '#runtime/identity/proxies.ts';
import { listSessions } from '#services/auth/people/sessions.ts';
import { consolePart } from '#services/console/part.ts';
import { mcpPart } from '#services/mcp/part.ts';
import { certificateFor } from '#test/support/egress-certificate.ts';
import type { World } from '#test/support/http.ts';
import { callback, oauthWorld, pkce } from '#test/support/oauth.ts';
import { peopleDepsOf, personOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';

/** Everything behind one reverse proxy that speaks TLS, as an operator sets it up: four host names, one process. */

const hosts = ['api', 'auth', 'mcp', 'console'].map((name) => `${name}.postline.test`);
const [api = '', auth = '', mcp = '', site = ''] = hosts.map((host) => `https://${host}`);
/** What the proxy says of its callers, whatever they say themselves. */
const caller = '198.51.100.7';

interface Shown {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
  readonly location: string;
}

suite('behind a reverse proxy', (t) => {
  let world: World;
  let port = 0;
  const certificate = certificateFor(hosts);
  const proxy = createServer(certificate, (asked, answer) => {
    const { hostname, port: inner } = new URL(world.origin());
    const before = asked.headers['x-forwarded-for'];
    const forwarded = {
      'x-forwarded-for': before === undefined ? caller : `${before}, ${caller}`,
      'x-forwarded-proto': 'https',
      'x-forwarded-host': asked.headers.host ?? '',
    };
    const { method, url: path } = asked;
    const headers = { ...asked.headers, ...forwarded };
    const sent = plainRequest({ hostname, port: inner, path, headers, ...(method === undefined ? {} : { method }) });
    sent.on('response', (found) => {
      answer.writeHead(found.statusCode ?? 502, found.rawHeaders);
      found.pipe(answer);
    });
    asked.pipe(sent);
  });

  t.before(async () => {
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    port = (proxy.address() as AddressInfo).port;
    world = await oauthWorld(
      {},
      {
        parts: [mcpPart(), consolePart()],
        deps: {
          trustedProxies: readTrustedProxies('127.0.0.1'),
          baseUrl: () => `${api}/v1`,
          authUrl: () => auth,
          mcpUrl: () => `${mcp}/mcp`,
          consoleUrl: () => site,
        },
      },
    );
  });
  t.after(async () => {
    proxy.close();
    proxy.closeAllConnections();
    await world?.close();
  });

  /** A browser's cookies by host. It refuses what a browser refuses of a name with a prefix. */
  const jar = new Map<string, { readonly value: string; readonly path: string }>();
  const received: string[] = [];
  const keep = (host: string, line: string): void => {
    received.push(line);
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
    const has = (name: string) => attributes.find((one) => one.toLowerCase().split('=')[0] === name);
    const name = pair.slice(0, pair.indexOf('='));
    const path = has('path')?.slice(5) ?? '/';
    assert.ok(has('secure') !== undefined && has('httponly') !== undefined, line);
    assert.match(name, /^__(?:Host|Secure)-/);
    if (name.startsWith('__Host-')) assert.deepEqual([path, has('domain')], ['/', undefined], line);
    if (has('max-age') === 'Max-Age=0' || /expires=Thu, 01 Jan 1970/i.test(line)) jar.delete(`${host} ${name}`);
    else jar.set(`${host} ${name}`, { value: pair.slice(name.length + 1), path });
  };

  const ask = async (
    address: string,
    {
      method = 'GET',
      body = '',
      headers = {},
    }: { readonly method?: string; readonly body?: string; readonly headers?: Readonly<Record<string, string>> } = {},
  ): Promise<Shown> => {
    const { hostname, pathname, search } = new URL(address);
    const cookie = [...jar]
      .filter(([key, { path }]) => key.startsWith(`${hostname} `) && pathname.startsWith(path))
      .map(([key, { value }]) => `${key.split(' ')[1]}=${value}`);
    const sent = secureRequest({
      ...{ host: '127.0.0.1', port, servername: hostname, ca: certificate.cert, agent: false },
      ...{ method, path: `${pathname}${search}` },
      headers: { host: hostname, ...(cookie.length === 0 ? {} : { cookie: cookie.join('; ') }), ...headers },
    });
    sent.end(body);
    const [found] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of found) chunks.push(chunk as Buffer);
    for (const line of found.headers['set-cookie'] ?? []) keep(hostname, line);
    const text = Buffer.concat(chunks).toString('utf8');
    return { status: found.statusCode ?? 0, headers: found.headers, text, location: found.headers.location ?? '' };
  };
  const post = (address: string, form: Readonly<Record<string, string>> | URLSearchParams, more = {}): Promise<Shown> =>
    ask(address, {
      method: 'POST',
      body: new URLSearchParams(form).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...more },
    });
  const tokenIn = ({ text }: Shown): string => /name="token" value="([^"]*)"/.exec(text)?.[1] ?? '';

  t('a person signs in and an app gets a token, calls, refreshes and is revoked', async () => {
    const { personId, email, password } = await personOf(world);
    const form = await ask(`${site}/sign-in`, { headers: { 'x-forwarded-for': '203.0.113.66' } });
    assert.equal(form.status, 200, form.text);
    assert.match(String(form.headers['strict-transport-security']), /max-age=/);
    const typed = { token: tokenIn(form), email, password };
    const stranger = await post(`${site}/sign-in`, typed, { origin: 'https://evil.example' });
    assert.equal(stranger.status, 403);
    const own = { origin: site, 'sec-fetch-site': 'same-origin', 'x-forwarded-for': '203.0.113.66' };
    const entered = await post(`${site}/sign-in`, typed, own);
    assert.deepEqual([entered.status, entered.location], [303, '/console'], entered.text);
    assert.ok(jar.has(`console.postline.test __Host-session`));
    const [session] = await listSessions(peopleDepsOf(world), personId);
    assert.equal(session?.address, caller, 'a caller says nothing of its own address');

    const metadata = JSON.parse((await ask(`${auth}/.well-known/oauth-authorization-server`)).text);
    for (const [name, value] of Object.entries(metadata)) {
      if (/_endpoint$|_uri$|^issuer$/.test(name)) assert.ok(String(value).startsWith(auth), `${name}: ${value}`);
    }
    const registered = await ask(metadata.registration_endpoint, {
      method: 'POST',
      body: JSON.stringify({ redirect_uris: [callback], token_endpoint_auth_method: 'none' }),
      headers: { 'content-type': 'application/json' },
    });
    const { client_id, registration_client_uri } = JSON.parse(registered.text);
    assert.ok(registration_client_uri.startsWith(`${auth}/oauth/register/`));

    const secret = pkce();
    const query = new URLSearchParams({
      ...{ response_type: 'code', client_id, redirect_uri: callback, state: 's', resource: `${api}/v1` },
      ...{ code_challenge: secret.challenge, code_challenge_method: 'S256' },
    });
    const asked = await ask(`${metadata.authorization_endpoint}?${query}`);
    const waiting = new URL(asked.location, auth);
    assert.equal(waiting.origin, auth);
    const toConsole = await ask(waiting.href);
    assert.ok(toConsole.location.startsWith(`${site}/consent/`), toConsole.text);
    const consent = await ask(toConsole.location);
    assert.equal(consent.status, 200, consent.text);
    const given = new URLSearchParams({ token: tokenIn(consent), decision: 'allow', mode: 'test' });
    given.set('workspace', world.workspaceId);
    given.append('scope', 'agency.read');
    const back = await post(toConsole.location, given, own);
    assert.ok(back.location.startsWith(`${auth}/oauth/interaction/`), back.text);
    const resumed = await ask(back.location);
    assert.ok(resumed.location.startsWith(`${auth}/oauth/authorize/`), resumed.text);
    const toApp = new URL((await ask(resumed.location)).location);
    assert.deepEqual([toApp.origin, toApp.searchParams.get('iss')], [new URL(callback).origin, auth]);

    const spend = async (more: Readonly<Record<string, string>>) =>
      JSON.parse((await post(metadata.token_endpoint, { client_id, ...more })).text);
    const code = toApp.searchParams.get('code') ?? '';
    const grant = { grant_type: 'authorization_code', code, redirect_uri: callback, code_verifier: secret.verifier };
    const first = await spend(grant);
    const call = (token: string) => ask(`${api}/v1/agency`, { headers: { authorization: `Bearer ${token}` } });
    await world.settled();
    assert.equal((await call(first.access_token)).status, 200);
    const second = await spend({ grant_type: 'refresh_token', refresh_token: first.refresh_token });
    assert.equal((await call(second.access_token)).status, 200);
    assert.equal((await post(metadata.revocation_endpoint, { token: second.refresh_token, client_id })).status, 200);
    assert.equal(
      (await spend({ grant_type: 'refresh_token', refresh_token: second.refresh_token })).error,
      'invalid_grant',
    );
    const prefixes = new Set(received.map((line) => line.slice(0, line.indexOf('-'))));
    assert.deepEqual([...prefixes].sort(), ['__Host', '__Secure']);
  });

  t('the api and the MCP server say where their tokens come from, at the addresses of the proxy', async () => {
    const refused = await ask(`${api}/v1/agency`);
    const document = /resource_metadata="([^"]+)"/.exec(String(refused.headers['www-authenticate']))?.[1] ?? '';
    assert.ok(document.startsWith(api), document);
    const { resource, authorization_servers: servers } = JSON.parse((await ask(document)).text);
    assert.deepEqual([resource, servers], [`${api}/v1`, [auth]]);
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
    const asMcp = (headers: Readonly<Record<string, string>>) =>
      ask(`${mcp}/mcp`, {
        method: 'POST',
        body: JSON.stringify(message),
        headers: {
          ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          ...headers,
        },
      });
    const challenge = String((await asMcp({})).headers['www-authenticate']);
    assert.match(challenge, /resource_metadata="https:\/\/mcp\.postline\.test\/\.well-known\//);
    const listed = await asMcp({ authorization: `Bearer ${world.owner.token}` });
    assert.equal(listed.status, 200, listed.text);
    assert.match(listed.text, /preview_post/);
    assert.equal((await ask(`${site}/mcp`, { method: 'POST' })).status >= 400, true);
  });
});
