/** `network check` of the two networks that keep a protocol of their own: Bluesky's real server, and a strict Telegram. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { Json } from '#contracts/ports/platform.ts';
import { account } from '#domain/account.ts';
import type { Adapters } from '#infra/adapters.ts';
import { connectByAppPassword } from '#infra/platforms/bluesky/index.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import { orMissing } from '#test/support/missing.ts';
import { sharedPds } from '#test/support/networks/pds.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { run } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { openOperator } from './network-operator.ts';

/** Where no registry answers, the test of Bluesky is left out, and says so. */
const opened = await orMissing(sharedPds().then((pds) => ({ pds })));
const key = `v1:${randomBytes(32).toString('base64')}`;

suite('network check of bluesky and telegram', { timeoutMs: 120_000 }, (t) => {
  let telegram: TelegramSimulator;
  let adapters: Adapters;
  let operator: Operator;
  let env: Record<string, string> & { SECRET_KEY: string };

  t.before(async () => {
    telegram = await TelegramSimulator.start();
    const { url } = await preparedDatabase();
    env = { DATABASE_URL: url, SECRET_KEY: key, PRIVATE_TARGETS: '*', TELEGRAM_API: telegram.origin };
    ({ adapters, operator } = await openOperator(env));
  });
  t.after(async () => {
    await adapters?.close();
    telegram?.close();
  });

  const checked = async (
    platform: 'bluesky' | 'telegram',
    externalId: string,
    credential: { readonly secret: Readonly<Record<string, Json>>; readonly expiresAt: string | null },
  ) => {
    const id = randomUUID();
    const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform };
    const connect = {
      ...({ type: 'Connect', clientId: owner.clientId, platform, externalId, network: 'live' } as const),
      ...{ inviteId: null, username: null, displayName: null, avatarUrl: null, scopes: [], expiresAt: null },
      timezone: null,
    };
    const { store, positions } = operator;
    await execute(store, account, id, connect, contextOf(operator, owner.workspaceId), { positions });
    await adapters.credentials.keep({ accountId: id, ...owner }, credential);
    const args = ['network', 'check', platform, '--account', id, '--yes'];
    const { code, output } = await run('services/admin/main.ts', { env, args });
    assert.equal(code, 0, output);
    assert.match(output, /Published: \S+\ndeleted\n/);
    return output;
  };

  t('bluesky: one post is written to the repository of the account, and deleted from it', async () => {
    if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
    const { pds } = opened;
    const identity = await pds.identity();
    const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
    const asked = { handle: identity.handle, password: await pds.appPassword(identity) };
    const options = { http, resolver: pds.service, directory: pds.directory };
    const made = await connectByAppPassword(options, asked, AbortSignal.timeout(10_000));
    assert.ok(made.kind === 'connected', JSON.stringify(made));
    const revOf = async () =>
      (await pds.call('com.atproto.sync.getLatestCommit', { params: { did: identity.did } })).rev;
    const before = await revOf();
    const output = await checked('bluesky', identity.did, made.credential);
    assert.match(output, new RegExp(`Published: https://bsky\\.app/profile/${identity.did}/post/\\w+\\n`));
    assert.notEqual(await revOf(), before, 'nothing was written');
    const params = { repo: identity.did, collection: 'app.bsky.feed.post' };
    assert.deepEqual((await pds.call('com.atproto.repo.listRecords', { params })).records, []);
  });

  t('telegram: one message is sent to the chat of the account, and deleted from it', async () => {
    const [bot, chat] = [telegram.bot(), telegram.chat({ username: 'acme_news' })];
    const secret = { botToken: bot.token, chatId: String(chat.id) };
    const output = await checked('telegram', String(chat.id), { secret, expiresAt: null });
    const [message, ...others] = telegram.ledger;
    assert.ok(message !== undefined && others.length === 0);
    assert.match(message.text ?? '', /^A test of our publishing software.*\([0-9a-f]{8}\)$/);
    assert.ok(!chat.messages.has(message.messageId), 'it is still there');
    assert.ok(!output.includes(bot.token));
  });
});
