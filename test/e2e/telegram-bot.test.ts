/**
 * A channel of Telegram by the operator's bot, over separate processes: a code of the connect page is posted in the channel
 * while the process that listens is killed, the api is killed before it gives the code back, the account posts, and what happens to the post and to the bot is heard.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { PostgresHeardPosts } from '#infra/postgres/heard-posts.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { Guest } from '#test/support/guest.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import type { Bot, Chat } from '#test/support/networks/telegram/state.ts';
import { dataFolder, preparedDatabase } from '#test/support/postgres.ts';
import { type Process, run, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { timesEnv } from '#test/support/times.ts';
import { until } from '#test/support/until.ts';

suite("a channel by the operator's bot, over separate processes", { timeoutMs: 180_000 }, (t) => {
  let env: Record<string, string>;
  let network: TelegramSimulator;
  let bot: Bot;
  let chat: Chat;
  let group: Chat;
  let pool: pg.Pool;
  let api: Process;
  let http: Caller;
  let clientId = '';
  /** Of the connect link, and of the page with the code. */
  let link = '';
  let page = '';
  const guest = new Guest(() => api.url(''));
  const processes: Process[] = [];
  let listeners: Process[] = [];

  const launch = async (main: string, more: Readonly<Record<string, string>> = {}): Promise<Process> => {
    const one = await start(main, { env: { ...env, ...more } });
    processes.push(one);
    return one;
  };
  /** Starts the api, which dies at the point once it comes there. */
  const child = async (point: string): Promise<void> => {
    api = await launch('services/api/main.ts', { POSTLINE_FAULT: point });
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
    const { url } = await preparedDatabase();
    env = {
      ...{ DATABASE_URL: url, SECRET_KEY: `v1:${randomBytes(32).toString('base64')}`, PORT: '0' },
      ...{ DATA_DIR: dataFolder().dataDir, DATABASE_POOL: '4', LEASE_TTL_MS: '2000' },
      ...timesEnv({ sweepIntervalMs: 300 }),
      ...{ PRIVATE_TARGETS: new URL(network.origin).host, TELEGRAM_API: network.origin },
      TELEGRAM_BOT_TOKEN: bot.token,
    };
    pool = openPool({ url });
    listeners = await Promise.all([launch('services/outcomes/main.ts'), launch('services/outcomes/main.ts')]);
    await Promise.all([
      child('connect:after-code'),
      launch('projections/main.ts'),
      launch('services/publisher/main.ts'),
    ]);
    await admin('workspace', 'create', '--name', 'Café');
    const { secret = '' } = await admin('key', 'create', '--mode', 'live');
    http = callerOf(() => api.url('/v1'), secret);
    ({ id: clientId } = (await http.post('/clients', { name: 'Café', type: 'brand' })).data);
  });
  t.after(async () => {
    await Promise.all(processes.map((one) => one.kill()));
    await pool?.end();
    network?.close();
  });

  t('a code of the page is posted while the listener dies, and heard by the next one', async () => {
    const made = await http.post(`/clients/${clientId}/connect-invites`, { platforms: ['telegram'] });
    assert.equal(made.status, 200, made.text);
    link = new URL(String(made.data.url)).pathname;
    assert.match((await guest.get(link)).html, /Get a code for Telegram/);
    page = await guest.sent(link, { platform: 'telegram', way: 'code', timezone: 'Europe/Berlin' });
    const { html } = await guest.get(page);
    const [, command = ''] = /<code class="copy">(\/connect [A-Z2-9]{10})</.exec(html) ?? [];
    assert.ok(html.includes(`@${bot.username}`) && command !== '', html);
    assert.match((await guest.post(page)).html, /The message has not arrived yet/);
    const first = await hearing();
    await first.kill();
    network.write(chat, command);
    await until('the code is heard', async () => {
      const { rows } = await pool.query('select from ops.connect_codes where places = $1', [[String(chat.id)]]);
      return rows.length === 1;
    });
    assert.notEqual((await hearing()).pid, first.pid);
  });

  t('an api that dies before it gives the code back has connected the channel: the same button goes on', async () => {
    await assert.rejects(guest.post(page), TypeError);
    assert.equal((await api.exited()).signal, 'SIGKILL');
    await child('connect:after-choice');
    const rows = () => http.get(`/accounts?clientId=${clientId}`).then((answer) => answer.rows);
    const [account] = await until('the account', async () => {
      const all = await rows();
      return all.length > 0 && all;
    });
    assert.deepEqual([account?.status, account?.externalId], ['connected', String(chat.id)]);
    assert.match((await guest.get(page)).html, /I have posted it/);
    assert.equal(await guest.sent(page), link);
    assert.match((await guest.get(link)).html, /<bdi>cafe_bot<\/bdi><\/strong> \(connected\)/);
    assert.match((await guest.post(page)).html, /This step has ended/);
    assert.equal((await pool.query('select from ops.connect_codes')).rowCount, 0);
    assert.deepEqual(await rows(), [account], 'nothing more was stored');
  });

  t(
    'an api that dies between the choice and its accounts: the guest begins again, and nothing is there twice',
    async () => {
      const other = (await http.post('/clients', { name: 'Bakery', type: 'brand' })).data.id;
      const made = await http.post(`/clients/${other}/connect-invites`, { platforms: ['telegram'] });
      const path = new URL(String(made.data.url)).pathname;
      const chats = [network.chat({ username: 'bakery_news' }), network.chat({ username: 'bakery_jobs' })];
      const asked = { platform: 'telegram', way: 'code', timezone: '' };
      const chosen = [0, 1].map((at) => ['account', String(at)] as const);
      const connected = async () => {
        const { rows } = await http.get(`/accounts?clientId=${other}`);
        return rows.map(({ externalId }) => externalId).toSorted();
      };
      const choice = async (): Promise<string> => {
        const waiting = await guest.sent(path, asked);
        const [, command = ''] =
          /<code class="copy">(\/connect [A-Z2-9]{10})</.exec((await guest.get(waiting)).html) ?? [];
        for (const one of chats) network.write(one, command);
        await until('both are heard', async () => {
          const { rows } = await pool.query('select from ops.connect_codes where cardinality(places) = 2');
          return rows.length === 1;
        });
        return guest.sent(waiting);
      };
      for (const [next, left] of [
        ['connect:between-choices', 0],
        ['', 1],
      ] as const) {
        const shown = await choice();
        await assert.rejects(guest.post(shown, chosen), TypeError);
        assert.equal((await api.exited()).signal, 'SIGKILL');
        await child(next);
        assert.match((await guest.get(shown)).html, /This step has ended/);
        await until('as many accounts as were connected', async () => (await connected()).length === left);
      }
      assert.equal(await guest.sent(await choice(), chosen), path);
      const both = chats.map(({ id }) => String(id)).toSorted();
      await until('both accounts', async () => JSON.stringify(await connected()) === JSON.stringify(both));
      assert.equal((await pool.query('select from ops.connect_codes')).rowCount, 0);
    },
  );

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
      const answer = await http.get(`/accounts?clientId=${clientId}`);
      assert.equal(answer.status, 200, answer.text);
      const [one] = answer.rows;
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
