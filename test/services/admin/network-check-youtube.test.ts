/** `network check` of YouTube with a video and who sees it, over a strict YouTube that looks at it first. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { account } from '#domain/account.ts';
import type { Adapters } from '#infra/adapters.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import { startYouTube, type YouTubeNetwork } from '#test/support/networks/youtube/index.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { run } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { openOperator } from './network-operator.ts';

const key = `v1:${randomBytes(32).toString('base64')}`;

suite('network check of youtube', { timeoutMs: 120_000 }, (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'youtube-check-'));
  let network: YouTubeNetwork;
  let adapters: Adapters;
  let operator: Operator;
  let env: Record<string, string> & { SECRET_KEY: string };

  t.before(async () => {
    network = await startYouTube({ processingMs: 1_500 });
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
    const channel = network.channel();
    const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'youtube' as const };
    const connect = {
      ...({ type: 'Connect', clientId: owner.clientId, platform: 'youtube', network: 'live' } as const),
      ...{ externalId: channel.id, inviteId: null, username: null, displayName: null, avatarUrl: null, scopes: [] },
      ...{ expiresAt: null, timezone: null },
    };
    const { store, positions } = operator;
    await execute(store, account, id, connect, contextOf(operator, owner.workspaceId), { positions });
    const secret = { ...network.grant(channel), accessUntil: new Date(Date.now() + 3_600_000).toISOString() };
    await adapters.credentials.keep({ accountId: id, ...owner }, { secret, expiresAt: null, grant: channel.person });
    return id;
  };
  const typed = (id: string, ...args: readonly string[]) =>
    run('services/admin/main.ts', { env, args: ['network', 'check', 'youtube', '--account', id, '--yes', ...args] });

  t('uploads a video that nobody else sees, waits until YouTube shows it, and deletes it', async () => {
    const file = path.join(folder, 'clip.mp4');
    writeFileSync(file, Buffer.alloc(9_000_000));
    const { code, output } = await typed(await connected(), '--media', file, '--set', 'privacyStatus=unlisted');
    assert.equal(code, 0, output);
    const [video, ...others] = network.state.videos;
    assert.ok(video !== undefined && others.length === 0);
    assert.deepEqual([video.bytes, video.status.privacyStatus], [9_000_000, 'unlisted']);
    assert.match(String(video.snippet.title), /^A test of our publishing software\. .*\([0-9a-f]{8}\)$/);
    assert.match(output, /accepted the post and does not show it yet/);
    assert.match(output, new RegExp(`Published: https://www\\.youtube\\.com/watch\\?v=${video.id}\\ndeleted\\n`));
    assert.ok(network.state.deleted.has(video.id));
    assert.deepEqual(network.state.unheld, []);
  });

  t('says that a video is needed before anything is sent', async () => {
    const before = network.state.calls.length;
    const { code, output } = await typed(await connected());
    assert.notEqual(code, 0);
    assert.match(output, /a file with --media/);
    assert.equal(network.state.calls.length, before);
  });
});
