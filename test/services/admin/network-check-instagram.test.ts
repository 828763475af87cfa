/** `network check` of a network whose posts a program deletes by one login alone, as an operator types it, over a strict Instagram. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
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
import { gradient } from '#test/support/media/pictures.ts';
import { scopesOf } from '#test/support/networks/instagram/index.ts';
import type { Host } from '#test/support/networks/instagram/state.ts';
import { type InstagramWorld, instagramWorld } from '#test/support/networks/instagram/world.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { openOperator } from './network-operator.ts';

const key = `v1:${randomBytes(32).toString('base64')}`;

suite('network check of instagram', { timeoutMs: 60_000 }, (t) => {
  let world: InstagramWorld;
  let adapters: Adapters;
  let env: Record<string, string> & { SECRET_KEY: string };
  let operator: Operator;
  const ids: Record<Host, string> = { ig: randomUUID(), fb: randomUUID() };
  const folder = mkdtempSync(path.join(tmpdir(), 'postline-instagram-'));
  const file = path.join(folder, 'cup.jpg');

  t.before(async () => {
    world = await instagramWorld();
    const { network } = world;
    writeFileSync(file, await gradient(640, 640).jpeg().toBuffer());
    const { url } = await preparedDatabase();
    env = { DATABASE_URL: url, SECRET_KEY: key, PRIVATE_TARGETS: '*', ...network.env.ig, ...network.env.fb };
    ({ adapters, operator } = await openOperator(env));
    for (const by of ['ig', 'fb'] as const) {
      const made = await world.account({ by });
      const kept = await world.credentials.read(made.id);
      assert.ok(kept !== null);
      const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'instagram' as const };
      const { externalId, username } = made;
      const connect = {
        ...({ type: 'Connect', clientId: owner.clientId, platform: 'instagram', externalId, network: 'live' } as const),
        ...{ inviteId: null, username, displayName: null, avatarUrl: null, scopes: scopesOf[by], expiresAt: null },
        timezone: null,
      };
      const { positions } = operator;
      await execute(operator.store, account, ids[by], connect, contextOf(operator, owner.workspaceId), { positions });
      const { secret, expiresAt } = kept;
      await adapters.credentials.keep({ accountId: ids[by], ...owner }, { secret, expiresAt });
    }
  });
  t.after(async () => {
    await adapters?.close();
    world?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const notes: string[] = [];
  const asked = async (by: Host, ...args: readonly string[]) => {
    const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
    const config = { ...readConfig(env), boundaryDeadlineMs: 2_000 };
    const live = liveNetworks({ stores: adapters, http, clock: Date.now, config });
    const given = readCommand(['network', 'check', 'instagram', '--account', ids[by], '--yes', ...args])?.given;
    assert.ok(given !== undefined);
    const admin: Partial<Admin> = {
      ...{ store: operator.store, operator, publishing: new PublishingHold(adapters.pool, 'on') },
      ...{ adapterOf: (platform) => live.adapters[platform] ?? null, note: (words) => void notes.push(words) },
      signal: new AbortController().signal,
    };
    return checkNetwork(admin as Admin, given);
  };

  t('refuses an account of its own login, whose posts no program deletes, before anything is published', async () => {
    await assert.rejects(asked('ig', '--media', file), (error: unknown) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, /Instagram lets no program delete a post: add --leave-it/);
      return true;
    });
    assert.deepEqual(world.network.state.calls, []);
  });

  t('says that nothing of text alone can be checked', async () => {
    await assert.rejects(asked('fb'));
    assert.equal(world.network.state.media.length, 0);
  });
});
