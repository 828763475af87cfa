/**
 * A channel of Telegram by the operator's bot, over separate processes: a code is posted in the channel while the process
 * that listens is killed, the account posts, and what happens to the post and to the bot is heard.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { account } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { operatorConnector } from '#infra/platforms/telegram/index.ts';
import { PostgresConnectCodes } from '#infra/postgres/connect-codes.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { PostgresHeardPosts } from '#infra/postgres/heard-posts.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import type { Bot, Chat } from '#test/support/networks/telegram/state.ts';
import { dataFolder, testDatabase } from '#test/support/postgres.ts';
import { type Process, run, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite("a channel by the operator's bot, over separate processes", { timeoutMs: 180_000 }, (t) => {
  let env: Record<string, string>;
  let network: TelegramSimulator;
  let bot: Bot;
  let chat: Chat;
  let group: Chat;
  let pool: pg.Pool;
  let events: PostgresEventStore;
  let http: Caller;
  let workspaceId = '';
  let clientId = '';
  let accountId = '';
  const processes: Process[] = [];
  let listeners: Process[] = [];

  const launch = async (main: string): Promise<Process> => {
    const one = await start(main, { env });
    processes.push(one);
    return one;
  };
  const admin = async (...args: string[]): Promise<Readonly<Record<string, string>>> => {
    const { code, output } = await run('services/admin/main.ts', { env, args: [...args, '--json'] });
    assert.equal(code, 0, output);
    return JSON.parse(output.split('\n').at(-1) ?? '');
  };
  /** The process that listens, by its own figures. */
  const hearing = (): Promise<Process> =>
    until('one process listens', async () => {
      for (const one of listeners.filter(({ running }) => running)) {
        const figures = await (await fetch(one.opsUrl('/metrics'))).text();
        if (/^network_hearing\{.*platform="telegram".*\} 1$/m.test(figures)) return one;
      }
      return null;
    });

  t.before(async () => {
    network = await TelegramSimulator.start();
    bot = network.bot();
    group = network.chat({ type: 'supergroup' });
    chat = network.chat({ username: 'cafe_bot', linkedId: group.id });
    const { url } = await testDatabase();
    env = {
      ...{ DATABASE_URL: url, SECRET_KEY: `v1:${randomBytes(32).toString('base64')}`, PORT: '0' },
      ...{ DATA_DIR: dataFolder().dataDir, DATABASE_POOL: '4', LEASE_TTL_MS: '2000', SWEEP_INTERVAL_MS: '300' },
      ...{ PRIVATE_TARGETS: new URL(network.origin).host, TELEGRAM_API: network.origin },
      TELEGRAM_BOT_TOKEN: bot.token,
    };
    pool = openPool({ url });
    listeners = await Promise.all([launch('services/outcomes/main.ts'), launch('services/outcomes/main.ts')]);
    const [api] = await Promise.all([
      launch('services/api/main.ts'),
      launch('projections/main.ts'),
      launch('services/publisher/main.ts'),
    ]);
    workspaceId = (await admin('workspace', 'create', '--name', 'Café')).workspaceId ?? '';
    const { secret = '' } = await admin('key', 'create', '--mode', 'live');
    http = callerOf(() => api.url('/v1'), secret);
    ({ id: clientId } = (await http.post('/clients', { name: 'Café', type: 'brand' })).data);
    events = await PostgresEventStore.open({ url, partitions: defaultPartitions });
  });
  t.after(async () => {
    await Promise.all(processes.map((one) => one.kill()));
    await events?.close();
    await pool?.end();
    network?.close();
  });

  t('a code that is posted while the listener dies is heard by the next one, and connects the channel', async () => {
    const codes = new PostgresConnectCodes({ pool });
    const guarded = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
    const connector = operatorConnector({ http: guarded, api: network.origin, token: bot.token, codes });
    const signal = AbortSignal.timeout(60_000);
    const begun = await connector.begin(workspaceId, signal);
    assert.ok(begun.kind === 'begun');
    const first = await hearing();
    await first.kill();
    network.write(chat, `/connect ${begun.code}`);
    const found = await until('the code is heard', async () => {
      const one = await connector.found(begun.code, signal);
      assert.ok(one.kind === 'accounts', JSON.stringify(one));
      return one.accounts.length > 0 && one.accounts;
    });
    assert.notEqual((await hearing()).pid, first.pid);
    const [offered] = found;
    assert.ok(offered !== undefined && found.length === 1);
    // As the page of the link does it.
    const { externalId, consentEndsAt: expiresAt, ...profile } = offered.profile;
    accountId = accountIdOf(clientId, 'telegram', externalId);
    const dataKeys = new PostgresDataKeys({ pool, secrets: new Secrets(env.SECRET_KEY ?? '') });
    const owner = { accountId, workspaceId, clientId, platform: 'telegram' } as const;
    await new PostgresCredentials({ pool, keys: dataKeys }).keep(owner, offered.credential);
    const store = new DomainStore(events, new EventCodec(dataKeys), defaultPartitions);
    const who = { clientId, platform: 'telegram', externalId, network: 'live' } as const;
    const id = uuidv7();
    await execute(
      store,
      account,
      accountId,
      { type: 'Connect', ...who, ...profile, expiresAt, timezone: null, inviteId: randomUUID() },
      {
        ...{ workspaceId, actor: { type: 'guest', id: randomUUID() }, correlationId: id, causationId: id },
        ...{ commandId: id, now: new Date().toISOString() },
      },
    );
    await connector.forget(begun.code);
    assert.equal((await connector.found(begun.code, signal)).kind, 'refused');
    await until('the account', async () => (await http.get('/accounts')).rows[0]?.status === 'connected');
  });

  t('it posts, and what the network tells of the post is kept', async () => {
    const composed = await http.post('/posts', {
      ...{ clientId, content: 'Fresh rolls', targets: { mode: 'group', clientId }, schedule: { type: 'now' } },
    });
    assert.equal(composed.status, 200, composed.text);
    const target = await until('it is published', async () => {
      const [one] = (await http.get(`/posts/${composed.data.id}`)).data.targets as readonly Record<string, unknown>[];
      return one?.status === 'published' ? one : null;
    });
    const made = network.ledger.filter(({ chatId }) => chatId === chat.id);
    assert.deepEqual(
      made.map(({ text }) => text),
      ['Fresh rolls'],
    );
    const post = made[0]?.messageId ?? 0;
    assert.equal(target.permalink, `https://t.me/cafe_bot/${post}`);
    network.react(chat, post, { '👍': 5, '🔥': 1 });
    network.comment(group, group.lastId, 'Still warm?');
    const heard = new PostgresHeardPosts({ pool });
    const figures = await until('both are heard', async () => {
      const one = (await heard.of(String(chat.id), [post])).get(post);
      return one?.comments === 1 && one.reactions !== null && one;
    });
    assert.match(JSON.stringify(figures.reactions), /"total_count":5.*"total_count":1/);
  });

  t('a bot that is thrown out costs the account, which says so', async () => {
    network.allow(chat, 'kicked');
    const lapsed = await until('the account', async () => {
      const [one] = (await http.get('/accounts')).rows;
      return one?.status === 'reauth_required' ? one : null;
    });
    assert.match(JSON.stringify(lapsed), /The bot is not in this chat any more/);
  });

  t('the token stands in no row and in no line of a log', async () => {
    const { rows: tables } = await pool.query<{ name: string }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
    );
    const written = processes.map((one) => one.output());
    for (const { name } of tables) {
      const { rows } = await pool.query(`select string_agg(t::text, e'\\n') as text from ${name} t`);
      written.push(String(rows[0].text ?? ''));
    }
    const [, secret = ''] = bot.token.split(':');
    assert.ok(secret.length > 8 && written.join('').length > 5_000);
    for (const form of [secret, Buffer.from(secret).toString('hex')]) assert.ok(!written.join('\n').includes(form));
  });
});
