import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { apikey } from '#domain/apikey.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Role } from '#schemas/common.ts';
import { tools } from '#services/mcp/tools/index.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type Composer, composer, tomorrow } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { callMessage, connect, failed, lines, mcpWorld, send, worked } from '#test/support/mcp.ts';
import { type App, oauthOf } from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** Who may call which tool, and what a caller is told that may not. */

suite('access to mcp', (t) => {
  let world: World;
  let app: App;
  let composed: Composer;
  t.before(async () => {
    world = await mcpWorld();
    app = await oauthOf(world).register();
    composed = await composer(world, ['x'], { name: 'Acme' });
  });
  t.after(() => world?.close());

  const tokenOf = async (scopes: readonly string[], more: { resource?: string; memberId?: string } = {}) => {
    const { resource, memberId = world.memberId } = more;
    const query = { scope: scopes.join(' '), ...(resource === undefined ? {} : { resource }) };
    const made = await oauthOf(world).tokensOf(app, { query, result: { memberId, scopes, mode: 'test' } });
    await world.settled();
    return made.access_token;
  };
  const keyOf = async (more: Parameters<World['keyOf']>[2], memberId = world.memberId) =>
    (await world.keyOf(world.workspaceId, memberId, { mode: 'test', ...more })).secret;
  const challengeOf = (headers: Headers) => headers.get('www-authenticate') ?? '';
  const find = callMessage('find_clients');

  t('needs a token: the challenge names the document, the document the authorization server', async () => {
    const { status, headers, code } = await send(world, null, find);
    assert.deepEqual([status, code], [401, 'missing_token']);
    assert.match(challengeOf(headers), /^Bearer resource_metadata="[^"]+", scope="agency\.read [^"]+media\.manage"$/);
    assert.match(headers.get('access-control-expose-headers') ?? '', /WWW-Authenticate/);
    const [, url = ''] = /resource_metadata="([^"]+)"/.exec(challengeOf(headers)) ?? [];
    assert.equal(url, `${world.origin()}/.well-known/oauth-protected-resource/mcp`);
    const document = (await (await fetch(url)).json()) as Record<string, unknown>;
    assert.equal(document.resource, world.deps.mcpUrl());
    assert.deepEqual(document.authorization_servers, [world.deps.authUrl()]);
    assert.ok(!(document.scopes_supported as string[]).includes('offline_access'));
    const root = await fetch(`${world.origin()}/.well-known/oauth-protected-resource`);
    assert.equal(root.status, 404, 'the root form is left to the api, which shares the host');
    assert.equal((await fetch(url, { method: 'POST' })).status, 405);
  });

  t('refuses tokens that are unknown, expired, or for the api, and sessions', async () => {
    const expired = await keyOf({ expiresInMs: 60_000 });
    const api = await tokenOf(['clients.read'], { resource: world.deps.baseUrl() });
    world.clock.shiftMs += 120_000;
    const cases = { expired: [expired, 'token_expired'], api: [api, 'wrong_audience'] } as const;
    for (const [what, [token, wanted]] of Object.entries({
      ...cases,
      unknown: ['sk_test_unknown', 'invalid_token'],
      session: [`sess_${randomUUID()}`, 'invalid_token'],
      forged: [`${api.slice(0, -4)}AAAA`, 'invalid_token'],
    } as const)) {
      const { status, headers, code } = await send(world, token, find);
      assert.deepEqual([status, code], [401, wanted], what);
      assert.match(challengeOf(headers), /^Bearer error="invalid_token", resource_metadata="[^"]+\/mcp"/, what);
    }
    world.clock.shiftMs -= 120_000;
  });

  t(
    'takes API keys and access tokens, from clients of both lines, and the token of MCP is not one of the api',
    async () => {
      const token = await tokenOf(['clients.read']);
      for (const line of lines) {
        for (const secret of [token, world.testKey.secret]) {
          const client = await connect(world, secret, line);
          assert.equal(worked(await client.call('find_clients', { search: 'acme' })).mode, 'sandbox', line);
          await client.close();
        }
      }
      assert.equal((await world.callerWith(token).get('/clients')).body.code, 'wrong_audience');
      const live = await connect(world, world.liveKey.secret);
      assert.equal(worked(await live.call('find_clients')).mode, 'live');
      await live.close();
    },
  );

  t('every tool refuses a credential without its scope: 403 with what it has and what it needs', async () => {
    const held = 'webhooks.read';
    const key = await keyOf({ scopes: [held] });
    for (const { name, scopes } of tools) {
      const { status, headers } = await send(world, key, callMessage(name));
      assert.equal(status, 403, name);
      const challenge = challengeOf(headers);
      assert.match(challenge, /^Bearer error="insufficient_scope"/, name);
      assert.ok(challenge.includes(`scope="${[held, ...scopes].join(' ')}"`), challenge);
      assert.ok(challenge.includes(`resource_metadata="${world.origin()}/.well-known/oauth-protected-resource/mcp"`));
    }
    const token = await tokenOf(['posts.compose', 'clients.read']);
    const refused = await send(world, token, callMessage('reschedule'));
    assert.equal(refused.status, 403);
    assert.match(
      challengeOf(refused.headers),
      /scope="(posts\.compose clients\.read|clients\.read posts\.compose) posts\.read"/,
    );
    const listed = await send(world, key, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
    assert.equal(listed.status, 200, 'all tools are listed to all');
  });

  t('the role counts on each call: of a key, and of a token', async () => {
    const command = { clientId: composed.clientId, content: 'x', action: 'schedule', scheduledAt: tomorrow() };
    for (const role of ['viewer', 'creator'] as const satisfies readonly Role[]) {
      const memberId = await world.memberOf(world.workspaceId, role);
      await world.settled();
      for (const secret of [await keyOf({}, memberId), await tokenOf(['posts.compose'], { memberId })]) {
        const client = await connect(world, secret);
        const answer = await client.call('compose_post', command);
        if (role === 'viewer') failed(answer, 'role_required');
        else assert.equal(worked(answer).status, 'pending_approval', 'a post of a creator needs approval');
        await client.close();
      }
    }
  });

  t('a key for some clients sees no other client', async () => {
    const other = await composer(world, ['x'], { name: 'Other' });
    const client = await connect(world, await keyOf({ clientIds: [composed.clientId] }));
    const { clients } = worked(await client.call('find_clients')) as { clients: { name: string }[] };
    assert.deepEqual(
      clients.map(({ name }) => name),
      ['Acme'],
    );
    const answer = await client.call('compose_post', { clientId: other.clientId, content: 'x' });
    const unknown = await client.call('compose_post', { clientId: randomUUID(), content: 'x' });
    assert.ok(answer.isError && unknown.isError);
    const plain = (text: string) => text.replace(/correlation id: [\w-]+/, '');
    assert.equal(plain(answer.text), plain(unknown.text));
    failed(await client.call('list_reports'), 'client_limited');
    await client.close();
  });

  t('ids of another workspace, of live data, and unknown ones are refused alike', async () => {
    const stranger = await world.agency('Southern Cross');
    const { data: post } = await world.tester.post('/posts', composed.body());
    await world.settled();
    const [mine, theirs, live] = await Promise.all(
      [world.testKey, stranger.testKey, world.liveKey].map(({ secret }) => connect(world, secret)),
    );
    assert.equal(worked((await mine?.call('post_status', { postId: post.id })) as never).postId, post.id);
    for (const client of [theirs, live]) {
      for (const [name, args] of Object.entries({
        post_status: {},
        revise_post: { content: 'x' },
        publish_draft: { action: 'publish_now' },
        reschedule: { scheduledAt: tomorrow() },
        retry: {},
        cancel: {},
        post_performance: {},
      })) {
        const seen = await client?.call(name, { postId: post.id, ...args });
        const unknown = await client?.call(name, { postId: randomUUID(), ...args });
        // There is no analytics store here: it is not asked before the post is found.
        assert.equal(seen?.code, unknown?.code, name);
        if (name !== 'post_performance') failed(seen as never, 'not_found');
      }
    }
    for (const client of [mine, theirs, live]) await client?.close();
  });

  t('a revoked key loses its power within a second', async () => {
    const { id, secret } = await world.keyOf(world.workspaceId, world.memberId, { mode: 'test' });
    assert.equal((await send(world, secret, find)).status, 200);
    await execute(world.store, apikey, id, { type: 'Revoke' }, contextOf(world.operator, world.workspaceId));
    const begun = performance.now();
    await until('the key is refused', async () => (await send(world, secret, find)).code === 'token_revoked');
    assert.ok(performance.now() - begun < 1_500, `${performance.now() - begun} ms`);
  });
});

suite('the allowances of mcp', (t) => {
  let world: World;
  t.before(async () => {
    world = await mcpWorld({ rate: { perMinute: 60, burst: 20 } });
  });
  t.after(() => world?.close());

  t('a call counts once against its credential, as over REST; then 429 says how long to wait', async () => {
    const leftOf = (headers: Headers) => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);
    const { secret } = world.testKey;
    const first = await send(world, secret, callMessage('find_clients'));
    assert.equal(first.status, 200);
    const second = await send(world, secret, callMessage('find_clients'));
    assert.equal(leftOf(first.headers) - leftOf(second.headers), 1);
    const byRest = await world.tester.get('/clients');
    assert.equal(leftOf(second.headers) - leftOf(byRest.headers), 1);
    const answers = [];
    for (let at = 0; at < 25; at += 1) answers.push(await send(world, secret, callMessage('find_clients', {}, at)));
    const refused = answers.find(({ status }) => status === 429);
    assert.equal(refused?.code, 'rate_limited');
    assert.ok(Number(refused?.headers.get('retry-after')) > 0);
  });

  t('a stranger who guesses loses guesses, and locks out no key at the same address', async () => {
    await send(world, world.liveKey.secret, callMessage('find_clients'));
    const codes = new Set();
    for (let at = 0; at < 25; at += 1)
      codes.add((await send(world, `sk_live_guess${at}`, callMessage('find_clients'))).code);
    assert.deepEqual([...codes], ['invalid_token', 'rate_limited']);
    assert.equal((await send(world, world.liveKey.secret, callMessage('find_clients'))).status, 200);
  });
});
