/**
 * A channel of Telegram by the operator's bot, before a strict Bot API: a code of the connect page is posted in the channel
 * while the process that listens is killed, the api is killed before it gives the code back, the account posts, and what
 * happens to the post and to the bot is heard.
 */
import assert from 'node:assert/strict';
import type pg from 'pg';
import { openPool } from '#infra/postgres/pool.ts';
import { PostgresPushedPosts } from '#infra/postgres/pushed-posts.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import type { Bot, Chat } from '#test/support/networks/telegram/state.ts';
import type { Process } from '#test/support/processes.ts';
import type { Declare } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { isOut, type LiveWorld, type Place } from './world.ts';

export const channelOfTelegram = (t: Declare, world: LiveWorld): Place => {
  let network: TelegramSimulator;
  let bot: Bot;
  let chat: Chat;
  let group: Chat;
  /** Of the post to all networks. */
  let everybody: Chat;
  let pool: pg.Pool;
  let clientId = '';
  const guest = world.guest();
  /** Of the connect link, and of the page with the code. */
  let link = '';
  let page = '';
  let listeners: readonly Process[] = [];

  world.join(async () => {
    network = await TelegramSimulator.start();
    bot = network.bot();
    group = network.chat({ type: 'supergroup' });
    chat = network.chat({ username: 'cafe_bot', linkedId: group.id });
    const { origin } = network;
    return { origin, env: { TELEGRAM_API: origin, TELEGRAM_BOT_TOKEN: bot.token }, close: () => network.close() };
  });
  t.before(() => {
    pool = openPool({ url: world.databaseUrl });
    listeners = [world.outcomes];
  });
  t.after(() => pool?.end());

  /** The process that listens, by its own figures. */
  const hearing = (): Promise<Process> =>
    until('one process listens', async () => {
      for (const one of listeners.filter(({ running }) => running)) {
        const figures = await (await fetch(one.opsUrl('/metrics'))).text();
        if (/^network_hearing\{.*platform="telegram".*\} 1$/m.test(figures)) return one;
      }
      return null;
    });

  t('telegram: a code of the page is posted while the listener dies, and heard by the next one', async () => {
    listeners = [...listeners, await world.launch('services/outcomes/main.ts')];
    await world.api.kill();
    await world.startApi('connect:after-code');
    clientId = await world.client('Café on Telegram');
    link = await world.link(clientId, ['telegram']);
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

  t(
    'telegram: an api that dies before it gives the code back has connected the channel: the same button goes on',
    async () => {
      await world.died(guest.post(page));
      await world.startApi('connect:after-choice');
      const rows = () => world.http.get(`/accounts?clientId=${clientId}`).then((answer) => answer.rows);
      const [account] = await world.accounts(clientId);
      assert.deepEqual([account?.status, account?.externalId], ['connected', String(chat.id)]);
      assert.match((await guest.get(page)).html, /I have posted it/);
      assert.equal(await guest.sent(page), link);
      assert.match((await guest.get(link)).html, /<bdi>cafe_bot<\/bdi><\/strong> \(connected\)/);
      assert.match((await guest.post(page)).html, /This step has ended/);
      assert.equal((await pool.query('select from ops.connect_codes')).rowCount, 0);
      assert.deepEqual(await rows(), [account], 'nothing more was stored');
    },
  );

  t(
    'telegram: an api that dies between the choice and its accounts: the guest begins again, and nothing is there twice',
    async () => {
      const other = await world.client('Bakery');
      const path = await world.link(other, ['telegram']);
      const chats = [network.chat({ username: 'bakery_news' }), network.chat({ username: 'bakery_jobs' })];
      const asked = { platform: 'telegram', way: 'code', timezone: '' };
      const chosen = [0, 1].map((at) => ['account', String(at)] as const);
      const connected = async () => {
        const { rows } = await world.http.get(`/accounts?clientId=${other}`);
        return rows.map(({ externalId }) => externalId).toSorted();
      };
      const choice = async (): Promise<string> => {
        const waiting = await guest.sent(path, asked);
        const [, command = ''] =
          /<code class="copy">(\/connect [A-Z2-9]{10})</.exec((await guest.get(waiting)).html) ?? [];
        for (const one of chats) network.write(one, command);
        await until('both are there', async () => {
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
        await world.died(guest.post(shown, chosen));
        await world.startApi(next);
        assert.match((await guest.get(shown)).html, /This step has ended/);
        await until('as many accounts as were connected', async () => (await connected()).length === left);
      }
      assert.equal(await guest.sent(await choice(), chosen), path);
      const both = chats.map(({ id }) => String(id)).toSorted();
      await until('both accounts', async () => JSON.stringify(await connected()) === JSON.stringify(both));
      assert.equal((await pool.query('select from ops.connect_codes')).rowCount, 0);
    },
  );

  t('telegram: it posts, and what the network tells of the post is kept', async () => {
    const target = await world.target(await world.compose(clientId, { content: 'Fresh rolls' }), isOut);
    const made = network.ledger.filter(({ chatId }) => chatId === chat.id);
    assert.deepEqual(
      made.map(({ text }) => text),
      ['Fresh rolls'],
    );
    const post = made[0]?.messageId ?? 0;
    assert.equal(target.permalink, `https://t.me/cafe_bot/${post}`);
    network.react(chat, post, { '👍': 5, '🔥': 1 });
    network.comment(group, group.lastId, 'Still warm?');
    const pushed = new PostgresPushedPosts({ pool });
    const figures = await until('both are there', async () => {
      const one = (await pushed.of(String(chat.id), [post])).get(post);
      return one?.comments === 1 && one.reactions !== null && one;
    });
    assert.match(JSON.stringify(figures.reactions), /"total_count":5.*"total_count":1/);
  });

  t('telegram: a bot that is thrown out costs the account, which says so', async () => {
    network.allow(chat, 'kicked');
    const lapsed = await until('the account', async () => {
      const answer = await world.http.get(`/accounts?clientId=${clientId}`);
      assert.equal(answer.status, 200, answer.text);
      const [one] = answer.rows;
      return one?.status === 'reauth_required' ? one : null;
    });
    assert.match(JSON.stringify(lapsed), /The bot is not in this chat any more/);
  });

  t('telegram: the token stands in no row and in no line of a log', async () => {
    const { rows: tables } = await pool.query<{ name: string }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
    );
    const written = world.processes.map((one) => one.output());
    for (const { name } of tables) {
      const { rows } = await pool.query(`select string_agg(t::text, e'\\n') as text from ${name} t`);
      written.push(String(rows[0].text ?? ''));
    }
    const [, secret = ''] = bot.token.split(':');
    assert.ok(secret.length > 8 && written.join('').length > 5_000);
    for (const form of [secret, Buffer.from(secret).toString('hex')]) assert.ok(!written.join('\n').includes(form));
  });

  return {
    platform: 'telegram',
    seen: (words) => {
      const { messageId = 0 } = network.ledger.find(({ text }) => text === words) ?? {};
      network.react(everybody, messageId, { '👍': 5 });
    },
    connect: async (to) => {
      everybody = network.chat({ username: 'cafe_of_all' });
      const visitor = world.guest();
      const waiting = await visitor.sent(to, { platform: 'telegram', way: 'code', timezone: '' });
      const { html } = await visitor.get(waiting);
      const [, command = ''] = /<code class="copy">(\/connect [A-Z2-9]{10})</.exec(html) ?? [];
      await hearing();
      network.write(everybody, command);
      await until('the code is heard', async () => {
        const sql = 'select from ops.connect_codes where places = $1';
        return (await pool.query(sql, [[String(everybody.id)]])).rows.length === 1;
      });
      assert.equal(await visitor.sent(waiting), to);
    },
    shown: (words) =>
      network.ledger.filter(({ text }) => text === words).map(({ chatId, messageId }) => `${chatId}:${messageId}`),
  };
};
