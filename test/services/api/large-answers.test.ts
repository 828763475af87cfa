/** The longest text on many accounts: the answer shows it once for each, and holds the event loop for nobody else. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { type AccountCommand, account } from '#domain/account.ts';
import { accountIdOf, testTwinIdOf } from '#domain/ids.ts';
import { sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld } from '#test/support/composing.ts';
import { rawCall } from '#test/support/raw-call.ts';
import { suite } from '#test/support/suite.ts';
import { longestTurn } from '#test/support/turns.ts';

const longestMs = 50;
const count = 150;
const content = '😀'.repeat(50_000);
const { world, tester, composed: all } = await composedWorld(['facebook']);

suite('large answers', { timeoutMs: 120_000 }, (t) => {
  let body: Record<string, unknown>;

  t.before(async () => {
    const accountIds = Array.from({ length: count }, (_, n) => accountIdOf(all.clientId, 'facebook', `page-${n}`));
    for (const [n, id] of accountIds.entries()) {
      const externalId = `page-${n}`;
      const { displayName, scopes } = sandboxProfile('facebook', externalId);
      const command: AccountCommand = {
        ...{ type: 'Connect', clientId: all.clientId, platform: 'facebook', externalId, network: 'sandbox' },
        ...{ username: externalId, displayName, avatarUrl: null, scopes, expiresAt: null, timezone: null },
        inviteId: null,
      };
      await execute(world.store, account, id, command, contextOf(world.operator, testTwinIdOf(world.workspaceId)));
    }
    await world.settled();
    body = all.body({ content, targets: { mode: 'accounts', accountIds } });
  });

  t('are written a piece in each turn, whichever operation gives them', async () => {
    const made = await tester.post('/posts', body);
    equal(made.status, 200);
    await world.settled();
    deepEqual((await tester.get(`/posts/${made.data.id}`)).data, made.data);
    const asked: readonly (readonly [method: string, path: string, body?: unknown])[] = [
      ['POST', '/posts/preview', body],
      ['POST', '/posts', body],
      ['POST', '/posts/bulk', { posts: [body] }],
      ['GET', `/posts/${made.data.id}`],
      ['GET', `/post-targets?postId=${made.data.id}&limit=100`],
      ['POST', `/posts/${made.data.id}/revise`, { coverFrameMs: 1 }],
      ['DELETE', `/posts/${made.data.id}`],
    ];
    for (const [method, path, sent] of asked) {
      const body = sent === undefined ? '' : JSON.stringify(sent);
      const { ms, result } = await longestTurn(() => rawCall(world, { method, path, body, mayBreak: false }));
      equal(result.status, 200, path);
      ok(result.bytes > 100 * Buffer.byteLength(content), `${method} ${path}: ${result.bytes} bytes`);
      ok(ms <= longestMs, `${method} ${path} held the event loop for ${ms} ms`);
    }
  });
});
