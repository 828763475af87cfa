/** `network check` of Facebook with a text and with a reel, over a strict Facebook that looks at it first. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { account } from '#domain/account.ts';
import type { Adapters } from '#infra/adapters.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import { allScopes, type FacebookNetwork, startFacebook } from '#test/support/networks/facebook/index.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { run } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { openOperator } from './network-operator.ts';

const key = `v1:${randomBytes(32).toString('base64')}`;

suite('network check of facebook', { timeoutMs: 120_000 }, (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'facebook-check-'));
  let network: FacebookNetwork;
  let adapters: Adapters;
  let operator: Operator;
  let env: Record<string, string> & { SECRET_KEY: string };

  t.before(async () => {
    network = await startFacebook();
    const { url } = await preparedDatabase();
    env = { DATABASE_URL: url, SECRET_KEY: key, PRIVATE_TARGETS: '*', ...network.env };
    ({ adapters, operator } = await openOperator(env));
  });
  t.after(async () => {
    await adapters?.close();
    network?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const connected = async (): Promise<string> => {
    const id = randomUUID();
    const person = network.person();
    const page = network.pageOf(person);
    const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'facebook' as const };
    const connect = {
      ...({ type: 'Connect', clientId: owner.clientId, platform: 'facebook', network: 'live' } as const),
      ...{ externalId: page.id, inviteId: null, username: null, displayName: null, avatarUrl: null, scopes: allScopes },
      ...{ expiresAt: null, timezone: null },
    };
    const { store, positions } = operator;
    await execute(store, account, id, connect, contextOf(operator, owner.workspaceId), { positions });
    const { login, page: accessToken } = network.grant(person, page);
    const secret = { accessToken, accessUntil: null, account: page.id, loginToken: login, loginUntil: null };
    await adapters.credentials.keep({ accountId: id, ...owner }, { secret, expiresAt: null, grant: person.id });
    return id;
  };
  const typed = (id: string, ...args: readonly string[]) =>
    run('services/admin/main.ts', { env, args: ['network', 'check', 'facebook', '--account', id, '--yes', ...args] });

  t('publishes a text and deletes it', async () => {
    const { code, output } = await typed(await connected());
    assert.equal(code, 0, output);
    const [post, ...others] = network.state.made;
    assert.ok(post !== undefined && others.length === 0);
    assert.match(post.text, /^A test of our publishing software\. .*\([0-9a-f]{8}\)$/s);
    assert.match(output, /\ndeleted\n/);
    assert.ok(network.state.deleted.has(post.id));
  });

  t('uploads a reel, waits until Facebook shows it, and deletes it', async () => {
    network.fate({ says: 'A test of our publishing software', then: 'shown', ms: 1_500 });
    const file = path.join(folder, 'clip.mp4');
    writeFileSync(file, Buffer.alloc(3_000_000));
    const { code, output } = await typed(await connected(), '--media', file, '--set', 'contentType=reel');
    assert.equal(code, 0, output);
    const post = network.state.made.at(-1);
    const [video] = post?.files ?? [];
    assert.ok(video?.kind === 'video');
    assert.deepEqual([video.got, video.edge], [3_000_000, 'video_reels']);
    assert.match(output, /accepted the post and does not show it yet/);
    assert.ok(network.state.deleted.has(post?.id ?? ''));
  });
});
