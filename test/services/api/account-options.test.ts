import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { account } from '#domain/account.ts';
import { apikey } from '#domain/apikey.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Platform } from '#schemas/common.ts';
import { revokeGrant } from '#services/auth/grants.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composer, refused } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { callMessage, mcpWorld, send } from '#test/support/mcp.ts';
import { claimsOf, oauthOf } from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** What accounts may choose, over REST, as the sandbox has it. */

suite('the options of accounts', (t) => {
  let world: World;
  t.before(async () => {
    world = await mcpWorld();
  });
  t.after(() => world?.close());

  const connected = async (platform: Platform, username: string) => {
    const { clientId, accounts } = await composer(world, [platform], { name: `${username} ${randomUUID()}`, username });
    return { clientId, id: accounts[platform] ?? '' };
  };
  const options = (id: string, key: string, query = '') => world.tester.get(`/accounts/${id}/options/${key}${query}`);
  const labels = async (id: string, key: string, query = ''): Promise<readonly unknown[]> => {
    const answer = await options(id, key, query);
    assert.equal(answer.status, 200, answer.text);
    return answer.rows.map(({ label }) => label);
  };

  t('are listed by name: boards, categories, organizations and privacy levels', async () => {
    const { id } = await connected('pinterest', 'acme');
    const all = ['Autumn', 'Home', 'Ideas', 'Recipes', 'Spring', 'Summer', 'Travel', 'Winter'];
    assert.deepEqual(await labels(id, 'boardId'), all);
    const { rows } = await options(id, 'boardId', '?search=WINT');
    assert.deepEqual(
      rows.map(({ label, about }) => [label, about]),
      [['Winter', 'SECRET']],
    );
    assert.match(String(rows[0]?.value), /^\d{18}$/);
    assert.deepEqual(await labels(id, 'boardId', '?search=nothing'), []);
    const tiktok = await connected('tiktok', 'private-acme');
    const { rows: levels } = await options(tiktok.id, 'privacyLevel');
    assert.deepEqual(
      levels.map(({ value }) => value),
      ['FOLLOWER_OF_CREATOR', 'MUTUAL_FOLLOW_FRIENDS', 'SELF_ONLY'],
    );
    assert.equal((await labels((await connected('youtube', 'acme')).id, 'categoryId')).length, 15);
    const linkedin = await connected('linkedin', 'acme');
    assert.deepEqual(await labels(linkedin.id, 'organization'), ['acme', 'acme second']);
  });

  t('come in pages, each once; a cursor is that of one account, one key and one search', async () => {
    const { id } = await connected('pinterest', 'acme');
    const found: unknown[] = [];
    let query = '?limit=3';
    for (let pages = 1; ; pages += 1) {
      const answer = await options(id, 'boardId', query);
      found.push(...answer.rows.map(({ label }) => label));
      const { nextCursor = null, hasMore } = answer.body.page ?? {};
      assert.equal(hasMore, nextCursor !== null);
      if (nextCursor === null) {
        assert.equal(pages, 3);
        break;
      }
      query = `?limit=3&cursor=${nextCursor}`;
    }
    assert.deepEqual(found, await labels(id, 'boardId'));
    const { nextCursor } = (await options(id, 'boardId', '?limit=1')).body.page ?? {};
    refused(await options(id, 'boardId', `?search=e&cursor=${nextCursor}`), 400, 'invalid_cursor', []);
    const other = await connected('pinterest', 'other');
    refused(await options(other.id, 'boardId', `?limit=1&cursor=${nextCursor}`), 400, 'invalid_cursor', []);
    refused(await options(id, 'boardId', '?limit=101'), 400, 'invalid_parameter', ['/limit']);
    refused(await options(id, 'boardId', '?name=x'), 400, 'invalid_parameter', ['/name']);
  });

  t('of more than are read a warning says so, and the last of those are found by name', async () => {
    const { id } = await connected('pinterest', 'many-boards-acme');
    const answer = await options(id, 'boardId', '?limit=100');
    assert.equal(answer.rows.length, 100);
    const { warnings } = answer.body.meta as unknown as { warnings: readonly { code: string; message: string }[] };
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['options_cut'],
    );
    assert.match(warnings[0]?.message ?? '', /^Pinterest has more than the 2000 that are read of it/);
    assert.deepEqual(await labels(id, 'boardId', '?search=board%202000'), ['Board 2000']);
  });

  t('a network without them says which it has', async () => {
    const x = await connected('x', 'acme');
    const none = await options(x.id, 'boardId');
    refused(none, 404, 'not_found');
    assert.equal(none.body.detail, 'X has no options of an account.');
    const pinterest = await connected('pinterest', 'acme');
    const another = await options(pinterest.id, 'privacyLevel');
    refused(another, 404, 'not_found');
    assert.equal(another.body.detail, 'Pinterest has the options boardId.');
    for (const id of [randomUUID(), 'nonsense']) {
      const unknown = await options(id, 'boardId');
      refused(unknown, 404, 'not_found');
      assert.equal(unknown.body.detail, 'There is no such account.');
    }
    refused(await options(pinterest.id, 'board%20id'), 404, 'not_found');
  });

  t('a network that tells nothing is said to, with the time to wait, and never has an empty list', async () => {
    const down = await options((await connected('pinterest', 'down-acme')).id, 'boardId');
    refused(down, 503, 'unavailable');
    assert.equal(down.headers.get('retry-after'), '5');
    assert.equal(down.body.detail, 'Pinterest told nothing: 503 Service Unavailable.');
    const limited = await options((await connected('tiktok', 'rate-limit-acme')).id, 'privacyLevel');
    refused(limited, 503, 'unavailable');
    assert.match(limited.headers.get('retry-after') ?? '', /^[12]$/);
    assert.match(String(limited.body.detail), /^TikTok takes no further question about this account until 20/);
    const dead = await options((await connected('linkedin', 'token-death-acme')).id, 'organization');
    refused(dead, 422, 'account_reauth_required');
    assert.equal(dead.body.detail, 'LinkedIn refuses the account: The access token is no longer valid.');
  });

  t('an answer after a fault comes once the network may be asked again', async () => {
    const { id } = await connected('pinterest', 'down-once-acme');
    refused(await options(id, 'boardId'), 503, 'unavailable');
    refused(await options(id, 'boardId'), 503, 'unavailable');
    world.clock.shiftMs += 5_000;
    assert.equal((await labels(id, 'boardId')).length, 8);
  });

  t(
    'an account that nothing goes to is not asked about: disconnected, refused by its network, of an archived client',
    async () => {
      const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
      const disconnected = await connected('pinterest', 'acme');
      assert.equal((await labels(disconnected.id, 'boardId')).length, 8);
      await world.tester.post(`/accounts/${disconnected.id}/disconnect`, {});
      refused(await options(disconnected.id, 'boardId'), 422, 'account_disconnected');
      const lapsed = await connected('pinterest', 'acme');
      const reason = 'The password was changed';
      await execute(world.store, account, lapsed.id, { type: 'RequireReauth', reason }, context);
      await world.settled();
      const answer = await options(lapsed.id, 'boardId');
      refused(answer, 422, 'account_reauth_required');
      assert.equal(answer.body.detail, 'Pinterest refuses the account: The password was changed.');
      const archived = await connected('pinterest', 'acme');
      assert.equal((await world.tester.delete(`/clients/${archived.clientId}`)).status, 200);
      await world.settled();
      const gone = await options(archived.id, 'boardId');
      assert.ok(['client_archived', 'account_disconnected'].includes(String(gone.body.code)), gone.text);
      assert.equal(gone.status, 422);
    },
  );

  t('a question writes nothing', async () => {
    const { id } = await connected('pinterest', 'token-death-acme');
    const before = await world.head();
    refused(await options(id, 'boardId'), 422, 'account_reauth_required');
    assert.equal(await world.head(), before);
  });
});

suite('the doors to the options of accounts', (t) => {
  let world: World;
  let own: { readonly clientId: string; readonly id: string };
  let other = '';
  t.before(async () => {
    world = await mcpWorld();
    const made = await composer(world, ['pinterest'], { name: 'Doors' });
    own = { clientId: made.clientId, id: made.accounts.pinterest ?? '' };
    other = (await composer(world, ['pinterest'], { name: 'Another' })).clientId;
  });
  t.after(() => world?.close());

  /** What one answers: the number of boards that are shown, or the code of the refusal. */
  const overRest = async (token: string): Promise<unknown> => {
    const answer = await world.callerWith(token).get(`/accounts/${own.id}/options/boardId`);
    return answer.status === 200 ? answer.rows.length : answer.body.code;
  };
  let id = 0;
  const overMcp = async (token: string): Promise<unknown> => {
    id += 1;
    const args = { platforms: ['pinterest'], clientId: own.clientId };
    const { text, code, status } = await send(world, token, callMessage('network_settings', args, id));
    if (status !== 200) return code;
    return /"code":"(\w+)"/.exec(text)?.[1] ?? [...text.matchAll(/"value":"\d{18}"/g)].length;
  };
  const app = async (memberId: string, resource: string, scopes: readonly string[]): Promise<string> => {
    const registered = await oauthOf(world).register();
    const { access_token: token } = await oauthOf(world).tokensOf(registered, {
      query: { scope: scopes.join(' '), resource },
      result: { memberId, scopes, mode: 'test' },
    });
    return token;
  };
  type Door = 'key over REST' | 'key over MCP' | 'app over REST' | 'app over MCP';
  const doors: readonly Door[] = ['key over REST', 'key over MCP', 'app over REST', 'app over MCP'];
  const scopes = ['accounts.read', 'posts.read'];
  /** A credential of a member for each door, and what it gets there. */
  const opened = async (memberId: string, granted = scopes) => {
    await world.settled();
    const key = await world.keyOf(world.workspaceId, memberId, { mode: 'test', scopes: granted });
    const tokens: Readonly<Record<Door, string>> = {
      'key over REST': key.secret,
      'key over MCP': key.secret,
      'app over REST': await app(memberId, world.deps.baseUrl(), granted),
      'app over MCP': await app(memberId, world.deps.mcpUrl(), granted),
    };
    await world.settled();
    const ask = (door: Door) => (door.endsWith('REST') ? overRest : overMcp)(tokens[door]);
    return { keyId: key.id, tokens, ask };
  };

  t('a viewer and an app of theirs are told what there is to choose', async () => {
    const { ask } = await opened(await world.memberOf(world.workspaceId, 'viewer'));
    for (const door of doors) assert.equal(await ask(door), 8, door);
  });

  t('a credential without the scope is refused', async () => {
    const { ask } = await opened(world.memberId, ['posts.read']);
    for (const door of doors) assert.equal(await ask(door), 'insufficient_scope', door);
  });

  t('a key that is limited to clients finds those of its clients, and no account of another', async () => {
    const limited = async (clientId: string) =>
      (await world.keyOf(world.workspaceId, world.memberId, { mode: 'test', clientIds: [clientId] })).secret;
    const [inside, outside] = [await limited(own.clientId), await limited(other)];
    assert.deepEqual([await overRest(inside), await overMcp(inside)], [8, 8]);
    assert.deepEqual([await overRest(outside), await overMcp(outside)], ['not_found', 0]);
    const stranger = await world.agency('Southern Cross');
    for (const { secret } of [stranger.testKey, world.liveKey]) {
      assert.deepEqual([await overRest(secret), await overMcp(secret)], ['not_found', 0]);
    }
  });

  t('a revoked key and revoked apps are told nothing, although an answer is kept', async () => {
    const { keyId, tokens, ask } = await opened(world.memberId);
    for (const door of doors) assert.equal(await ask(door), 8, door);
    await execute(world.store, apikey, keyId, { type: 'Revoke' }, contextOf(world.operator, world.workspaceId));
    for (const door of ['app over REST', 'app over MCP'] as const) {
      await revokeGrant(world.deps, String(claimsOf(tokens[door]).gid), 'person');
    }
    for (const door of doors) await until(`${door} is shut`, async () => (await ask(door)) === 'token_revoked');
  });

  t('a member who has left is told nothing, through no door', async () => {
    const memberId = await world.memberOf(world.workspaceId, 'manager');
    const { ask } = await opened(memberId);
    for (const door of doors) assert.equal(await ask(door), 8, door);
    const context = contextOf(world.operator, world.workspaceId);
    await execute(world.store, workspace, world.workspaceId, { type: 'RemoveMember', memberId }, context);
    for (const door of doors) await until(`${door} is shut`, async () => (await ask(door)) === 'token_revoked');
  });
});

suite('the price of the options of accounts', (t) => {
  t('a page counts as one request, a search too', async () => {
    const world = await mcpWorld({ rate: { perMinute: 60, burst: 40 } });
    try {
      const { accounts } = await composer(world, ['pinterest'], { name: 'Priced' });
      const left = async (query: string): Promise<number> => {
        const { headers } = await world.tester.get(`/accounts/${accounts.pinterest}/options/boardId${query}`);
        return Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);
      };
      const first = await left('');
      assert.equal(first - (await left('')), 1);
      assert.equal(first - (await left('?search=recipes')), 2);
      for (let at = 0; at < 45; at += 1) await left('');
      refused(await world.tester.get(`/accounts/${accounts.pinterest}/options/boardId`), 429, 'rate_limited');
    } finally {
      await world.close();
    }
  });
});
