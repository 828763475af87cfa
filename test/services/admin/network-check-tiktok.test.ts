/** `network check` of a network whose posts no program deletes, as an operator types it, over a strict TikTok. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { copyFile } from 'node:fs/promises';
import { account } from '#domain/account.ts';
import type { Adapters } from '#infra/adapters.ts';
import { liveNetworks } from '#infra/platforms/live.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { readConfig } from '#runtime/process/config.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { PublishingHold } from '#runtime/work/publishing-hold.ts';
import type { Admin } from '#services/admin/context.ts';
import { checkNetwork } from '#services/admin/network-check.ts';
import { readCommand } from '#services/admin/usage.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import { allScopes, type Person } from '#test/support/networks/tiktok/index.ts';
import { type TikTokWorld, tiktokWorld } from '#test/support/networks/tiktok/world.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { openOperator } from './network-operator.ts';

const key = `v1:${randomBytes(32).toString('base64')}`;

suite('network check of tiktok', { timeoutMs: 60_000 }, (t) => {
  let world: TikTokWorld;
  let adapters: Adapters;
  let env: Record<string, string> & { SECRET_KEY: string };
  let person: Person;
  let operator: Operator;
  const id = randomUUID();

  t.before(async () => {
    world = await tiktokWorld({ isAudited: false });
    const { network } = world;
    person = network.person({ isPrivate: true });
    const { url } = await preparedDatabase();
    const { clientKey, clientSecret } = network.state.app;
    env = {
      ...{ DATABASE_URL: url, SECRET_KEY: key, PRIVATE_TARGETS: '*', TIKTOK_API: network.api },
      ...{ TIKTOK_CLIENT_ID: clientKey, TIKTOK_CLIENT_SECRET: clientSecret },
    };
    ({ adapters, operator } = await openOperator(env));
    const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'tiktok' as const };
    const { username, id: externalId, nickname: displayName } = person;
    const connect = {
      ...({ type: 'Connect', clientId: owner.clientId, platform: 'tiktok', externalId, network: 'live' } as const),
      ...{ inviteId: null, username, displayName, avatarUrl: null, scopes: allScopes, expiresAt: null, timezone: null },
    };
    const { positions } = operator;
    await execute(operator.store, account, id, connect, contextOf(operator, owner.workspaceId), { positions });
    const secret = { ...network.grant(person), accessUntil: new Date(Date.now() + 7_200_000).toISOString() };
    await adapters.credentials.keep({ accountId: id, ...owner }, { secret, expiresAt: null });
  });
  t.after(async () => {
    await adapters?.close();
    world?.close();
  });

  const notes: string[] = [];
  const asked = async (...args: readonly string[]) => {
    const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
    const live = liveNetworks({
      stores: adapters,
      http,
      clock: Date.now,
      config: { ...readConfig(env), boundaryDeadlineMs: 500 },
    });
    const given = readCommand(['network', 'check', 'tiktok', '--account', id, '--yes', ...args])?.given;
    assert.ok(given !== undefined);
    const admin: Partial<Admin> = {
      ...{ store: operator.store, operator, publishing: new PublishingHold(adapters.pool, 'on') },
      ...{ adapterOf: (platform) => live.adapters[platform] ?? null, note: (words) => void notes.push(words) },
      signal: new AbortController().signal,
    };
    return checkNetwork(admin as Admin, given);
  };
  const file = async (): Promise<string> => {
    const clip = await world.files.video().file();
    await copyFile(clip, `${clip}.mp4`);
    return `${clip}.mp4`;
  };

  t('refuses to publish what nobody could delete again, and names the way to do so by hand', async () => {
    const args = ['--media', await file(), '--set', 'privacyLevel=SELF_ONLY'];
    await assert.rejects(asked(...args), (error: unknown) => {
      assert.ok(error instanceof UsageError);
      assert.match(error.message, /TikTok lets no program delete a post: add --leave-it/);
      return true;
    });
    assert.equal(world.network.state.posts.length, 0);
  });

  t('publishes one and leaves it, with words that say so', async () => {
    const out = await asked('--media', await file(), '--set', 'privacyLevel=SELF_ONLY', '--leave-it');
    const [post, ...others] = world.network.state.posts;
    assert.ok(post !== undefined && others.length === 0);
    assert.deepEqual(out, { network: 'tiktok', account: id, published: post.publishId, deleted: false });
    assert.match(String(post.info.title), /This post is deleted by hand\. \([0-9a-f]{8}\)$/);
    assert.equal(post.info.privacy_level, 'SELF_ONLY');
    assert.match(notes.join('\n'), /Delete the post with \([0-9a-f]{8}\) by hand\./);
    assert.ok(!notes.includes('deleted'));
  });
});
