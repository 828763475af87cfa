import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Credential } from '#contracts/ports/credentials.ts';
import type { HearingState } from '#contracts/ports/network-listener.ts';
import { account } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { newCode, TelegramListener } from '#infra/platforms/telegram/index.ts';
import { PostgresConnectCodes } from '#infra/postgres/connect-codes.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { PostgresPushedPosts } from '#infra/postgres/pushed-posts.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { type ListeningDeps, runListening } from '#services/outcomes/listening.ts';
import { Mortals } from '#test/support/mortals.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import type { Bot, Chat } from '#test/support/networks/telegram/state.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('./listening-process.ts', import.meta.url));

suite('networks are listened to', { timeoutMs: 180_000 }, (t) => {
  const key = `v1:${randomBytes(32).toString('base64')}`;
  const logFile = path.join(tmpdir(), `postline-listening-${randomUUID()}.log`);
  const logger = createLogger('test', 'info', logFile);
  const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
  let world: PublishingWorld;
  let network: TelegramSimulator;
  let keys: PostgresDataKeys;
  let credentials: PostgresCredentials;
  let connectCodes: PostgresConnectCodes;
  let pushedPosts: PostgresPushedPosts;
  let clientId: string;
  /** Each test has a bot of its own. */
  let bot: Bot;
  const mortals = new Mortals(script, () => [world.url, key, network.origin, bot.token]);

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    network = await TelegramSimulator.start();
    const { pool } = world;
    keys = new PostgresDataKeys({ pool, secrets: new Secrets(key) });
    credentials = new PostgresCredentials({ pool, keys });
    connectCodes = new PostgresConnectCodes({ pool });
    pushedPosts = new PostgresPushedPosts({ pool });
    clientId = await world.client();
  });
  t.after(async () => {
    await mortals.end();
    await world?.close();
    network?.close();
    rmSync(logFile, { force: true });
  });

  const consent = async (of: string, chat: Chat, secret: Credential['secret'] = { operatorBot: true }) => {
    const externalId = String(chat.id);
    const id = accountIdOf(of, 'telegram', externalId);
    const owner = { accountId: id, workspaceId: world.workspaceId, clientId: of, platform: 'telegram' } as const;
    await credentials.keep(owner, { secret: { ...secret, chatId: externalId }, expiresAt: null });
    const profile = { username: null, displayName: chat.title, avatarUrl: null, scopes: [], expiresAt: null };
    const who = { clientId: of, platform: 'telegram', externalId, network: 'live' } as const;
    const command = { type: 'Connect', ...who, ...profile, timezone: null, inviteId: randomUUID() } as const;
    await execute(world.store, account, id, command, world.context());
    await until('the read model', async () => {
      const { rows } = await world.pool.query('select status from read.accounts where id = $1', [id]);
      return rows[0]?.status === 'connected';
    });
    return id;
  };
  const lapsesOf = async (id: string) =>
    (await world.store.readStream(`account-${id}`)).filter(({ type }) => type === 'AccountReauthRequired');
  const listening = (over: Partial<ListeningDeps> = {}) =>
    world.run((signal) => {
      const quick = { unavailable: 20, conflict: 20, hearing: 20 };
      const listener = new TelegramListener({
        ...{ http, api: network.origin, token: bot.token, codes: connectCodes, pushed: pushedPosts, pauses: quick },
      });
      const deps = {
        refusedMs: 20,
        credentials,
        connectCodes,
        pushedPosts,
        pool: world.pool,
        store: world.store,
        now: Date.now,
      };
      const config = { sweepIntervalMs: 100, leaseTtlMs: 900 };
      return runListening({ ...deps, listeners: { telegram: listener }, config, logger, ...over }, signal);
    });
  const drained = () => until('all is confirmed', () => bot.updates.length === 0);
  /** Its kinds are asked for before anything happens. */
  const attentive = () => until('the network is listened to', () => bot.listener !== null);
  const minted = async (): Promise<string> => {
    const code = newCode();
    await connectCodes.mint(code, world.workspaceId);
    return code;
  };

  t('of several processes one listens, and another goes on after it is killed', async () => {
    bot = network.bot();
    const states: (HearingState['kind'] | null)[] = [];
    const first = await mortals.child('');
    await attentive();
    const second = listening({ onHearing: (_, state) => void states.push(state) });
    const code = await minted();
    const [before, after] = [network.chat(), network.chat()];
    network.write(before, `/connect ${code}`);
    await drained();
    assert.deepEqual(states, [], 'the second stands by');
    first.kill('SIGKILL');
    const killedAt = performance.now();
    network.write(after, `/connect ${code}`);
    await until('the second has read it', async () => (await connectCodes.placesOf(code))?.length === 2);
    assert.ok(performance.now() - killedAt < 15_000);
    assert.deepEqual(await connectCodes.placesOf(code), [String(before.id), String(after.id)]);
    await second.stop();
    assert.deepEqual([...new Set(states)], ['hearing', null]);
  });

  t('a process that dies between any two writes loses nothing and doubles nothing', async () => {
    for (const point of [
      ...['connect-codes.taken', 'connect-codes.spoken', 'pushed-posts.reactions', 'pushed-posts.discussions'],
      ...['pushed-posts.comments', 'outcomes:after-loss'],
    ]) {
      bot = network.bot();
      const group = network.chat({ type: 'supergroup', admins: [11] });
      const channel = network.chat({ linkedId: group.id });
      const ids = [await consent(clientId, channel), await consent(await world.client(), channel)];
      const code = await minted();
      const mortal = await mortals.child(point);
      await attentive();
      // All of it waits until the network is asked for it at once.
      const { listener } = bot;
      bot.listener = null;
      group.lastId = 900;
      network.tell({
        message: {
          ...{ message_id: 900, chat: { id: group.id }, is_automatic_forward: true },
          forward_origin: { type: 'channel', chat: { id: channel.id }, message_id: 501 },
        },
      });
      network.comment(group, 900, 'One');
      network.comment(group, 900, 'Two');
      network.react(channel, 501, { '👍': 7 });
      network.write(group, `/connect ${code}`, { id: 11 });
      network.allow(channel, 'kicked');
      listener?.(false);
      await mortals.died(mortal);
      const survivor = listening();
      await drained();
      await survivor.stop();
      const figures = (await pushedPosts.of(String(channel.id), [501])).get(501);
      assert.equal(figures?.comments, 2, point);
      assert.match(JSON.stringify(figures?.reactions), /"total_count":7/, point);
      assert.deepEqual(await connectCodes.placesOf(code), [String(group.id)], point);
      for (const id of ids) assert.equal((await lapsesOf(id)).length, 1, point);
    }
  });

  t('a chat that lost the bot costs the accounts of that bot, in every workspace, and no others', async () => {
    bot = network.bot();
    const [lost, kept] = [network.chat(), network.chat()];
    const [one, another, own, left] = [
      ...[await consent(clientId, lost), await consent(await world.client(), lost)],
      ...[await consent(await world.client(), lost, { botToken: '7:own' }), await consent(await world.client(), lost)],
    ] as [string, string, string, string];
    const elsewhere = await consent(clientId, kept);
    await execute(world.store, account, left, { type: 'Disconnect', reason: 'left' }, world.context());
    const running = listening();
    await attentive();
    network.allow(lost, 'no_posts');
    await drained();
    await running.stop();
    for (const id of [one, another]) {
      const [lapse] = await lapsesOf(id);
      assert.match(String(lapse?.data.reason), /right to post messages/);
    }
    for (const id of [own, left, elsewhere]) assert.deepEqual(await lapsesOf(id), []);
  });

  t('a consent that comes while the network is asked wins', async () => {
    bot = network.bot();
    const chat = network.chat();
    const id = await consent(clientId, chat);
    const running = listening();
    await attentive();
    // The second question comes after the account was read.
    network.arm('getChatMember', { kind: 'delay', ms: 0 }, { kind: 'delay', ms: 400 });
    const asked = () => network.calls.filter(({ method }) => method === 'getChatMember').length;
    const before = asked();
    network.allow(chat, 'no_posts');
    await until('the network is asked again', () => asked() === before + 2);
    chat.rights = 'admin';
    await consent(clientId, chat);
    await drained();
    await running.stop();
    assert.deepEqual(await lapsesOf(id), []);
  });

  t('a client whose key is missing keeps nothing from the others', async () => {
    bot = network.bot();
    const chat = network.chat();
    const broken = await world.client();
    const [locked, open] = [await consent(broken, chat), await consent(await world.client(), chat)];
    await world.pool.query('delete from ops.data_keys where client_id = $1', [broken]);
    // A process that has not read the key before.
    const unread = new PostgresDataKeys({ pool: world.pool, secrets: new Secrets(key) });
    const running = listening({ credentials: new PostgresCredentials({ pool: world.pool, keys: unread }) });
    await attentive();
    network.allow(chat, 'kicked');
    await drained();
    await running.stop();
    assert.deepEqual([(await lapsesOf(locked)).length, (await lapsesOf(open)).length], [0, 1]);
  });

  t('what was pushed ends with the account, also where nobody listens', async () => {
    const [gone, erased, kept] = [network.chat(), network.chat(), network.chat()];
    const other = await world.client();
    const [id] = [await consent(clientId, gone), await consent(clientId, kept), await consent(other, erased)];
    const reactions = [gone, erased, kept].map((chat) => ({ place: String(chat.id), post: 1, at: 1, said: {} }));
    await pushedPosts.keep({ reactions, discussions: [], comments: [] });
    const running = listening({ listeners: {} });
    const places = async () => {
      const { rows } = await world.pool.query('select place::text from ops.pushed_posts where place = any($1)', [
        [gone, erased, kept].map((chat) => chat.id),
      ]);
      return rows.map(({ place }) => place).toSorted();
    };
    await execute(world.store, account, id as string, { type: 'Disconnect', reason: 'left' }, world.context());
    await credentials.destroyOfClient(other);
    await until('both are forgotten', async () => (await places()).length === 1);
    assert.deepEqual(await places(), [String(kept.id)]);
    await running.stop();
  });

  t('a refused token and another listener are told to the operator once, without the token', async () => {
    bot = network.bot();
    bot.isRevoked = true;
    const states: (HearingState['kind'] | null)[] = [];
    const running = listening({
      onHearing: (platform, state) => void states.push(platform === 'telegram' ? state : null),
    });
    await until('it is refused several times', () => states.length > 3);
    bot.isRevoked = false;
    bot.hasWebhook = true;
    await until('it conflicts', () => states.includes('conflict'));
    bot.hasWebhook = false;
    await until('it hears', () => bot.listener !== null);
    await running.stop();
    const log = await until('it is in the log', () => {
      const text = readFileSync(logFile, 'utf8');
      return text.includes('the configured token') && text.includes('one installation a bot') && text;
    });
    const [, secret = 'none'] = bot.token.split(':');
    assert.ok(!log.includes(secret));
    const lines = log.split('\n').filter((line) => line.includes('the configured token'));
    assert.equal(lines.length, 1);
    assert.match(String(lines[0]), /"level":50.*401 Unauthorized/);
    assert.equal(log.split('\n').filter((line) => line.includes('one installation a bot')).length, 1);
  });
});
