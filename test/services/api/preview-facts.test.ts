import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { AccountSource } from '#contracts/ports/platform-account.ts';
import { account } from '#domain/account.ts';
import { accountIdOf, testTwinIdOf } from '#domain/ids.ts';
import { sandboxAccounts, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { questionTurns } from '#services/api/call/call-queue.ts';
import { AskedAccounts } from '#services/workflows/accounts/asked.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import type { World } from '#test/support/http.ts';
import { connect, mcpWorld, worked } from '#test/support/mcp.ts';
import { suite } from '#test/support/suite.ts';

/** What a preview says of accounts whose network wants to be asked first. */

interface Warned {
  readonly code: string;
  readonly path: string;
  readonly message: string;
  readonly willFail: boolean;
  readonly mediaId: string | null;
}

suite('what accounts may post now, in a preview', (t) => {
  let world: World;
  let clipId = '';
  /** Ids of accounts that were asked about. */
  const asked: string[] = [];
  /** Networks that say nothing, by the id of an account. */
  const silent = new Set<string>();
  t.before(async () => {
    let source: AccountSource | null = null;
    const counted: AccountSource = {
      choices: () => assert.fail('nobody asks for choices'),
      facts: async (platform, one, signal) => {
        asked.push(one.id);
        if (silent.has(one.id)) return new Promise(() => undefined);
        source ??= sandboxAccounts(world.pool);
        return source.facts?.(platform, one, signal) ?? assert.fail('the sandbox says what an account may post');
      },
    };
    const questions = new AskedAccounts({
      ...{ sourceOf: () => counted, clock: () => world.deps.clock(), turn: questionTurns() },
      logger: { error: (said: unknown) => assert.fail(String(said)) } as never,
    });
    world = await mcpWorld({ deps: { asked: questions } });
    clipId = (await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'video', {})).id;
  });
  t.after(() => world?.close());

  /** A client with accounts of these names, as a live consent gives them: it names no levels. */
  const connected = async (...names: readonly string[]) => {
    const { data } = await world.tester.post('/clients', { name: `Client ${randomUUID()}`, type: 'brand' });
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    const ids: string[] = [];
    for (const username of names) {
      const { externalId } = sandboxProfile('tiktok', username);
      const id = accountIdOf(data.id, 'tiktok', externalId);
      const identity = {
        clientId: data.id,
        platform: 'tiktok',
        externalId,
        network: 'sandbox',
        inviteId: null,
      } as const;
      const grant = { username, displayName: null, avatarUrl: null, scopes: ['video.publish'], expiresAt: null };
      await execute(world.store, account, id, { type: 'Connect', ...identity, ...grant, timezone: null }, context);
      ids.push(id);
    }
    await world.settled();
    return { clientId: data.id, ids };
  };
  const bodyOf = (clientId: string, more: Readonly<Record<string, unknown>> = {}) => ({
    ...{ clientId, content: `Word ${randomUUID()}`, mediaIds: [clipId], targets: { mode: 'group', clientId } },
    schedule: { type: 'at', scheduledAt: new Date(world.deps.clock() + 86_400_000).toISOString() },
    variants: [{ platform: 'tiktok', overrides: { privacyLevel: 'PUBLIC_TO_EVERYONE' } }],
    ...more,
  });
  const previewed = async (clientId: string, more: Readonly<Record<string, unknown>> = {}) => {
    const before = await world.head();
    const answer = await world.tester.post('/posts/preview', bodyOf(clientId, more));
    assert.equal(answer.status, 200, answer.text);
    assert.equal(await world.head(), before);
    const { valid, verdicts } = answer.data as unknown as {
      readonly valid: boolean;
      readonly verdicts: readonly { readonly accountId: string; readonly warnings: readonly Warned[] }[];
    };
    return { valid, of: (id = '') => verdicts.find(({ accountId }) => accountId === id)?.warnings ?? [] };
  };

  t('a value that the account does not allow now, and a video that is too long for it, would fail', async () => {
    const { clientId, ids } = await connected('acme', 'private-acme', 'brief-acme');
    const { valid, of } = await previewed(clientId);
    assert.equal(valid, true, 'POST /posts asks no network');
    assert.deepEqual(of(ids[0]), []);
    assert.deepEqual(
      of(ids[1]).map(({ code, path, willFail }) => [code, path, willFail]),
      [['override_not_granted', '/variants/0/overrides/privacyLevel', true]],
    );
    assert.match(of(ids[1])[0]?.message ?? '', /allows now: FOLLOWER_OF_CREATOR, MUTUAL_FOLLOW_FRIENDS, SELF_ONLY$/);
    assert.deepEqual(
      of(ids[2]).map(({ code, path, willFail, mediaId }) => [code, path, willFail, mediaId]),
      [['media_too_long', '/mediaIds/0', true, clipId]],
    );
    const made = await world.tester.post('/posts', bodyOf(clientId));
    assert.equal(made.status, 200, made.text);
  });

  t('an account that may post nothing until an instant is said to, where the target is earlier', async () => {
    const { clientId, ids } = await connected('capped-acme', 'banned-acme');
    const now = await previewed(clientId, { schedule: { type: 'now' } });
    const [later] = now.of(ids[0]);
    assert.deepEqual([later?.code, later?.path, later?.willFail], ['account_posts_later', '/targets', false]);
    assert.match(later?.message ?? '', /^TikTok lets the account post nothing until 20.*Z, and the target waits$/);
    const [banned] = now.of(ids[1]);
    assert.deepEqual([banned?.code, banned?.path, banned?.willFail], ['account_not_permitted', '/targets', true]);
    const tomorrow = await previewed(clientId);
    assert.deepEqual(tomorrow.of(ids[0]), []);
    assert.equal(tomorrow.of(ids[1]).length, 1);
  });

  t('a network that says nothing is said to have said nothing, and one that refuses the account so', async () => {
    const { clientId, ids } = await connected('down-acme', 'token-death-acme', 'rate-limit-acme');
    const { of } = await previewed(clientId);
    assert.deepEqual(
      ids.map((id) => of(id).map(({ code, willFail }) => [code, willFail])),
      [[['account_not_asked', false]], [['account_reauth_required', true]], [['account_not_asked', false]]],
    );
    assert.match(of(ids[0])[0]?.message ?? '', /^TikTok did not say what the account may post now/);
  });

  t('a network that hangs holds a preview up for some seconds at most', async () => {
    const { clientId, ids } = await connected('hanging-acme');
    silent.add(ids[0] ?? '');
    const begun = performance.now();
    const { of } = await previewed(clientId);
    assert.deepEqual(
      of(ids[0]).map(({ code }) => code),
      ['account_not_asked'],
    );
    assert.ok(performance.now() - begun < 10_000, `${performance.now() - begun} ms`);
  });

  t('accounts are asked about once a minute, 20 of a preview, and none that is to be connected again', async () => {
    const names = Array.from({ length: 22 }, (_, at) => `acme-${at}`);
    const { clientId, ids } = await connected(...names);
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    await execute(world.store, account, ids[0] ?? '', { type: 'RequireReauth', reason: 'Gone' }, context);
    await world.settled();
    asked.length = 0;
    const { of } = await previewed(clientId);
    assert.equal(asked.length, 20);
    assert.equal(new Set(asked).size, 20);
    assert.equal(asked.includes(ids[0] ?? ''), false);
    const codes = ids.map((id) =>
      of(id)
        .map(({ code }) => code)
        .join(),
    );
    assert.deepEqual(Map.groupBy(codes, (code) => code).get('account_not_asked')?.length, 1);
    assert.equal(codes[0], 'account_reauth_required');
    await previewed(clientId);
    world.clock.shiftMs += 59_000;
    await previewed(clientId);
    assert.equal(asked.length, 20, 'answers are kept for a minute');
    world.clock.shiftMs += 2_000;
    await previewed(clientId);
    assert.equal(asked.length, 40);
  });

  t('an agent is told it by preview_post', async () => {
    const { clientId } = await connected('private-agent');
    const mcp = await connect(world, world.testKey.secret);
    const { variants, ...rest } = bodyOf(clientId) as ReturnType<typeof bodyOf> & { variants: { overrides: object }[] };
    const answer = await mcp.call('preview_post', {
      ...{ clientId, content: rest.content, mediaIds: rest.mediaIds },
      scheduledAt: (rest.schedule as { scheduledAt: string }).scheduledAt,
      variants: [{ platform: 'tiktok', settings: variants[0]?.overrides }],
    });
    const { warnings } = worked(answer) as { warnings: readonly { code: string; message: string }[] };
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['override_not_granted'],
    );
    assert.match(answer.text, /It would fail: .*privacyLevel must be one of those that the account allows now/);
    await mcp.close();
  });
});
