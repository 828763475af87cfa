/**
 * A newcomer, an app of somebody else and two agents at a service that was just started: each begins with an address and
 * nothing else. A separate process, a real browser, and clients that others have written.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { UnauthorizedError as OldUnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as oauth from 'oauth4webapi';
import pg from 'pg';
import type { Browser, Page } from 'playwright-core';
import { AppMemory, type Callback, consent, openCallback } from '#test/support/app-of-others.ts';
import { openBrowser } from '#test/support/browser.ts';
import { findChromium } from '#test/support/chromium.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import { prepare } from '#test/support/main-job.ts';
import { patience } from '#test/support/patience.ts';
import { dataFolder, preparedDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { type Process, printedUrl, start } from '#test/support/processes.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';

/** On a machine without a browser that may not install one, the tests are left out. */
const found = await findChromium().then(
  (program) => ({ program }),
  (error: Error) => ({ missing: error.message }),
);

const insecure = { [oauth.allowInsecureRequests]: true };
const password = 'four words that nobody guesses';

interface Answer {
  readonly isError?: boolean | undefined;
  readonly structuredContent?: unknown;
  readonly content?: unknown;
}
const dataOf = <T>({ isError, structuredContent, content }: Answer): T => {
  assert.ok(isError !== true, JSON.stringify(content));
  return structuredContent as T;
};

suite('people, apps and agents at a new service', { timeoutMs: 180_000 }, (t) => {
  if ('missing' in found) return t.skip('are tested with Chromium', found.missing);
  const data = dataFolder();
  let db: TestDatabase;
  let service: Process;
  let browser: Browser;
  let page: Page;
  let callback: Callback;
  let baseUrl = '';
  let mcpUrl = '';
  let key: Caller;
  let clientId = '';
  /** The access tokens of both agents. */
  const agents: string[] = [];
  /** What it is → its text: each lets its holder in, or did. */
  const bearers = new Map<string, string>([['password', password]]);

  t.before(async () => {
    [db, browser, callback] = await Promise.all([preparedDatabase(), openBrowser(found.program), openCallback()]);
    afterFile(() => browser.close());
    service = await start('services/standalone/main.ts', {
      args: ['--data', data.dataDir, '--port', '0', '--no-tour'],
      env: { DATABASE_URL: db.url, LOG_LEVEL: 'trace', RATE_LIMIT_PER_MINUTE: '6000', RATE_LIMIT_BURST: '1000' },
      readyAt: /^Data: /m,
    });
    baseUrl = printedUrl(service.output());
    mcpUrl = /over MCP, with OAuth or a key: (\S+)/.exec(service.output())?.[1] ?? '';
    const context = await browser.newContext();
    context.setDefaultTimeout(15_000 * patience);
    page = await context.newPage();
  });
  t.after(async () => {
    callback?.close();
    await service?.stop();
  });

  t('a newcomer opens the printed link, makes an account and a key, and uses the key', async () => {
    const link = /^ {2}(http\S+\/join\/(\S+))$/m.exec(service.output());
    bearers.set('link of the Owner', link?.[2] ?? '');
    await page.goto(link?.[1] ?? '');
    await page.locator('#email').fill('olga@example.com');
    await page.locator('#name').fill('Olga Owner');
    await page.locator('#password').fill(password);
    await page.locator('button[value=join]').click();
    await page.waitForURL('**/console');
    assert.match((await page.locator('body').textContent()) ?? '', /Sandbox/);
    for (const { name, value } of await page.context().cookies()) if (value.length > 30) bearers.set(name, value);
    await page.goto(new URL('/developers', page.url()).href);
    await page.locator('#name').fill('My importer');
    for (const box of await page.locator('input[name=scope]').all()) await box.check();
    await page.locator('button[value=make-key]').click();
    const secret = (await page.locator('#secret').textContent()) ?? '';
    bearers.set('key', secret);
    key = callerOf(() => baseUrl, secret);
    const agency = await until('the key works', async () => {
      const answer = await key.get('/agency');
      return answer.status === 200 ? answer : null;
    });
    assert.equal(agency.data.mode, 'test');
    ({ clientId } = await prepare(key, { usernames: {} }));
    // The link is spent.
    const again = await browser.newPage();
    await again.goto(link?.[1] ?? '');
    assert.equal(await again.locator('button[value=join]').count(), 0);
    await again.close();
  });

  /** Finds the authorization server from a refusal alone, as RFC 9728 has it. */
  const serverOf = async (resource: string): Promise<{ server: oauth.AuthorizationServer; resource: string }> => {
    const refused = await fetch(`${resource}/agency`);
    assert.equal(refused.status, 401);
    const challenge = refused.headers.get('www-authenticate') ?? '';
    const [, metadataUrl = ''] = /resource_metadata="([^"]+)"/.exec(challenge) ?? [];
    const metadata = (await (await fetch(metadataUrl)).json()) as {
      readonly resource: string;
      readonly authorization_servers: readonly string[];
    };
    const issuer = new URL(metadata.authorization_servers[0] ?? '');
    const discovered = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
    return { server: await oauth.processDiscoveryResponse(issuer, discovered), resource: metadata.resource };
  };

  t('an app of somebody else: discover, register, consent in the browser, call, refresh, revoke', async () => {
    const { server, resource } = await serverOf(baseUrl);
    const registration = { client_name: 'Strict', redirect_uris: [callback.url], token_endpoint_auth_method: 'none' };
    const client = await oauth.processDynamicClientRegistrationResponse(
      await oauth.dynamicClientRegistrationRequest(server, registration as Partial<oauth.Client>, insecure),
    );
    bearers.set('registration token', String(client.registration_access_token));
    const family = async (name: string): Promise<oauth.TokenEndpointResponse> => {
      const verifier = oauth.generateRandomCodeVerifier();
      const state = oauth.generateRandomState();
      const query = {
        ...{ response_type: 'code', client_id: client.client_id, redirect_uri: callback.url, state, resource },
        ...{ scope: 'agency.read posts.read posts.compose', code_challenge_method: 'S256' },
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      };
      const answer = await consent(
        page,
        `${server.authorization_endpoint}?${new URLSearchParams(query)}`,
        callback.url,
        ['posts.compose'],
      );
      bearers.set(`code of ${name}`, answer.get('code') ?? '');
      const params = oauth.validateAuthResponse(server, client, answer, state);
      const tokens = await oauth.processAuthorizationCodeResponse(
        server,
        client,
        await oauth.authorizationCodeGrantRequest(
          server,
          client,
          oauth.None(),
          params,
          callback.url,
          verifier,
          insecure,
        ),
      );
      assert.equal(tokens.scope, 'agency.read posts.read', 'the person left one out');
      return tokens;
    };
    const refreshed = async (token: string | undefined): Promise<oauth.TokenEndpointResponse> =>
      oauth.processRefreshTokenResponse(
        server,
        client,
        await oauth.refreshTokenGrantRequest(server, client, oauth.None(), token ?? '', insecure),
      );
    const powerOf = async ({ access_token: token }: oauth.TokenEndpointResponse) => {
      const { status, data: agency, body } = await callerOf(() => baseUrl, token).get('/agency');
      return status === 200 ? agency.mode : body.code;
    };
    const note = (name: string, { access_token, refresh_token }: oauth.TokenEndpointResponse) => {
      bearers.set(`access token of ${name}`, access_token);
      bearers.set(`refresh token of ${name}`, refresh_token ?? '');
    };

    const first = await family('the first');
    note('the first', first);
    await until('the token works', async () => (await powerOf(first)) === 'test');
    assert.equal((await callerOf(() => baseUrl, first.access_token).get('/clients')).body.code, 'insufficient_scope');
    const second = await refreshed(first.refresh_token);
    note('the second', second);
    assert.equal(await powerOf(second), 'test');
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(server, client, oauth.None(), second.refresh_token ?? '', insecure),
    );
    const since = performance.now();
    await until('no power is left', async () => (await powerOf(second)) === 'token_revoked');
    assert.ok(performance.now() - since < 1_500 * patience, `it took ${performance.now() - since} ms`);
    assert.equal(await powerOf(first), 'token_revoked');
    await assert.rejects(refreshed(second.refresh_token), { error: 'invalid_grant' });

    // Processes that share a token get one answer within seconds; a sixth use ends all that came of it.
    const stolen = await family('another');
    note('another', stolen);
    const heir = await refreshed(stolen.refresh_token);
    note('its heir', heir);
    const answers: unknown[] = [];
    while (answers.length < 5 && answers.at(-1) !== 'invalid_grant') {
      const again = refreshed(stolen.refresh_token);
      answers.push(
        await again.then(
          ({ refresh_token }) => refresh_token,
          ({ error }) => error,
        ),
      );
    }
    assert.equal(answers.pop(), 'invalid_grant');
    assert.deepEqual(new Set(answers), new Set(answers.length > 0 ? [heir.refresh_token] : []));
    await assert.rejects(refreshed(heir.refresh_token), { error: 'invalid_grant' });
    await until('the heir has no power', async () => (await powerOf(heir)) === 'token_revoked');
  });

  const hold = (memory: AppMemory): void => {
    agents.push(memory.tokens()?.access_token ?? '');
    for (const value of memory.held)
      bearers.set(`token ${value.slice(-6)} of ${memory.clientMetadata.client_name}`, value);
  };

  t('an agent that knows one address connects by OAuth and schedules a post, which is published', async () => {
    const memory = new AppMemory(callback.url, 'An agent');
    const open = () => {
      const transport = new StreamableHTTPClientTransport(new URL(mcpUrl), { authProvider: memory });
      const client = new Client({ name: 'an agent', version: '1' }, { versionNegotiation: { mode: 'auto' } });
      return { transport, client };
    };
    const before = open();
    await assert.rejects(before.client.connect(before.transport), UnauthorizedError);
    const answer = await consent(page, memory.asked?.href ?? '', callback.url);
    bearers.set('code of the agent', answer.get('code') ?? '');
    await before.transport.finishAuth(answer);
    const { client, transport } = open();
    await until('the agent is let in', () =>
      client.connect(transport).then(
        () => true,
        () => false,
      ),
    );
    const { tools } = await client.listTools();
    assert.ok(tools.length >= 14 && tools.length <= 40, `${tools.length} tools`);
    const call = async <T>(name: string, args: Record<string, unknown>): Promise<T> =>
      dataOf<T>((await client.callTool({ name, arguments: args })) as Answer);
    const { accounts } = await call<{ accounts: readonly { readonly accountId: string; readonly platform: string }[] }>(
      'find_accounts',
      { clientId },
    );
    assert.ok(accounts.some(({ platform }) => platform === 'x'));
    const post = await call<{ readonly postId: string; readonly mode: string }>('compose_post', {
      ...{ clientId, content: 'A post by an agent.', platforms: ['x', 'bluesky'], action: 'publish_now' },
    });
    assert.equal(post.mode, 'sandbox');
    const reported = await until(
      'the agent learns that it is published',
      async () => {
        const shown = await call<{ readonly status: string; readonly targets: readonly { readonly status: string }[] }>(
          'post_status',
          { postId: post.postId },
        );
        return shown.status === 'published' ? shown : null;
      },
      { ...sparing, withinMs: 60_000 },
    );
    assert.deepEqual(new Set(reported.targets.map(({ status }) => status)), new Set(['published']));
    await client.close();
    const { data: shown } = await key.get(`/posts/${post.postId}`);
    for (const target of shown.targets as readonly Record<string, unknown>[]) {
      assert.match(String(target.permalink), /^https:/);
    }
    hold(memory);
  });

  t('a client of the older line connects in the same way', async () => {
    const memory = new AppMemory(callback.url, 'An older agent');
    const open = () => {
      const transport = new OldTransport(new URL(mcpUrl), { authProvider: memory as never });
      return { transport, client: new OldClient({ name: 'an older agent', version: '1' }) };
    };
    const before = open();
    await assert.rejects(before.client.connect(before.transport as never), OldUnauthorizedError);
    const answer = await consent(page, memory.asked?.href ?? '', callback.url, ['media.manage']);
    bearers.set('code of the older agent', answer.get('code') ?? '');
    await before.transport.finishAuth(answer.get('code') ?? '');
    const { client, transport } = open();
    await until('the older agent is let in', () =>
      client.connect(transport as never).then(
        () => true,
        () => false,
      ),
    );
    const found = dataOf<{ readonly mode: string }>(
      (await client.callTool({ name: 'find_clients', arguments: {} })) as Answer,
    );
    assert.equal(found.mode, 'sandbox');
    await client.close();
    hold(memory);
  });

  t('the person sees both agents under Apps, and ends one', async () => {
    await page.goto(new URL('/apps', /^ {2}(http\S+)\/join\//m.exec(service.output())?.[1]).href);
    const row = page.locator('li', { has: page.locator('h3', { hasText: 'An older agent' }) });
    assert.equal(await page.locator('h3', { hasText: 'An agent' }).count(), 1);
    const isLetIn = async (token: string): Promise<boolean> => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      };
      return (await fetch(mcpUrl, { method: 'POST', headers, body })).status !== 401;
    };
    assert.deepEqual(await Promise.all([...agents].map(isLetIn)), [true, true]);
    await row.locator('summary', { hasText: 'Revoke' }).click();
    await row.locator('button[value=revoke]').click();
    await page.waitForURL('**/apps?done=revoked');
    await page.waitForLoadState();
    await until('the page shows that it has ended', async () => {
      await page.reload();
      return (await row.locator('.over').count()) === 1;
    });
    await until('it has no power', async () => !(await isLetIn(agents[1] ?? '')));
    assert.equal(await isLetIn(agents[0] ?? ''), true, 'the other goes on');
  });

  t('nothing that was written down lets anybody in: rows, events, log', async () => {
    assert.ok(bearers.size >= 16, [...bearers.keys()].join());
    for (const [what, value] of bearers) assert.ok(value.length >= 16, what);
    await service.stop();
    const pool = new pg.Pool({ connectionString: db.url, max: 1 });
    const written = new Map([['the log', readFileSync(path.join(data.dataDir, 'standalone.log'), 'utf8')]]);
    const { rows: tables } = await pool.query<{ name: string }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
    );
    for (const { name } of tables) {
      const { rows } = await pool.query(`select string_agg(t::text, e'\\n') as text from ${name} t`);
      written.set(name, String(rows[0].text ?? ''));
    }
    const { rows } = await pool.query(
      `select string_agg(convert_from(data, 'utf8') || convert_from(metadata, 'utf8'), e'\\n') as text from es.events`,
    );
    written.set('the events', String(rows[0].text ?? ''));
    await pool.end();
    assert.ok((written.get('the log') ?? '').length > 1_000 && (written.get('the events') ?? '').length > 10_000);
    for (const [where, text] of written) {
      for (const [what, value] of bearers) {
        const forms = [value, Buffer.from(value).toString('hex'), Buffer.from(value).toString('base64').slice(0, -4)];
        assert.ok(!forms.some((form) => text.includes(form)), `the ${what} is in ${where}`);
      }
    }
  });
});
